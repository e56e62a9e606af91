"""Whether a curve that is tested at some iterations says what one says that is tested at all."""

from dataclasses import replace

import numpy as np

import recoup
from recoup.runs.fresh import is_tested

ITERATIONS, SEEDS = 60, 3
CASES = (
    ("mountain-car", "recoup"),
    ("mountain-car", "iw-pgpe-ob"),
    ("toy", "mis-pgpe-ob"),
    ("pendulum", "recoup"),
    ("sphere-10", "recoup"),
)


def main():
    print(f"curves of {ITERATIONS} iterations at the points in between, {SEEDS} seeds:")
    print("  task method: points; rms gap over the rms standard error of a point; gaps over the")
    print("  span of the curve, their mean and the largest")
    for task, method in CASES:
        found = [gaps(task, method, seed) for seed in range(SEEDS)]
        points, away, error, mean, largest = np.mean(found, axis=0)
        rest = f"{np.sqrt(away / error):.2f}; {mean:.3f}, {largest:.3f}"
        print(f"  {task} {method}: {points:.0f}; {rest}", flush=True)


def gaps(task, method, seed):
    """How far straight lines between the points lie from the tests that a run would leave out."""
    run = recoup.train(task, method, iterations=ITERATIONS, seed=seed, test_all=True)
    plan = replace(run.plan, test_all=False)
    at = np.array([is_tested(plan, step.iteration) for step in run.history])
    values = np.array([step.return_curve for step in run.history])
    errors = np.array([step.return_curve_stderr for step in run.history])
    x = np.arange(len(at))
    away = (np.interp(x, x[at], values[at]) - values)[~at]
    squares, span = (np.mean(x**2) for x in (away, errors[~at])), np.ptp(values)
    return at.sum(), *squares, np.abs(away).mean() / span, np.abs(away).max() / span


if __name__ == "__main__":
    main()
