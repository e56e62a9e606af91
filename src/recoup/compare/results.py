"""What is kept of every run: one file each, named after everything that the run depends on."""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import recoup.checks
from recoup.checks import InputError
from recoup.compare.arenas import Arena
from recoup.compare.entrants import Entrant, batch_of, row_of, version_of
from recoup.compare.lockstep import Curve
from recoup.engine.methods import sized
from recoup.runs.plan import task_settings
from recoup.tasks.own.host import HostTask

FOLDER = "results"
SOURCE = Path(recoup.checks.__file__).parent
PLAYED = (
    "compare/arenas.py",
    "compare/entrants.py",
    "compare/lockstep.py",
    "compare/peers",
    "tasks",
)
OURS = (*PLAYED[:3], "core", "engine", "tasks")


class Key(NamedTuple):
    """One run of a method on a task, and what its curve depends on."""

    task: str
    method: str
    run: int
    depends: dict[str, Any]


def key_of(arena: Arena, entrant: Entrant, seed: int, run: int, checkpoints: Sequence[int]) -> Key:
    """The key of a run: the same settings, versions and code have the same."""
    depends = {
        **arena.about(),
        **_method(arena, entrant),
        "seed": seed,
        "run": run,
        "checkpoints": list(checkpoints),
        "versions": _versions(arena, entrant),
        "code": _code(OURS if entrant.peer is None else PLAYED)
        + _own_code(arena.task)
        + _own_code(entrant.name),
    }
    return Key(arena.name, entrant.label, run, json.loads(json.dumps(depends, default=str)))


def _method(arena: Arena, entrant: Entrant) -> dict[str, Any]:
    """A method with its settings, resolved."""
    if entrant.peer is not None:
        return {"method": entrant.name, "settings": dict(entrant.settings)}
    row = asdict(sized(row_of(entrant, task_settings(arena.found, entrant.name)), arena.dim))
    settings = {key: value for key, value in row.items() if key not in ("name", "summary")}
    batch = batch_of(entrant, arena.dim, arena.found.batch)
    return {"method": entrant.name, "settings": settings, "batch": batch}


def _versions(arena: Arena, entrant: Entrant) -> dict[str, str]:
    """Versions of the packages that take part."""
    names = ["jax", "numpy"]
    if isinstance(arena.problem, HostTask):
        names.append("gymnasium")
    if not arena.traced:
        names.append("mujoco")
    if entrant.peer is not None:
        names += [
            *filter(None, [entrant.peer.package]),
            *(["optuna"] if "optuna" in entrant.name else []),
        ]
    return {name: version_of(name) for name in names}


@lru_cache
def _code(parts: tuple[str, ...]) -> str:
    """A digest of our code in these places: comments and docstrings do not count."""
    paths = [path for part in parts for path in _files(SOURCE / part)]
    return _digest("\n".join(_meaning(path) for path in paths))


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _meaning(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body.pop(0)
    return ast.dump(tree)


def _own_code(name: str) -> str:
    """A digest of the module of a task or method of the user's."""
    module = sys.modules.get(name.partition(":")[0]) if ":" in name else None
    place = getattr(module, "__file__", None)
    return "" if place is None else "+" + _digest(Path(place).read_text(errors="replace"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Results:
    """Curves in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(self) -> None:
        """Makes the directory; one that holds something else is left alone."""
        folder = self.directory / FOLDER
        try:
            if self.directory.exists() and not folder.is_dir() and any(self.directory.iterdir()):
                raise InputError(
                    f"{self.directory} holds something else than a comparison: name another --out."
                )
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise InputError(
                f"{self.directory} cannot be written to ({wrong.strerror}): name another --out."
            ) from None

    def path(self, key: Key) -> Path:
        """Where a run's curve is kept; other settings have another place."""
        digest = _digest(json.dumps(key.depends, sort_keys=True))
        return (
            self.directory
            / FOLDER
            / _name(key.task)
            / f"{_name(key.method)}-{key.run}-{digest}.json"
        )

    def load(self, key: Key) -> Curve | None:
        """The curve of a run, None where it is not kept or cannot be read."""
        try:
            found = json.loads(self.path(key).read_text())
            if found["depends"] != key.depends:
                return None
            search, policy = (
                [float("nan") if x is None else float(x) for x in found[name]]
                for name in ("search", "policy")
            )
            return Curve(key.run, found["batch"], found["spent"], search, policy, found["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, key: Key, curve: Curve) -> None:
        """Keeps a curve: all of it, or nothing if the process ends before."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        content = {**curve._asdict(), "depends": key.depends}
        for name in ("search", "policy"):
            content[name] = [x if isfinite(x) else None for x in content[name]]
        unfinished.write_text(json.dumps(content))
        unfinished.replace(path)


def _name(text: str) -> str:
    """A name as part of a path."""
    return "".join(c if c.isalnum() or c in "-@.=" else "-" for c in text)[:80]
