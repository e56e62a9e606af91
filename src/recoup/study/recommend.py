"""Which parameters to deploy, what they are worth, and whether to go on. No JAX."""

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.plain.nearby import nearby
from recoup.core.worth import NOTHING, ROUNDING, Interval, quantile
from recoup.store.dropped import dropped
from recoup.store.rows import FAILED, MEAN, SAMPLED, Asked, Result
from recoup.study.opened import Opened
from recoup.study.trials import by_name

GO_ON, STOP, TRY = "go on", "stop", "try the mean"
LEAST = 8  # results that the model needs
AT_MEAN = 5  # trials of the mean policy that are enough by themselves
LAST = 5  # batches that are looked back on
SMALL = 0.25  # of what one return varies: a gain of a batch below this is none
SURE = 0.5  # likewise: an expected return that is known as well as this is known
MOST_TRIES = 50
EXTREME = 1e100  # returns beyond this, or below one over it, are scaled before anything else
FARTHEST = float(np.finfo(float).max)
NAMED = 5  # parameters, at most, in a sentence


class Batch(NamedTuple):
    """What the results of one distribution earned."""

    proposal: int
    results: int
    mean: float
    stderr: float

    def times(self, unit: float) -> "Batch":
        """The same in other units."""
        return self._replace(mean=self.mean * unit, stderr=self.stderr * unit)


class Gain(NamedTuple):
    """What a batch has gained of late: the slope of the returns over the last distributions."""

    each: float
    interval: Interval
    spread: float  # standard deviation of one return of the search

    def times(self, unit: float) -> "Gain":
        """The same in other units."""
        return Gain(self.each * unit, _times(self.interval, unit), self.spread * unit)


def _times(interval: Interval, unit: float) -> Interval:
    """An interval in other units; no return, and so no end, lies beyond the largest number."""
    ends = (float(np.clip(end, -FARTHEST / unit, FARTHEST / unit)) for end in interval)
    return Interval(*(end * unit for end in ends))


class Recommendation(NamedTuple):
    """The parameters to deploy, and what results say about them."""

    theta: np.ndarray  # [D] the mean policy, in the user's units
    params: dict[str, Any]  # the same by name
    low: np.ndarray  # [D] of the 95 % interval of the best value of each, the others staying
    high: np.ndarray  # infinite where the best may lie beyond what was tried
    expected: float  # return of these parameters; not a number where it is not known
    stderr: float
    interval: Interval
    rests_on: str  # what it was taken from, in words
    batches: list[Batch]
    gain: float  # of a batch, over the last of them; not a number before the second
    gain_interval: Interval
    verdict: str  # go on, stop, or try the mean
    tries: int  # how often, for the last
    words: str

    def plain(self) -> dict[str, Any]:
        """The recommendation as JSON can hold it."""
        ranges = zip(self.params, self.low.tolist(), self.high.tolist(), strict=True)
        found = self._asdict() | {
            "theta": self.theta.tolist(),
            "batches": [batch._asdict() for batch in self.batches],
            "interval": list(self.interval),
            "gain_interval": list(self.gain_interval),
            "best_between": {name: [low, high] for name, low, high in ranges},
        }
        del found["low"], found["high"]
        return found


def recommend(study: Opened) -> Recommendation:
    """The mean policy with what its neighbourhood says, what the last batches gained, what to do.

    Nothing is computed by the search's weights: a model of the returns near the mean says what it
    is worth and where each parameter is best; trials of the mean itself, where there are enough,
    say the first without any model.
    """
    with study.store.reading():
        trials, nothing = study.store.trials(), dropped(study.store)
        told = [(trial, x) for trial, x in trials if x is not None and trial.id not in nothing]
        mean, std = study.mean, study.std
        known = _known(study, told)
    unit = _unit([result.value for result in known])
    scaled = [result._replace(value=result.value / unit) for result in known]
    tried = _tried(study, told, mean)
    worth, tops, noise = _worth(study, scaled, tried, mean, std)
    batches, gain = gained(scaled)
    names = study.names or [f"theta_{i}" for i in range(study.dim)]
    climbs = [name for name, top in zip(names, tops, strict=True) if top.low > 0 or top.high < 0]
    verdict, tries = _verdict(worth, gain, noise, climbs)  # scaled: nothing can be lost in it
    worth, batches, gain = worth.times(unit), [b.times(unit) for b in batches], gain.times(unit)
    low, high = (_in_units(study, mean, std, tops, side) for side in (0, 1))
    theta = study.in_units(mean)
    return Recommendation(
        theta=theta,
        params=by_name(names, theta, study.whole),
        low=low,
        high=high,
        expected=worth.value,
        stderr=worth.stderr,
        interval=worth.interval,
        rests_on=worth.rests_on,
        batches=batches,
        gain=gain.each,
        gain_interval=gain.interval,
        verdict=verdict,
        tries=tries,
        words=_words(worth, batches, gain, tried, _next(gain, climbs, verdict, tries)),
    )


