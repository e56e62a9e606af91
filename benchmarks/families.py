"""What correlations buy the method `recoup`: its three families at equal rollouts.

`python -m benchmarks.families 50 200 ridge` prints a row for each task and family: log10 of the
regret of the mean policy, or its return, over the same starts and the same noise, and the
difference from the diagonal family run by run. NumPy makes the moves, as in a study.
"""

import sys
import time
from dataclasses import replace

import numpy as np

from recoup.core.families.table import FAMILIES, WORDS
from recoup.core.plain.rule import ToldResults
from recoup.core.rules.window import reach_of
from recoup.engine import plain
from recoup.engine.methods import METHODS, default_batch
from recoup.tasks import lqr

SIZES = {50: (6, 1000), 200: (3, 1000), 1000: (2, 360)}  # D -> runs, rollouts
STATES = {50: 10, 200: 20, 1000: 40}  # of linear-quadratic control, with D / states actions
STEEP = 4  # directions of the ridge


def turned(dim, run, columns):
    """Orthonormal columns, others in each run."""
    rng = np.random.default_rng([dim, run])
    return np.linalg.qr(rng.normal(size=(dim, columns)))[0]


def quadratic(dim, run):
    """Weights from 0.01 to 10 along axes that are turned: every one matters."""
    axes, weights = turned(dim, run, dim), 10.0 ** np.linspace(-2, 1, dim)
    return lambda theta, rng: -np.sum(weights * ((theta - 1) @ axes) ** 2, axis=1)


def ridge(dim, run):
    """A bowl with four directions that are a thousand times as steep, turned."""
    axes = turned(dim, run, STEEP)

    def returns(theta, rng):
        away = theta - 1
        return -np.sum(away**2, axis=1) - 1e3 * np.sum((away @ axes) ** 2, axis=1)

    return returns


def control(dim, run):
    """`lqr` of the suite, a system for each run; the mean of its steps, random first states."""
    states = STATES[dim]
    system = lqr.system_of(states, dim // states, run)

    def returns(theta, rng):
        gains = theta.reshape(len(theta), states, -1)
        x, total = rng.normal(size=(len(theta), states)), 0.0
        for _ in range(lqr.LQR_STEPS):
            u = np.einsum("ns,nsa->na", x, gains)
            cost = np.sum(x**2, axis=1) + lqr.PUSH * np.sum(u**2, axis=1)
            total = total - cost / (1 + cost / lqr.COST_LIMIT) / lqr.LQR_STEPS
            x = x @ system.a.T + u @ system.b.T + lqr.STATE_NOISE * rng.normal(size=x.shape)
            x = np.clip(x, -lqr.STATE_LIMIT, lqr.STATE_LIMIT)
        return total

    return returns


TASKS = {"quadratic": (quadratic, 0.5), "ridge": (ridge, 0.5), "control": (control, 0.1)}


def searched(family, task, dim, run, rollouts):
    """The mean policy after so many rollouts, and seconds of a move at the end."""
    make, std = TASKS[task]
    objective, rng = make(dim, run), np.random.default_rng([1, dim, run])
    row = replace(METHODS["recoup"], family=family)
    batch = default_batch(row, dim)
    rho, memory = FAMILIES[family].rho.start(np.zeros(dim), np.full(dim, std)), None
    keep = -(-max(reach_of(dim, batch, None)) // batch)  # batches
    told, rhos = [], []
    for _ in range(rollouts // batch):
        theta = np.stack([rho.theta(z) for z in rng.normal(size=(batch, dim))])
        told = [*told[1 - keep :], (theta, objective(theta, rng))]
        rhos = [*rhos[1 - keep :], rho]
        theta, returns = (np.concatenate(x) for x in zip(*told, strict=True))
        n, drawn_by = len(returns), np.repeat(np.arange(len(told)), batch)
        stacked = type(rho)(*(np.stack(x) for x in zip(*rhos, strict=True)))
        yes, no, fresh = np.ones(n, bool), np.zeros(n, bool), drawn_by == len(told) - 1
        none = np.zeros((n, 0))
        seen = ToldResults(theta, returns, yes, no, fresh, drawn_by, none, no, none, stacked)
        start = time.perf_counter()
        with np.errstate(all="ignore"):
            rho, memory, _ = plain.make_rule_move(row, rho, seen, memory)
    return rho.mean, time.perf_counter() - start


def worth(task, dim, run, mean):
    """log10 of the regret, or the mean return of 500 fresh episodes, the same for all."""
    found = TASKS[task][0](dim, run)(np.tile(mean, (500, 1)), np.random.default_rng([2, run]))
    return float(found.mean()) if task == "control" else float(np.log10(-found[0]))


def error(x):
    return np.std(x, ddof=1) / np.sqrt(len(x))


def main():
    tasks = [x for x in sys.argv[1:] if x in TASKS] or TASKS
    families = [x for x in WORDS if x in sys.argv] or WORDS
    for dim in [int(x) for x in sys.argv[1:] if x.isdigit()] or SIZES:
        runs, rollouts = SIZES[dim]
        for task in tasks:
            first = None
            for family in families:
                found = [searched(family, task, dim, run, rollouts) for run in range(runs)]
                score = np.array([worth(task, dim, i, x[0]) for i, x in enumerate(found)])
                first = score if first is None else first
                less, seconds = score - first, np.median([x[1] for x in found])
                print(
                    f"{task:9} D={dim:<5} {family:9} {score.mean():7.3f} +- {error(score):.3f}   "
                    f"beside diagonal {less.mean():+.3f} +- {error(less):.3f}   "
                    f"{1000 * seconds:.0f} ms a move",
                    flush=True,
                )


if __name__ == "__main__":
    main()
