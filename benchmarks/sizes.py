"""Whether any size is slower than the next: 100 and 101 slots, 20,000 and 20,011 samples.

Sizes that do not divide well must cost no more than their neighbours.
"""

import time

import jax
import numpy as np

import recoup
from benchmarks.reuse import DIM, one_iteration

BATCH = 20
PAIRS = ((99, 100), (149, 150), (399, 400))  # batches: one proposal slot more than batches


def estimate(n):
    """Median seconds of `recoup.estimate` on `n` samples of 20 proposals."""
    rng = np.random.default_rng(0)
    means, stds = rng.normal(size=(20, DIM)) * 0.01, np.ones((20, DIM))
    index = rng.integers(20, size=n)
    theta = means[index] + rng.normal(size=(n, DIM))
    target = (np.zeros(DIM), np.ones(DIM))
    data = {"proposals": (means, stds), "proposal": index, "target": target}
    times = []
    for _ in range(5):
        start = time.perf_counter()
        recoup.estimate(theta, -np.sum(theta**2, axis=1), **data)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def main():
    print(f"sizes that divide badly, beside their neighbours (batch {BATCH}, D = {DIM}, float64):")
    with jax.enable_x64(True):
        for table in (True, False):
            for even, odd in PAIRS:
                times = [one_iteration(n, table, BATCH, late=0) for n in (even, odd)]
                kept = "table" if table else "running"
                print(
                    f"  tell, {kept}, {even + 1} and {odd + 1} slots: {times[0] * 1e3:.0f} and "
                    f"{times[1] * 1e3:.0f} ms, {times[1] / times[0]:.2f} (target: at most 1.3)"
                )
    times = [estimate(n) for n in (20_000, 20_011)]
    print(
        f"  estimate, 20,000 and 20,011 samples: {times[0]:.2f} and {times[1]:.2f} s, "
        f"{times[1] / times[0]:.2f} (target: at most 1.3)"
    )


if __name__ == "__main__":
    main()
