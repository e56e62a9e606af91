"""The loop of a run: trials out, results in, moves tested, listeners told, an end written."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.types import Rho
from recoup.runs.callbacks import TensorBoard, done_of, say
from recoup.runs.directory import CURVE, TENSORBOARD, spared
from recoup.runs.engines import engine_of
from recoup.runs.fresh import LAST_KEY, EngineTests, Evaluated, Tests, is_tested
from recoup.runs.history import HistoryRow, history_of, step_of
from recoup.runs.kept import is_kept, keep_policies, policy_files, unlike, write_policies
from recoup.runs.plan import Plan, stored_plan
from recoup.runs.problem import Acting, Problem, policy_in, policy_stored
from recoup.runs.run import SPENT, Run
from recoup.runs.schedule import Heard, Load, Rules, Schedule
from recoup.store.rows import OWN, Move, Test
from recoup.study.reader.records import Trial
from recoup.study.run.beside import POLICIES, POLICY
from recoup.study.run.ends import FINISHED, PROPOSAL, files_are_of_now
from recoup.study.study import Study
from recoup.tasks.engines.attempt import reason
from recoup.tasks.engines.engine import Engine
from recoup.tasks.measured import Measured, measured
from recoup.tasks.policies.policy_files import save_policy
from recoup.tasks.task import Task

log = logging.getLogger(__name__)
EVERY = 10  # moves between two checkpoints
RETURNS = ("return_search", "return_mean_policy")

Show = Callable[[HistoryRow], None]


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
def rolling(plan: Plan, problem: Problem, here: str | None) -> Iterator[tuple[Engine, Rules]]:
    """What rolls trials out; workers that it has started in `here` end with it."""
    engine, rules = engine_of(problem, plan.engine, plan.batch, plan.trials, here)
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
        tests, everyone = _tests(study, plan, problem, engine), [*board, *callbacks]
        yield Work(plan, problem, engine, rules, tests, directory, display, everyone)
    finally:
        for one in board:
            one.close()


def _tests(study: Study, plan: Plan, problem: Problem, engine: Engine) -> Tests:
    """What tests a run on fresh episodes."""
    if not isinstance(problem, Task):
        return EngineTests(study.opened, engine, plan.test_episodes)
    from recoup.runs.in_jax import TaskTests

    return TaskTests(plan, problem, plan.test_episodes)


def _board(directory: Path | None) -> list[TensorBoard]:
    """A writer for TensorBoard, where there is a directory and the package is installed."""
    if directory is None or find_spec("tensorboardX") is None:
        return []
    try:
        with _ctrl_c_later():
            return [TensorBoard(directory / TENSORBOARD)]
    except Exception as wrong:  # one that does not fit what else is installed
        log.warning("tensorboardX cannot be used (%s): the run goes on without it.", reason(wrong))
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
    """Asks, rolls out and tells until the budget is spent; gives what was learned.

    Whatever stops it but a kill, the policies beside it are of what it has come to.
    """
    loop = _Loop(study, work)
    study.tell_all([])  # makes the move that a stop may have left due
    try:
        loop.fill_in()
        loop.put_right()
        if not loop.look() and _is_spent(study, work, loop):
            loop.finish()
        else:
            loop.put_right()
    except BaseException:
        with suppress(Exception):  # what has stopped it is said
            loop.put_right()
        raise
    return learned(study, work.directory, work.problem)


def _is_spent(study: Study, work: Work, loop: "_Loop") -> bool:
    """Whether the budget was spent: something may stop the run before."""
    told = study.store.count(SPENT, told=True)
    waiting = _waiting(study, max(work.plan.trials - told, 0))
    schedule = Schedule(study, work.engine, work.rules)
    return schedule.spend(work.plan.trials, told, waiting, loop.listen)


def _waiting(study: Study, left: int) -> list[Trial]:
    """The trials of a run that wait for a result, the first `left` of those that count for it.

    And thetas that somebody has put in line, which count for nothing; the mean is tried by hand.
    """
    found = [trial for trial in study.pending() if trial.kind in (*SPENT, OWN)]
    beyond = {trial.id for trial in [one for one in found if one.kind in SPENT][left:]}
    return [trial for trial in found if trial.id not in beyond]


def learned(study: Study, directory: Path | None, problem: Problem | None = None) -> Run:
    """The run that a study holds; the picture beside it, where it is finished, is of what it is."""
    run = Run(study.opened, directory, problem=problem)
    drawn = not run.finished or run.is_drawn()
    if directory is not None and not drawn and os.access(directory, os.W_OK):
        with spared(directory / CURVE):
            run.plot(directory / CURVE)
    return run


def put_right(study: Study, directory: Path | None, problem: Problem | None = None) -> Run:
    """The finished run that a study holds, once the files beside it are of what it is."""
    if directory is not None and os.access(directory, os.W_OK):
        opened, amended = study.opened, study.store.last_amended()
        plan = stored_plan(opened)
        files = {} if plan.policy is None else policy_files(directory, opened, plan.keep_every)
        acting = _write_again(study, plan, problem, files)
        if not study.store.read_only and not unlike(files, acting):
            files_are_of_now(opened, amended)
    return learned(study, directory, problem)


def _write_again(
    study: Study, plan: Plan, problem: Problem | None, files: dict[Path, np.ndarray]
) -> Acting | None:
    """Writes the files of policies that hold something else than they must; gives their policy.

    Without its task a policy is what the study says; one that only Python can give is asked for,
    once a file must be written.
    """
    acting: Acting | None = None
    if files and problem is not None:
        acting = policy_in(problem)
    elif files:
        with suppress(InputError):
            acting = policy_stored(plan, study.dim)
    wrong = unlike(files, acting)
    for path in list(wrong)[:1] if acting is None else ():
        with spared(path):
            acting = policy_stored(plan, study.dim)
    for path, theta in wrong.items():
        if acting is not None:
            with spared(path):
                write_policies({path: theta}, acting)
    return acting


def _passed(study: Study, plan: Plan) -> float:
    """Seconds that a run has taken so far: up to its last test, or to its end.

    The time it was stopped does not count, nor what was done since.
    """
    tests, ends = study.store.tests(), study.store.events(FINISHED)
    known = [test.wall_s for test in tests[-1:]] + [end.content["wall_s"] for end in ends[-1:]]
    return max(known) if known else _since_first(study, plan)


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
        self.began = time.perf_counter() - _passed(study, work.plan)
        self._seen = -1  # the last move that was shown
        self._values: list[float] = []  # of trials that came in since
        self._unwritten: set[Path] = set()  # files that could not be, as was said
        if study.store.tests():
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
        rho, test = self._rho(move), self._tested(move)
        spent = store.count(SPENT, told=True) * self.work.plan.episodes_per_trial
        step = step_of(move, np.asarray(rho.std), spent, test)
        self.work.display.step(step)
        stop = say(self.work.callbacks, "on_move", step) if move.id else False
        if move.id and move.id % EVERY == 0 and move.id < self.work.plan.iterations:
            stop = self._checkpoint(step, rho) or stop
        if any(is_kept(self.work.plan.keep_every, number) for number in passed):
            self._keep()
        return stop

    def fill_in(self) -> None:
        """Tests earlier moves that have no test and want one: made by hand, or made again."""
        for move in self.study.store.moves()[:-1] if self.work.plan.tested else ():
            if self._is_due(move.id):
                self._test(move)

    def put_right(self) -> None:
        """Writes the policies of what the run is now: files may be missing, or of before."""
        move = self.study.store.last_move()
        if move.id:
            self._saved(self._rho(move))
            self._keep(whole=True)

    def _rho(self, move: Move) -> Any:
        """The distribution that a move has made."""
        return self.study.opened.rho(self.study.store.proposal(move.proposal).numbers)

    def _tested(self, move: Move) -> Test | None:
        """What the newest distribution earns, on episodes of its own; None where it is not tested.

        Where they are dear, what the trials have earned that came in since the last move.
        """
        if not self.work.plan.tested:
            values, self._values = self._values, []
            if len(values) < 2:
                return None
            return Test(move.id, *measured(values), time.perf_counter() - self.began)
        return self._test(move) if self._is_due(move.id) else self.study.store.test(move.id)

    def _test(self, move: Move) -> Test:
        """Tests the distribution after a move, and writes what was found, unless it is another now.

        An amendment makes moves again, and takes away their tests.
        """
        store, found = self.study.store, self.work.tests.search(move.id, self._rho(move))
        test = Test(move.id, *found, time.perf_counter() - self.began)
        with store.writing():
            if store.last_move(move.id).proposal == move.proposal:
                store.add_test(test)
        return test

    def _is_due(self, number: int) -> bool:
        """Whether the distribution after a move is still to be tested."""
        return is_tested(self.work.plan, number) and self.study.store.test(number) is None

    def _checkpoint(self, step: HistoryRow, rho: Rho) -> bool:
        """Writes the mean policy, and says so; whether to stop."""
        return say(self.work.callbacks, "on_checkpoint", step, self._saved(rho))

    def _saved(self, rho: Rho) -> Path | None:
        """The file of the mean policy, once it is written; None where there is none."""
        directory, acting = self.work.directory, policy_in(self.work.problem)
        if directory is None or acting is None:
            return None
        policy, between = acting
        with spared(directory / POLICY, self._unwritten):
            return save_policy(directory / POLICY, policy, np.asarray(rho.mean), between)
        return None

    def _keep(self, end: Measured | None = None, *, whole: bool = False) -> None:
        """Writes the policies that are kept beside the newest, where there are any.

        `end` is what the newest distribution earns, where that is not written yet; `whole`, whether
        more of files than their parameters is looked at.
        """
        directory, acting = self.work.directory, policy_in(self.work.problem)
        every, moved = self.work.plan.keep_every, self.study.store.last_move().id > 0
        if directory is not None and acting is not None and every and moved:
            with spared(directory / POLICIES, self._unwritten):
                keep_policies(directory, acting, self.study.opened, every, end, whole=whole)

    def finish(self) -> None:
        """Writes what was learned and what it is worth.

        The policies first: what is finished has them, and tests may be dear.
        """
        store = self.study.store
        while True:
            move = store.last_move()
            rho = self._rho(move)
            self._saved(rho)
            self.fill_in()
            if self.work.plan.tested and store.test(move.id) is None:  # fewer moves than planned
                self._test(move)
            found = self.work.tests.both(LAST_KEY, rho)
            self._keep(found.return_search)
            if self._ended(move, found):
                break
        spent = store.count(SPENT, told=True) * self.work.plan.episodes_per_trial
        step = step_of(move, np.asarray(rho.std), spent, store.test(move.id))
        self._checkpoint(step, rho)

    def _ended(self, move: Move, found: Evaluated) -> bool:
        """Writes the final test of the distribution after a move; False if there is a newer one."""
        store, wall = self.study.store, time.perf_counter() - self.began
        with store.writing():
            if store.last_move().proposal != move.proposal:  # another process has amended
                return False
            if store.test(move.id) is None:
                store.add_test(Test(move.id, *found.return_search, wall))
            returns = {key: getattr(found, key)._asdict() for key in RETURNS}
            failed = {"tests_failed": found.failed} if found.failed else {}
            tested = {PROPOSAL: move.proposal, "wall_s": wall}
            store.note(FINISHED, {**returns, **tested, **failed})
        return True
