"""How often a theta of a study fails: by trials of it, or by a model of all results. No JAX."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.families.gaussian import Diagonal
from recoup.core.plain.failure_chance import chance_at
from recoup.core.worth import proportion
from recoup.store.rows import FAILED, MEAN, OWN, Asked, Result
from recoup.study.reader.opened import Opened
from recoup.study.voice import sentences
from recoup.study.voice.coordinates import seen_from
from recoup.study.voice.landscape import ModelledResults, failures_of, left_out_of

TRIALS_ALONE = 5  # trials of one theta that say by themselves how often it fails
TOO_RISKY = 0.3  # chance of failing above which no theta is recommended
IN_A_ROW = 6  # failures at the end, after which none is


class Failing(NamedTuple):
    """How often a theta fails, with a 95 % interval; not a number where nothing says so.

    >>> print(f"at most {advice.failing.high:.1f}")
    at most 0.3
    """

    rate: float  # share of rollouts that fail
    low: float  # of the interval of the rate
    high: float  # likewise
    rests_on: str  # what it was taken from, in words
    results: int  # that were looked at


class Tried(NamedTuple):
    """How often the mean policy itself was tried and failed, failures left out, and all of them."""

    times: int
    failed: int
    left_out: int
    failing: Failing
    refused: str  # why it is not to be deployed, if so
    more: int  # trials of it that it takes to say so, where many of too few failed
    failures: int  # of all results, wherever they were drawn
    in_a_row: bool  # whether the last all failed, but for thetas of the user's own choice


def tried_of(study: Opened, results: ModelledResults) -> Tried:
    """What is known of failures, at the mean policy and beside it."""
    told, mean = results.told, results.mean
    here = [
        result.told.status == FAILED
        for trial, result in told
        if trial.kind == MEAN and np.array_equal(trial.theta, mean)
    ]
    failures = failures_of(told)
    left_out = left_out_of(study, results)
    failing = failing_of(study, told, mean, results.std)
    in_a_row = has_failed_in_a_row(study, told)
    why = _refused(in_a_row, failing) if failures else ""
    more = TRIALS_ALONE - len(here) if sum(here) > TOO_RISKY * len(here) else 0
    return Tried(len(here), sum(here), left_out, failing, why, max(more, 0), failures, in_a_row)


def failing_at(study: Opened, latent_theta: np.ndarray) -> Failing:
    """How often rollouts of a theta, given as a latent one, fail."""
    with study.store.reading():
        told, std = _told(study), study.std
    return failing_of(study, told, latent_theta, std)


def failing_of(
    study: Opened, told: Sequence[tuple[Asked, Result]], latent: np.ndarray, std: np.ndarray
) -> Failing:
    """How often a theta fails, from results that were read; `std` is the unit of what is near."""
    placed = [(*study.here(trial), result.told.status == FAILED) for trial, result in told]
    here = [failed for theta, _, failed in placed if np.array_equal(theta, latent)]
    if len(here) >= TRIALS_ALONE:
        about = f"{len(here)} trials of it"
        ends = proportion(sum(here), len(here))
        return Failing(sum(here) / len(here), *ends, about, len(here))
    inside = [(theta, failed) for theta, inside, failed in placed if inside]
    if study.method.space == "actions" or not inside:
        return Failing(np.nan, np.nan, np.nan, "too few results", 0)
    theta, failed = (np.array(x) for x in zip(*inside, strict=True))
    found = chance_at(seen_from(study.parameters, theta, latent, std), failed)
    about = f"{found.results} results, by a model of failing near it"
    return Failing(found.rate, found.low, found.high, about, found.results)


def failed_near(
    study: Opened, told: Sequence[tuple[Asked, Result]], rho: Diagonal, within: float
) -> bool:
    """Whether something failed so near to the middle of `rho`, in root mean squares of its std."""
    failed = [study.here(t)[0] for t, result in told if result.told.status == FAILED]
    far = [float(np.mean(((theta - rho.mean) / rho.std) ** 2)) for theta in failed]
    return bool(far) and min(far) <= within**2


def _refused(in_a_row: bool, failing: Failing) -> str:
    """Why no theta of the study is to be deployed now, in a sentence; nothing where it may be."""
    if in_a_row:
        return sentences.failed_in_a_row(IN_A_ROW)
    return sentences.fails_too_often(failing.rate, TOO_RISKY) if failing.rate > TOO_RISKY else ""


def has_failed_in_a_row(study: Opened, told: Sequence[tuple[Asked, Result]]) -> bool:
    """Whether the last results all failed; thetas of the user's own choice are left out."""
    asked = [one for one in told if one[0].kind != OWN]
    last = [result.told.status == FAILED for _, result in in_order(study, asked)[-IN_A_ROW:]]
    return len(last) == IN_A_ROW and all(last)


def _told(study: Opened) -> list[tuple[Asked, Result]]:
    """All results but those that were dropped."""
    nothing = study.store.dropped()
    return [(t, x) for t, x in study.store.trials() if x is not None and t.id not in nothing]


def in_order(study: Opened, told: Sequence[tuple[Asked, Result]]) -> list[tuple[Asked, Result]]:
    """In the order of telling; one that was put right stands where it was told first."""
    first = study.store.told_first()
    return sorted(told, key=lambda one: (first.get(one[0].id, one[1].told_at), one[0].id))
