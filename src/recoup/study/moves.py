"""One move of a study's distribution, and the judgement of a candidate, from its results alone.

A move is a pure function of the method's settings, the results so far and their densities as the
move before left them, relative to the study's first proposal: only what is new is computed.
"""

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.archive import Archive, from_samples, gained_mixture, mixture_density, own_density
from recoup.core.families.gaussian import Family, Rho, diagonal_gaussian
from recoup.core.families.trajectory import Trajectory, gaussian_policy
from recoup.core.pareto import pareto_k
from recoup.engine.composition import estimator_of, update_of
from recoup.engine.methods import Method
from recoup.study.ledger import Ledger, Results, room

JUDGE = Method("judge", "", weighting="balance")


class Moved(NamedTuple):
    """Where the distribution went, and what the move was made of."""

    mean: np.ndarray
    std: np.ndarray
    memory: list[Any]  # leaves of the update rule's state, as plain numbers
    info: dict[str, Any]
    own: np.ndarray  # [n] densities that the next move needs, empty for methods without
    mixture: np.ndarray  # [n] likewise


class Judged(NamedTuple):
    """What results say about a distribution that need not have drawn any of them."""

    objective: float  # by self-normalised weights
    stderr: float
    weights: np.ndarray  # [n] against the mixture of all proposals
    ess: float
    samples: int


def keeps(method: Method) -> tuple[bool, bool]:
    """Whether a move needs densities under the own proposals, and under their mixture."""
    against_own = method.weighting in ("own", "power-mean")
    in_parameters = method.space == "parameters"  # trajectories need their proposals anyway
    return against_own and in_parameters, method.weighting == "balance"


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
    with jax.enable_x64(True):
        placed = _placed(results)
        own, mixture = _densities(method, ledger, results, placed)
        rho = Rho(jnp.asarray(mean), jnp.asarray(std))
        structure = jax.tree.structure(update_of(method).init(rho))
        state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in memory])
        new = np.arange(len(results.returns)) >= results.n - batch
        arrays = (*placed, own, mixture)
        after, state, found, kl = jax.device_get(
            _stepper(method, discount)(rho, state, new, *arrays)
        )
    info = {
        "objective": float(found.objective),
        "objective_stderr": float(found.objective_stderr),
        "samples": int(found.samples),
        "ess": _in_results(method, found.ess),
        "max_weight": float(found.max_weight),
        "pareto_k": pareto_k(found.weights),
        "kl": float(kl),
        "flatten": None if found.flatten is None else float(found.flatten),
    }
    kept = (
        x[: results.n] if needed and x is not None else np.zeros(0)
        for needed, x in zip(keeps(method), (own, mixture), strict=True)
    )
    return Moved(np.asarray(after.eta), np.asarray(after.tau), _plain(state), info, *kept)


def judge(method: Method, ledger: Ledger, upto: int, mean: np.ndarray, std: np.ndarray) -> Judged:
    """What the results up to the place `upto` say about the distribution (mean, std)."""
    results = ledger.results(upto)
    unused = np.zeros(len(results.returns))  # the own proposals' densities
    with jax.enable_x64(True):
        placed = _placed(results)
        mixture = _extended_mixture(method, results, placed, ledger.mixture)
        rho = Rho(jnp.asarray(mean), jnp.asarray(std))
        judged = _judge(method.space, method.mirrored)
        plain, normalised = jax.device_get(judged(rho, *placed, unused, mixture))
    return Judged(
        objective=float(normalised.objective),
        stderr=float(normalised.objective_stderr),
        weights=plain.weights.ravel()[: results.n],
        ess=_in_results(method, plain.ess),
        samples=int(plain.samples),
    )


