"""Samples from elsewhere: imported into a study, or the archive that a new one starts from."""

import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import (
    InputError,
    check_choice,
    check_numbers,
    check_shape,
    check_stds,
    check_vector,
)
from recoup.engine.methods import METHODS
from recoup.store.file import count, counters_of, insert, note_event, packed
from recoup.store.rows import DRAWN, FOREIGN, MIRROR, OK, Told
from recoup.store.transactions import Asked, put_result, put_trials
from recoup.study.parameters import to_latent
from recoup.study.settings import check_named_update, resolved
from recoup.study.study import Study

IMPORTED, FITTED = "imported", "fitted"
KEPT = ("dim", "params", "horizon", "actions", "discount")  # by every fork


class Imported(NamedTuple):
    """What was imported, and what it is worth."""

    samples: int
    skipped: int  # rows without a finite return, or without what drew them
    again: int  # those that were in the study already
    proposals: int
    fitted: bool  # whether their proposal had to be guessed from the samples
    ess: float  # at the newest distribution
    words: str


class Samples(NamedTuple):
    """Samples of somebody else's, and what drew them if that is known."""

    theta: np.ndarray  # [n, D]
    returns: np.ndarray  # [n]
    mean: np.ndarray | None = None  # [D], or [n, D]: a proposal each
    std: np.ndarray | None = None  # likewise, latent
    latent: bool = False  # whether theta and mean are, too; otherwise in the user's units

    def to_latent(self, study: Study, values: np.ndarray) -> np.ndarray:
        """`values [..., D]` of theta or mean in the latent space of `study`."""
        return values if self.latent else to_latent(study.parameters, values)


def import_samples(study: Study, samples: Samples, origin: str = "") -> Imported:
    """Adds foreign samples to a study's archive, with the densities that drew them.

    Without `mean` and `std` a Gaussian is fitted to them and marked as such: weights are then as
    good as that guess. The distribution does not move for them; the next move uses them.
    """
    _refuse(study)
    theta, finite = _checked(study, samples)
    with study.file.writing() as file:
        twice = finite & _already(study, theta, samples.returns)
        finite &= ~twice
        if not finite.any():
            raise InputError("all of these samples are in the study already: nothing was imported.")
        mean, std = _proposals(study, samples, theta, finite)
        fitted = samples.mean is None
        rows, index = np.unique(np.hstack([mean, std])[finite], axis=0, return_inverse=True)
        means, stds = rows[:, : study.dim], rows[:, study.dim :]
        kept, returns = theta[finite], np.asarray(samples.returns, float)[finite]
        first = _add_proposals(file, FITTED if fitted else IMPORTED, means, stds)
        _add_results(file, study.file.path, kept, returns, first + index)
        note_event(file, "imported", {"of": origin, "samples": len(kept), "fitted": fitted})
        counters = counters_of(file)
    study.file.note_count(counters)
    ess = _worth(study, kept, returns, means, stds, index)
    again = int(np.sum(twice))
    skipped = int(np.sum(~finite)) - again
    words = _words(study, len(kept), skipped, again, len(rows), fitted, ess)
    return Imported(len(kept), skipped, again, len(rows), fitted, ess, words)


def samples_of(other: Study) -> Samples:
    """The results of a study as samples with their proposals."""
    if other.method.space == "actions":
        raise InputError(f"{other.file.path} holds trajectories: fork it to reuse them.")
    rows = other.file.rows(
        'SELECT theta, "return", mean, std FROM told JOIN asked ON asked.id = told.id '
        "JOIN proposals ON proposals.id = asked.proposal WHERE status = ? ORDER BY told.id",
        (OK,),
    )
    if not rows:
        raise InputError(f"{other.file.path} has no results to import.")
    arrays = [
        np.frombuffer(b"".join(row[i] for row in rows), "<f8").reshape(len(rows), -1)
        for i in (0, 2, 3)
    ]
    theta, mean, std = arrays
    return Samples(theta, np.array([row[1] for row in rows]), mean, std, latent=True)


