"""What somebody does who has just installed Recoup: what README says, as it stands, and timed.

Started by `make rooms` in an empty folder, by the Python of a clean room: it uses nothing but the
standard library and what was installed. Its argument is the page whose examples it runs.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

FIRST_RESULT = 60  # seconds, at most, from the installed wheel to the first told result
MORE = (  # what README leads to at once, beside what stands in it
    "recoup --version",
    "recoup methods",
    "recoup train mountain-car --iterations 3 --seed 0 --out demo",
    "recoup study show arm.db",
    "recoup study plot arm.db --out arm.png",
    "recoup report arm.db --out arm.html",
)
WRONG = (
    "recoup study tell arm.db 999 1",
    "recoup nonsense",
    "recoup study ask",
)  # one sentence each
LEFT = ("arm.db", "demo/curve.png", "arm.png", "arm.html")  # files that are there in the end


def examples(page: str) -> tuple[list[str], list[str]]:
    """The programs in Python on a page, and the commands that it writes as code within a line."""
    programs = re.findall(r"```python\n(.*?)```", page, re.S)
    return programs, re.findall(r"`(recoup (?:study|train \S+-v\d) [^`]+)`", page)


def called(words: list[str], name: str) -> float:
    """Seconds that a program takes; one that fails ends everything, with what it said."""
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True)
    took = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    print(f"  {took:6.1f} s  {name}")
    return took


def typed(command: str) -> float:
    """Seconds that a command of the installed program takes."""
    program = Path(sys.executable).with_name("recoup")
    return called([str(program), *command.split()[1:]], command)


def refused(command: str) -> None:
    """Ends with what was said, unless wrong use is answered by one sentence and exit code 2."""
    program = Path(sys.executable).with_name("recoup")
    words = [str(program), *command.split()[1:]]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 2 or len(done.stderr.splitlines()) != 1:
        raise SystemExit(f"{command} ended with {done.returncode} and said:\n{done.stderr[-2000:]}")
    print(f"          {command}: {done.stderr.strip()}")


def away_from(clone: Path) -> None:
    """Ends with a sentence unless what is imported was installed, and lies outside of the clone."""
    import recoup

    home = Path(recoup.__file__).resolve()
    if "site-packages" not in home.parts or clone / "src" in home.parents:
        raise SystemExit(f"recoup is imported from {home}, and should be from the room")


def main() -> None:
    """Types what the page says, in its order, and then what it leads to."""
    page = Path(sys.argv[1]).resolve()
    away_from(page.parent)
    programs, commands = examples(page.read_text(encoding="utf-8"))
    told = next(i for i, command in enumerate(commands) if " tell " in command)
    first = sum(typed(command) for command in commands[: told + 1])
    print(f"  {first:6.1f} s from the installed wheel to the first told result")
    for number, program in enumerate(programs, 1):
        called([sys.executable, "-W", "error", "-c", program], f"README's example {number}")
    for command in (*commands[told + 1 :], *MORE):
        typed(command)
    for command in WRONG:
        refused(command)
    if missing := [name for name in LEFT if not Path(name).is_file()]:
        raise SystemExit(f"these were not written: {', '.join(missing)}")
    if first > FIRST_RESULT:
        raise SystemExit(f"the first result was told after {first:.0f} s, later than wanted")


if __name__ == "__main__":
    main()
