"""The loop of a run: trials out, results in, moves tested, listeners told, an end written."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.runs.callbacks import TensorBoard, done_of, say
from recoup.runs.directory import CURVE, POLICY, TENSORBOARD
from recoup.runs.engines import engine_of
from recoup.runs.fresh import LAST, EngineTests, TaskTests, Tests, is_tested
from recoup.runs.history import Step, history_of, step_of
from recoup.runs.kept import is_kept, keep_policies
from recoup.runs.plan import Plan
from recoup.runs.problem import Problem, policy_in
from recoup.runs.run import FINISHED, SPENT, Run
from recoup.runs.schedule import Heard, Load, Rules, Schedule
from recoup.store.rows import Test
from recoup.study.study import Study
from recoup.tasks.engines.engine import Engine
from recoup.tasks.policies.files import save_policy
from recoup.tasks.rollouts import measured
from recoup.tasks.task import Task

EVERY = 10  # moves between two checkpoints
RETURNS = ("return_search", "return_mean_policy")

Show = Callable[[Step], None]


class Display(NamedTuple):
    """What shows a run while it is made."""

    step: Show
    load: Callable[[Load], None]


class Work(NamedTuple):
    """What a run is made with."""

    plan: Plan
    problem: Problem
    engine: Engine
    rules: Rules
    tests: Tests
    directory: Path | None
    display: Display
    callbacks: Sequence[Any]


@contextmanager
def rolling(plan: Plan, problem: Problem) -> Iterator[tuple[Engine, Rules]]:
    """What rolls trials out; workers that it has started end with it."""
    engine, rules = engine_of(problem, plan.engine, plan.batch, plan.trials)
    try:
        yield engine, rules
    finally:
        engine.close()


@contextmanager
def work_of(
    study: Study,
    plan: Plan,
    problem: Problem,
    rolls: tuple[Engine, Rules],
    directory: Path | None,
    display: Display,
    callbacks: Sequence[Any] = (),
) -> Iterator[Work]:
    """What a run is made with."""
    engine, rules = rolls
    board = _board(directory)
    try:
        tests: Tests = (
            TaskTests(plan, problem, plan.test_episodes)
            if isinstance(problem, Task)
            else EngineTests(study.opened, engine, plan.test_episodes)
        )
        everyone = [*board, *callbacks]
        yield Work(plan, problem, engine, rules, tests, directory, display, everyone)
    finally:
        for one in board:
            one.close()


def _board(directory: Path | None) -> list[TensorBoard]:
    """A writer for TensorBoard, where there is a directory and the package is installed."""
    if directory is None:
        return []
    try:
        with _ctrl_c_later():
            return [TensorBoard(directory / TENSORBOARD)]
    except ImportError:
        return []


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Holds Ctrl-C back for a moment: what is imported inside would swallow it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def learn(study: Study, work: Work) -> Run:
    """Asks, rolls out and tells until the budget is spent; gives what was learned."""
    loop = _Loop(study, work)
    study.tell_all([])  # makes the move that a stop may have left due
    loop.keep()  # so may policies be
    if not loop.look():
        waiting = [trial for trial in study.pending() if trial.kind in SPENT]
        told = study.store.told_count(SPENT)
        schedule = Schedule(study, work.engine, work.rules)
        left = work.plan.trials - told
        if schedule.spend(work.plan.trials, told, waiting[: max(left, 0)], loop.listen):
            loop.finish()
    run = Run(study.opened, work.directory, problem=work.problem)
    if work.directory is not None and run.finished:
        run.plot(work.directory / CURVE)
    return run


def _since_first(study: Study, plan: Plan) -> float:
    """Seconds since the first trial was asked for, of a task of the user's; 0 where none was."""
    if plan.tested:
        return 0.0
    first = next(study.store.trials(), None)
    return 0.0 if first is None else max(time.time() - first[0].asked_at, 0.0)


