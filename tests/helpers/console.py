"""Console blocks of the docs: run them, and see that they print what is written.

A block is fenced as `console`; a line that begins with `$ ` is a command, what follows its output.
A `python` block whose first line is `# NAME.py` is a script that lies there.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

from waiting import LIMIT

BLOCK = re.compile(r"```console\n(.*?)```", re.S)
SCRIPT = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.S)
NUMBER = re.compile(r"-?\d+\.\d+")
TIME = re.compile(r"(?:\d{4}-\d\d-\d\d )?\b\d\d:\d\d\b|\bjust now\b|\b\d+ (?:min|h|d) ago\b")
LINE = re.compile("━+")  # as long as what stands below it
PLAIN = re.compile(r"recoup (?:study|report) [^|&;<>$`]*")
COLUMNS = "96"


def steps(text):
    """Commands and their outputs, in the order of the blocks."""
    found = []
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def run(command, cwd):
    """What a command prints, on either stream, without spaces at the ends of lines.

    What needs no shell is called in this process.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": COLUMNS, "RECOUP_TRACEBACK": ""}
    if PLAIN.fullmatch(command):
        from program import recoup

        with mock.patch.dict(os.environ, env):
            return tidy(recoup(*shlex.split(command)[1:], cwd=cwd, together=True).stdout)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    return tidy(done.stdout)


def write_scripts(text, cwd):
    for name, content in SCRIPT.findall(text):
        (Path(cwd) / name).write_text(content)


def alike(printed, written):
    """Whether two outputs are the same, but for the last digits of numbers, and times."""
    printed, written = (LINE.sub("━", TIME.sub("then", text)) for text in (printed, written))
    numbers = [[float(x) for x in NUMBER.findall(text)] for text in (printed, written)]
    rest = [NUMBER.sub("#", re.sub(r" +", " ", text)) for text in (printed, written)]
    close = all(abs(a - b) <= 2e-3 * abs(b) + 1e-4 for a, b in zip(*numbers, strict=False))
    return rest[0] == rest[1] and close


def tidy(output):
    return "".join(f"{line.rstrip()}\n" for line in output.rstrip().splitlines())
