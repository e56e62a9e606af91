"""What is kept of every run: one file each, named after everything that the run depends on."""

import json
import os
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from recoup.checks import InputError, check_count
from recoup.compare.arenas import Arena
from recoup.compare.code import digest, our_code
from recoup.compare.entrants import Entrant, version_of
from recoup.compare.side_by_side import RunCurve, on_host, ours_on
from recoup.core.types import Given, Plain
from recoup.engine.methods import own_parts
from recoup.tasks.own.host import HostTask

FOLDER = "results"
CHECKSUM = "checksum"
PLAYED = (
    "compare/arenas.py",
    "compare/entrants.py",
    "compare/fields.py",
    "compare/keyed_field.py",
    "compare/side_by_side.py",
    "compare/players.py",
    "compare/traced_players.py",
    "runs/loop.py",
    "tasks",
)
PEERS = (*PLAYED, "compare/peers")
OURS = (*PLAYED, "core", "engine")
STUDIES = tuple(f"study/{room}" for room in ("moves", "reader", "space", "trials"))


class Key(NamedTuple):
    """One run of a method on a task, and what its curve depends on."""

    task: str
    method: str
    run: int
    depends: Plain


def key_of(arena: Arena, entrant: Entrant, seed: int, run: int, checkpoints: Sequence[int]) -> Key:
    """The key of a run: the same settings, versions and code have the same."""
    depends = {
        **arena.about(),
        **_method(arena, entrant),
        "seed": seed,
        "run": run,
        "checkpoints": list(checkpoints),
        "versions": versions_of(arena, entrant),
        "code": our_code(_places(arena, entrant)) + arena.code + entrant.code,
    }
    return Key(arena.name, entrant.label, run, json.loads(json.dumps(depends, default=str)))


def _places(arena: Arena, entrant: Entrant) -> tuple[str, ...]:
    """Where the code lies that a curve depends on."""
    if entrant.peer is not None:
        return PEERS
    return (*OURS, *STUDIES) if isinstance(arena.problem, HostTask) else OURS


def _method(arena: Arena, entrant: Entrant) -> Plain:
    """A method with its settings, resolved."""
    if entrant.peer is not None:
        return {"method": entrant.name, "settings": dict(entrant.settings)}
    row, batch = ours_on(arena, entrant)
    parts = dict.fromkeys(own_parts(row), "")  # which the digest of the user's code stands for
    settings = {**vars(row), **parts}
    settings = {key: settings[key] for key in settings if key not in ("name", "summary")}
    return {"method": entrant.name, "settings": settings, "batch": batch}


def versions_of(arena: Arena, entrant: Entrant) -> dict[str, str]:
    """Versions of the packages that take part."""
    names = ["numpy"] if on_host(arena, entrant) else ["jax", "numpy"]
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


class CurveFiles:
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
        depends = digest(json.dumps(key.depends, sort_keys=True))
        name = f"{_name(key.method)}-{key.run}-{depends}.json"
        return self.directory / FOLDER / _name(key.task) / name

    def load(self, key: Key) -> RunCurve | None:
        """The curve of a run, None where it is not kept or cannot be read."""
        try:
            found = json.loads(self.path(key).read_text())
            whole = sealed({name: found[name] for name in found if name != CHECKSUM}) == found
            return _curve(found, key) if whole and found["depends"] == key.depends else None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None

    def save(self, key: Key, curve: RunCurve) -> None:
        """Keeps a curve: all of it, or nothing if the process ends before."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        content = {**curve._asdict(), "depends": key.depends}
        for name in ("search", "policy"):
            content[name] = [x if isfinite(x) else None for x in content[name]]
        unfinished.write_text(json.dumps(sealed(content)))
        unfinished.replace(path)


def sealed(content: Plain) -> Plain:
    """A file's content with its checksum: without, or with another, it is not what was kept."""
    return {**content, CHECKSUM: digest(json.dumps(content, sort_keys=True))}


def _curve(found: Any, key: Key) -> RunCurve:
    """The curve in a file's content; raises where it is not what was kept there."""
    search, policy, spent = (found[name] for name in ("search", "policy", "spent"))
    points = 1 + len(key.depends["checkpoints"])
    if not all(isinstance(part, list) and len(part) == points for part in (search, policy, spent)):
        raise ValueError("not as many points as there are checkpoints")
    return RunCurve(
        key.run,
        check_count("batch", found["batch"]),
        [check_count("spent", x, least=0) for x in spent],
        [_number(x) for x in search],
        [_number(x) for x in policy],
        _number(found["seconds"]),
        check_count("failed", found["failed"], least=0),
        check_count("failed_tests", found["failed_tests"], least=0),
    )


def _number(value: Given) -> float:
    """A number of a file, which holds none where it was not finite."""
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError(f"not a number: {value!r}")
    return float(value)


def _name(text: str) -> str:
    """A name as part of a path."""
    return "".join(c if c.isalnum() or c in "-@.=" else "-" for c in text)[:80]