class _Loop:
    """What is done whenever something has come back."""

    def __init__(self, study: Study, work: Work) -> None:
        self.study, self.work = study, work
        before = study.store.tests()
        passed = before[-1].wall_s if before else _since_first(study, work.plan)
        self.began = time.perf_counter() - passed
        self._seen = -1  # the last move that was shown
        self._values: list[float] = []  # of trials that came in since
        if before:  # the time it was stopped does not count, nor what was done since the last test
            self.work.display.step(history_of(study.opened).steps[-1])
            last = study.store.last_move().id
            self._seen = -1 if self._is_due(last) else last

    def listen(self, heard: list[Heard], load: Load) -> bool:
        """Hears of what has come back; whether to stop."""
        self.work.display.load(load)
        self._values += [one.told.value for one in heard if one.told.value is not None]
        callbacks = self.work.callbacks
        stops = [say(callbacks, "on_result", done_of(one)) for one in heard] if callbacks else []
        return (bool(heard) and self.look()) or any(stops)

    def look(self) -> bool:
        """Shows the newest distribution, once, tested if it is to be; whether to stop."""
        store = self.study.store
        move = store.last_move()
        if move.id == self._seen:
            return False
        passed, self._seen = range(max(self._seen, 0) + 1, move.id + 1), move.id
        rho = self.study.opened.rho(store.newest().numbers)
        test = self._tested(move.id, rho)
        spent = store.told_count(SPENT) * self.work.plan.episodes_per_trial
        step = step_of(move, np.asarray(rho.std), spent, test)
        self.work.display.step(step)
        stop = say(self.work.callbacks, "on_move", step) if move.id else False
        if move.id and move.id % EVERY == 0 and move.id < self.work.plan.iterations:
            stop = self._checkpoint(step, rho) or stop
        if any(is_kept(self.work.plan.keep_every, number) for number in passed):
            self.keep()
        return stop

    def _tested(self, number: int, rho: Any) -> Test | None:
        """What the newest distribution earns, on episodes of its own; None where it is not tested.

        Where they are dear, what the trials have earned that came in since the last move.
        """
        if not self.work.plan.tested:
            values, self._values = self._values, []
            if len(values) < 2:
                return None
            return Test(number, *measured(values), time.perf_counter() - self.began)
        return self._test(number, rho) if self._is_due(number) else self.study.store.test(number)

    def _test(self, number: int, rho: Any) -> Test:
        """Tests the distribution after a move, and writes what was found."""
        found = self.work.tests.search(number, rho)
        test = Test(number, *found, time.perf_counter() - self.began)
        with self.study.store.writing():
            self.study.store.add_test(test)
        return test

    def _is_due(self, number: int) -> bool:
        """Whether the distribution after a move is still to be tested."""
        return is_tested(self.work.plan, number) and self.study.store.test(number) is None

    def _checkpoint(self, step: Step, rho: Any) -> bool:
        """Writes the mean policy, and says so; whether to stop."""
        path, acting = None, policy_in(self.work.problem)
        if self.work.directory is not None and acting is not None:
            policy, between = acting
            mean = np.asarray(rho.mean)
            path = save_policy(self.work.directory / POLICY, policy, mean, between)
        return say(self.work.callbacks, "on_checkpoint", step, path)

    def keep(self) -> None:
        """Writes the policies that are kept beside the newest, where there are any."""
        directory, acting = self.work.directory, policy_in(self.work.problem)
        every, moved = self.work.plan.keep_every, self.study.store.last_move().id > 0
        if directory is not None and acting is not None and every and moved:
            keep_policies(directory, acting, self.study.opened, every)

    def finish(self) -> None:
        """Writes what was learned and what it is worth."""
        store = self.study.store
        rho = self.study.opened.rho(store.newest().numbers)
        move = store.last_move()
        if self.work.plan.tested and store.test(move.id) is None:  # fewer moves than were planned
            self._test(move.id, rho)
        found = self.work.tests.both(LAST, rho)
        wall = time.perf_counter() - self.began
        with store.writing():
            if store.test(move.id) is None:
                store.add_test(Test(move.id, *found.return_search, wall))
        self.keep()  # before the end is written: what was killed here is made again
        with store.writing():
            returns = {key: getattr(found, key)._asdict() for key in RETURNS}
            failed = {"tests_failed": found.failed} if found.failed else {}
            store.note(FINISHED, {**returns, "wall_s": wall, **failed})
        spent = store.told_count(SPENT) * self.work.plan.episodes_per_trial
        step = step_of(move, np.asarray(rho.std), spent, store.test(move.id))
        self._checkpoint(step, rho)