def fork(study: Study, path: str | Path, **changes: Any) -> Study:
    """A new study in `path` that starts from all results of `study`, with their densities.

    `changes` are settings of the new one: method, batch, seed, mean (in the user's units), std, or
    any of the method. Unless they say otherwise it starts where `study` has come to. Trials are
    numbered on from there, so that no draw is repeated; those that wait for a result stay behind.
    """
    path = Path(path)
    if path.exists():
        raise InputError(f"{path} exists already: name another file for the fork.")
    _check_kind(study, changes.get("method", study.method.name))
    for key in changes:
        if key in KEPT:
            raise InputError(f"a fork keeps the parameters of its study: leave out {key}.")
    with study.file.reading():
        settings = _forked_settings(study, changes)
    if settings.get("mirrored"):
        raise InputError("a study with mirrored sampling takes no samples from elsewhere.")

    def copy(file: sqlite3.Connection) -> None:
        with study.file.reading():
            _copy(study, file)
            last = study.file.counters().last
        count(file, counters_of(file)._replace(last=last))
        note_event(file, "forked", {"of": str(study.file.path)})

    return Study.create(path, settings, copy)


def _forked_settings(study: Study, changes: dict[str, Any]) -> dict[str, Any]:
    same = changes.get("method", study.method.name) == study.method.name
    keys = ("dim", "method", "batch", "seed", "params")
    given = {key: study.settings[key] for key in keys if key in study.settings}
    if study.method.space == "actions":
        given |= {key: study.settings[key] for key in ("horizon", "actions", "discount")}
    if same:
        check_named_update(study.settings, changes)
        given |= study.method_settings()
    found = resolved({**given, **changes})
    here = {"mean": study.mean.tolist(), "std": study.std.tolist()}
    return found | {key: value for key, value in here.items() if key not in changes}


def _check_kind(study: Study, method: str) -> None:
    """Raises unless `method` can use the results of `study`."""
    if METHODS[check_choice("method", method, METHODS)].space != study.method.space:
        raise InputError(
            f"{method} cannot use the results of {study.method.name}: one explores in parameters, "
            "the other in actions."
        )


def _copy(study: Study, file: sqlite3.Connection) -> None:
    """All results of `study`, as samples that the new study did not draw itself."""
    proposals = study.file.read("proposals", "ORDER BY id")
    insert(file, "proposals", [(i + 1, IMPORTED, *rest[1:]) for i, *rest in proposals])
    told = {row[0]: row for row in study.file.read("told")}
    asked = [row for row in study.file.read("asked", "ORDER BY id") if row[0] in told]
    order = sorted(asked, key=lambda row: (told[row[0]][7], row[0]))
    trajectories = {row[0]: row[1:] for row in study.file.read("trajectories")}
    for number, kind, proposal, theta, seed, _ in order:
        _, status, _, value, stderr, episodes, note, _ = told[number]
        drawn = kind in (DRAWN, MIRROR, FOREIGN)
        drew = None if proposal is None else proposal + 1
        trial = Asked(number, FOREIGN if drawn else kind, drew, theta, seed)
        put_trials(file, [trial])
        result = Told(status, value, stderr, episodes, note, trajectories.get(number))
        put_result(file, study.file.path, number, result)


def _refuse(study: Study) -> None:
    study.refuse_run()
    if study.method.mirrored:
        raise InputError("a study with mirrored sampling takes no samples from elsewhere.")


