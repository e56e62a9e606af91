"""One iteration of reuse, L proposals x N samples, balance weights, float64, against NumPy."""

import time

import jax
import jax.numpy as jnp
import numpy as np

import recoup

BATCH, DIM, REPEATS = 100, 1000, 7


def one_iteration(batches, table, batch=BATCH, **how):
    """Median seconds of one tell to an archive of `batches`, from new densities to the move."""
    room = (batches + (0 if table else REPEATS + 1)) * batch
    how |= {"dim": DIM, "batch": batch, "capacity": room, "table": table}
    search = recoup.search("mis-pgpe-ob", **how)
    tell = jax.jit(search.tell, donate_argnums=1)
    state, times = search.init(jax.random.key(0), mean=0.0), []
    for i in range(batches + REPEATS):
        theta, state = search.ask(jax.random.key(i), state)
        returns = -jnp.sum(theta**2, axis=1)
        jax.block_until_ready((theta, returns, state))
        start = time.perf_counter()
        state, info = jax.block_until_ready(tell(jax.random.key(i), state, theta, returns))
        times.append(time.perf_counter() - start)
    assert info.samples >= batches * batch
    return float(np.median(times[-REPEATS:]))


def numpy_from_scratch(batches):
    """Seconds of the same estimate with every density recomputed, in plain NumPy."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 0.01, (batches, DIM))
    stds = np.ones((batches, DIM))
    index = np.repeat(np.arange(batches), BATCH)
    theta = means[index] + stds[index] * rng.normal(size=(batches * BATCH, DIM))
    returns = -np.sum(theta**2, axis=1)
    start = time.perf_counter()
    logs = np.empty((batches, len(theta)))
    for k in range(batches):
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
    assert np.isfinite(c @ s_eta).all()
    assert np.isfinite(c @ s_tau).all()
    return time.perf_counter() - start


def main():
    with jax.enable_x64(True):
        ours = {batches: one_iteration(batches, table=False) for batches in (25, 50, 100, 200)}
        tabled = one_iteration(100, table=True)
        naive = numpy_from_scratch(100)
    print(f"one iteration, L = 100 x N = 100, D = {DIM}, float64, balance weights:")
    print(f"  recoup {ours[100] * 1e3:.0f} ms, NumPy from scratch {naive * 1e3:.0f} ms: ", end="")
    print(f"{naive / ours[100]:.0f} times faster (target: at least 40)")
    print(f"  with the table of densities that windows need {tabled * 1e3:.0f} ms: ", end="")
    print(f"{naive / tabled:.0f} times faster (target: at least 40)")
    slope = np.polyfit(np.log(list(ours)), np.log(list(ours.values())), 1)[0]
    times = ", ".join(f"L = {n}: {t * 1e3:.0f} ms" for n, t in ours.items())
    print(f"  growth: {times}; time ~ L^{slope:.2f} (target: at most linear)")


if __name__ == "__main__":
    main()
