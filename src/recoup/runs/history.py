"""What is known of a run after each of its moves: plain records, made of the rows of its study."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recoup.store.rows import AMENDED, DROP, FAILED, FOREIGN, SAMPLED, Move, Test
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import AGES
from recoup.study.reader.settings import RUN

NOTED = (  # of what a move was made of
    "objective",
    "objective_stderr",
    "low",
    "high",
    "samples",
    "ess",
    "max_weight",
    "pareto_k",
    "kl",
    "flatten",
)


class Curve(NamedTuple):
    """Expected return of the search distribution, by rollouts spent, wherever it was measured.

    >>> episodes, mean, stderr = run.curve
    >>> len(episodes) == len(mean) == len(stderr)
    True
    """

    episodes: np.ndarray  # [n] rollouts spent
    mean: np.ndarray  # [n] of the returns
    stderr: np.ndarray  # [n] of the means


@dataclass(frozen=True)
class HistoryRow:
    """One row of a run's history: the distribution after `iteration` moves, and the last move.

    `return_curve` is a point of the learning curve; what a finished run is worth, on episodes of
    their own, is `Run.return_search`, the final test.

    >>> [row.iteration for row in run.history]
    [0, 1, 2, 3, 4, 5]
    """

    iteration: int
    episodes: int  # rollouts spent, failed ones among them
    return_curve: float  # on fresh test episodes, not a number where it was not tested
    return_curve_stderr: float  # of that
    std_min: float  # the smallest of the distribution
    std_max: float  # the largest
    objective: float | None = None  # the archive's own estimate, before the move
    objective_stderr: float | None = None  # of that
    low: float | None = None  # of its 95 % interval, where there is one that can be believed
    high: float | None = None  # likewise
    samples: int | None = None  # that the move used
    ess: float | None = None  # in samples, under mirrored sampling too
    max_weight: float | None = None  # the largest weight
    pareto_k: float | None = None  # of the weights
    kl: float | None = None  # of the move, divergence of new from old
    flatten: float | None = None  # nu of w^nu, where the method may choose it
    curve_episodes: int = 0  # of that point of the curve
    wall_s: float = np.nan  # since it began, without the time it was stopped (of your tasks: with
    # it); not a number where it was not tested


class History(NamedTuple):
    """The moves of a run, the start first."""

    steps: list[HistoryRow]
    mean: np.ndarray  # [I + 1, D]
    std: np.ndarray  # [I + 1, S]
    ages: np.ndarray  # [I, 5] shares of the weight by the age of the samples


def history_of(study: Opened) -> History:
    """All moves of a run so far, with what was measured after each."""
    with study.store.reading():
        moves, tests = study.store.moves(), {test.move: test for test in study.store.tests()}
        proposals = study.store.proposals({move.proposal for move in moves})
        marks = [move.counted for move in moves]
        spent = _spent(_places(study.store), marks, 1 + study.method.mirrored)
        plan = study.settings.get(RUN, {})
        if not plan.get("tested", True):
            tests = {**_of_trials(study, moves), **tests}
    each = plan.get("episodes_per_trial", 1)
    shown = [study.shown(proposals[move.proposal].numbers) for move in moves]
    means, stds = (np.stack(column) for column in zip(*shown, strict=True))
    steps = [
        step_of(move, std, each * episodes, tests.get(move.id))
        for move, std, episodes in zip(moves, stds, spent, strict=True)
    ]
    ages = [move.info.get("ages", [np.nan] * len(AGES)) for move in moves if move.id]
    return History(steps, means, stds, np.array(ages, float).reshape(-1, len(AGES)))


def lost_of(study: Opened) -> tuple[int, int]:
    """How many trials of a run have failed, and how many were dropped, which are none of these.

    The other of a mirrored pair is dropped with it.
    """
    store = study.store
    nothing = {trial.id for trial in store.asked(store.dropped(), kinds=SAMPLED)}
    if not store.counters().failed:
        return 0, len(nothing)
    ids = [row.id for row in store.results().values() if row.told.status == FAILED]
    failed = {trial.id for trial in store.asked(ids, kinds=SAMPLED)}
    return len(failed - nothing), len(nothing)


def step_of(move: Move, std: np.ndarray, episodes: int, test: Test | None) -> HistoryRow:
    """A row of the history: a move, the deviations it led to, and what was measured after it."""
    return HistoryRow(
        iteration=move.id,
        episodes=episodes,
        return_curve=np.nan if test is None else test.mean,
        return_curve_stderr=np.nan if test is None else test.stderr,
        curve_episodes=0 if test is None else test.episodes,
        std_min=float(std.min()),
        std_max=float(std.max()),
        wall_s=np.nan if test is None else test.wall_s,
        **{key: move.info[key] for key in NOTED if key in move.info},
    )


def _of_trials(study: Opened, moves: list[Move]) -> dict[int, Test]:
    """What the trials of each distribution have earned, as a test of it.

    They are draws of it like those of a test; with workers of different speed those that are
    still out are missing.
    """
    drew = {move.proposal: move.id for move in moves}
    values: dict[int, list[float]] = {}
    ends: dict[int, float] = {}
    began, nothing, first = None, study.store.dropped(), study.store.told_first()
    for asked, result in study.store.trials():
        began = asked.asked_at if began is None else began
        if result is None or result.told.value is None:
            continue
        if asked.proposal not in drew or asked.id in nothing:
            continue
        move = drew[asked.proposal]
        values.setdefault(move, []).append(result.told.value)
        ends[move] = max(ends.get(move, 0.0), first.get(asked.id, result.told_at) - began)
    return {
        move: Test(move, *_mean_and_error(found), len(found), ends[move])
        for move, found in values.items()
    }


def _mean_and_error(values: list[float]) -> tuple[float, float]:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)


def _places(store: Any) -> list[int]:
    """The places of all results of the run; of those that were dropped, the places that they had.

    None of samples from elsewhere: another has spent them.
    """
    events = (event.content for event in store.events(AMENDED))
    gone = [content for content in events if content[DROP]]
    foreign = {trial.id for trial in store.asked((x["trial"] for x in gone), kinds=[FOREIGN])}
    had = [x["place"] for x in gone if x["trial"] not in foreign]
    own = store.counted(0, store.counters().counted, foreign=False)
    return [place for place in (*had, *(place for _, place in own)) if place]


def _spent(places: list[int], marks: list[int], each: int) -> list[int]:
    """How many results, failed and dropped ones too, had been told when each move was made.

    Those with a place up to its mark; a mirrored pair (then `each` is 2) has one place.
    """
    ordered = np.sort(places)
    return [int(each * np.searchsorted(ordered, mark, side="right")) for mark in marks]
