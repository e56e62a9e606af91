"""`recoup.Run`: a run as it was written, finished or not; `recoup.load` reads one again.

Longer than others: each of its methods has its example.
"""

from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recoup.checks import InputError, check_path
from recoup.core.types import Action, Given, Observation, Plain
from recoup.notebooks import facts
from recoup.outputs import Over
from recoup.pictures.picture_files import shows, write_picture
from recoup.runs.directory import CURVE, study_in, texts
from recoup.runs.history import Curve, HistoryRow, history_of, lost_of
from recoup.runs.kept import LAST, KeptPolicy, best_of, chosen_move, kept_in
from recoup.runs.plan import Plan, stored_plan
from recoup.runs.problem import Acting, Problem, again, policy_in, policy_stored
from recoup.store.errors import sensible
from recoup.store.place import settled
from recoup.store.rows import SAMPLED
from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import parts_given
from recoup.study.run.beside import STUDY, policies_beside
from recoup.study.run.ends import end_of, of_others, outdated, was_finished
from recoup.study.study import Study
from recoup.study.views.study_summary import mean_of
from recoup.tasks.measured import Measured
from recoup.tasks.own.host import HostTask
from recoup.tasks.policies.export import export_policy
from recoup.tasks.policies.policy_files import SavedPolicy

if TYPE_CHECKING:
    import pandas

SPENT = SAMPLED  # kinds of trials that count as rollouts of a run


