"""Samples from elsewhere, imported into a study with the densities that drew them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from recoup.checks import (
    SQUARABLE,
    InputError,
    check_mapping,
    check_numbers,
    check_shape,
    check_stds,
    check_vector,
    check_whole_numbers,
)
from recoup.core.types import Array, Given, Rho, Settings
from recoup.store.rows import AMENDED, FAILED, FOREIGN, OK, Asked, Told
from recoup.study.exchange.duplicates import (
    ASKED,
    Duplicates,
    Rollout,
    already,
    are_as_told,
    asked_when,
    rollouts,
)
from recoup.study.exchange.imported import (
    Imported,
    as_told_words,
    imported_words,
    to_do,
    turned_words,
)
from recoup.study.exchange.proposals import of_gaussians
from recoup.study.exchange.unseen_choices import with_drawn_choices
from recoup.study.reader.opened import Opened
from recoup.study.space.contexts import check_alike
from recoup.study.space.frozen import frozen_elsewhere
from recoup.study.space.goals import Goal, turned
from recoup.study.space.limits import also_columns, known_numbers, numbers_of, some_of
from recoup.study.space.parameters import check_values, gathered, to_latent
from recoup.study.trials.diary import joined_notes, write_note

IMPORTED, FITTED = "imported", "fitted"
UNSAID = "failed before it was imported"  # of samples that come without a reason


class ForeignSamples(NamedTuple):
    """Samples of somebody else's, and what drew them if that is known."""

    theta: np.ndarray  # [n, P]
    returns: np.ndarray  # [n]
    mean: np.ndarray | None = None  # [D], or [n, D]: a proposal each
    std: np.ndarray | None = None  # likewise, latent
    blocks: np.ndarray | None = None  # [K] or [n, K] of the study's family, in place of both
    failed: np.ndarray | None = None  # [n] those known to have failed: drawn, without a return
    latent: np.ndarray | None = None  # [n, D] thetas as they were drawn, where that is known
    asked: np.ndarray | None = None  # [n] when the trials were asked for; not a number: not known
    amended: np.ndarray | None = None  # [n] those whose result was put right
    dropped: np.ndarray | None = None  # [n] those that count for nothing
    also: Mapping[str, np.ndarray] | None = None  # numbers [n] told beside returns, by name
    stderr: np.ndarray | None = None  # [n] of returns that are means of episodes
    episodes: np.ndarray | None = None  # [n] that a return is the mean of
    why: np.ndarray | None = None  # [n] texts: why they failed, empty where nobody said
    notes: np.ndarray | None = None  # [n] texts that were written down about them, or empty ones
    beside: int = 0  # trials of their study that are none: without a result, or what drew them
    turned: bool = False  # whether they were told the other way round, where smaller was better
    as_told: bool = False  # likewise, but the study has the same numbers as they are
    frozen: Settings | None = None  # by name: parameters that were not drawn there

    def told_as(self, there: Goal, here: Goal) -> "ForeignSamples":
        """The samples for a study that holds costs, or returns: one is the other's negative."""
        if there == here:
            return self
        return self._replace(returns=turned(np.asarray(self.returns), -1.0), turned=True)


def samples_given(
    theta: Given, returns: Given, mean: Given = None, std: Given = None, also: Given = None
) -> ForeignSamples:
    """Samples as Python gives them, once they are made of numbers."""
    beside = check_mapping("also", {} if also is None else also)
    given = {"theta": theta, "returns": returns, "mean": mean, "std": std}
    given = {what: values for what, values in given.items() if values is not None}
    for what, values in given.items():
        check_numbers(f"{what} of samples", values)
        given[what] = np.asarray(values)
        check_whole_numbers(f"{what} of samples", given[what])
    found = ForeignSamples(**given, failed=without_return(given["returns"]))
    return found._replace(also=also_columns("samples", beside, np.shape(found.returns)))


def without_return(returns: np.ndarray) -> np.ndarray | None:
    """Which of an array of returns `[n]` have failed: those that are not finite."""
    return ~np.isfinite(returns) if np.issubdtype(returns.dtype, np.floating) else None


