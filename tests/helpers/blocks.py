"""Blocks of code on pages: where each stands, what it is, and why it is not run if it is not.

A comment `<!-- not run: reason -->` stands right above a block that is not run.
A block fenced as `text` right below one of Python is what that prints.
"""

import re
from typing import NamedTuple

FENCE = re.compile(r"^( *)(`{3,}|:{3,}|~{3,})(.*)$")
REASON = re.compile(r"<!-- not run: (.+) -->")
AFTER = re.compile(r"^<!-- after: (\S+) -->$", re.M)
PROGRAMS = ("recoup", "pip", "python", "make", "curl", "git", "export", "nohup")


class Block(NamedTuple):
    """A block of a page: its first line counts from 1, and is that of the fence."""

    line: int
    kind: str  # python, console, or another word behind the fence
    text: str
    reason: str  # why it is not run; empty if none is given
    output: "Block | None"  # the block below it that says what it prints


def blocks(text):
    """The blocks of a page, in their order."""
    lines, found, n = text.splitlines(), [], 0
    while n < len(lines):
        fence = FENCE.match(lines[n])
        if fence is None or fence[2][0] == ":":
            n += 1
            continue
        indent, mark, word = fence.groups()
        end = n + 1
        while end < len(lines) and lines[end].strip() != mark:
            end += 1
        body = "".join(f"{x.removeprefix(indent)}\n" for x in lines[n + 1 : end])
        found.append(Block(n + 1, _kind(word.strip(), body), body, _reason(lines, n), None))
        n = end + 1
    after = [*found[1:], None][: len(found)]
    return [_with_output(lines, *both) for both in zip(found, after, strict=True)]


def _kind(word, body):
    """What a block is: one without a word is a console's where it begins as a command."""
    first = body.split(maxsplit=1)[0] if body.strip() else ""
    if word in ("", "bash", "sh", "shell") and first in ("$", *PROGRAMS):
        return "console"
    return word


def _reason(lines, n):
    """The reason in the comment above the fence at `n`."""
    above = [x for x in lines[:n] if x.strip()][-1:]
    found = REASON.search(above[0]) if above else None
    return found[1] if found else ""


def _with_output(lines, one, other):
    """A block with what the next one says that it prints."""
    if other is None or other.kind != "text" or one.kind != "python":
        return one
    between = lines[one.line + one.text.count("\n") + 1 : other.line - 1]
    return one if any(x.strip() for x in between) else one._replace(output=other)


def walk_of(page):
    """The pages that a page goes on from, and it, in their order: one folder is theirs."""
    before = AFTER.search(page.read_text())
    return [*(walk_of((page.parent / before[1]).resolve()) if before else []), page]


def pages(root):
    """README and every page of the documentation that people write."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def code(page):
    """The blocks of a page that are Python or a console's."""
    return [one for one in blocks(page.read_text()) if one.kind in ("python", "console")]
