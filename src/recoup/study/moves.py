"""One move of a study's distribution: a pure function of its settings and the results so far.

Recomputed from the results alone, whatever process does it: padded to lengths that depend on their
number, so that the same numbers come out to the last bit.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.archive import from_samples
from recoup.composition import estimator_of, update_of
from recoup.diagnostics import pareto_k
from recoup.families import Rho, diagonal_gaussian, kl_divergence
from recoup.methods import Method


class Results(NamedTuple):
    """Finite results in the order in which they were told, and the proposals that drew them."""

    theta: np.ndarray  # [n, D]
    returns: np.ndarray  # [n]
    proposal: np.ndarray  # [n] rows of means and stds
    means: np.ndarray  # [P, D]
    stds: np.ndarray  # [P, D]


class Moved(NamedTuple):
    """Where the distribution went, and what the move was made of."""

    mean: np.ndarray
    std: np.ndarray
    memory: list[Any]  # leaves of the update rule's state, as plain numbers
    info: dict[str, float]


def start(method: Method, mean: np.ndarray, std: np.ndarray) -> list[Any]:
    """The memory of the update rule before the first move."""
    with jax.enable_x64(True):
        return _plain(update_of(method).init(Rho(jnp.asarray(mean), jnp.asarray(std))))


def move(
    method: Method, results: Results, mean: np.ndarray, std: np.ndarray, memory: list[Any]
) -> Moved:
    """The move that `results` make of the distribution (mean, std)."""
    results = padded(results)
    with jax.enable_x64(True):
        rho = Rho(jnp.asarray(mean), jnp.asarray(std))
        structure = jax.tree.structure(update_of(method).init(rho))
        state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in memory])
        after, state, found, kl = jax.device_get(_compiled(method)(rho, state, *results))
    info = {
        "objective": float(found.objective),
        "objective_stderr": float(found.objective_stderr),
        "samples": int(found.samples),
        "ess": float(found.ess),
        "max_weight": float(found.max_weight),
        "pareto_k": pareto_k(found.weights),
        "kl": float(kl),
    }
    return Moved(np.asarray(after.eta), np.asarray(after.tau), _plain(state), info)


def window(method: Method, batch: int, results: Results) -> Results:
    """What the method keeps of the results: the last `window` batches in the order of telling."""
    if method.window is None:
        return results
    kept = slice(-method.window * batch, None)
    drawn, index = np.unique(results.proposal[kept], return_inverse=True)
    return Results(
        results.theta[kept], results.returns[kept], index, results.means[drawn], results.stds[drawn]
    )


def padded(results: Results) -> Results:
    """The results with rows added up to the next powers of two; added returns are not numbers."""
    samples, proposals = (1 << (len(x) - 1).bit_length() for x in (results.returns, results.means))
    more, extra = samples - len(results.returns), proposals - len(results.means)

    def repeated(rows: np.ndarray, count: int) -> np.ndarray:
        return np.concatenate([rows, np.repeat(rows[-1:], count, axis=0)])

    return Results(
        theta=repeated(results.theta, more),
        returns=np.concatenate([results.returns, np.full(more, np.nan)]),
        proposal=repeated(results.proposal, more).astype(np.int32),
        means=repeated(results.means, extra),
        stds=repeated(results.stds, extra),
    )


@lru_cache(maxsize=64)
def _compiled(method: Method) -> Any:
    family = diagonal_gaussian()
    estimator, update = estimator_of(method, family), update_of(method)
    keep = "running" if method.weighting == "balance" else "own"

    @jax.jit
    def step(rho: Rho, memory: Any, *arrays: Array) -> Any:
        theta, returns, proposal, means, stds = arrays
        valid = jnp.isfinite(returns)
        archive = from_samples(
            family, theta, returns, valid, Rho(means, stds), proposal, rho, keep=keep
        )
        after, memory, found = update.step(lambda r: estimator(r, archive), rho, memory)
        return after, memory, found, kl_divergence(after, rho)

    return step


def _plain(state: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(state)]