def import_samples(study: Opened, samples: ForeignSamples, origin: str = "") -> Imported:
    """Adds foreign samples to a study's archive, with the densities that drew them.

    Without them a Gaussian is fitted to the samples and marked as such: weights are then as good as
    that guess. The distribution does not move for them; the next move uses them. Those that failed
    come along, since they were drawn: without them the others would count for too much.
    """
    refuse_foreign(study)
    store, (theta, finite, gone) = study.store, _checked(study, samples)
    with store.writing():
        samples = _as_taken(study, samples, theta, finite | gone)
        known = already(study, _coming(samples, theta, finite | gone))
        twice = np.zeros(len(theta), bool)
        twice[finite | gone] = known.there
        _check_any(study, samples, finite, twice, known)
        new = finite & ~twice
        fitted = samples.mean is None and samples.blocks is None
        _check_size(theta[new])
        drew = _proposals(study, samples, theta[new], new)
        _check_size(drew)
        blocks, index = np.unique(drew, axis=0, return_inverse=True)
        kept, returns = theta[new], np.asarray(samples.returns, float)[new]
        first = store.add_proposals(FITTED if fitted else IMPORTED, study.family, blocks)
        timed = _add_results(study, samples, new, kept, first + index)
        how = {"of": origin, "samples": len(kept), "fitted": fitted, ASKED: timed}
        store.note("imported", how)
    failed = int(np.sum(~np.isfinite(returns)))
    found = Imported(
        samples=len(kept) - failed,
        failed=failed,
        skipped=int(np.sum(~finite & ~gone)) + samples.beside,
        again=int(np.sum(twice & finite)),
        proposals=len(blocks),
        fitted=fitted,
        ess=_ess(study, kept, returns, blocks, index),
        words="",
        differ=len(known.differ),
        amend=known.differ,
        drop=known.dropped,
        dropped=int(np.sum(gone)),
        anew=known.anew,
        alike=known.alike,
        noted=int(np.sum(_of_rows(samples.notes, new, len(kept), "") != "")),
    )
    return found._replace(words=_words(study, samples, found))


def _words(study: Opened, samples: ForeignSamples, found: Imported) -> str:
    """All that is to be said of an import."""
    uncorrelated = samples.blocks is None and study.starts_as not in (study.family, None)
    said = [imported_words(study, found, uncorrelated)]
    said += [turned_words(study)] if samples.turned else []
    said += [as_told_words(study)] if samples.as_told else []
    return " ".join(filter(None, [*said, frozen_elsewhere(study.frozen, samples.frozen or {})]))


def samples_of(other: Opened) -> ForeignSamples:
    """The results of a study as samples with their proposals."""
    if other.method.space == "actions":
        raise InputError(f"{other.where} holds trajectories: fork it to reuse them.")
    if other.charts:
        raise InputError(f"{other.where} holds results of other bounds: fork it to reuse them.")
    with other.store.reading():
        nothing, known = other.store.dropped(), asked_when(other.store)
        amended = {event.content["trial"] for event in other.store.events(AMENDED)}
        rows = other.store.samples()
        also = numbers_of(other.store, [trial.id for trial, _ in rows])
        drew = [trial.proposal for trial, _ in rows if trial.proposal is not None]  # all of them
        proposals = other.store.proposals(set(drew))
        told = other.store.results([trial.id for trial, _ in rows])
        beside, notes = other.store.counters().trials - len(rows), joined_notes(other.store)
    if not rows:
        raise InputError(f"{other.where} has no results to import.")
    trials = [trial for trial, _ in rows]
    latent = np.stack([trial.theta for trial in trials])
    return ForeignSamples(
        theta=other.in_units(latent),
        returns=np.array([np.nan if value is None else value for _, value in rows]),
        blocks=np.stack([proposals[number].numbers for number in drew]),
        failed=np.array([value is None for _, value in rows]),
        latent=latent,
        also=also,
        stderr=np.array([told[trial.id].told.stderr for trial in trials], float),
        episodes=np.array([told[trial.id].told.episodes for trial in trials], float),
        asked=np.array([trial.asked_at if trial.id in known else np.nan for trial in trials]),
        amended=np.array([trial.id in amended for trial in trials]),
        dropped=np.array([trial.id in nothing for trial in trials]),
        why=np.array([told[trial.id].told.note or "" for trial in trials], object),
        notes=np.array([notes.get(trial.id, "") for trial in trials], object),
        beside=beside,
        frozen={row.name: row.value for row in other.frozen},
    )


def refuse_foreign(study: Opened) -> None:
    """Raises where a study takes no samples from elsewhere."""
    if study.method.mirrored:
        raise InputError("a study with mirrored sampling takes no samples from elsewhere.")


