"""`recoup work`: asks a served study for trials, has them rolled out, and tells what came of them.

Trials are lent: while one is rolled out its lease is renewed, and where this program is killed, it
runs out and another worker gets the trial. The server may stop and start again meanwhile: results
wait here until it answers.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import NamedTuple, Protocol

from recoup.checks import InputError, printable
from recoup.core.types import Plain
from recoup.serve.calling import Refused
from recoup.serve.client import RemoteStudy
from recoup.serve.remote_trials import RemoteTrial

BEAT = 0.5  # seconds, at most, between two looks at whether to stop
PAUSED_BEAT = 5.0  # seconds between two askings of a study that is paused
RENEWALS = 3  # of a lease, in its time
GRACE = 5.0  # seconds, at most, that a renewal on its way is waited for at the end
BROKEN_AFTER = 5  # rollouts that raise, one after the other, before any that does not
CONFLICT = 409


class OnlyRaises(RuntimeError):
    """Rollouts do nothing but raise: what was tried, and the traceback of the last."""

    def __init__(self, sentence: str, trace: str) -> None:
        super().__init__(sentence)
        self.trace = trace


class CameBack(Protocol):
    """What came of a rollout: as `tasks.engines` gives it."""

    @property
    def id(self) -> int:
        """The trial."""

    @property
    def values(self) -> tuple[float, ...]:
        """The returns of its episodes."""

    @property
    def failed(self) -> str | None:
        """Why there is none."""

    @property
    def trace(self) -> str:
        """The end of the traceback, where it raised."""

    @property
    def context(self) -> Sequence[float] | Mapping[str, float] | None:
        """What was known before it began."""


class Hands(Protocol):
    """What rolls trials out, so many at a time."""

    @property
    def slots(self) -> int:
        """How many."""

    def submit(self, trial: RemoteTrial) -> None:
        """Takes a trial."""

    def wait(self, seconds: float) -> Sequence[CameBack]:
        """What has come back by then."""


class Tally(NamedTuple):
    """How a worker fares."""

    told: int = 0
    failed: int = 0  # of those
    refused: int = 0  # results that the server did not take
    out: int = 0  # being rolled out
    until_move: int | None = None
    says: str = ""  # what is in the way, if something is


class Settings(NamedTuple):
    """How a worker works."""

    episodes: int | None = None  # results to tell in all; None: until it is stopped
    lease: float = 3600.0  # seconds
    name: str | None = None  # who asks, for people to read


class Worker:
    """Asks, has rolled out, tells, until so many results are told or it is stopped."""

    def __init__(
        self,
        study: RemoteStudy,
        hands: Hands,
        settings: Settings,
        hear: Callable[[Tally, CameBack | None], None] = lambda tally, outcome: None,
    ) -> None:
        """`hear` is told how it fares, and of each rollout that has come back."""
        self.study, self.hands, self.settings = study, hands, settings
        self.tally = Tally()
        self._hear = hear
        self._line: deque[RemoteTrial] = deque()  # asked for and not out yet
        self._out: dict[int, RemoteTrial] = {}
        self._done: deque[CameBack] = deque()  # came back, not told yet
        self._asked = 0
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._raised = 0  # rollouts that raised, one after the other, before one that did not
        study.caller.on_wait = self._waits

    def work(self) -> Tally:
        """Works until it is done; what has not been rolled out by then is given back."""
        renewing = threading.Thread(target=self._renew_meanwhile, daemon=True)
        renewing.start()
        try:
            while self._goes_on():
                self._fill()
                self._done.extend(self.hands.wait(BEAT) if self._out else ())
                self._tell_all()
                if self._stopping.is_set() and self._out:
                    self._say("finishing what runs; Ctrl-C again gives it back")
        finally:
            self._ended.set()
            self.study.caller.give_up()
            renewing.join(GRACE)
            self._give_back()
        return self.tally

    def stop(self) -> None:
        """Asks for no more trials; what runs is finished and told. May be called at any moment."""
        self._stopping.set()

    def _goes_on(self) -> bool:
        return bool(self._out or self._done or (self._left() and not self._stopping.is_set()))

    def _left(self) -> int:
        """How many trials may be started."""
        episodes = self.settings.episodes
        return self.hands.slots if episodes is None else max(episodes - self._asked, 0)

    def _fill(self) -> None:
        """Gives trials to whoever has none."""
        while len(self._out) < self.hands.slots and self._left() and not self._stopping.is_set():
            if not self._line and not self._ask():
                return
            trial = self._line.popleft()
            self._asked += 1
            self._out[trial.id] = trial
            self.hands.submit(trial)
            self._say(out=len(self._out))

    def _ask(self) -> bool:
        """Asks for trials; whether there are any."""
        n = min(self.hands.slots - len(self._out), self._left())
        try:
            found = self.study.ask(n, lease=self.settings.lease, worker=self.settings.name)
        except Refused as refused:
            if refused.status != CONFLICT:
                raise
            self._say(str(refused))  # it is paused
            if not self._out:
                self._stopping.wait(PAUSED_BEAT)
            return False
        self._say("")
        self._line.extend(trial for trial in found if trial.id not in self._out)
        return bool(self._line)

    def _tell_all(self) -> None:
        """Tells what has come back. One stays in line until the server has it."""
        while self._done:
            outcome = self._done[0]
            told = self._as_told(outcome)
            try:
                receipt = self.study.tell(outcome.id, **told)
            except InputError as refused:
                self._counted(f"trial {outcome.id}: {refused}", refused=1)
            else:
                self._counted("", told=1, failed="failed" in told)
                self.tally = self.tally._replace(until_move=receipt.until_move)
            self._done.popleft()
            self._out.pop(outcome.id)
            self.tally = self.tally._replace(out=len(self._out))
            self._hear(self.tally, outcome)
            self._check_broken(outcome)

    def _check_broken(self, outcome: CameBack) -> None:
        """Ends the work where rollouts have only ever raised: then their program is broken."""
        if not outcome.trace:
            self._raised = -1
        elif self._raised >= 0:
            self._raised += 1
        if self._raised >= BROKEN_AFTER:
            raise OnlyRaises(
                f"the first {self._raised} rollouts raised, the last: {outcome.failed}. They were "
                "told as failed; `recoup study amend FILE ID --drop WHY` takes them back.",
                outcome.trace,
            )

    def _as_told(self, outcome: CameBack) -> Plain:
        """What is told of a rollout: that it failed, where its return is no number."""
        if outcome.failed is not None:
            return {"failed": printable(outcome.failed)}
        if not outcome.values:
            return {"failed": "it returned nothing"}
        if not all(map(isfinite, outcome.values)):
            return {"failed": "its return was not finite"}
        context = outcome.context if self.study.uses_context else None
        if len(outcome.values) == 1:
            return {"value": outcome.values[0], "context": context}
        return {"values": outcome.values, "context": context}

    def _renew_meanwhile(self) -> None:
        """Renews the leases of what runs and waits, in a thread: a tell may wait for the server."""
        try:
            while not self._ended.wait(self.settings.lease / RENEWALS):
                for trial in [*self._out.values(), *self._line]:
                    self._renew(trial)
                    if self._ended.is_set():
                        return
        finally:
            self.study.close()  # the connection of this thread

    def _renew(self, trial: RemoteTrial) -> None:
        """Renews a lease; where that cannot be, who tells the trial will be told why."""
        with suppress(InputError, ConnectionError, RuntimeError):
            self.study.renew(trial.id, self.settings.lease, worker=self.settings.name)

    def _give_back(self) -> None:
        """Ends the leases of what is not told, so that the next who asks gets it."""
        for trial in [*self._out.values(), *self._line]:
            with suppress(InputError, ConnectionError, RuntimeError):
                self.study.give_back(trial.id, worker=self.settings.name)

    def _waits(self, why: str, wait: float) -> None:
        """Hears that a call is made again."""
        more = "; Ctrl-C again gives up" if self._stopping.is_set() else ""
        self._say(f"no answer, trying again: {why}{more}")

    def _counted(self, says: str, told: int = 0, failed: int = 0, refused: int = 0) -> None:
        now = self.tally
        counts = (now.told + told, now.failed + failed, now.refused + refused)
        self.tally = Tally(*counts, now.out, now.until_move, says)

    def _say(self, says: str | None = None, out: int | None = None) -> None:
        now = self.tally
        self.tally = now._replace(
            says=now.says if says is None else says, out=now.out if out is None else out
        )
        self._hear(self.tally, None)
