"""The page of the study file: its tables and columns, with the comments of the code."""

import inspect
import re

from recoup.store import schema

TABLE = re.compile(r'^    "(\w+)": \((?:  # (.+))?$')
COLUMN = re.compile(r'^        "(\S+) (\w+)",(?:  # (.+))?$')


def study_file_page() -> str:
    """What a study file holds."""
    found = [
        "# The study file",
        "",
        "A study is one SQLite database, with a write-ahead log beside it while it is open "
        f"(`application_id` {schema.APPLICATION:#x}). It holds everything from which the rest can "
        "be computed again, and no pickle: to open a stranger's file runs nothing. Rows are "
        "added and never changed, but for what is there to change (`counters`, `leases`, `queue`, "
        "`workers`), and what `amend` makes anew: a result, the moves made of it, their tests and "
        "densities. What the result was is an event, as is a trial that was cancelled. Every table "
        "has `id INTEGER PRIMARY KEY` before its columns, and `crc INTEGER` behind them: the "
        "CRC-32 of the row, which `recoup study check` compares. What this means for a user: "
        "[what is in the file of a study](../lookup/study-file.md).",
        "",
        "A BLOB of numbers is of 8-byte floats, little-endian. Times are seconds since 1970. A "
        f"file says its format in `user_version`: {schema.FORMAT}.",
        "",
    ]
    for name, words, columns in tables():
        later = " Made when it is first needed." if name in schema.LATER else ""
        found += [f"## {name}", "", f"{words[:1].upper()}{words[1:]}.{later}", ""]
        found += ["| column | type | what it is |", "|---|---|---|"]
        found += [f"| `{column}` | {kind} | {text} |" for column, kind, text in columns]
        found += [""]
    found += [
        "## trials",
        "",
        "A view for people who look with SQL: every trial of `asked` with its result of `told`, "
        "if it has one.",
    ]
    return "\n".join(found)


def tables() -> list[tuple[str, str, list[tuple[str, str, str]]]]:
    """Names of tables, what they are, and their columns: name, type, what it is."""
    found: list[tuple[str, str, list[tuple[str, str, str]]]] = []
    for line in inspect.getsource(schema).partition("TABLES = {")[2].splitlines():
        if line == "}":
            break
        if table := TABLE.match(line):
            found.append((table[1], table[2] or "", []))
        elif column := COLUMN.match(line):
            found[-1][2].append((column[1], column[2], column[3] or ""))
    return found
