"""The run directory: `config.json`, `history.csv`, `moves.jsonl`, `result.json`, `curve.png`."""

import csv
import json
import platform
import sys
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recoup.checks import InputError
from recoup.records import Move, Plan, Step

CONFIG, HISTORY, RESULT, CURVE = "config.json", "history.csv", "result.json", "curve.png"
MOVES = "moves.jsonl"
RECORDED = ("recoup", "jax", "jaxlib", "optax", "numpy", "gymnasium")


class RunDirectory:
    """Where a run is written as it goes: its settings first, then a row an iteration."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, plan: Plan) -> "RunDirectory":
        """A new directory with the run's settings in it; an existing one is refused."""
        if path.exists():
            raise InputError(
                f"the run directory {path} exists already: name another, or remove it."
            )
        config = json.dumps(_config(plan), indent=2)  # first: nothing is made if it fails
        path.mkdir(parents=True)
        (path / CONFIG).write_text(config + "\n")
        return cls(path)

    def add(self, step: Step, move: Move) -> None:
        """One more row of the history, and one more move; written when this returns."""
        with (self.path / MOVES).open("a") as file:
            file.write(json.dumps(move._asdict()) + "\n")
        with (self.path / HISTORY).open("a", newline="") as file:
            writer = csv.writer(file)
            if file.tell() == 0:
                writer.writerow(field.name for field in fields(step))
            writer.writerow("" if value is None else value for value in vars(step).values())

    def finish(self, summary: dict[str, Any]) -> None:
        """What was learned and what it is worth."""
        (self.path / RESULT).write_text(json.dumps(summary, indent=2) + "\n")


def _config(plan: Plan) -> dict[str, Any]:
    settings = {**asdict(plan), "settings": _plain(vars(plan.settings))}
    packages = RECORDED + (("mujoco",) if plan.task.startswith("reach") else ())
    return {
        **settings,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "command": sys.argv,
    }


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON can hold them: an optax transformation by its text."""
    simple = (str, int, float, bool, type(None))
    return {k: v if isinstance(v, simple) else repr(v) for k, v in settings.items()}
