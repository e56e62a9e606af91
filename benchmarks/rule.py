"""What a move of the method `recoup` costs once its window is full: in NumPy, as a study makes it,
and in JAX, as a search does after it has been compiled."""

import time

import jax
import numpy as np

import recoup
from recoup.core.families.table import FAMILIES
from recoup.core.plain.rule import ToldResults
from recoup.core.rules.window import reach_of
from recoup.engine import plain
from recoup.engine.methods import METHODS, default_batch, sized

TARGETS = {10: 10.0, 100: 50.0}  # milliseconds
DIMS, MOVES, TIMED = (1, 10, 32, 50, 100, 1000), 5, 15


def objective(theta):
    return -np.sum((theta - 1) ** 2, axis=1)


def told_by(theta, returns, drawn_by, proposals):
    """Results without failures, those of the newest proposal fresh."""
    n = len(returns)
    return ToldResults(
        theta=theta,
        returns=returns,
        valid=np.ones(n, bool),
        failed=np.zeros(n, bool),
        fresh=drawn_by == drawn_by.max(),
        drawn_by=drawn_by,
        also=np.zeros((n, 0)),
        foreign=np.zeros(n, bool),
        context=np.zeros((n, 0)),
        proposals=proposals,
    )


def by_numpy(dim):
    """Median seconds of a move, the window full."""
    row, batch = sized(METHODS["recoup"], dim), default_batch(METHODS["recoup"], dim)
    rng, kind = np.random.default_rng(0), FAMILIES[row.family].rho
    rho, memory, proposals = kind.start(np.zeros(dim), np.full(dim, 0.5)), None, []
    n = max(reach_of(dim, batch, None))
    theta = rho.theta(rng.normal(size=(n, dim)))
    returns, drawn_by = objective(theta) + rng.normal(size=n), np.zeros(n, int)
    times = []
    for i in range(MOVES + TIMED):
        proposals.append(rho)
        fresh = rho.theta(rng.normal(size=(batch, dim)))
        theta = np.concatenate([theta[batch:], fresh])
        returns = np.concatenate([returns[batch:], objective(fresh) + rng.normal(size=batch)])
        drawn_by = np.concatenate([drawn_by[batch:], np.full(batch, i)])
        stacked = kind(*(np.stack(x) for x in zip(*proposals, strict=True)))
        told = told_by(theta, returns, drawn_by, stacked)
        start = time.perf_counter()
        rho, memory, _ = plain.make_rule_move(row, rho, told, memory)
        times.append(time.perf_counter() - start)
    return float(np.median(times[MOVES:]))


def by_jax(dim):
    """Seconds to compile, and median seconds of a move with the window full."""
    batch = default_batch(METHODS["recoup"], dim)
    search = recoup.search("recoup", dim=dim, batch=batch)
    state = search.init(jax.random.key(0), 0.0, 0.5)
    rng, times = np.random.default_rng(0), []
    for i in range(search.capacity // batch + TIMED):
        theta, state = search.ask(jax.random.key(i), state)
        returns = objective(np.asarray(theta)) + rng.normal(size=batch)
        start = time.perf_counter()
        state, info = search.tell(jax.random.key(i), state, theta, returns)
        jax.block_until_ready(info.ess)
        times.append(time.perf_counter() - start)
    return times[0], float(np.median(times[-TIMED:]))


def main():
    print("a move of the method recoup, its window full (one run; set OPENBLAS_NUM_THREADS=1):")
    for dim in DIMS:
        with jax.enable_x64(True):
            compiling, moving = by_jax(dim)
        target = f" (target: at most {TARGETS[dim]:.0f} ms)" if dim in TARGETS else ""
        print(
            f"  D = {dim}: NumPy {by_numpy(dim) * 1e3:.1f} ms{target}; JAX {moving * 1e3:.1f} ms, "
            f"once compiled in {compiling:.1f} s"
        )


if __name__ == "__main__":
    main()
