"""When trials are asked for, rolled out, tried again and told: the one loop of every run.

Without a barrier a new trial is asked for as soon as a worker is free, and the distribution moves
after every batch of results, whichever proposals drew them. With one (`sync`) the trials of a batch
are waited for before others are asked for.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from recoup.checks import InputError, printable
from recoup.core.types import Given
from recoup.store.rows import FAILED, OK, SAMPLED, Told
from recoup.study.reader.records import Trial
from recoup.tasks.engines.engine import Broken, Engine, Job, Known, Outcome

BEAT = 0.5  # seconds, at most, between two looks at how the run fares
BROKEN_AFTER = 5  # trials that fail one after the other before a task counts as broken


class Askable(Protocol):
    """What the loop needs of a study."""

    @property
    def batch(self) -> int:
        """How many results a move waits for."""

    def ask(self, n: int) -> list[Trial]:
        """New trials."""

    @property
    def uses_context(self) -> bool:
        """Whether moves look at what was known before trials."""

    def result(self, value: Given = None, **how: Given) -> Told:
        """A result, checked."""

    def with_context(self, told: Told, context: Given) -> Told:
        """A result with what was known before its trial."""

    def tell_all(self, results: Sequence[tuple[int, Told]]) -> Any:
        """What came of trials."""

    def until_move(self) -> int:
        """How many results are missing until the distribution moves."""

    def counts(self) -> dict[str, int]:
        """How many trials there are of each status."""


class Rules(NamedTuple):
    """How a run is scheduled."""

    sync: bool = False  # wait for a batch before asking for another
    retries: int = 1  # how often a trial that failed is tried again, with its theta and seed
    gives_up: bool = True  # whether failures alone, one after the other, end the run


class Heard(NamedTuple):
    """What has come back from workers, and how many are at work."""

    trial: Trial
    outcome: Outcome
    told: Told


class Load(NamedTuple):
    """How busy the workers are."""

    slots: int
    out: int  # trials that are being rolled out
    told: int  # results in all
    failed: int  # since the loop began
    again: int  # trials tried again since then
    done: int  # results since then
    seconds: float

    @property
    def rate(self) -> float:
        """Results a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0


Listen = Callable[[list[Heard], Load], bool]  # whether to stop