def _checked(study: Opened, samples: ForeignSamples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latent thetas `[n, D]`, which have a finite return or are known to have failed.

    And which of the others count for nothing where they come from.
    """
    if study.method.space == "actions":
        raise InputError("samples of parameters cannot be imported where trajectories are told.")
    check_numbers("the returns to import", samples.returns)
    if np.ndim(samples.returns) != 1 or not np.size(samples.returns):
        raise InputError("the returns to import must be a list of numbers, one for each theta.")
    n = len(samples.returns)
    check_shape("the thetas to import", samples.theta, "[n, D]", (n, len(study.labels)))
    returns = np.asarray(samples.returns, float)
    study.ends.check(study.goal.noun, None, returns[np.isfinite(returns)])
    known = np.isfinite(returns) | (False if samples.failed is None else samples.failed)
    usable = np.isfinite(samples.theta).all(axis=1)
    gone = usable & (False if samples.dropped is None else samples.dropped)
    finite = known & usable & ~gone
    for what in ("mean", "std", "blocks"):
        drawn = getattr(samples, what)
        if np.ndim(drawn) == 2 and len(drawn) == n:  # one each: no weight without what drew it
            check_numbers(f"the {what} of the samples", drawn)
            finite &= np.isfinite(drawn).all(axis=1)
    theta, unknown = _latent(study, samples, finite | gone)
    if study.choices and unknown.any():
        said = samples.mean is not None or samples.std is not None or samples.blocks is not None
        drew = _proposals(study, samples, theta[finite], finite) if said else None
        both, rest = unknown & finite, unknown & ~finite
        blocks = None if drew is None else drew[unknown[finite]]
        theta = with_drawn_choices(study, theta, returns, both, blocks)
        theta = with_drawn_choices(study, theta, returns, rest, None)
    return theta, finite, gone


def _coming(samples: ForeignSamples, theta: np.ndarray, which: np.ndarray) -> list[Rollout]:
    """The rollouts of some samples, as `already` takes them."""
    n = int(np.sum(which))
    gone = _of_rows(samples.dropped, which, n, False).astype(bool)
    amended = _of_rows(samples.amended, which, n, False).astype(bool) | gone
    asked = _of_rows(samples.asked, which, n, np.nan)
    return rollouts(theta[which], np.asarray(samples.returns, float)[which], asked, amended, ~gone)


def _as_taken(
    study: Opened, samples: ForeignSamples, theta: np.ndarray, which: np.ndarray
) -> ForeignSamples:
    """Samples as the study has those that it has already: a fork may take returns as costs."""
    if not samples.turned or not are_as_told(study, _coming(samples, theta, which)):
        return samples
    back = turned(np.asarray(samples.returns), -1.0)
    return samples._replace(returns=back, turned=False, as_told=True)


def _check_any(
    study: Opened, samples: ForeignSamples, finite: np.ndarray, twice: np.ndarray, known: Duplicates
) -> None:
    """Raises where nothing is left to import, and says what is to be done all the same."""
    more = to_do(study, known.differ, known.dropped)
    returned = np.isfinite(np.asarray(samples.returns, float))
    if not (finite & returned).any():
        drew = " and says what drew it" if returned.any() else ""
        none = f"none of the samples has a finite return{drew}"
        raise InputError(f"{none}: nothing was imported.{more}")
    if not (finite & ~twice).any():
        raise InputError(
            f"all of these samples are in the study already: nothing was imported.{more}"
        )


def _of_rows(given: np.ndarray | None, which: np.ndarray, n: int, unknown: object) -> np.ndarray:
    """What is given of the `n` samples `which`, or else that it is not known."""
    return np.full(n, unknown) if given is None else np.asarray(given)[which]


def _latent(
    study: Opened, samples: ForeignSamples, finite: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Latent thetas `[n, D]`, as they were drawn where that is known; and where not `[n]`."""
    shape = (len(finite), study.dim)
    found = np.full(shape, np.nan) if samples.latent is None else samples.latent.copy()
    unknown = finite & ~np.isfinite(found).all(axis=1)
    values = np.asarray(samples.theta, float)[unknown]
    check_values(study.parameters, values)
    found[unknown] = to_latent(study.parameters, values)
    return found, unknown


def _proposals(
    study: Opened, samples: ForeignSamples, theta: np.ndarray, finite: np.ndarray
) -> np.ndarray:
    """Blocks of numbers `[m, K]` of what drew each sample `theta [m, D]`, those that are finite."""
    if samples.blocks is not None:
        if samples.mean is not None or samples.std is not None:
            raise InputError("rho says what drew the samples: leave out mean and std.")
        return _of_each("rho of the samples", samples.blocks, study.block_size, "K", finite)
    if (samples.mean is None) != (samples.std is None):
        raise InputError("give both the mean and the std that drew the samples, or neither.")
    if samples.mean is None or samples.std is None:
        return of_gaussians(study, *_fitted(study, theta))
    if study.has_own_family:
        raise InputError(
            f"mean and std do not tell a distribution of the family {study.family}: give rho, its "
            "packed numbers, of what drew the samples (`family.packed`, or the columns family and "
            "rho_ of an export)."
        )
    what = "the {} of the samples"
    mean = _of_each(what.format("mean"), samples.mean, study.dim, "D", finite)
    std = _of_each(what.format("std"), samples.std, study.dim, "D", finite)
    check_stds(what.format("std"), std)
    return of_gaussians(study, gathered(study.parameters, mean), std)


def _of_each(
    what: str, given: np.ndarray, size: int, letter: str, finite: np.ndarray
) -> np.ndarray:
    """Numbers `[m, size]` of each sample that is finite, of what was given for one or for all."""
    check_numbers(what, given)
    each = (len(finite), size)
    if np.shape(given) != each:
        check_vector(what, given, size, letter)
    return np.broadcast_to(np.asarray(given, float), each)[finite]


def _check_size(numbers: np.ndarray) -> None:
    """Raises where numbers are so large that their squares are not: no density could be told."""
    if not np.abs(numbers).max(initial=0.0) < SQUARABLE:
        raise InputError(
            f"thetas, and the mean and std that drew them, must be below {SQUARABLE:.0e}: nothing "
            "was imported."
        )


def _fitted(study: Opened, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations `[m, D]` of the samples, the same for each."""
    if len(theta) < 2:
        raise InputError("one sample is too few to fit what drew it: give its mean and std.")
    mean, std = theta.mean(0), theta.std(0, ddof=1)
    if not (std > 0).all():
        which = int(np.argmin(std > 0))
        name = study.columns[which].name if study.names else f"theta_{which}"
        raise InputError(
            f"{name} is the same in all samples: give the mean and std that drew them."
        )
    return np.broadcast_to(mean, theta.shape), np.broadcast_to(std, theta.shape)


def _told(samples: ForeignSamples, new: np.ndarray) -> list[Told]:
    """What was told of the samples that are `new [n]`."""
    n, also = int(np.sum(new)), some_of(samples.also, new)
    returns = np.asarray(samples.returns, float)[new]
    errors, episodes = (_of_rows(x, new, n, np.nan) for x in (samples.stderr, samples.episodes))
    why = _of_rows(samples.why, new, n, "")
    found = []
    for i, (value, error, several) in enumerate(zip(returns, errors, episodes, strict=True)):
        told = Told(FAILED, note=why[i] if why[i].strip() else UNSAID)
        if np.isfinite(value):
            stderr = float(error) if 0 <= error < np.inf else None
            times = int(several) if 1 <= several < 2**53 else 1  # a stranger's table has anything
            told = Told(OK, float(value) + 0.0, stderr, times, None)
        numbers = known_numbers({name: float(column[i]) for name, column in also.items()})
        found.append(told._replace(also=numbers))
    return found


def _add_results(
    study: Opened, samples: ForeignSamples, new: np.ndarray, theta: np.ndarray, proposals: Rho
) -> list[int]:
    """The trials that the samples `new [n]` become, of which it is known when they were asked for.

    `theta [m, D]` are latent, `proposals [m]` the numbers of what drew them.
    """
    last, results = study.store.counters().last, _told(samples, new)
    check_alike(study.store, results)
    asked = _of_rows(samples.asked, new, len(theta), np.nan)
    notes = _of_rows(samples.notes, new, len(theta), "")
    rows = zip(theta, proposals, np.nan_to_num(asked).tolist(), strict=True)
    trials = [
        Asked(last + i, FOREIGN, int(proposal), row, 0, at)
        for i, (row, proposal, at) in enumerate(rows, 1)
    ]
    study.store.add_trials(trials)
    for trial, told, note in zip(trials, results, notes, strict=True):
        study.store.add_result(trial.id, told)
        if note.strip():
            write_note(study.store, note, trial.id)
    return [trial.id for trial in trials if trial.asked_at]


def _ess(study: Opened, theta: Array, returns: Array, blocks: Array, index: Array) -> float:
    """The effective sample size of imported samples at the newest distribution."""
    from recoup.engine.estimate import estimate  # needs JAX

    found = estimate(
        theta,
        returns,
        proposals=study.rho(blocks),
        proposal=index.astype(int),
        target=study.rho(study.store.newest().numbers),
        family=study.method.family,
        baseline="none",
    )
    return float(found.ess)
