"""The licences of what Recoup needs and brings along, held to those that we allow."""

import json
import re
import sys
from pathlib import Path

ALLOWED = {  # by the names of SPDX: one may be used, changed and sold with each
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "HPND", "ISC", "MIT"),
    *("MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
}
OLD = {  # what packages say that do not use the names of SPDX yet
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
BROUGHT = {"uPlot": "MIT"}  # what lies in the wheel itself, with its licence


def names(said: str) -> list[str]:
    """The licences that a package names, by SPDX where that is known; all of them must be allowed.

    Of an "or" too: it is the stricter reading, and nothing that is needed wants the other.
    """
    if said in OLD:
        return [OLD[said]]
    parts = [part.strip(" ()") for part in re.split(r"; | AND | OR | WITH ", said)]
    return [OLD.get(part, part) for part in parts]


def refused(rows: list[dict[str, str]]) -> list[str]:
    """What is under a licence that is not among the allowed ones, a line each."""
    return [
        f"{row['Name']} {row['Version']}: {row['License']}"
        for row in rows
        if not set(names(row["License"])) <= ALLOWED
    ]


def table(rows: list[dict[str, str]]) -> str:
    """The list as it lies beside the wheel."""
    lines = [f"{row['Name']} {row['Version']}: {', '.join(names(row['License']))}" for row in rows]
    brought = [f"{name} (inside of recoup): {licence}" for name, licence in BROUGHT.items()]
    return "\n".join([*sorted(lines, key=str.lower), *brought]) + "\n"


def main() -> None:
    """Reads what pip-licenses says, and writes the list; ends where a licence is not allowed."""
    said, out = map(Path, sys.argv[1:3])
    rows = [row for row in json.loads(said.read_text()) if row["Name"] not in ("pip", "setuptools")]
    if wrong := refused(rows):
        raise SystemExit("these licences are not among those we allow:\n" + "\n".join(wrong))
    out.write_text(table(rows), encoding="utf-8")
    print(f"  {len(rows)} packages, all under licences that we allow: {out}")


if __name__ == "__main__":
    main()
