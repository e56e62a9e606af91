"""The variance study of the paper's Figure 1: M = 10,000 estimates, 20 iterations, one start."""

import time

import jax

from recoup.reproduce.figures.gradients import ESTIMATORS, variance_jobs

TRIALS = 10_000


def main():
    where = jax.devices()[0].device_kind
    print(f"variance study, M = {TRIALS:,}, 20 iterations, {len(ESTIMATORS)} estimators, {where}:")
    for job, what in zip(variance_jobs(TRIALS, 2), ("compilation included", "after"), strict=True):
        began = time.perf_counter()
        job.compute(lambda share: None)
        spent = time.perf_counter() - began
        print(f"  {what}: {spent:.1f} s (target: at most 120 s on two cores)", flush=True)


if __name__ == "__main__":
    main()
