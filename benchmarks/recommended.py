"""How often the intervals of `Study.recommend` hold the truth, on tasks whose optimum is known."""

import sys

import numpy as np

from recoup.study.settings import resolved
from recoup.study.study import Study

STUDIES, TARGET = 200, 0.95
GAINS = {"k": (10, 200, "log"), "d": (0, 1), "offset": None}


def robot(theta):
    k, d, offset = np.moveaxis(theta, -1, 0)
    return -8 * np.log(k / 60) ** 2 - 20 * (d - 0.7) ** 2 - (offset - 0.3) ** 2


def edge(theta):
    """Best near an edge of the bounds."""
    k, d = np.moveaxis(theta, -1, 0)
    return -8 * np.log(k / 150) ** 2 - 20 * (d - 0.95) ** 2


def ridge(theta):
    x, y = theta[..., 0] - 1, theta[..., 1] + 0.5
    return -2 * x**2 - 1.6 * x * y - y**2


def ellipse(theta):
    return -np.sum(np.array([0.1, 0.3, 1, 3]) * (theta - [1, -0.5, 0.3, 0.8]) ** 2, axis=-1)


def sphere(theta):
    return -np.sum((theta - np.linspace(-1, 1, 8)) ** 2, axis=-1)


def peaked(theta):
    return -3 * np.sum(np.log1p((theta - 1) ** 2), axis=-1)


TASKS = {  # function, settings, noise, batches of ten
    "robot, 6 batches": (robot, {"params": GAINS}, 0.5, 6),
    "robot, 12 batches": (robot, {"params": GAINS}, 0.5, 12),
    "robot, 25 batches": (robot, {"params": GAINS}, 0.5, 25),
    "robot, little noise": (robot, {"params": GAINS}, 0.05, 8),
    "edge of the bounds": (edge, {"params": {"k": (10, 200, "log"), "d": (0, 1)}}, 0.5, 10),
    "ridge": (ridge, {"dim": 2, "std": 0.5}, 0.5, 8),
    "ellipse, natural steps": (ellipse, {"dim": 4, "update": "natural", "kl": 0.2}, 0.5, 8),
    "sphere, 8 parameters": (sphere, {"dim": 8}, 1.0, 12),
    "peaked, 25 batches": (peaked, {"dim": 3}, 0.5, 25),
}


def searched(function, settings, noise, batches, seed):
    given = {"method": "mis-pgpe-ob", "batch": 10, "seed": seed, **settings}
    study = Study.create(None, resolved(given))
    rng = np.random.default_rng(seed + 50_000)
    for _ in range(batches):
        trials = study.ask(10)
        values = [float(function(t.theta) + noise * rng.normal()) for t in trials]
        study.tell([t.id for t in trials], values)
    return study


def tops_held(study, function, found):
    """For each parameter, whether its best value with the others staying lies in the interval."""
    steps, inside = np.linspace(-15, 15, 6001), []
    for i in range(study.dim):
        one = study.std * np.eye(study.dim)[i]
        along = study.opened.in_units(study.mean + steps[:, None] * one)
        best = along[np.argmax(function(along)), i]
        slack = 1e-3 * abs(along[-1, i] - along[0, i])
        inside.append(found.low[i] - slack <= best <= found.high[i] + slack)
    return inside


def main(studies=STUDIES):
    """Prints one table."""
    print(
        f"recommend, {studies} studies a row (binomial error 1.5 % at 95 %; target {TARGET:.0%}):"
    )
    print(
        "  task                     return held   half width   best held (least of them)   closed"
    )
    for name, (function, settings, noise, batches) in TASKS.items():
        held, tops, halves, closed = [], [], [], []
        for seed in range(studies):
            study = searched(function, settings, noise, batches, seed + 1000)
            found = study.recommend()
            low, high = found.interval
            held.append(low <= function(found.theta) <= high)
            halves.append((high - low) / 2)
            tops.append(tops_held(study, function, found))
            closed.append(np.isfinite(found.low) & np.isfinite(found.high))
        least = np.mean(tops, axis=0).min()
        print(
            f"  {name:24} {np.mean(held):10.1%} {np.median(halves) / noise:10.2f} noise "
            f"{np.mean(tops):12.1%} ({least:.1%}) {np.mean(closed):15.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES)