def _densities(
    method: Method, ledger: Ledger, results: Results, placed: "_Placed"
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What the estimator needs beside the samples; None is computed there, from the proposals."""
    needs_own, needs_mixture = keeps(method)
    own: np.ndarray | None = np.zeros(len(results.returns))
    if needs_own:
        own = _extended_own(method, results, placed, ledger.own)
    elif method.space == "actions":
        own = None
    if not needs_mixture:
        return own, None
    return own, _extended_mixture(method, results, placed, ledger.mixture)


def _extended_own(
    method: Method, results: Results, placed: "_Placed", before: np.ndarray
) -> np.ndarray:
    """Densities under the own proposals `[n]`; those `before` are known."""
    padded, rows = _padded(results, before)
    new = _pytree(tuple(x[rows] for x in results.samples))
    density = _functions(method.space).own
    found = density(placed.proposals, results.proposal[rows], placed.reference, new)
    padded[len(before) : results.n] = np.asarray(found)[: results.n - len(before)]
    return padded


def _extended_mixture(
    method: Method, results: Results, placed: "_Placed", before: np.ndarray
) -> np.ndarray:
    """Densities under the mixture `[n]`; those `before` are known, but for what it has gained.

    Only what is new is computed: each new proposal on the old results, every proposal on the new.
    """
    old, slots = len(before), len(results.means)
    valid = np.isfinite(results.returns[: results.n])
    drawn_by = results.proposal[: results.n]
    counts = np.bincount(drawn_by[valid], minlength=slots)
    gained = np.bincount(drawn_by[old:][valid[old:]], minlength=slots)
    drew = np.flatnonzero(gained).astype(np.int32)
    drew = np.concatenate([drew, np.full(_power(len(drew)) - len(drew), -1, np.int32)])
    padded, rows = _padded(results, before)
    _, gain, whole = _functions(method.space)
    proposals, reference, new = placed.proposals, placed.reference, placed.samples
    if old:
        padded = np.array(gain(proposals, gained, drew, reference, placed.samples, padded))
        new = _pytree(tuple(x[rows] for x in results.samples))
    found = np.asarray(whole(proposals, counts, reference, new))
    padded[old : results.n] = found[: results.n - old]
    return padded


def _padded(results: Results, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is known in the room of all results, and the rows that are new, with rows to spare."""
    old, space = len(before), len(results.returns)
    rows = np.arange(old, old + (room(results.n - old) if old else space))
    return np.concatenate([before, np.zeros(space - old)]), np.minimum(rows, space - 1)


def _in_results(method: Method, ess: Any) -> float:
    """The effective sample size in results, where the estimator counts mirrored pairs."""
    return float(ess) * (2 if method.mirrored else 1)


def _family(space: str, mirrored: bool = False) -> Family:
    return gaussian_policy() if space == "actions" else diagonal_gaussian(mirrored)


class _Placed(NamedTuple):
    """Results where JAX can use them, without a copy where they lie well."""

    samples: Any
    returns: np.ndarray
    drawn_by: np.ndarray
    proposals: Rho  # [P]
    reference: Rho  # that densities are relative to


def _placed(results: Results) -> _Placed:
    samples, proposals, reference = jax.device_put(
        (results.samples, (results.means, results.stds), results.reference)
    )
    rhos = Rho(*proposals), Rho(*reference)
    return _Placed(_pytree(samples), results.returns, results.proposal, *rhos)


def _pytree(samples: tuple[Any, ...]) -> Any:
    return samples[0] if len(samples) == 1 else Trajectory(*samples)


class _Functions(NamedTuple):
    """Densities, compiled."""

    own: Any
    gained: Any
    mixture: Any


@lru_cache(maxsize=8)
def _functions(space: str) -> _Functions:
    family = _family(space)
    each = (own_density, gained_mixture, mixture_density)
    return _Functions(*(jax.jit(partial(function, family)) for function in each))


@lru_cache(maxsize=64)
def _stepper(method: Method, discount: float) -> Any:
    family = _family(method.space, method.mirrored)
    estimator, update = estimator_of(method, family, discount), update_of(method)

    @jax.jit
    def step(rho: Rho, memory: Any, new: Array, *arrays: Any) -> Any:
        archive = _archive(family, *arrays)
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
        archive = _archive(family, *arrays)
        return tuple(estimator(rho, archive) for estimator in estimators)

    return judged


def _archive(
    family: Family,
    samples: Any,
    returns: Array,
    drawn_by: Array,
    proposals: Rho,
    reference: Rho,
    own: Array | None,
    mixture: Array | None,
) -> Archive:
    return from_samples(
        family,
        samples,
        returns,
        jnp.isfinite(returns),
        proposals,
        drawn_by,
        reference,
        keep="own",
        own=own,
        mixture=mixture,
    )


def _power(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


def _plain(state: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(state)]
