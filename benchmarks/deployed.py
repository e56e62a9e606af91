"""What to deploy after a bounded search: its mean, or something that the results say is better.

`python -m benchmarks.deployed [SEED [RUNS [TASK ...]]]`. Along runs of the default on the bounded
suite the true return of the mean policy is compared with that of alternatives that one model of the
same results names, the one of `recommend`: the tried candidate that it likes best, and its top
within some standard deviations of the mean, or half of the way there. An alternative is taken where
it is better than the mean by Z joint standard errors of the model. No rollout is spent on any.
"""

import sys
from typing import NamedTuple

import numpy as np

from recoup.compare.arenas import EPISODES, SYSTEM, keys_of
from recoup.compare.players import StudyPlayer
from recoup.core.plain.belief import LEVEL, SLOPE, expected
from recoup.study.voice.landscape import landscape, results_of, why_none
from recoup.tasks.bounded.bounded_suite import HALVES, bounded_task

LOOKS = (20, 50, 100, 200)  # trials after which it is asked
RADII = (0.25, 0.5, 1.0)  # standard deviations over the root of D
SURE = (-np.inf, 0.0, 0.25, 0.5, 1.0, 2.0)  # joint standard errors from which one is taken
ROUNDS, STARTS = 30, 5


class Found(NamedTuple):
    """An alternative: how much better it is by the model, the error of that, and in truth."""

    gain: float
    stderr: float
    true: float


def uphill(belief):
    """The model's mean and its slope at points `[m, D]` of its own coordinates."""
    parts = [(c.hyper, c.hyper.share * (c.inverse.T @ c.half)) for c in belief.cells]
    at, middle = belief.cells[0].at.mean, belief.cells[0].middle
    dim, heights = at.shape[1], (np.sum(at**2, axis=1) - middle) / 2
    slope = sum(SLOPE / h.length * (a @ at) for h, a in parts)
    bowl = sum(h.bowl / h.length * (a @ heights) for h, a in parts)
    level = sum(LEVEL * np.sum(a) for _, a in parts)
    about, radii = sum(h.about * a for h, a in parts), np.sqrt(np.sum(at**2, axis=1) / dim)
    bumps = {h.length: sum(a for g, a in parts if g.length == h.length) for h, _ in parts}

    def look(x):
        squares = np.sum(x**2, axis=1)
        apart = np.maximum(squares[:, None] + np.sum(at**2, axis=1) - 2 * x @ at.T, 0.0)
        mean = level + x @ slope + bowl * (squares - middle) / 2
        way = slope + bowl * x
        for length, a in bumps.items():
            k = np.exp(-apart / (2 * length)) * a
            mean, way = mean + k.sum(1), way + (k @ at - k.sum(1)[:, None] * x) / length
        far = np.sqrt(squares / dim) + 1e-12
        k = np.exp(-((far[:, None] - radii) ** 2) / 2) * about
        inward = np.sum(k * (radii - far[:, None]), axis=1) / (far * dim)
        return mean + k.sum(1), way + inward[:, None] * x

    return look


def top(belief, look, starts, radius):
    """Where the model is highest within a radius of the mean `[D]`, by ascent from `starts`."""

    def within(z):
        far = np.linalg.norm(z, axis=1, keepdims=True)
        return z * np.minimum(1.0, radius / np.maximum(far, 1e-12))

    z, stretch = within(starts), belief.stretch
    high, way = look(z * stretch)
    step = np.full(len(z), 0.5 * radius)
    for _ in range(ROUNDS):
        way = way * stretch
        ahead = within(z + step[:, None] * way / (np.linalg.norm(way, axis=1)[:, None] + 1e-12))
        higher, new = look(ahead * stretch)
        up = higher > high
        z, high = np.where(up[:, None], ahead, z), np.where(up, higher, high)
        way = np.where(up[:, None], new, way / stretch)
        step = np.where(up, 1.3 * step, 0.5 * step)
    return z[np.argmax(high)]


def better(belief, z):
    """How much better a point `[D]` is than the mean, by the model, and the error of that."""
    mean, covariance = expected(belief, belief.looks(np.stack([np.zeros_like(z), z])))
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    return float(mean[1] - mean[0]), float(max(variance, 0.0)) ** 0.5


def alternatives(study, task):
    """What could be deployed in place of the mean, by name; empty where there is no model."""
    with study.store.reading():
        results = results_of(study)
        if why_none(study, results):
            return {}
        belief, coordinates = landscape(study, results)
    mean, rho = results.mean, study.rho(study.store.newest().numbers)
    true = task.true_return(study.in_units(mean))
    tried, dim = coordinates.at(results.theta), len(mean)
    look = uphill(belief)
    order = np.argsort(-look(tried * belief.stretch)[0])[:STARTS]
    starts = np.concatenate([np.zeros((1, dim)), tried[order]])
    best = results.theta[order[0]]
    places = {"best tried": (tried[order[0]], best)}
    for radius in RADII:
        z = top(belief, look, starts, radius * dim**0.5)
        for share, words in ((1.0, "top"), (0.5, "half of the way to the top")):
            at = np.asarray(rho.theta(share * z))
            places[f"{words} within {radius:g}"] = share * z, at
    return {
        name: Found(*better(belief, z), task.true_return(study.in_units(theta)) - true)
        for name, (z, theta) in places.items()
    }


def looked_at(name, seed, run, key):
    """The alternatives of one run after each of `LOOKS` trials."""
    task, n, found = bounded_task(name, [seed, run, SYSTEM]), 0, {}
    player = StudyPlayer({"method": "recoup", "params": task.params, "seed": key}, {})
    for look in LOOKS:
        while n < look:
            asked = player.ask()
            numbers = range(n, n + len(asked))
            told = task.returns(asked, [[seed, run, EPISODES, i] for i in numbers])
            player.tell(asked, told)
            n += len(asked)
        found[look] = alternatives(player._study.opened, task)
    player.close()
    return found


def verdict(gains):
    """Above, level or below at two standard errors."""
    error = np.std(gains, ddof=1) / len(gains) ** 0.5
    return int(np.sign(np.mean(gains))) if abs(np.mean(gains)) > 2 * error else 0


def counted(runs, name, sure):
    """Cells above, level and below where an alternative is taken from `sure` errors on."""
    cells = []
    for task_runs in runs.values():
        for look in LOOKS:
            rows = [run[look].get(name, Found(0.0, 1.0, 0.0)) for run in task_runs]
            cells.append(verdict([x.true if x.gain > sure * x.stderr else 0.0 for x in rows]))
    return " / ".join(str(cells.count(sign)) for sign in (1, 0, -1))


def main(seed="801", runs="16", *tasks):
    """Prints a table for each half, or one for some tasks."""
    keys = keys_of(int(seed), range(int(runs)))
    for half, names in {"these": tasks}.items() if tasks else HALVES.items():
        print(f"\n{half}, {len(names)} tasks x {len(LOOKS)} looks, {runs} runs, seed {seed}")
        found = {
            name: [looked_at(name, int(seed), run, key) for run, key in enumerate(keys)]
            for name in names
        }
        shown = ["always", *(f"{sure:g}" for sure in SURE[1:])]
        print(f"| above / level / below the mean | {' | '.join(shown)} |")
        words = next(run[LOOKS[-1]] for rows in found.values() for run in rows if run[LOOKS[-1]])
        for name in words:
            print(f"| {name} | {' | '.join(counted(found, name, sure) for sure in SURE)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
