"""The run directory: `study.db`, the truth; `config.json` and `curve.png`, for people.

The study of a run holds every trial, every move with what was measured after it, and the result.
`recoup train` alone asks and tells it: its draws are a function of the run's seed.
"""

import json
import platform
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.engine.methods import Method
from recoup.runs.history import AGES, Plan, Step
from recoup.store.file import (
    Conflict,
    StudyFile,
    count,
    counters_of,
    note_event,
    packed,
    understood,
    unpacked,
)
from recoup.store.rows import DRAWN, FAILED, MIRROR, OK, Told, told_of
from recoup.study.settings import (
    RUN,
    check_settings,
    method_of,
    plain_method,
    shape_of,
    update_of_python,
)
from recoup.store.transactions import Asked, put_move, put_result, put_trials

STUDY, CONFIG, CURVE = "study.db", "config.json", "curve.png"
FINISHED = "finished"
RECORDED = ("recoup", "jax", "jaxlib", "optax", "numpy", "gymnasium")


class Moves(NamedTuple):
    """The moves of a run, the start first."""

    steps: list[Step]
    mean: np.ndarray  # [I + 1, D]
    std: np.ndarray  # [I + 1, S]
    ages: np.ndarray  # [I, 5] shares of the weight by the age of the samples


class RunFile:
    """The study of a run, as `train` writes and reads it; in memory for runs without directory."""

    def __init__(self, file: StudyFile, directory: Path | None) -> None:
        self.file, self.directory = file, directory
        with understood(file.path):
            self.settings = file.settings()
            if RUN not in self.settings:
                raise InputError(f"{file.path} is a study of its own, not that of a run.")
            check_settings(self.settings)
            self.method: Method = method_of(self.settings)
            self.shape = shape_of(self.settings)
        self.batch: int = self.settings["batch"]

    @classmethod
    def create(
        cls, directory: Path | None, plan: Plan, actions: int, mean: Any, std: Any, first: Step
    ) -> "RunFile":
        """The study of a new run, in a new directory."""
        plain = {**asdict(plan), "settings": plain_method(plan.settings)}
        settings = {
            "method": plan.method,
            "dim": len(mean),
            "batch": plan.batch,
            "seed": plan.seed,
            "mean": np.asarray(mean, float).tolist(),
            "std": np.asarray(std, float).tolist(),
            **plain["settings"],
            RUN: plain,
        }
        if plan.settings.space == "actions":
            settings |= {"horizon": plan.horizon, "actions": actions, "discount": plan.discount}
        start = {"mean": mean, "std": std, "memory": [], "info": _plain_step(first)}
        if directory is None:
            return cls(StudyFile.in_memory(settings, **start), None)
        config = json.dumps(_config(plan), indent=2)  # first: nothing is made if it fails
        directory.mkdir(parents=True, exist_ok=True)
        (directory / CONFIG).write_text(config + "\n")
        return cls(StudyFile.create(directory / STUDY, settings, **start), directory)

    @staticmethod
    def refuse_existing(directory: Path) -> None:
        """Raises unless a new run can be written there; one killed before it began is none."""
        if not directory.exists():
            return
        if not directory.is_dir():
            raise InputError(f"{directory} is a file: name a directory for the run.")
        if (directory / STUDY).exists():
            raise InputError(
                f"the run directory {directory} exists already: `recoup resume {directory}` goes "
                "on with it; or name another, or remove it."
            )
        begun = {path.name for path in directory.iterdir()} - {CONFIG}
        if any(not name.startswith(STUDY) for name in begun):
            raise InputError(f"{directory} exists already and holds other things: name another.")

    @classmethod
    def open(cls, directory: str | Path) -> "RunFile":
        """The study of an existing run."""
        directory = Path(directory)
        path = directory / STUDY
        if not path.is_file():
            raise InputError(f"{directory} is not a run directory: it has no {STUDY}.")
        file = StudyFile.open(path)
        try:
            return cls(file, directory)
        except InputError:
            file.close()
            raise

    def plan(self, update: Any = None) -> Plan:
        """What the run is determined by; `update` is its rule, where only Python can make it."""
        with understood(self.file.path):
            return self._plan(update)

    def _plan(self, update: Any) -> Plan:
        text, row = update_of_python(self.settings), self.method
        if update is not None:
            row = Method(**{**vars(row), "update": update})
        elif text is not None:
            raise InputError(
                f"this run was made with update={text}, which only Python can make again: "
                "`recoup.resume(run, update=...)` goes on with it."
            )
        return Plan(**{**self.settings[RUN], "settings": row})

    # -- writing --

    def ids(self, iteration: int) -> range:
        """The trials of an iteration."""
        return range((iteration - 1) * self.batch + 1, iteration * self.batch + 1)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; another process on the same run is noticed."""
        try:
            with self.file.writing() as connection:
                yield connection
        except Conflict:
            raise InputError(f"another process is working on {self.file.path}.") from None

    def add_trials(self, iteration: int, theta: Any, seeds: Sequence[int]) -> None:
        """The trials of an iteration, before they are rolled out; those already there stay."""
        with self.writing() as connection:
            self._put_trials(connection, iteration, theta, seeds)

    def add_result(self, number: int, told: Told) -> None:
        """What came of one trial."""
        with self.writing() as connection:
            put_result(connection, self.file.path, number, told)
        self._note_count()

    def add_iteration(
        self, theta: Any, seeds: Sequence[int], told: Sequence[Told], *move: Any
    ) -> None:
        """A whole iteration at once: its trials, their results and the move."""
        iteration = move[0].iteration
        with self.writing() as connection:
            self._put_trials(connection, iteration, theta, seeds)
            for number, result in zip(self.ids(iteration), told, strict=True):
                put_result(connection, self.file.path, number, result)
            self._put_move(connection, *move)
        self._note_count()

    def add_move(self, *move: Any) -> None:
        """The move of an iteration whose results are there: step, mean, std, ages."""
        with self.writing() as connection:
            self._put_move(connection, *move)

    def finish(self, summary: dict[str, Any]) -> None:
        """What was learned and what it is worth."""
        with self.writing() as connection:
            note_event(connection, FINISHED, summary)

    def _put_trials(
        self, connection: sqlite3.Connection, iteration: int, theta: Any, seeds: Sequence[int]
    ) -> None:
        ids = self.ids(iteration)
        query = "SELECT COUNT(*) FROM asked WHERE id BETWEEN ? AND ?"
        if connection.execute(query, (ids[0], ids[-1])).fetchone()[0]:
            return
        put_trials(
            connection,
            [
                Asked(number, self._kind(number), iteration - 1, packed(row), int(seed))
                for number, row, seed in zip(ids, theta, seeds, strict=True)
            ],
        )

    def _kind(self, number: int) -> str:
        """Of a trial: under mirrored sampling every second one is the other of a pair."""
        return MIRROR if self.method.mirrored and number % 2 == 0 else DRAWN

    def _put_move(
        self, connection: sqlite3.Connection, step: Step, mean: Any, std: Any, ages: list[float]
    ) -> None:
        counters = counters_of(connection)
        info = {**_plain_step(step), "ages": ages}
        put_move(connection, step.iteration, counters.counted, mean, std, [], info)
        count(connection, counters._replace(fresh=0))

    def _note_count(self) -> None:
        if self.directory is not None:
            self.file.note_count(self.file.counters())

    # -- reading --

    def told(self, iteration: int) -> dict[int, tuple[float, tuple[Any, ...] | None]]:
        """Returns, not a number for failed ones, and trajectories of an iteration, by trial."""
        ids = self.ids(iteration)
        inside = "WHERE id BETWEEN ? AND ?"
        trajectories = {
            number: (steps, self.shape.trajectory(steps, content))
            for number, steps, content in self.file.read("trajectories", inside, (ids[0], ids[-1]))
        }
        rows = self.file.read("told", inside, (ids[0], ids[-1]))
        return {
            number: (value if status == OK else float("nan"), trajectories.get(number))
            for number, status, _, value, *_ in rows
        }

    def theta(self, iteration: int) -> np.ndarray:
        """Thetas `[N, D]` of an iteration."""
        ids = self.ids(iteration)
        rows = self.file.read("asked", "WHERE id BETWEEN ? AND ? ORDER BY id", (ids[0], ids[-1]))
        return np.stack([unpacked(row[3]) for row in rows])

    def moves(self) -> Moves:
        """All moves so far, the start first."""
        with understood(self.file.path):
            return self._moves()

    def _moves(self) -> Moves:
        steps, ages, means, stds = [], [], [], []
        for number, proposal, _, _, text, _ in self.file.read("moves", "ORDER BY id"):
            _, _, mean, std = self.file.one("proposals", "WHERE id = ?", (proposal,))
            info = json.loads(text)
            steps.append(_step(info))
            if number:
                ages.append(info["ages"])
            means.append(unpacked(mean))
            stds.append(unpacked(std))
        shares = np.array(ages, float).reshape(len(ages), len(AGES))
        return Moves(steps, np.stack(means), np.stack(stds), shares)

    def result(self) -> dict[str, Any] | None:
        """The summary of a finished run, None before."""
        rows = self.file.read("events", "WHERE kind = ? ORDER BY id DESC LIMIT 1", (FINISHED,))
        return json.loads(rows[0][2]) if rows else None

    def as_told(self, value: float, trajectory: Any = None) -> Told:
        """The result of an episode: its return or its trajectory, failed where not finite."""
        failed = Told(FAILED, note="its return was not finite")
        if trajectory is None:
            return Told(OK, float(value) + 0.0, None, 1) if np.isfinite(value) else failed
        try:
            discount = self.settings["discount"]
            return told_of(trajectory=trajectory, shape=self.shape, discount=discount)
        except InputError:
            return failed


def _step(info: dict[str, Any]) -> Step:
    known = {field.name for field in fields(Step)}
    return Step(**{key: value for key, value in info.items() if key in known})


def _plain_step(step: Step) -> dict[str, Any]:
    return dict(vars(step))


def _config(plan: Plan) -> dict[str, Any]:
    settings = {**asdict(plan), "settings": _texts(vars(plan.settings))}
    packages = RECORDED + (("mujoco",) if plan.task.startswith("reach") else ())
    return {
        **settings,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "command": sys.argv,
    }


def _texts(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON can hold them: an optax transformation by its text."""
    simple = (str, int, float, bool, type(None))
    return {k: v if isinstance(v, simple) else repr(v) for k, v in settings.items()}