class Known(NamedTuple):
    """A result that has a value and a place in the study's space."""

    kind: str
    proposal: int | None
    theta: np.ndarray  # latent
    value: float


class Tried(NamedTuple):
    """How often the mean policy itself was tried, how often it failed, and failures left out."""

    times: int
    failed: int
    left_out: int


def _known(study: Opened, told: Sequence[tuple[Asked, Result]]) -> list[Known]:
    """The results that have a value and lie within the study's bounds."""
    values = [result.told.value for _, result in told if result.told.value is not None]
    if not values:
        raise InputError(f"{study.path} has no return yet: tell a few results first.")
    failure = study.method.failure
    worth = min(values) if failure == "worst" else None if failure == "censored" else failure
    found = []
    for trial, result in told:
        theta, inside = study.here(trial)
        value = worth if result.told.status == FAILED else result.told.value
        if inside and value is not None:
            found.append(Known(trial.kind, trial.proposal, theta, float(value)))
    if not found:
        raise InputError(
            f"all results of {study.path} lie outside of its bounds: tell some within."
        )
    return found


def _tried(study: Opened, told: Sequence[tuple[Asked, Result]], mean: np.ndarray) -> Tried:
    here = [
        result.told.status == FAILED
        for trial, result in told
        if trial.kind == MEAN and np.array_equal(trial.theta, mean)
    ]
    failures = sum(result.told.status == FAILED for _, result in told)
    return Tried(len(here), sum(here), failures if study.method.failure == "censored" else 0)


def _unit(values: Sequence[float]) -> float:
    """What returns are divided by: 1, unless their squares would be too large or too small."""
    largest = max(abs(value) for value in values)
    return 1.0 if largest == 0 or 1 / EXTREME < largest < EXTREME else largest


class Worth(NamedTuple):
    """The expected return of the mean policy, and what that rests on."""

    value: float
    stderr: float
    interval: Interval
    rests_on: str

    def times(self, unit: float) -> "Worth":
        """The same in other units."""
        ends = _times(self.interval, unit)
        return Worth(self.value * unit, self.stderr * unit, ends, self.rests_on)


def _worth(
    study: Opened, known: Sequence[Known], tried: Tried, mean: np.ndarray, std: np.ndarray
) -> tuple[Worth, list[Interval], float]:
    """What the mean policy is worth, where each parameter is best, and the noise of a return."""
    everywhere = [Interval(-np.inf, np.inf)] * study.dim
    values = np.array([result.value for result in known])
    at_mean = [r.value for r in known if r.kind == MEAN and np.array_equal(r.theta, mean)]
    alone = _of_trials(at_mean) if not tried.failed else None
    nothing = Worth(np.nan, np.nan, NOTHING, "too few results near it")
    if study.method.space == "actions":
        nothing = nothing._replace(rests_on="no trial of the mean policy by itself")
        return alone or nothing, everywhere, np.nan
    if len(known) < max(LEAST, study.dim + 2):
        return alone or nothing, everywhere, np.nan
    if np.ptp(values) <= ROUNDING * np.max(np.abs(values)):
        about = f"{len(values)} results that are all equal, so that there is no interval"
        return Worth(float(values[0]), np.nan, NOTHING, about), everywhere, 0.0
    z = (np.stack([result.theta for result in known]) - mean) / std
    found = nearby(z, values)
    near = f"{found.results} results, by a model of the returns near it"
    worth = Worth(found.value, found.stderr, found.interval, near)
    return alone or worth, found.tops, found.noise


def _of_trials(values: Sequence[float]) -> Worth | None:
    """What trials of the mean policy itself say, where there are enough that differ."""
    if len(values) < AT_MEAN:
        return None
    mean, stderr = float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = quantile(len(values)) * stderr
    about = f"{len(values)} trials of the mean policy"
    return Worth(mean, stderr, Interval(mean - half, mean + half), about)


def _in_units(
    study: Opened, mean: np.ndarray, std: np.ndarray, tops: Sequence[Interval], side: int
) -> np.ndarray:
    """One end of the intervals in the user's units `[D]`, infinite where it is."""
    if len(std) != len(mean):  # in action space
        return np.full(len(mean), np.inf if side else -np.inf)
    z = np.array([top[side] for top in tops])
    ends = study.in_units(mean + np.where(np.isfinite(z), z, 0.0) * std)
    return np.where(np.isfinite(z), ends, z)


def between(low: float, high: float) -> str:
    """An interval in words: open where the best may lie beyond what was tried."""
    if isfinite(low) and isfinite(high):
        return f"{low:.4g} to {high:.4g}"
    if isfinite(low):
        return f"{low:.4g} or more"
    return f"{high:.4g} or less" if isfinite(high) else "not known"


