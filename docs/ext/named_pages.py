"""The pages of names: docstrings as Markdown, with signatures that the site's search finds."""

import re
from pathlib import Path

import recoup.core.types
from documented import CODE, Entry, default, entries, fields, types
from parts import ELSEWHERE, PARTS, Part

LEDGER = Path(__file__).parents[1] / "equations.md"
TYPES = Path(recoup.core.types.__file__)
ALIAS = re.compile(r"^(\w+) = (.+?)  # (.+)$", re.M)
REASON = "Longer than others:"  # for who works on the code
TAGGED = re.compile(r"(Equations?|Implements): ")
FURTHER = (
    ("commands", "Commands", "the help of `recoup` and its commands"),
    ("study-commands", "Commands of a study", "the help of `recoup study` and its commands"),
    ("methods", "Methods and their settings", "every method, and what may be chosen of it"),
    ("study-file", "The study file", "its tables and columns"),
)


def index_page() -> str:
    """The first page: the others, the types of signatures, and the names."""
    rows = [f"- [{p.title}]({p.slug}.md): {_names_of(p) or p.intro}" for p in PARTS]
    rows += [f"- [{title}]({slug}.md): {words}" for slug, title, words in FURTHER]
    slugs = [*(part.slug for part in PARTS), *(slug for slug, *_ in FURTHER)]
    return "\n".join(
        [
            "# Reference",
            "",
            "Everything that `recoup` offers, made from the code itself. The examples are run by "
            "the tests; those of a page go on from the start that stands on top of it.",
            "",
            *rows,
            "",
            "## Types in signatures",
            "",
            "Most types are those of Python and NumPy. These are words for what has no type of its "
            "own; shapes are letters in brackets: `D` parameters, `P` with choices as one each, "
            "`N` samples of a batch, `N'` in all, `L` proposals, `T` steps, `F` features, "
            "`A` actions.",
            "",
            "| word | what it is |",
            "|---|---|",
            *(f"| `{name}` | {_upper(words)} |" for name, words in _aliases()),
            "",
            "## The version",
            "",
            "`recoup.__version__` is the version of the package, a text.",
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *slugs,
            "```",
        ]
    )


def part_page(part: Part) -> str:
    """One page of names."""
    own = [one for one in entries() if one.part is part]
    start = ["Every example of this page goes on from here:", "", "```python", part.start.rstrip()]
    head = [f"# {part.title}", "", part.intro, ""]
    if part.start.count("\n") > 1:
        head += [*start, "```", ""]
    return "\n".join([*head, ""]) + "\n".join(_section(one) for one in own)


def _section(entry: Entry) -> str:
    """A name: heading, signature, types, words, fields, example."""
    alone = entry.owner is None or entry.path in entry.part.names
    level = "##" if alone else "###"
    parts = [f"{level} {_heading(entry)}", _signature(entry), _types(entry)]
    parts += [_words(entry), _fields(entry)]
    return "\n".join(f"{text}\n" for text in parts if text)


def _heading(entry: Entry) -> str:
    return entry.label.replace("_", "\\_")


def _signature(entry: Entry) -> str:
    """The directive from which the site has the name."""
    called = "" if entry.kind in ("property", "class", "exception") else _call(entry)
    lines = [f":::{{py:{entry.kind}}} {entry.full_name}{called}", ":no-contents-entry:"]
    return "\n".join([*lines, ":::"])


def _call(entry: Entry) -> str:
    """How it is called: names, and what they are unless said."""
    texts, starred = [], False
    for one in entry.parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            texts.append("*")
        starred |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        unless = default(one)
        texts.append(f"{stars}{one.name}{'=' if unless else ''}{unless}")
    return f"({', '.join(texts)})"


def _types(entry: Entry) -> str:
    """The types of arguments and of what is given, those of ours as links."""
    if entry.kind in ("class", "exception"):
        return ""
    rows, answer = types(entry)
    texts = [f"{name}: {_linked(type_)}" for name, type_, _ in rows if type_]
    said = f"Types: {'; '.join(texts)}. " if texts else ""
    return f"{said}Gives: {_linked(answer)}." if answer != "None" else said.strip()


def _linked(text: str) -> str:
    """A type; where it is one of our records, as a link to it."""
    known = {one.name: one for one in entries() if one.owner is None and one.kind == "class"}

    def link(found: re.Match[str]) -> str:
        name = found.group()
        return f"[{name}]({known[name].address})" if name in known else name

    plain = re.sub(r"(?=[\[\]*_|])", r"\\", text.replace('"', ""))
    return re.sub(r"\w+", link, plain)


def _words(entry: Entry) -> str:
    """A docstring as Markdown."""
    paragraphs = entry.text.split("\n\n")
    shown = [_paragraph(text) for text in paragraphs if not text.startswith(REASON)]
    return "\n\n".join(shown) + "\n"


def _paragraph(text: str) -> str:
    """A paragraph: words, an equation, or an example."""
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("    "):
        return f"```text\n{text}\n```"
    if TAGGED.match(text):
        return f"{_tagged(text)}"
    return TAGGED.sub(lambda found: found.group(), _mentioned(text)).replace("$", "\\$")


def _tagged(text: str) -> str:
    """An equation, with the way to the ledger."""
    text = text.replace("Implements: ", "Equation: ", 1)
    return f"{_mentioned(text)} ([the ledger](../equations.md))"


def _mentioned(text: str) -> str:
    """Names of ours in backticks become links: `Study.ask`, `recoup.train`."""
    known = {one.full_name: one for one in entries()} | {one.label: one for one in entries()}

    def link(found: re.Match[str]) -> str:
        name = found.group(1)
        whole = "." in name or name[:1].isupper()
        return f"[`{name}`]({known[name].address})" if whole and name in known else found.group()

    return CODE.sub(link, text).replace("*", "\\*")


def _fields(entry: Entry) -> str:
    """The fields of a record as a table."""
    rows = fields(entry)
    if not rows:
        return ""
    lines = [f"| `{row.name}` | {_linked(row.type)} | {_cell(row.text)} |" for row in rows]
    return "\n".join(["| field | type | what it is |", "|---|---|---|", *lines]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("$", "\\$").replace("<", "&lt;")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _names_of(part: Part) -> str:
    """The public names of a page."""
    found = [one for one in entries() if one.part is part and one.owner is None]
    public = [one for one in found if one.public] or found[:3]
    return ", ".join(f"[`{one.name}`]({one.address})" for one in public)


def _aliases() -> list[tuple[str, str]]:
    return [(name, words) for name, _, words in ALIAS.findall(TYPES.read_text())]


assert set(ELSEWHERE.values()) <= {"index", *(slug for slug, *_ in FURTHER)}
