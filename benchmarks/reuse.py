"""One iteration of reuse, L proposals x N samples, balance weights, float64, against NumPy.

Twice: a NumPy program that recomputes every density, and one that computes only what is new, in
blocks that fit the cache.
"""

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import recoup
from benchmarks.timing import in_turn

BATCH, DIM, REPEATS = 100, 1000, 7
BLOCK = 64  # samples of a block in NumPy: half a megabyte


def telling(batches, table, batch=BATCH, **how):
    """A call that tells one more batch to an archive of `batches`: new densities, weights, move."""
    room = (batches + (0 if table else REPEATS + 2)) * batch
    how |= {"dim": DIM, "batch": batch, "capacity": room, "table": table}
    search = recoup.search("mis-pgpe-ob", **how)
    tell = jax.jit(search.tell, donate_argnums=1)
    state = search.init(jax.random.key(0), mean=0.0)

    def call():
        nonlocal state
        state, info = tell(key, state, theta, returns)
        return info

    for i in range(batches):
        key = jax.random.key(i)
        theta, state = search.ask(key, state)
        returns = -jnp.sum(theta**2, axis=1)
        info = call()
    assert info.samples >= batches * batch
    return call


def one_iteration(batches, table, batch=BATCH, **how):
    """Median seconds of one tell to an archive of `batches`."""
    return in_turn({"tell": telling(batches, table, batch, **how)}, REPEATS)["tell"]


class Archive(NamedTuple):
    """Samples of `batches` proposals, in NumPy."""

    means: np.ndarray  # [L, D]
    stds: np.ndarray  # [L, D]
    theta: np.ndarray  # [L N, D]
    returns: np.ndarray  # [L N]


def drawn(batches):
    """An archive whose proposals have gone a little way."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 0.01, (batches, DIM))
    stds = np.exp(rng.normal(0, 0.01, (batches, DIM)))
    index = np.repeat(np.arange(batches), BATCH)
    theta = means[index] + stds[index] * rng.normal(size=(batches * BATCH, DIM))
    return Archive(means, stds, theta, -np.sum(theta**2, axis=1))


def numpy_from_scratch(held):
    """The gradient at the newest proposal with every density recomputed, in plain NumPy."""
    means, stds, theta, returns = held
    logs = np.empty((len(means), len(theta)))
    for k in range(len(means)):
        logs[k] = -0.5 * np.sum(((theta - means[k]) / stds[k]) ** 2, axis=1)
        logs[k] -= np.sum(np.log(stds[k]))
    top = logs.max(0)
    mixture = top + np.log(np.mean(np.exp(logs - top), axis=0))
    w = np.exp(logs[-1] - mixture)
    z = (theta - means[-1]) / stds[-1]
    s_eta, s_tau = z / stds[-1], (z**2 - 1) / stds[-1]
    norms = np.sum(s_eta**2, 1) + np.sum(s_tau**2, 1)
    b = np.sum(w**2 * norms * returns) / np.sum(w**2 * norms)
    c = w * (returns - b) / len(theta)
    return np.concatenate([c @ s_eta, c @ s_tau])


def log_density(mean, inverse, theta, work):
    """Of samples `[n, D]`, but for a constant; `work` is room for one block of them."""
    found = np.empty(len(theta))
    constant = np.sum(np.log(inverse))
    for first in range(0, len(theta), BLOCK):
        block = theta[first : first + BLOCK]
        z = np.subtract(block, mean, out=work[: len(block)])
        z *= inverse
        found[first : first + BLOCK] = constant - 0.5 * np.einsum("nd,nd->n", z, z)
    return found


def numpy_blocked(held, mixture):
    """The same gradient from what is known before the newest batch, in blocks that fit the cache.

    `mixture` is log sum_l N p(theta | rho_l) of the samples before the newest batch, over those
    proposals.
    """
    means, stds, theta, returns = held
    old, work, newest = len(mixture), np.empty((BLOCK, DIM)), (means[-1], 1 / stds[-1])
    target = log_density(*newest, theta, work)
    columns = [log_density(*rho, theta[old:], work) for rho in zip(means, 1 / stds, strict=True)]
    fresh = np.logaddexp.reduce(columns, axis=0) + np.log(BATCH)
    known = np.logaddexp(mixture, target[:old] + np.log(BATCH))
    w = np.exp(target - np.concatenate([known, fresh]) + np.log(len(theta)))
    sums, norms = np.zeros((4, DIM)), np.empty(len(theta))
    coefficients = np.stack([w * returns, w])
    for first in range(0, len(theta), BLOCK):
        part = slice(first, first + BLOCK)
        z = np.subtract(theta[part], newest[0], out=work[: len(theta[part])])
        z *= newest[1]
        norms[part] = np.einsum("nd,d,nd->n", z, newest[1] ** 2, z)
        sums[:2] += coefficients[:, part] @ z
        z *= z
        z -= 1
        norms[part] += np.einsum("nd,d,nd->n", z, newest[1] ** 2, z)
        sums[2:] += coefficients[:, part] @ z
    b = np.sum(w**2 * norms * returns) / np.sum(w**2 * norms)
    sums = sums.reshape(2, 2, DIM) * newest[1]
    return (sums[:, 0] - b * sums[:, 1]).ravel() / len(theta)


def known_mixture(held):
    """What the blocked program is given: the mixture before the newest batch."""
    old = len(held.theta) - BATCH
    rhos = zip(held.means[:-1], 1 / held.stds[:-1], strict=True)
    logs = [log_density(*rho, held.theta[:old], np.empty((BLOCK, DIM))) for rho in rhos]
    return np.logaddexp.reduce(logs, axis=0) + np.log(BATCH)


def main():
    held = drawn(100)
    mixture = known_mixture(held)
    with jax.enable_x64(True):
        calls = {"recoup": telling(100, table=False), "table": telling(100, table=True)}
        calls["blocks"] = partial(numpy_blocked, held, mixture)
        one, tabled, blocked = in_turn(calls, REPEATS).values()
        ours = {batches: one_iteration(batches, table=False) for batches in (25, 50, 100, 200)}
    start = time.perf_counter()
    scratch = numpy_from_scratch(held)
    naive = time.perf_counter() - start
    np.testing.assert_allclose(calls["blocks"](), scratch, atol=1e-9 * np.abs(scratch).max())
    print(f"one iteration, L = 100 x N = 100, D = {DIM}, float64, balance weights, in turn:")
    print(f"  recoup {one * 1e3:.0f} ms, NumPy in blocks {blocked * 1e3:.0f} ms: ", end="")
    print(f"{one / blocked:.2f} of its time (target: at most 0.45)")
    print(f"  NumPy from scratch {naive * 1e3:.0f} ms: ", end="")
    print(f"{naive / one:.0f} times as long (target: at least 40)")
    print(f"  with the table of densities that windows need {tabled * 1e3:.0f} ms: ", end="")
    print(f"NumPy from scratch {naive / tabled:.0f} times as long (target: at least 40)")
    slope = np.polyfit(np.log(list(ours)), np.log(list(ours.values())), 1)[0]
    times = ", ".join(f"L = {n}: {t * 1e3:.0f} ms" for n, t in ours.items())
    print(f"  growth: {times}; time ~ L^{slope:.2f} (target: at most linear)")


if __name__ == "__main__":
    main()