def gained(known: Sequence[Known]) -> tuple[list[Batch], Gain]:
    """What the last distributions earned, and the slope of that with its 95 % interval.

    Those that drew a single result are taken together with the next.
    """
    by_proposal: dict[int, list[float]] = {}
    for result in known:
        if result.kind in SAMPLED and result.proposal is not None:
            by_proposal.setdefault(result.proposal, []).append(result.value)
    groups: list[tuple[int, list[float]]] = []
    for number in sorted(by_proposal):
        if groups and len(groups[-1][1]) < 2:
            groups[-1] = (number, groups[-1][1] + by_proposal[number])
        else:
            groups.append((number, by_proposal[number]))
    last = [group for group in groups if len(group[1]) > 1][-LAST:]
    batches = [
        Batch(number, len(x), float(np.mean(x)), float(np.std(x, ddof=1)) / len(x) ** 0.5)
        for number, x in last
    ]
    if len(last) < 2:
        return batches, Gain(np.nan, NOTHING, np.nan)
    x = np.concatenate([np.full(len(values), float(i)) for i, (_, values) in enumerate(last)])
    return batches, _slope(x, np.concatenate([values for _, values in last]))


def _slope(x: np.ndarray, y: np.ndarray) -> Gain:
    """The slope of `y [n]` over `x [n]` by least squares."""
    if np.ptp(y) <= ROUNDING * np.max(np.abs(y)):  # all equal: what is left is rounding
        return Gain(0.0, Interval(0.0, 0.0), 0.0)
    apart = x - np.mean(x)
    each = float(apart @ y / (apart @ apart))
    left = y - np.mean(y) - each * apart
    degrees = max(len(y) - 2, 1)
    spread = float(left @ left / degrees) ** 0.5
    half = quantile(degrees + 1) * spread / float(apart @ apart) ** 0.5
    return Gain(each, Interval(each - half, each + half), spread)


def _verdict(worth: Worth, gain: Gain, noise: float, climbs: Sequence[str] = ()) -> tuple[str, int]:
    """What to do, and how often to try the mean where that is it.

    Go on while a batch gains, or may gain as much as counts, or a parameter is surely not at its
    best (those that it `climbs`); then know what the mean is worth; then stop.
    """
    if isfinite(gain.each) and gain.interval.high < 0:
        return STOP, 0
    gains = not isfinite(gain.each) or gain.interval.low > 0
    if climbs or gains or gain.interval.high > SMALL * gain.spread:
        return GO_ON, 0
    half = (worth.interval.high - worth.interval.low) / 2
    if half <= SURE * gain.spread or gain.spread == 0:
        return STOP, 0
    varies = noise if isfinite(noise) else gain.spread
    tries = ceil((2 * min(varies / (SURE * gain.spread), MOST_TRIES)) ** 2)
    return TRY, int(np.clip(tries, AT_MEAN, MOST_TRIES))


def _words(worth: Worth, batches: Sequence[Batch], gain: Gain, tried: Tried, then: str) -> str:
    said = ["The mean policy is the one to deploy."]
    if tried.failed:
        times = "once" if tried.times == 1 else f"{tried.times} times"
        said = [f"The mean policy was tried {times} and failed {tried.failed}: do not rely on it."]
    if isfinite(worth.value):
        low, high = worth.interval
        ends = f" (95 %: {low:.4g} to {high:.4g})" if isfinite(low) else ""
        said.append(f"Its expected return is {worth.value:.4g}{ends}, from {worth.rests_on}.")
    else:
        said.append(f"What it is worth is not known: {worth.rests_on}.")
    if tried.left_out:
        several = "s are" if tried.left_out > 1 else " is"
        said.append(f"{tried.left_out} failed result{several} left out of that.")
    if isfinite(gain.each):
        low, high = gain.interval
        said.append(
            f"Over the last {len(batches)} distributions a batch gained {gain.each:.2g} "
            f"({low:.2g} to {high:.2g})."
        )
    return " ".join([*said, then])


def _next(gain: Gain, climbs: Sequence[str], verdict: str, tries: int) -> str:
    """What to do next, in a sentence."""
    if isfinite(gain.each) and gain.interval.high < 0:
        return (
            "Stop and look: the last batches lost. What is rolled out may have changed, or steps "
            "are too long (`recoup study show`, `fork` with a shorter epsilon)."
        )
    if verdict == STOP:
        return (
            f"Stop: the next batch would gain less than {max(gain.interval.high, 0.0):.2g}, and a "
            f"return varies by {gain.spread:.2g}."
        )
    if verdict == TRY:
        times = f"{tries} times (ask at the mean)"
        return f"The search gains no more: try the mean {times} to be sure of what it is worth."
    if not isfinite(gain.each):
        return "Go on: two batches are needed to say what one gains."
    if gain.interval.low > 0:
        return f"Go on: the next batch should gain about {gain.each:.2g}."
    if climbs:
        more = f" and {len(climbs) - NAMED} more" if len(climbs) > NAMED else ""
        which = f"{', '.join(climbs[:NAMED])}{more}"
        return f"Go on: {which} {'is' if len(climbs) == 1 else 'are'} not at the best value yet."
    return f"Go on: the next batch may gain up to {gain.interval.high:.2g}."
