"""`recoup.Run`: a run as it was written, finished or not; `recoup.load` reads one again."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from recoup.runs.history import Curve, Measured, Plan, Step
from recoup.runs.directory import STUDY, RunFile
from recoup.study.study import Study
from recoup.tasks.registry import Task, make_task


class Run:
    """A run: what was learned, how it went, and what it is worth once it is finished."""

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self.out: Path | None = file.directory
        moves = file.moves()
        self.history: list[Step] = moves.steps
        self.mean: np.ndarray = moves.mean[-1]
        self.std: np.ndarray = moves.std[-1]
        self._result = file.result()
        self.finished = self._result is not None
        if self.out is not None:
            file.file.close()  # `study` opens it again

    @cached_property
    def plan(self) -> Plan:
        """What the run is determined by."""
        return Plan(**{**self._file.settings["run"], "settings": self._file.method})

    @cached_property
    def task(self) -> Task:
        """The task that was learned."""
        plan = self.plan
        return make_task(plan.task, plan.horizon, plan.discount, **plan.options)

    @cached_property
    def study(self) -> Study:
        """The run's study: its trials, its proposals, and what they say about any other."""
        return Study(self._file.file) if self.out is None else Study.open(self.out / STUDY)

    @property
    def return_search(self) -> Measured:
        """Expected return of the search distribution, on fresh episodes."""
        if self._result is not None:
            return Measured(**self._result["return_search"])
        last = self.history[-1]
        return Measured(last.return_search, last.return_search_stderr, self.plan.test_episodes)

    @property
    def return_mean_policy(self) -> Measured | None:
        """Expected return of the mean policy, the one to deploy; None before the run's end."""
        return None if self._result is None else Measured(**self._result["return_mean_policy"])

    @property
    def wall_s(self) -> float:
        """Seconds that the run has taken."""
        return self.history[-1].wall_s if self._result is None else self._result["wall_s"]

    @property
    def curve(self) -> Curve:
        """Expected return after each iteration, the start included."""
        columns = zip(
            *((s.episodes, s.return_search, s.return_search_stderr) for s in self.history),
            strict=True,
        )
        return Curve(*(np.array(column) for column in columns))

    def policy(self, observation: Any) -> np.ndarray:
        """The action of the mean policy, the one to deploy."""
        return self.task.act(self.mean, observation)

    def plot(self, path: str | Path | None = None) -> Any:
        """The learning curve as a matplotlib figure, saved to `path` if one is given."""
        from recoup.pictures.curves import learning_curve

        plan = self.plan
        title = f"{plan.task} · {plan.method} · batch {plan.batch} · seed {plan.seed}"
        columns = ("episodes", "samples", "ess", "max_weight")
        moves = {
            key: np.array([getattr(step, key) for step in self.history[1:]]) for key in columns
        }
        figure = learning_curve(title, self.curve, self.return_mean_policy, moves)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def summary(self) -> dict[str, Any]:
        """The run in a few words, as `recoup train --json` prints it."""
        plan, policy = self.plan, self.return_mean_policy
        return {
            "task": plan.task,
            "method": plan.method,
            "seed": plan.seed,
            "episodes": self.history[-1].episodes,
            "iterations": self.history[-1].iteration,
            "batch": plan.batch,
            "return_search": self.return_search._asdict(),
            "return_mean_policy": None if policy is None else policy._asdict(),
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "wall_s": self.wall_s,
            "run": None if self.out is None else str(self.out),
        }


def load(run: str | Path) -> Run:
    """The run in a directory, finished or not."""
    return Run(RunFile.open(run))
