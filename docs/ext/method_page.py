"""The page of methods: what each has for settings, and what may be chosen."""

from dataclasses import fields
from importlib import import_module

import documented
from recoup import METHODS, Method
from recoup.core.families.table import WORDS
from recoup.engine.failure import AVOID, CENSORED, WORST
from recoup.engine.methods import AUTO, DEFAULT_METHOD, FIXED, settings_of
from recoup.engine.parts import PARTS, Part
from recoup.engine.ways import WAYS

ALLOWED = {  # of settings without a check of their own
    "family": (*WORDS, AUTO),
    "direction": tuple(WAYS),
    "failure": (AVOID, CENSORED, WORST),
}
PLURAL = {
    "weighting": "Weightings",
    "baseline": "Baselines",
    "utility": "Utilities",
    "update": "Updates",
}
IN_WORDS = {
    "check_count": "a whole number, at least {0:g}",
    "check_between": "{0:g} to {1:g}",
    "check_positive": "above 0",
    "check_flag": "`True` or `False`",
}


def methods_page() -> str:
    """All settings, the words that some of them take, and every method."""
    return "\n".join(
        [
            "# Methods and their settings",
            "",
            "A setting is given by name to `recoup.train`, `recoup.search` and `recoup.Study.open` "
            "and as `--set name=value` on the command line. A method refuses settings that it has "
            f"not. The default is `{DEFAULT_METHOD}`, which [a page of its own](../recoup.md) "
            "explains. `recoup.METHODS` holds all of these by name.",
            "",
            "## Settings",
            "",
            "| setting | what it does | unless a method says | allowed |",
            "|---|---|---|---|",
            *_settings(),
            "",
            *(line for kind, table in PARTS.items() for line in _words(kind, table)),
            "## Methods",
            "",
            *(line for name in METHODS for line in _method(METHODS[name])),
        ]
    )


def _settings() -> list[str]:
    """A row for each setting, with the comment that stands beside it in the code."""
    (entry,) = (one for one in documented.entries() if one.label == "Method")
    said = {row.name: row.text for row in documented.fields(entry)}
    return [
        f"| `{one.name}` | {_cell(said[one.name])} | `{one.default!r}` | {_allowed(one.name)} |"
        for one in fields(Method)
        if one.name not in FIXED
    ]


def _allowed(name: str) -> str:
    """What a setting may be, from what checks it."""
    if name in ALLOWED or name in PARTS:
        words = ALLOWED.get(name, tuple(PARTS.get(name, ())))
        own = ", or a number" if name == "failure" else ", or one of yours"
        return ", ".join(f'`"{word}"`' for word in words) + own
    one = next(one for one in fields(Method) if one.name == name)
    check, limits = one.metadata["allowed"]
    words = IN_WORDS[check].format(*(limits or (1,)))
    return f"{words}, or `None`" if one.default is None else words


def _words(kind: str, table: dict[str, Part]) -> list[str]:
    """The words of one kind of part, with what the function of each says first."""
    rows = [f'| `"{word}"` | {_first(part)} | {_names(part)} |' for word, part in table.items()]
    head = [f"## {PLURAL[kind]}", "", "| word | what it gives | its settings |", "|---|---|---|"]
    return [*head, *rows, ""]


def _first(part: Part) -> str:
    """The first line of a part's docstring, and its equation."""
    module, name = part.home.split(":")
    text = getattr(import_module(f"recoup.core.{module}"), name).__doc__ or ""
    first, _, rest = text.partition("\n")
    tag = rest.partition("Implements: ")[2].partition("\n\n")[0]
    equation = f" ({' '.join(tag.split()).rstrip('.')})" if tag else ""
    return _cell(f"{first.strip()}{equation}")


def _names(part: Part) -> str:
    return ", ".join(f"`{name}`" for name in part.settings if name != "draw")


def _method(row: Method) -> list[str]:
    """A method: what it does, and its settings with what they are in it."""
    listed = ", ".join(f"`{key}={getattr(row, key)!r}`" for key in settings_of(row))
    return [f"### {row.name}", "", f"{_upper(row.summary)}.", "", f"Settings: {listed}.", ""]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("$", "\\$").replace("<", "&lt;")
