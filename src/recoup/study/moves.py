"""One move of a study's distribution, and the judgement of a candidate, from its results alone.

A move is a pure function of the method's settings, the results so far and, for weights against the
mixture of all proposals, the mixture as the move before left it.
"""

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.archive import from_samples, mixture_gained, mixture_over_own
from recoup.composition import estimator_of, update_of
from recoup.diagnostics import pareto_k
from recoup.families import Family, Rho, diagonal_gaussian
from recoup.methods import Method
from recoup.study.ledger import Ledger, Results, room
from recoup.trajectories import Trajectory, gaussian_policy

JUDGE = Method("judge", "", weighting="balance")


class Moved(NamedTuple):
    """Where the distribution went, and what the move was made of."""

    mean: np.ndarray
    std: np.ndarray
    memory: list[Any]  # leaves of the update rule's state, as plain numbers
    info: dict[str, Any]
    mixture: np.ndarray | None  # [n], for methods that keep it


class Judged(NamedTuple):
    """What results say about a distribution that need not have drawn any of them."""

    objective: float  # by self-normalised weights
    stderr: float
    weights: np.ndarray  # [n] against the mixture of all proposals
    ess: float
    samples: int


def keeps_mixture(method: Method) -> bool:
    """Whether the mixture of all proposals is carried from move to move."""
    return method.weighting == "balance" and method.window is None


def move(
    method: Method,
    discount: float,
    ledger: Ledger,
    upto: int,
    batch: int,
    mean: np.ndarray,
    std: np.ndarray,
    memory: list[Any],
) -> Moved:
    """The move that the results up to the place `upto` make of the distribution (mean, std).

    `batch` is how many of them are new.
    """
    results = ledger.results(upto)
    mixture = None
    if method.weighting == "balance":
        mixture = extended(method, results, ledger.mixture)
    with jax.enable_x64(True):
        rho = Rho(jnp.asarray(mean), jnp.asarray(std))
        structure = jax.tree.structure(update_of(method).init(rho))
        state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in memory])
        new = np.arange(len(results.returns)) >= results.n - batch
        arrays = (*_arrays(results), mixture)
        after, state, found, kl = jax.device_get(
            _stepper(method, discount)(rho, state, new, *arrays)
        )
    info = {
        "objective": float(found.objective),
        "objective_stderr": float(found.objective_stderr),
        "samples": int(found.samples),
        "ess": float(found.ess),
        "max_weight": float(found.max_weight),
        "pareto_k": pareto_k(found.weights),
        "kl": float(kl),
        "flatten": None if found.flatten is None else float(found.flatten),
    }
    kept = mixture[: results.n] if mixture is not None and keeps_mixture(method) else None
    return Moved(np.asarray(after.eta), np.asarray(after.tau), _plain(state), info, kept)


def judge(method: Method, ledger: Ledger, upto: int, mean: np.ndarray, std: np.ndarray) -> Judged:
    """What the results up to the place `upto` say about the distribution (mean, std)."""
    results = ledger.results(upto)
    mixture = extended(method, results, ledger.mixture)
    with jax.enable_x64(True):
        rho = Rho(jnp.asarray(mean), jnp.asarray(std))
        judged = _judge(method.space, method.mirrored)
        plain, normalised = jax.device_get(judged(rho, *_arrays(results), mixture))
    return Judged(
        objective=float(normalised.objective),
        stderr=float(normalised.objective_stderr),
        weights=plain.weights.ravel()[: results.n],
        ess=float(plain.ess),
        samples=int(plain.samples),
    )


def extended(method: Method, results: Results, before: tuple[int, np.ndarray] | None) -> np.ndarray:
    """The mixture over the own proposals `[n]`, from that of the first results, if it is known.

    Only what is new is computed: each new proposal on the old results, every proposal on the new.
    """
    old, mixture = before or (0, np.zeros(0))
    slots, space = len(results.means), len(results.returns)
    valid = np.isfinite(results.returns)
    counts = np.bincount(results.proposal[: results.n][valid[: results.n]], minlength=slots)
    late = slice(old, results.n)
    gained = np.bincount(results.proposal[late][valid[late]], minlength=slots)
    drew = np.flatnonzero(gained).astype(np.int32)
    drew = np.concatenate([drew, np.full(_power(len(drew)) - len(drew), -1, np.int32)])
    fresh = room(results.n - old) if old else space
    rows = np.minimum(np.arange(old, old + fresh), max(results.n - 1, 0))
    padded = np.concatenate([mixture, np.zeros(space - old)])
    with jax.enable_x64(True):
        gain, whole = _mixtures(method.space)
        samples: Any = _samples(results)
        rho = Rho(*jax.device_put((results.means, results.stds)))
        if old:
            padded = np.array(gain(rho, gained, drew, samples, results.proposal, padded))
        new = jax.tree.map(lambda x: x[rows], samples) if old else samples
        padded[late] = np.asarray(whole(rho, counts, new, results.proposal[rows]))[
            : results.n - old
        ]
    return padded


def _family(space: str, mirrored: bool = False) -> Family:
    return gaussian_policy() if space == "actions" else diagonal_gaussian(mirrored)


def _samples(results: Results) -> Any:
    parts: Any = jax.device_put(results.samples)
    return parts[0] if len(parts) == 1 else Trajectory(*parts)


def _arrays(results: Results) -> tuple[Any, ...]:
    proposals = jax.device_put((results.means, results.stds))
    return _samples(results), results.returns, results.proposal, *proposals


@lru_cache(maxsize=8)
def _mixtures(space: str) -> tuple[Any, Any]:
    family = _family(space)
    return jax.jit(partial(mixture_gained, family)), jax.jit(partial(mixture_over_own, family))


@lru_cache(maxsize=64)
def _stepper(method: Method, discount: float) -> Any:
    family = _family(method.space, method.mirrored)
    estimator, update = estimator_of(method, family, discount), update_of(method)

    @jax.jit
    def step(rho: Rho, memory: Any, new: Array, *arrays: Any) -> Any:
        archive = _archive(family, rho, *arrays)
        samples, valid = arrays[0], jnp.isfinite(arrays[1])
        after, memory, found = update.step(lambda r: estimator(r, archive), rho, memory)
        return after, memory, found, family.divergence(after, rho, samples, valid & new)

    return step


@lru_cache(maxsize=8)
def _judge(space: str, mirrored: bool) -> Any:
    family = _family(space, mirrored)
    estimators = [estimator_of(row, family) for row in (JUDGE, replace(JUDGE, normalize=True))]

    @jax.jit
    def judged(rho: Rho, *arrays: Any) -> Any:
        archive = _archive(family, rho, *arrays)
        return tuple(estimator(rho, archive) for estimator in estimators)

    return judged


def _archive(
    family: Family,
    rho: Rho,
    samples: Any,
    returns: Array,
    drawn_by: Array,
    means: Array,
    stds: Array,
    mixture: Array | None,
) -> Any:
    valid = jnp.isfinite(returns)
    proposals = Rho(means, stds)
    return from_samples(
        family, samples, returns, valid, proposals, drawn_by, rho, keep="own", mixture=mixture
    )


def _power(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


def _plain(state: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(state)]