class Schedule:
    """The trials of a run that are out, in line, or held back."""

    def __init__(self, study: Askable, engine: Engine, rules: Rules | None = None) -> None:
        self.study, self.engine, self.rules = study, engine, rules or Rules()
        self._line: deque[Trial] = deque()  # asked for and not out yet
        self._out: dict[int, Trial] = {}
        self._spending = 0  # of those that are out, the ones that count for a budget
        self._order: dict[int, int] = {}  # in which trials were given to workers
        self._tries: dict[int, int] = {}  # of trials that failed
        self._held: list[Heard] = []  # failures that are told once another trial succeeds
        self._told = self._done = self._failed = self._again = 0
        self._succeeded = False
        self._began = time.perf_counter()

    def spend(self, budget: int, told: int, waiting: Sequence[Trial], listen: Listen) -> bool:
        """Rolls out until `budget` results are told, `told` of them before; whether it came so far.

        `waiting` are trials that were asked for earlier. Thetas that somebody has put in line are
        rolled out too, and are no part of the budget. `listen` hears of all that comes back, and
        may stop the loop; what is out then is left without a result.
        """
        self._told, self._line = told, deque(waiting)
        self._succeeded = self.study.counts()[OK] > 0
        while self._left(budget) > 0 or self._out or self._line:
            self._fill(budget)
            heard = self._hear(self.engine.wait(BEAT))
            if listen(heard, self.load()):
                return False
        return not (self._held and listen(self._tell(self._held), self.load()))

    def load(self) -> Load:
        """How busy the workers are."""
        counts = (self._told, self._failed, self._again, self._done)
        return Load(self.engine.slots, len(self._out), *counts, time.perf_counter() - self._began)

    def _fill(self, budget: int) -> None:
        """Gives trials to workers that have none."""
        while len(self._out) < self.engine.slots:
            if not self._line and not self._ask(budget):
                return
            trial = self._line.popleft()
            self._out[trial.id] = trial
            self._spending += trial.kind in SAMPLED
            self._order[trial.id] = len(self._order)
            self.engine.submit(
                Job(trial.id, trial.theta, trial.seed, trial.params or None, trial.std)
            )

    def _ask(self, budget: int) -> bool:
        """Asks for trials, as far as the budget goes; whether there are any."""
        left = self._left(budget)
        if left <= 0 or (self.rules.sync and self._out):
            return False
        want = self.study.until_move() if self.rules.sync else self.engine.slots - len(self._out)
        while not self._line:  # what a lease has brought back may be here already: once, each
            asked = self.study.ask(min(max(want, 1), left))
            held = {one.trial.id for one in self._held}
            self._line.extend(t for t in asked if t.id not in self._out and t.id not in held)
        return True

    def _left(self, budget: int) -> int:
        """How many trials the budget has left, beside those that are out."""
        return budget - self._told - self._spending - _sampled(one.trial for one in self._held)

    def _hear(self, outcomes: list[Outcome]) -> list[Heard]:
        """Tells what has come back, but failures that are tried again or held."""
        heard = []
        for outcome in outcomes:
            trial = self._out.pop(outcome.id)
            self._spending -= trial.kind in SAMPLED
            one = Heard(trial, outcome, self._as_told(outcome))
            if one.told.status != FAILED:
                self._succeeded = True
                heard += [*self._held, one]
                self._held = []
            elif self._tries.get(trial.id, 0) < self.rules.retries and outcome.failed is not None:
                self._tries[trial.id] = self._tries.get(trial.id, 0) + 1
                self._again += 1
                self._line.appendleft(trial)
            elif self.rules.gives_up:
                self._held.append(one)
            else:
                heard.append(one)
        told = self._tell(heard)
        self._check_broken()
        return told

    def _check_broken(self) -> None:
        """Raises if nothing but failures has come back: then the task itself is broken.

        Not while a trial is out that was given to a worker before the first of them: failures may
        come back sooner than others.
        """
        most = max(BROKEN_AFTER, 3 * self.study.batch) if self._succeeded else BROKEN_AFTER
        if len(self._held) < most:
            return
        first = min(self._order[one.trial.id] for one in self._held)
        if not any(self._order[number] < first for number in self._out):
            one = self._held[-1]
            raise Broken(
                f"{len(self._held)} trials failed one after the other, the last because: "
                f"{one.told.note}. They wait for another attempt.",
                one.outcome.trace,
            )

    def _tell(self, heard: list[Heard]) -> list[Heard]:
        if heard:
            self.study.tell_all([(one.trial.id, one.told) for one in heard])
            self._told += _sampled(one.trial for one in heard)
            self._done += len(heard)
            self._failed += sum(one.told.status == FAILED for one in heard)
        return heard

    def _as_told(self, outcome: Outcome) -> Told:
        """An outcome as a study keeps it: failed where it is not finite."""
        if outcome.failed is not None:
            return Told(FAILED, note=printable(outcome.failed))
        if outcome.trajectory is None and not outcome.values:
            return Told(FAILED, note="it returned nothing")
        try:
            if outcome.trajectory is not None:
                return self.study.result(trajectory=outcome.trajectory)
            if len(outcome.values) == 1:
                found = self.study.result(outcome.values[0])
            else:
                found = self.study.result(values=outcome.values)
        except InputError:
            return Told(FAILED, note="its return was not finite")
        return found if outcome.context is None else self._with_context(found, outcome.context)

    def _with_context(self, told: Told, context: Known) -> Told:
        """A result with what was known before it, where the study looks at that."""
        if not self.study.uses_context:
            return told
        try:
            return self.study.with_context(told, context)
        except InputError as wrong:
            return Told(FAILED, note=printable(str(wrong)))


def _sampled(trials: Iterable[Trial]) -> int:
    """How many of trials a distribution has drawn: those that a budget is of."""
    return sum(trial.kind in SAMPLED for trial in trials)