class Run:
    """A run: what was learned, how it went, and what it is worth once it is finished.

    `recoup.train` makes it, `recoup.load` reads it.

    >>> run
    Run('...throw', ... by recoup, seed 0, ... episodes, return ... ± ...)
    >>> run.mean.shape, run.finished
    ((2,), True)

    Longer than others: each of its methods has its example.
    """

    def __init__(
        self,
        opened: Opened,
        out: Path | None,
        *,
        problem: Problem | None = None,
        task: Given = None,
        policy: Given = None,
    ) -> None:
        """The run of an open study, in the directory `out`; without one, in memory.

        `problem` is its task where it is made already; `task` and `policy` make it where only
        Python can.
        """
        self._opened, self.out, self.parts = opened, out, opened.parts
        self.problem, self._given = problem, (task, policy)
        self.names, self.missing = opened.names, opened.missing
        beside = {} if out is None else policies_beside(opened)  # first: a run may go on meanwhile
        with sensible(opened.where), opened.store.reading():  # all of one moment
            self.plan: Plan = stored_plan(opened)
            found, last = history_of(opened), opened.store.last_move()
            self.began_at: float = opened.store.last_move(0).made  # `time.time()`; a copy has it
            self._result = end_of(opened)
            self.outdated: str | None = outdated(opened)  # a sentence on its end or files
            self.was_finished: bool = was_finished(opened)  # once, before it was amended or moved
            self.rho = opened.rho(opened.store.newest().numbers)
            self.failed, self.dropped = lost_of(opened)  # trials, none of them in both
            trials = opened.store.count(SPENT, told=True)
        self.notes: Plain = last.info.get("notes", {})  # of that move, by `recoup` itself
        self.history: list[HistoryRow] = found.steps
        self.means, self.stds, self.ages = found.mean, found.std, found.ages
        self.mean: np.ndarray = found.mean[-1]
        self.std: np.ndarray = found.std[-1]
        self.episodes: int = trials * self.plan.episodes_per_trial  # spent, failed ones too
        self.finished = self._result is not None
        if self.outdated is None:
            self.outdated = of_others(opened, beside, self.means, self.finished)
        if out is not None:
            opened.store.close()  # `study` opens it again

    def __repr__(self) -> str:
        plan, place = self.plan, "in memory" if self.out is None else repr(str(self.out))
        return (
            f"Run({place}, {plan.task} by {plan.method}, seed {plan.seed}, "
            f"{self.episodes} episodes, {self._worth()})"
        )

    def _repr_html_(self) -> str:
        plan, policy = self.plan, self.return_mean_policy
        rows = {
            "episodes": f"{self.episodes} of {plan.episodes}{_lost(self)}",
            "iterations": f"{self.history[-1].iteration}, batch {plan.batch}, seed {plan.seed}",
            "search distribution": self._worth(),
        }
        if policy is not None:
            rows["mean policy"] = f"{policy.mean:.2f} ± {policy.stderr:.2f}"
        if self.out is not None:
            rows["directory"] = str(self.out)
        return facts(f"{plan.task} by {plan.method}", rows)

    def _worth(self) -> str:
        found, last = self.return_search, self._measured[-1].iteration
        worth = f"{found.mean:.2f} ± {found.stderr:.2f}"
        if self.was_finished:
            return f"{self.outdated} The curve at iteration {last}: {worth}"
        text = f"return {worth}" if self.finished else f"not finished, curve at {worth}"
        return f"{text}. {self.outdated}" if self.outdated else text

    @cached_property
    def task(self) -> Problem:
        """The task that was learned.

        >>> again = recoup.load("runs/throw", task=throw)
        >>> again.task.name
        '...throw'
        """
        if self.problem is not None:
            return self.problem
        return again(self.plan, self._opened.dim, self.names, *self._given)

    @cached_property
    def study(self) -> Study:
        """The run's study: its trials, its proposals, and what they say about any other.

        >>> len(run.study) == run.episodes
        True
        """
        if self.out is None:
            return Study(self._opened.store, self.parts)
        return Study.open(self.out / STUDY, **self.parts)

    @property
    def _measured(self) -> list[HistoryRow]:
        """The steps whose distribution was measured; the start, where none was."""
        return [step for step in self.history if step.curve_episodes] or self.history[:1]

    @property
    def return_search(self) -> Measured:
        """Expected return of the search distribution: the final test, on fresh episodes.

        Before the run's end, or once that is of before another move, the last point of its curve.

        >>> run.return_search.episodes
        20
        """
        if self._result is not None:
            return Measured(**self._result["return_search"])
        last = self._measured[-1]
        return Measured(last.return_curve, last.return_curve_stderr, last.curve_episodes)

    @property
    def return_mean_policy(self) -> Measured | None:
        """Final test of the mean policy, the one to deploy; None unless the run is `finished`.

        >>> bool(run.return_mean_policy.mean > run.curve.mean[0])
        True
        """
        return None if self._result is None else Measured(**self._result["return_mean_policy"])

    @property
    def tests_failed(self) -> int:
        """Episodes of the final test that gave no return: the returns are those of the others.

        >>> run.tests_failed
        0
        """
        return 0 if self._result is None else self._result.get("tests_failed", 0)

    @property
    def wall_s(self) -> float:
        """Seconds that the run has taken; before its end, up to the last point of its curve.

        >>> run.wall_s > 0
        True
        """
        return self._measured[-1].wall_s if self._result is None else self._result["wall_s"]

    @property
    def curve(self) -> Curve:
        """Expected return after the iterations that were tested, the start and the end among them.

        Each on episodes of its own; on tasks of yours, of the trials that each distribution has
        drawn. `history` has all iterations.

        >>> episodes, mean, stderr = run.curve
        >>> len(episodes) == len(mean) == len(stderr)
        True
        """
        columns = zip(
            *((s.episodes, s.return_curve, s.return_curve_stderr) for s in self._measured),
            strict=True,
        )
        return Curve(*(np.array(column) for column in columns))

    def policy(self, observation: Observation) -> Action:
        """The action of the mean policy, the one to deploy, for what is observed.

        `observation` is as the environment's space has it. One with a memory carries it from call
        to call; `learned_policy` starts anew.

        Raises `InputError` where the task is a function of theta, which has no observations.

        >>> car = recoup.train("mountain-car", iterations=2, seed=0)
        >>> car.policy([-0.5, 0.0]).shape
        (1,)
        """
        if isinstance(self.task, HostTask):
            return self._acting(observation)
        return self.task.act(self.mean, observation)

    @cached_property
    def _acting(self) -> SavedPolicy:
        return self.learned_policy()

    def learned_policy(self, which: str | int = LAST) -> SavedPolicy:
        """The mean policy as an object to call with observations, a `SavedPolicy`.

        `which` is "last", "best" (the highest point of the curve) or the number of a move.

        Raises `InputError` where the task is a function of theta, or there is no such move.

        >>> run.learned_policy()
        Traceback (most recent call last):
        ...
        recoup.checks.InputError: ...
        """
        policy, between = self._policy
        return SavedPolicy(policy, self.means[chosen_move(self.history, which)], between)

    @cached_property
    def _policy(self) -> Acting:
        task, policy = self._given
        problem = self.problem if task is None else self.task  # compared with what is stored
        dim = self.mean.size
        found = policy_stored(self.plan, dim, policy) if problem is None else policy_in(problem)
        if found is None:
            raise InputError(
                f"{self.plan.task} has no policy of an environment: its parameters are `run.mean`, "
                "or `run.mean_policy` in your units."
            )
        return found

    def save_policy(
        self, path: str | Path, which: str | int = LAST, *, force: bool = False
    ) -> Path:
        """Writes the mean policy to a plain file (.npz), which `recoup.load_policy` reads.

        An older policy at `path` is replaced; with `force` any other file but a study. `which` is
        "last", "best" or the number of a move. It gives the path.

        Raises `InputError` where there is no policy of an environment, or a file is in the way.

        >>> pole = recoup.train("CartPole-v1", iterations=2, seed=0, test_episodes=2)
        >>> pole.save_policy("pole.npz").name
        'pole.npz'
        """
        return self.learned_policy(which).save(path, force=force)

    def export_policy(
        self, path: str | Path, which: str | int = LAST, *, force: bool = False
    ) -> Path:
        """Writes it for other programs: .npz, .onnx or .pt (TorchScript), as the file ends.

        `path`, `which` and `force` are as `save_policy` takes them. It gives the path.

        Raises `InputError` where there is no policy, or the package that writes the format is
        missing.

        >>> pole = recoup.train("CartPole-v1", iterations=2, seed=0, test_episodes=2)
        >>> pole.export_policy("pole.npz").name
        'pole.npz'
        """
        return export_policy(self.learned_policy(which), path, force=force)

    def network(self, which: str | int = LAST) -> Any:
        """A module of the user's (PyTorch, Flax, Equinox) with the learned weights, a copy.

        `which` is "last", "best" or the number of a move.

        Raises `InputError` where the policy is no such module.

        >>> run.network()
        Traceback (most recent call last):
        ...
        recoup.checks.InputError: ...
        """
        return self.learned_policy(which).network()

    def policies(self) -> list[KeptPolicy]:
        """Moves and files of the policies that are kept, but for `policies/best.npz`: `KeptPolicy`.

        >>> run.policies()  # a function of theta has none
        []
        """
        kept = [] if self.plan.policy is None else kept_in(self.out)
        return [one for one in kept if one.move < len(self.means)]  # others are of another run

    @property
    def best(self) -> HistoryRow | None:
        """The highest point of the curve: its mean policy is `policies/best.npz`.

        While a run is made, or where it was killed, that is the best as of the last kept move.

        >>> bool(run.best.return_curve == max(run.curve.mean))
        True
        """
        return best_of(self.history)

    @property
    def mean_policy(self) -> Any:
        """The mean in the user's units, by name where parameters have names.

        >>> run.mean_policy.shape
        (2,)
        """
        return self.mean_policy_after(-1)

    def mean_policy_after(self, move: int) -> Any:
        """The mean in the user's units after a `move`; 0 is the start.

        Raises IndexError where there was no such move.

        >>> run.mean_policy_after(0)
        array([0., 0.])
        """
        return mean_of(self._opened, self.means[move])

    def dataframe(self, *, full: bool = False) -> "pandas.DataFrame":
        """All trials as a table of pandas, one row each; the moves are `run.history`.

        With `full` the distributions that drew them too.

        Raises `InputError` where pandas is not installed.

        >>> len(run.dataframe()) == run.episodes
        True
        """
        return self.study.dataframe(full=full)

    def plot(self, path: str | Path | None = None, *, force: bool = False) -> Any:
        """The learning curve as a matplotlib figure, saved to `path` if one is given.

        A picture (.png, .pdf or .svg) that recoup made before is replaced; with `force` any other
        file but a study.

        Raises `InputError` for another ending, and where a file is in the way.

        >>> figure = run.plot("throw.png")
        """
        from recoup.pictures.curves import learning_curve

        figure = learning_curve(*_drawn(self))
        if path is not None:
            path = check_path("the picture", path)
            home = self.out is not None and path.absolute() == (self.out / CURVE).absolute()
            write_picture(figure, path, 150, Over(force, home), _shown(self))
        return figure

    def is_drawn(self) -> bool:
        """Whether `curve.png` shows the run as it is: by what it is made of, not by a clock.

        >>> run.is_drawn()
        True
        """
        return self.out is not None and shows(self.out / CURVE, _shown(self))

    def summary(self) -> Plain:
        """The run in a few words, as `recoup train --json` prints it.

        >>> run.summary()["iterations"]
        5
        """
        plan, policy = self.plan, self.return_mean_policy
        return {
            "task": plan.task,
            "method": plan.method,
            "seed": plan.seed,
            "episodes": self.episodes,
            "failed": self.failed,
            **({"dropped": self.dropped} if self.dropped else {}),
            "iterations": self.history[-1].iteration,
            "batch": plan.batch,
            "return_search": self.return_search._asdict(),
            "return_mean_policy": None if policy is None else policy._asdict(),
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "wall_s": self.wall_s,
            "run": None if self.out is None else str(self.out),
            **({"tests_failed": self.tests_failed} if self.tests_failed else {}),
            **({"outdated": self.outdated} if self.outdated else {}),
            **_of_own_task(self),
        }


