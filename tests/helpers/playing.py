"""A page of the documentation, played: its blocks run in their order, in one folder.

A block of a console runs its commands; one of Python is a program, a session where it begins with
`>>>`, or a script for later where its first line is `# NAME.py`. What comes out is compared with
what the page says. `python tests/helpers/playing.py PAGE...` writes what comes out into the pages.
"""

import contextlib
import doctest
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from blocks import code, walk_of
from console import alike, run, steps, tidy
from waiting import LIMIT

NAME = re.compile(r"# (\w+\.py)\n")


def played(page, folder):
    """Runs the blocks of a page; yields what differs, in words with the line."""
    for block in code(page):
        if not block.reason:
            where = f"{page}:{block.line}"
            yield from (f"{where}: {wrong}" for wrong, *_ in play(block, folder) if wrong)


def play(block, folder):
    """Runs a block: what is wrong with each of its steps, what it is, and what it prints."""
    if block.kind == "console":
        return console(block, folder)
    name = NAME.match(block.text)
    if name:
        (folder / name[1]).write_text(block.text.partition("\n")[2])
        return []
    return session(block, folder) if block.text.startswith(">>> ") else program(block, folder)


def console(block, folder):
    """Runs the commands of a block."""
    found = steps(f"```console\n{block.text}```")
    if not found:
        yield "a block of a console has commands behind `$ `", "", ""
    for command, output in found:
        printed = run(command, folder)
        same = alike(printed, tidy(output))
        yield "" if same else f"$ {command}\n{printed}", f"$ {command}\n", f"{printed}\n"


def program(block, folder):
    """Runs a block of Python as a program of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:Error reading persistent", "-c", block.text],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    printed = tidy(done.stdout)
    wanted = printed if block.output is None else tidy(block.output.text)
    differs = "" if alike(printed, wanted) else f"it prints\n{printed}"
    yield done.stderr if done.returncode else differs, "", printed


def session(block, folder):
    """Runs the lines of a session, each of which sees what the ones before have made."""
    names: dict = {}
    with contextlib.chdir(folder):
        for example in doctest.DocTestParser().get_examples(block.text):
            with contextlib.redirect_stdout(io.StringIO()) as text:
                exec(compile(example.source, "<page>", "single"), names)
            printed, lines = tidy(text.getvalue()), example.source.splitlines()
            asked = "".join(f"{'...' if n else '>>>'} {x}\n" for n, x in enumerate(lines))
            same = alike(printed, tidy(example.want))
            yield "" if same else f"{asked}{printed}", asked, printed


def anew(page, folder):
    """The text of a page with what its blocks print now."""
    lines = page.read_text().splitlines(keepends=True)
    for block in reversed([(b, list(play(b, folder))) for b in code(page) if not b.reason]):
        one, done = block
        shown = one if one.output is None else one.output
        if done and (one.kind == "console" or one.output or one.text.startswith(">>> ")):
            body = "".join(f"{asked}{printed}" for _, asked, printed in done).rstrip("\n") + "\n"
            lines[shown.line : shown.line + shown.text.count("\n")] = [body]
    return "".join(lines)


def write(chosen):
    """Writes what comes out into pages, each walk played once."""
    walks = sorted(map(walk_of, chosen), key=len, reverse=True)
    done = set()
    for walk in walks:
        if walk[-1] not in done:
            with tempfile.TemporaryDirectory() as folder:
                texts = {page: anew(page, Path(folder)) for page in walk}
            for page in chosen & set(walk):
                page.write_text(texts[page])
            done |= set(walk)


if __name__ == "__main__":
    write({Path(name).resolve() for name in sys.argv[1:]})
