"""`recoup work`: asks a served study for trials, has them rolled out, and tells what came of them.

Trials are lent: while one is rolled out its lease is renewed, and where this program is killed, it
runs out and another worker gets the trial. The server may stop and start again meanwhile: results
wait here until it answers, and, where somebody can mend what is in the way, until it takes them.
What it has not when the work ends is `Worker.left`.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import NamedTuple, Protocol

from recoup.checks import InputError, printable
from recoup.core.types import Plain
from recoup.serve.calling import Lost, NotServed, Refused
from recoup.serve.client import RemoteStudy
from recoup.serve.remote_trials import Receipt, RemoteTrial

BEAT = 0.5  # seconds, at most, between two looks at whether to stop
PAUSED_BEAT = 5.0  # seconds between two askings of a study that is paused
RENEWALS = 3  # of a lease, in its time
GRACE = 5.0  # seconds, at most, that a renewal on its way is waited for at the end
BROKEN_AFTER = 5  # rollouts that raise, one after the other, before any that does not
PAUSED = "paused_since"  # of a refusal that ends by itself
MENDED = {  # statuses of a result that is taken once somebody has done something -> what
    401: "Start the server with the tokens that it had (`recoup serve --token-file` keeps them).",
    403: "Let this token write again.",
    410: "It is told once the file is back.",
}


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


class Untold(NamedTuple):
    """A result that the server has not."""

    trial: int
    told: Plain  # as `RemoteStudy.tell` takes it
    refused: str | None  # why the server will never take it, if it has said so


class Left(NamedTuple):
    """What is left when the work ends."""

    results: tuple[Untold, ...]
    given_back: int  # trials without a result, which the next who asks gets
    kept: int  # those that nobody could be told of: others get them once their leases have run out


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
        self._refused: list[Untold] = []
        self._given_back: set[int] = set()
        self._asked = 0
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._raised = 0  # rollouts that raised, one after the other, before one that did not
        study.caller.on_wait = self._waits

    def work(self) -> Tally:
        """Works until it is done; what has not been rolled out by then is given back.

        Raises what ends the work before that; `left` says then what the server has not.
        """
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
            self._leave()
        return self.tally

    @property
    def left(self) -> Left:
        """What the server has not, once the work has ended."""
        results = (Untold(one.id, self._as_told(one), None) for one in self._done)
        kept = len(self._without_result())
        return Left((*self._refused, *results), len(self._given_back), kept)

    def stop(self) -> None:
        """Asks for no more trials; what runs is finished and told. May be called at any moment."""
        self._stopping.set()

    def _goes_on(self) -> bool:
        return bool(self._out or self._done or (self._quota() and not self._stopping.is_set()))

    def _quota(self) -> int:
        """How many trials may be started."""
        episodes = self.settings.episodes
        return self.hands.slots if episodes is None else max(episodes - self._asked, 0)

    def _fill(self) -> None:
        """Gives trials to whoever has none."""
        while len(self._out) < self.hands.slots and self._quota() and not self._stopping.is_set():
            if not self._line and not self._ask():
                return
            trial = self._line.popleft()
            self._asked += 1
            self._out[trial.id] = trial
            self.hands.submit(trial)
            self._say(out=len(self._out))

    def _ask(self) -> bool:
        """Asks for trials; whether there are any."""
        n = min(self.hands.slots - len(self._out), self._quota())
        try:
            found = self.study.ask(n, lease=self.settings.lease, worker=self.settings.name)
        except (InputError, RuntimeError) as refused:
            if not (self._out or _pauses(refused)):
                raise
            self._say(str(refused))  # what runs is finished and told first
            if not self._out:
                self._stopping.wait(PAUSED_BEAT)
            return False
        self._say("")
        self._line.extend(trial for trial in found if trial.id not in self._out)
        return bool(self._line)

    def _tell_all(self) -> None:
        """Tells what has come back."""
        while self._done:
            self._check_broken(self._tell_next())

    def _tell_next(self) -> CameBack:
        """Tells what came of a trial, which stays in line until the server has it, or never will.

        What it was is given back.
        """
        outcome = self._done[0]
        told = self._as_told(outcome)
        try:
            receipt = self._receipt(outcome.id, told)
        except InputError as refused:
            self._refused.append(Untold(outcome.id, told, str(refused)))
            said = f"trial {outcome.id}: {refused} Its result: {in_words(told)}."
            self._counted(said, refused=1)
        else:
            self._counted("", told=1, failed="failed" in told)
            self.tally = self.tally._replace(until_move=receipt.until_move)
        self._done.popleft()
        self._out.pop(outcome.id)
        self.tally = self.tally._replace(out=len(self._out))
        self._hear(self.tally, outcome)
        return outcome

    def _receipt(self, id: int, told: Plain) -> Receipt:
        """What the server says of a result; one that it will take later is told until then."""

        def attempt() -> Receipt:
            try:
                return self.study.tell(id, **told)
            except InputError as wrong:
                if (why := _in_the_way(wrong)) is None:
                    raise
                raise Lost(why) from None

        def hear(why: str, wait: float) -> None:
            end = f"Ctrl-C {'again' if self._stopping.is_set() else 'twice'} ends this and shows it"
            self._say(f"the result of trial {id} waits: {why}. {end}.")

        return self.study.caller.repeated(attempt, hear, "took no result")

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

    def _leave(self) -> None:
        """Tells once what else has come back, and gives back what has not."""
        with suppress(RuntimeError):  # of hands that are broken
            self._done.extend(self.hands.wait(0.0) if self._out else ())
        if self._raised >= BROKEN_AFTER:  # others say no more than those that were told
            self._done = deque(outcome for outcome in self._done if not outcome.trace)
        with suppress(ConnectionError):  # after which nothing else would be heard either
            with suppress(RuntimeError):
                while self._done:
                    self._tell_next()
            for trial in self._without_result():
                self._give_back(trial)

    def _without_result(self) -> list[RemoteTrial]:
        """The trials that this worker has, but for those that came back."""
        not_these = self._given_back | {outcome.id for outcome in self._done}
        trials = [*self._out.values(), *self._line]
        return [trial for trial in trials if trial.id not in not_these]

    def _give_back(self, trial: RemoteTrial) -> None:
        """Ends the lease of a trial, so that the next who asks gets it."""
        with suppress(InputError, RuntimeError):
            self.study.give_back(trial.id, worker=self.settings.name)
            self._given_back.add(trial.id)

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


def in_words(told: Plain) -> str:
    """What is told of a trial, for people."""
    if "failed" in told:
        return f"failed ({told['failed']})"
    return ", ".join(map(repr, returns_of(told)))


def returns_of(told: Plain) -> list[float]:
    """The returns that are told of a trial; none of one that has failed."""
    return [float(x) for x in told.get("values", [told["value"]] if "value" in told else [])]


def _pauses(error: Exception) -> bool:
    """Whether trials are given out again once somebody says so."""
    return isinstance(error, Refused) and bool(error.problem.get(PAUSED))


def _in_the_way(error: InputError) -> str | None:
    """Why a result is not taken yet, and what to do; None where it never will be."""
    if isinstance(error, NotServed):
        return str(error).rstrip(".")
    if isinstance(error, Refused) and error.status in MENDED:
        return f"{error} {MENDED[error.status]}".rstrip(".")
    return None
