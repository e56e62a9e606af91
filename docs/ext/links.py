"""The links of pages that lead elsewhere: lists them, and asks each address whether it answers.

python docs/ext/links.py docs README.md: ends with 1 if one does not answer; --list asks nobody.
"""

import re
import sys
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ADDRESS = re.compile(r"https?://[^\s)\]>\"'`|]+")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.S | re.M)
LOCAL = re.compile(r"https?://(?:localhost|127\.|0\.0\.0\.0|\w+:)")
PATIENCE = 30.0  # seconds
NEEDS_A_READER = (403, 405, 429)  # it answers, but not to a program


def outside(text):
    """(line, address) of each link to elsewhere, but for those in code."""
    bare = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(bare.splitlines(), 1):
        for address in ADDRESS.findall(line):
            if not LOCAL.match(address):
                yield number, address.rstrip(".,;:")


def answer(address):
    """What is wrong with an address; empty if it answers."""
    try:
        with urlopen(Request(address, headers={"User-Agent": "links"}), timeout=PATIENCE):
            return ""
    except HTTPError as wrong:
        return "" if wrong.code in NEEDS_A_READER else f"{wrong.code} {wrong.reason}"
    except (URLError, OSError) as wrong:
        return str(getattr(wrong, "reason", wrong))


def files(names):
    """The pages below folders, and files by their names."""
    for name in map(Path, names):
        yield from sorted(name.rglob("*.md")) if name.is_dir() else [name]


def main(names, ask=answer):
    """Prints every link with its place; the number of those that do not answer."""
    links = [(path, *link) for path in files(names) for link in outside(path.read_text())]
    answers = {address: ask(address) for address in sorted({link[-1] for link in links})}
    for path, line, address in links:
        print(f"{path}:{line}: {address} {answers[address]}".rstrip())
    wrong = sum(map(bool, answers.values()))
    print(f"{len(links)} links to {len(answers)} addresses; {wrong} did not answer")
    return wrong


if __name__ == "__main__":
    quiet = {"ask": lambda address: ""} if "--list" in sys.argv else {}
    sys.exit(main([name for name in sys.argv[1:] if name != "--list"], **quiet) > 0)
