"""Digests of code that results depend on: ours, and the user's with what it imports beside it."""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import recoup.checks

SOURCE = Path(recoup.checks.__file__).parent
INSTALLED = frozenset(
    Path(sysconfig.get_paths()[place]).resolve() for place in ("purelib", "platlib", "stdlib")
)


@lru_cache
def our_code(parts: tuple[str, ...]) -> str:
    """A digest of our code in these places: comments and docstrings do not count."""
    paths = [path for part in parts for path in _files(SOURCE / part)]
    return digest("\n".join(_meaning(path) for path in paths))


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _meaning(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body.pop(0)
    return ast.dump(tree)


def own_code(name: str) -> str:
    """A digest of `module:name` of the user's, once it is imported; empty for other names."""
    module = sys.modules.get(name.partition(":")[0]) if ":" in name else None
    return "" if module is None else _of_module(module)


@lru_cache
def _of_module(module: ModuleType) -> str:
    """A digest of a module and of the modules beside it that it imports, and those in turn.

    It is made once: the module goes on as it was imported, whatever its file says later.
    """
    place = getattr(module, "__file__", None)
    if place is None:
        return ""
    files = _with_imports(Path(place).resolve(), module.__name__)
    return "+" + digest("\n".join(f"{name} {text}" for name, text in sorted(files.items())))


def _with_imports(path: Path, name: str) -> dict[str, str]:
    """Texts of a module's file and of those that it imports from the same directory, by name."""
    package = path.name == "__init__.py"
    depth = name.count(".") + package
    root = path.parents[min(depth, len(path.parents) - 1)]
    only = name.partition(".")[0] if root in INSTALLED else None  # others there have versions
    found: dict[str, str] = {}
    left = [path]
    while left:
        one = left.pop()
        where = one.relative_to(root).with_suffix("").as_posix()
        if where in found:
            continue
        found[where] = one.read_text(errors="replace")
        left += [
            file
            for wanted in _imported(found[where], where)
            if only is None or wanted.split("/")[0] == only
            for file in (root / f"{wanted}.py", root / wanted / "__init__.py")
            if file.is_file()
        ]
    return found


def _imported(text: str, where: str) -> Iterator[str]:
    """Modules that a file may import, as paths: `a`, `a/b` and `a/b/c` of `from a.b import c`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # no source
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            whole = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = where.split("/")[: -node.level] if node.level else []
            base = above + (node.module.split(".") if node.module else [])
            whole = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for parts in whole:
            yield from ("/".join(parts[:i]) for i in range(1, len(parts) + 1))


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
