"""What may be inside of a release: code, what it reads, and nothing else."""

import re
from pathlib import PurePosixPath

CODE = (".py", ".pyi")
DATA = (  # what the package reads: folder, endings
    ("recoup/serve/page", (".html", ".js", ".css", ".svg")),
    ("recoup/serve/page/uplot", (".js", ".css", "LICENSE", "ORIGIN")),
    ("recoup/report/templates", (".html",)),
    ("recoup/tasks/reach", (".xml",)),
    ("recoup", ("py.typed",)),
)
ABOUT = (  # of the package: in the wheel beside it, in the archive above it
    *("METADATA", "WHEEL", "RECORD", "top_level.txt", "entry_points.txt", "LICENSE"),
    *("PKG-INFO", "SOURCES.txt", "dependency_links.txt", "requires.txt", "MANIFEST.in"),
    *("README.md", "pyproject.toml", "setup.cfg"),
)
SECRETS = {
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY",
    "a token of a service": rb"\b(gh[pousr]_[0-9A-Za-z]{36}|pypi-AgE[\w-]{20}|AKIA[0-9A-Z]{16})",
    "a password in an address": rb"https?://[^\s/:@\"'{}]+:[^\s/:@\"'{}]+@",
    "a path of a home": rb"/(home|Users)/\w+/",
}


def wrong_inside(name: str, content: bytes) -> str:
    """Why a file does not belong into a release, by its name there and content; "" if it does."""
    if not _is_known(PurePosixPath(name)):
        return "is none of the files that a release is made of"
    found = [what for what, pattern in SECRETS.items() if re.search(pattern, content)]
    return f"holds {found[0]}" if found else ""


def _is_known(path: PurePosixPath) -> bool:
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    inside = PurePosixPath(*parts)
    if inside.parts[0] != "recoup":
        return path.name in ABOUT
    if inside.suffix in CODE:
        return True
    folder = str(inside.parent)
    return any(folder == known and inside.name.endswith(ends) for known, ends in DATA)
