"""Plain English: lines and sentences of a page that are too long to read.

`python tests/helpers/plain_words.py` lists them; `--write` lowers the allowance of each page to
what it has now (and never raises one).
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALLOWANCE = ROOT / "tests" / "docs" / "plain_words.json"
LINE, SENTENCE = 120, 40  # characters of a line, words of a sentence
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.S | re.M)
TAG = re.compile(r"<[a-z/!][^>]*>")
FRONT = re.compile(r"\A---\n.*?^---\n", re.S | re.M)
LINK = re.compile(r"\]\([^)]*\)")
ITEM = re.compile(r"^(?:[-*] |\d+\. |#+ |\| ?|> )", re.M)
MADE = ("docs/reference/", "docs/benchmarks/")  # by scripts


def pages():
    """The pages that people write."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not name_of(page).startswith(MADE)]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def _blank(match):
    """As many empty lines as were there, so that lines keep their numbers."""
    return "\n" * match[0].count("\n")


def prose(text):
    """A page without its code and tags."""
    return TAG.sub(_blank, FENCE.sub(_blank, FRONT.sub(_blank, text)))


def long_lines(text):
    """(line, characters) of lines that are too long."""
    lines = enumerate(prose(text).splitlines(), 1)
    return [(n, len(line)) for n, line in lines if len(line) > LINE]


def long_sentences(text):
    """(line, words) of sentences that are too long; a cell of a table and an item end theirs."""
    found, text = [], LINK.sub("]", prose(text))
    for piece in re.finditer(r"(?:[^\n]|\n(?!\s*\n|[-*#|>] ?|\d+\. ))+", text):
        words_of = piece[0].lstrip()
        start = text.count("\n", 0, piece.end() - len(words_of)) + 1
        for cell in ITEM.sub("", words_of).split(" | "):
            for sentence in re.split(r"(?<=[.!?])[)\"'*]*\s+(?=[\"'*(`\[]*[A-Z0-9`])", cell):
                words = len(re.findall(r"\w[\w'-]*", sentence))
                found += [(start, words)] if words > SENTENCE else []
    return found


def counted():
    """{page: [long lines, long sentences]}."""
    texts = {name_of(page): page.read_text() for page in pages()}
    return {name: [len(long_lines(x)), len(long_sentences(x))] for name, x in texts.items()}


def allowed():
    """{page: [long lines, long sentences]} that are let be; none where a page is not named."""
    return json.loads(ALLOWANCE.read_text())


def lowered():
    """The allowance, brought down to what the pages have now."""
    now, before = counted(), allowed()
    least = {
        name: [min(*both) for both in zip(now[name], before[name], strict=True)]
        for name in before
        if name in now
    }
    return {name: both for name, both in least.items() if any(both)}


if __name__ == "__main__":
    if "--write" in sys.argv:
        rows = [f"  {json.dumps(name)}: {both}" for name, both in sorted(lowered().items())]
        ALLOWANCE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    else:
        for page in pages():
            for what, found in (("characters", long_lines), ("words", long_sentences)):
                for line, size in found(page.read_text()):
                    print(f"{name_of(page)}:{line}: {size} {what}")