def _checked(study: Study, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Latent thetas `[n, D]`, and which have a finite return."""
    if study.method.space == "actions":
        raise InputError("samples of parameters cannot be imported where trajectories are told.")
    check_numbers("the returns to import", samples.returns)
    if np.ndim(samples.returns) != 1 or not np.size(samples.returns):
        raise InputError("the returns to import must be a list of numbers, one for each theta.")
    n = len(samples.returns)
    check_shape("the thetas to import", samples.theta, "[n, D]", (n, study.dim))
    returns = np.asarray(samples.returns, float)
    finite = np.isfinite(returns) & np.isfinite(samples.theta).all(axis=1)
    for drawn in (samples.mean, samples.std):
        if drawn is not None and drawn.shape == (n, study.dim):  # no weight without what drew it
            finite &= np.isfinite(drawn).all(axis=1)
    if not finite.any():
        raise InputError("none of the samples has a finite return: nothing was imported.")
    theta = np.zeros((n, study.dim))
    theta[finite] = samples.to_latent(study, np.asarray(samples.theta, float)[finite])
    return theta, finite


def _proposals(
    study: Study, samples: Samples, theta: np.ndarray, finite: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Latent means and standard deviations `[n, D]` of what drew each sample."""
    if (samples.mean is None) != (samples.std is None):
        raise InputError("give both the mean and the std that drew the samples, or neither.")
    n = len(theta)
    if samples.mean is None or samples.std is None:
        return _fitted(study, theta, finite)
    check_numbers("the mean of the samples", samples.mean)
    check_numbers("the std of the samples", samples.std)
    mean, std = np.asarray(samples.mean, float), np.asarray(samples.std, float)
    for what, x in (("mean", mean), ("std", std)):
        if x.shape != (n, study.dim):
            check_vector(f"the {what} of the samples", x, study.dim)
    mean, std = (np.broadcast_to(x, (n, study.dim)) for x in (mean, std))
    check_stds("the std of the samples", std[finite])
    latent = np.zeros((n, study.dim))
    latent[finite] = samples.to_latent(study, mean[finite])
    return latent, std


def _fitted(study: Study, theta: np.ndarray, finite: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = theta[finite]
    if len(kept) < 2:
        raise InputError("one sample is too few to fit what drew it: give its mean and std.")
    mean, std = kept.mean(0), kept.std(0, ddof=1)
    if not (std > 0).all():
        which = int(np.argmin(std > 0))
        name = study.names[which] if study.names else f"theta_{which}"
        raise InputError(
            f"{name} is the same in all samples: give the mean and std that drew them."
        )
    return np.broadcast_to(mean, theta.shape), np.broadcast_to(std, theta.shape)


def _add_proposals(file: sqlite3.Connection, origin: str, means: Any, stds: Any) -> int:
    (last,) = file.execute("SELECT MAX(id) FROM proposals").fetchone()
    rows = [
        (last + i, origin, packed(mean), packed(std))
        for i, (mean, std) in enumerate(zip(means, stds, strict=True), 1)
    ]
    insert(file, "proposals", rows)
    return last + 1


def _add_results(
    file: sqlite3.Connection, path: Path, theta: Any, returns: Any, proposals: Any
) -> None:
    last = counters_of(file).last
    trials = [
        Asked(last + i, FOREIGN, int(proposal), packed(row), 0)
        for i, (row, proposal) in enumerate(zip(theta, proposals, strict=True), 1)
    ]
    put_trials(file, trials)
    for trial, value in zip(trials, returns, strict=True):
        put_result(file, path, trial.id, Told(OK, float(value) + 0.0, None, 1, None))


def _already(study: Study, theta: np.ndarray, returns: Any) -> np.ndarray:
    """Which of the samples the study has already `[n]`."""
    known = _known(study)
    rows = zip(theta, returns, strict=True)
    return np.array([_key(row, value) in known for row, value in rows], bool)


def _known(study: Study) -> set[tuple[Any, ...]]:
    """Samples that the study has, to notice those that come again."""
    rows = study.file.rows(
        'SELECT theta, "return" FROM told JOIN asked ON asked.id = told.id WHERE status = ?', (OK,)
    )
    return {_key(np.frombuffer(theta, "<f8"), value) for theta, value in rows}


def _key(theta: np.ndarray, value: float) -> tuple[Any, ...]:
    """A sample, but for the last digits, which the user's units may change."""
    return float(f"{value:.9g}"), np.round(theta, 9).tobytes()


def _worth(study: Study, theta: Any, returns: Any, means: Any, stds: Any, index: Any) -> float:
    """The effective sample size of imported samples at the newest distribution."""
    from recoup.engine.estimate import estimate

    found = estimate(
        theta,
        returns,
        proposals=(means, stds),
        proposal=index.astype(int),
        target=(study.mean, study.std),
        baseline="none",
    )
    return float(found.ess)


def _words(
    study: Study, n: int, skipped: int, again: int, proposals: int, fitted: bool, ess: float
) -> str:
    how = (
        "from a proposal fitted to them, so that their weights are a guess"
        if fitted
        else f"from {proposals} proposal{'s' if proposals > 1 else ''}"
    )
    left = f"; {skipped} without a return, or without what drew them, were left out"
    left = left if skipped else ""
    left += f"; {again} were in the study already" if again else ""
    unused = ""
    if study.method.weighting == "none":
        unused = (
            f" {study.method.name} has no weights: its moves leave them out, `evaluate` does not."
        )
    return (
        f"{n} samples imported {how}{left}. At the newest distribution they are worth {ess:.1f} "
        f"fresh rollouts.{unused}"
    )