def method_settings(run: Run) -> Plain:
    """The settings of a run's method as JSON can hold them: parts of the user's by their text."""
    return {**texts(vars(run.plan.settings)), **run.missing}


def _lost(run: Run) -> str:
    """`, 3 trials failed, 1 dropped`."""
    trials = "trial" if run.failed == 1 else "trials"
    gone = f", {run.dropped} dropped" if run.dropped else ""
    return f", {run.failed} {trials} failed{gone}"


def _of_own_task(run: Run) -> Plain:
    """What a summary says of a task of the user's beside."""
    plan = run.plan
    if not plan.own:
        return {}
    parameters = dict(run.mean_policy) if run.names else None
    facts = {"warm_up": plan.warm_up, "version": plan.version, "params": parameters}
    return {key: value for key, value in facts.items() if value}


def _drawn(run: Run) -> tuple[str, Curve, Measured | None, dict[str, np.ndarray]]:
    """What the picture of a learning curve is made of."""
    plan = run.plan
    title = f"{plan.task} · {plan.method} · batch {plan.batch} · seed {plan.seed}"
    columns = ("episodes", "samples", "ess", "max_weight")
    moves = {key: np.array([getattr(step, key) for step in run.history[1:]]) for key in columns}
    return title.replace("$", "\\$"), run.curve, run.return_mean_policy, moves


def _shown(run: Run) -> str:
    """The same in a few letters."""
    title, curve, policy, moves = _drawn(run)
    columns = [column.tolist() for column in (*curve, *moves.values())]
    return sha256(repr((title, columns, tuple(policy or ()))).encode()).hexdigest()


def load(run: str | Path, *, task: Given = None, policy: Given = None, **parts: Given) -> Run:
    """The run in a directory, finished or not, as a `Run`.

    `run` is the directory. `task` and `policy` are those of the run, where only Python can give
    them; so are `parts`, those of its method: a family of your own is needed to read its
    distributions.

    Raises `InputError` where there is no run, or its study is damaged.

    >>> recoup.load("runs/throw")
    Run('...throw', ... by recoup, seed 0, ... episodes, return ... ± ...)
    """
    directory = settled(check_path("the run", run))
    return Run(Opened.open(study_in(run), parts_given(parts)), directory, task=task, policy=policy)
