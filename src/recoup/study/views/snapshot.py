"""Everything one may say about a study, of one moment, as one record.

Whatever speaks of a study takes its numbers and its sentences from here, or from the functions that
this is made of: none of them has a second way to a number.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from typing import NamedTuple, Protocol, TypeVar

from recoup.checks import InputError, without_nan
from recoup.core.types import Plain
from recoup.engine.plain import can_judge
from recoup.notebooks import facts
from recoup.store.codec import OF_MOVES
from recoup.store.rows import FAILED, OK, PENDING, Move
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import Trial
from recoup.study.space.goals import MAXIMIZE, Goal
from recoup.study.views.diagnostics import diagnostics
from recoup.study.views.study_summary import Deployed, deployed
from recoup.study.voice.evaluation import Evaluation
from recoup.study.voice.recommend import Recommendation
from recoup.study.voice.sentences import DRAW, MEAN_POLICY, expected_return

MOVES_TOLD, REASONS = 5, 3  # that are told of, the last ones
LONG = "it is not computed here, since that takes a while; `evaluate` says it"
AS_THEY_ARE = (
    *("version", "path", "method", "direction", "dim", "batch"),
    *("moves", "until_move", "overdue"),
)


class Door(Protocol):
    """A study as it is asked: `recoup.Study`."""

    opened: Opened

    def recommend(self) -> Recommendation:
        """The parameters to deploy, what they are worth, and whether to go on."""

    def evaluate(self) -> Evaluation:
        """The expected return of the newest distribution."""

    @property
    def best(self) -> tuple[Trial, float] | None:
        """The best trial, and its return."""


class Counts(NamedTuple):
    """How many trials there are. Those from elsewhere, and the dropped, are among ok or failed.

    >>> now.counts.ok, now.counts.pending
    (36, 0)
    """

    pending: int  # they wait for a result
    ok: int  # they have a return
    failed: int  # they have none
    dropped: int  # of those that count as failed
    imported: int  # from elsewhere
    enqueued: int  # thetas that wait to be asked for


class Times(NamedTuple):
    """When something happened, as ISO 8601 in UTC; None where it never has.

    >>> now.dates.created
    '...-...-...T...+00:00'
    """

    created: str | None  # the study
    first_asked: str | None  # a trial
    last_asked: str | None  # a trial
    last_told: str | None  # a result
    last_moved: str | None  # the distribution


class Moved(NamedTuple):
    """What a move was made of. Its objective is an estimate of the distribution it moved from.

    >>> now.last_moves[0].move, now.last_moves[0].results
    (1, 12)
    """

    move: int  # its number
    made: str | None  # when, as ISO 8601
    results: int  # the place up to which it took results
    info: Plain  # numbers by name


class Failures(NamedTuple):
    """How many results failed, of all but the dropped, and what was said last, the newest first.

    >>> now.failures
    Failures(number=0, share=0.0, reasons=[])
    """

    number: int  # of failed results
    share: float  # of all results
    reasons: list[str]  # as they were told


class Reuse(NamedTuple):
    """What the results that the last move used were worth to it; None before the first.

    >>> print(f"{now.reuse.samples} results that count for {now.reuse.ess:.0f}")
    36 results that count for 31
    """

    samples: float | None  # that it used
    ess: float | None  # how many fresh ones they count for
    max_weight: float | None  # the largest
    pareto_k: float | None  # of the weights


class Snapshot(NamedTuple):
    """A study as it was at one moment.

    `Study.snapshot` gives it.

    >>> now
    Snapshot('...robot.db', 36 results, 3 moves: go on)
    """

    version: str  # another as soon as anything changes; the same in every process
    path: str  # of the file
    method: str  # its name
    direction: str  # maximize, or minimize: what is told, and every expected return, is a cost
    dim: int  # how many parameters there are
    batch: int  # results that make a move
    moves: int  # that were made
    until_move: int  # results
    counts: Counts  # of trials
    dates: Times  # of what happened
    params: Plain  # what to deploy, in the user's units: the mean policy before the first result;
    # none where its family is one that only Python can give, and was not given
    mean_policy: Plain  # the mean of the newest distribution, likewise
    frozen: Plain  # with it: parameters that are searched no more
    recommendation: Recommendation | None  # what that is worth, what to do; None: no result
    of_mean_policy: str  # the expected return of the mean policy, in a sentence
    distribution: list[Deployed]  # the newest: means, and one standard deviation around them; or
    # none, likewise
    evaluation: Evaluation | None  # of a draw of it, not of its mean; None: too few results
    of_a_draw: str  # the expected return of such a draw, in a sentence
    last_moves: list[Moved]  # up to five, in order
    failures: Failures  # of rollouts
    reuse: Reuse  # of old results
    waiting: list[int]  # trials without a result
    overdue: list[int]  # of them, those whose lease has run out
    best: tuple[Trial, float] | None  # the best trial and its return
    found: Plain  # what `diagnostics` gives

    def __repr__(self) -> str:
        results, moves = f"{self.results} results", f"{self.moves} moves"
        return f"Snapshot({self.path!r}, {results}, {moves}: {self.verdict or 'no result yet'})"

    def _repr_html_(self) -> str:
        rows = {"results": str(self.results), "moves": str(self.moves)}
        return facts(self.path, {**rows, "in words": " ".join(self.advice)})

    @property
    def results(self) -> int:
        """How many results there are, failures among them; without those that were dropped.

        >>> now.results
        36
        """
        ok = self.counts.ok - self.found["uncounted"]
        return ok + self.counts.failed - self.counts.dropped

    @property
    def verdict(self) -> str | None:
        """Go on, stop, or try the mean; None before the first result.

        >>> now.verdict
        'go on'
        """
        return None if self.recommendation is None else self.recommendation.verdict

    @property
    def advice(self) -> list[str]:
        """What to deploy and to do, what a draw earns, and what the last move did.

        >>> now.advice[0]
        'Trial 24 is the one to deploy. ...'
        """
        said: list[str] = self.found["advice"]
        if self.recommendation is None:
            return [self.of_mean_policy, *said]
        words = self.recommendation.words
        return [words, self.of_a_draw, *(one for one in said if one not in words)]

    def _limits(self) -> list[Plain]:
        """Every limit: how often it was broken, how surely it is to be kept, and is now."""
        rows: list[Plain] = self.found.get("limits", [])
        kept = [] if self.recommendation is None else self.recommendation.limits
        now = {row.limit: row._asdict() for row in kept}
        return [
            {**row, "within": self.found["within"], **now.get(row["limit"], {})} for row in rows
        ]

    def plain(self) -> Plain:
        """The snapshot as JSON can hold it: null for what is not a number.

        >>> import json
        >>> text = json.dumps(now.plain())
        """
        told, judged = self.recommendation, self.evaluation
        one = told and told.of_mean
        mean = one and (one.value, one.stderr, list(one.interval), one.rests_on)
        draw = judged and (judged.mean, judged.stderr, list(judged.interval), judged.words)
        found = {
            **{key: getattr(self, key) for key in AS_THEY_ARE},
            "counts": self.counts._asdict(),
            "dates": self.dates._asdict(),
            "deploy": self.params,
            "mean_policy": self.mean_policy,
            "frozen": self.frozen,
            "expected_return_of_mean_policy": _worth(mean, self.of_mean_policy),
            "expected_return_of_a_draw": _worth(draw, self.of_a_draw),
            "recommendation": None if told is None else told.plain(),
            "distribution": [row._asdict() for row in self.distribution],
            "last_moves": [{**row._asdict(), **row.info} for row in self.last_moves],
            "failures": self.failures._asdict(),
            "limits": self._limits(),
            "reuse": self.reuse._asdict(),
            "pending_trials": self.waiting,
            "best": self.best and {**self.best[0].plain(), "return": self.best[1]},
            "verdict": self.verdict,
            "advice": self.advice,
        }
        for row in found["last_moves"]:
            del row["info"]
        return without_nan(found)


def snapshot(study: Door, *, compiling: bool = True) -> Snapshot:
    """A study as it is now; without `compiling`, no judgement that JAX would have to compile."""
    opened, store = study.opened, study.opened.store
    with store.reading():
        found, goal = diagnostics(opened), opened.goal
        told, why_not = _or_why(study.recommend)
        judged, why_none = None, LONG
        if compiling or _is_light(opened):
            judged, why_none = _or_why(study.evaluate)
        return Snapshot(
            version=store.version(),
            path=opened.where,
            method=opened.method.name,
            direction=goal.word,
            dim=len(opened.labels),
            batch=opened.batch,
            moves=found["moves"],
            until_move=found["until_move"],
            counts=_counts(opened, found),
            dates=Times(*map(_iso, store.dates())),
            params=_params(opened) if told is None else told.params,
            mean_policy=_params(opened),
            frozen={row.name: row.value for row in opened.frozen},
            recommendation=told,
            of_mean_policy=of_mean_policy(told, why_not, goal),
            distribution=deployed(opened),
            evaluation=judged,
            of_a_draw=of_a_draw(judged, why_none, goal),
            last_moves=[_moved(move) for move in store.last_moves(MOVES_TOLD)],
            failures=_failures(opened, found),
            reuse=Reuse(*(found.get(key) for key in Reuse._fields)),
            waiting=[trial.id for trial in store.pending()],
            overdue=found["overdue"],
            best=study.best,
            found=found,
        )


def of_mean_policy(found: Recommendation | None, why_not: str = "", goal: Goal = MAXIMIZE) -> str:
    """The expected return of the mean policy, in a sentence."""
    if found is None:
        return expected_return(nan, nan, nan, why_not, goal, MEAN_POLICY)
    one = found.of_mean
    return expected_return(one.value, *one.interval, one.rests_on, goal, MEAN_POLICY)


def of_a_draw(
    found: Evaluation | None, why_not: str = "", goal: Goal = MAXIMIZE, of: str = DRAW
) -> str:
    """The expected return of a draw of the newest distribution, or of another, in a sentence."""
    if found is None:
        return expected_return(nan, nan, nan, why_not, goal, of)
    return expected_return(found.mean, *found.interval, found.words, goal, of)


Said = TypeVar("Said")


def _or_why(of: Callable[[], Said]) -> tuple[Said | None, str]:
    """What was found, or None and why there is nothing."""
    try:
        return of(), ""
    except InputError as wrong:
        return None, str(wrong)


def _is_light(study: Opened) -> bool:
    """Whether a distribution is judged at once, without JAX; or it is said at once why not."""
    if "family" in study.missing:
        return True
    n = 0 if study.charts else study.store.counters().counted
    return can_judge(study.method, n, study.dim)


def _params(study: Opened) -> Plain:
    """The mean policy, in the user's units; none where only Python knows the distribution."""
    return {} if "family" in study.missing else study.params(study.in_units(study.mean))


def _counts(study: Opened, found: Plain) -> Counts:
    pending, ok, failed = (found[key] for key in (PENDING, OK, FAILED))
    return Counts(pending, ok, failed, found["dropped"], found["imported"], study.store.enqueued())


def _failures(study: Opened, found: Plain) -> Failures:
    """The failures, without what was dropped: of that nothing is known."""
    nothing = study.store.dropped()
    failed = [row for row in study.store.failures() if row.id not in nothing]
    reasons = [row.told.note or "" for row in failed[-REASONS:]]
    return Failures(len(failed), len(failed) / max(found[OK] + len(failed), 1), reasons[::-1])


def _moved(move: Move) -> Moved:
    info = {key: move.info.get(key) for key in OF_MOVES}
    return Moved(move.id, _iso(move.made), move.counted, info)


def _iso(at: float | None) -> str | None:
    """A time as ISO 8601; None where it is none."""
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):  # a file may hold anything
        return None


def _worth(known: tuple[float, float, list[float], str] | None, words: str) -> Plain:
    """An expected return as JSON holds it."""
    fields = ("mean", "stderr", "interval", "rests_on")
    return {**dict(zip(fields, known or [None] * 4, strict=True)), "words": words}
