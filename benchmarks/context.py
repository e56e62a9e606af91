"""What it buys to tell what was known before each trial.

`python -m benchmarks.context [RUNS] [TASK...]` prints it, and `python -m benchmarks.context cost`
what a move takes.

Every task is searched by two studies in memory, with the setting `context` and without, from the
same starts with the same noise; the contexts are told to both. J is the expected return of the
newest distribution, m that of its mean, over 200 fresh contexts that both share. A difference is
paired, and stands with twice its standard error.
"""

import datetime
import os
import sys
import time
from typing import NamedTuple

import numpy as np

from benchmarks.__main__ import processor
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.tasks.lqr import LQR_STEPS, PUSH, STATE_NOISE, system_of

EPISODES, RUNS, FRESH = (50, 100, 200, 400), 16, 200
MOST_COST = 100.0


class Task(NamedTuple):
    """What begins an episode, what is seen of that, and what it earns."""

    dim: int
    std: float
    begin: object  # rng, n -> starts [n, S]
    seen: object  # starts, rng -> contexts [n, C]
    earns: object  # theta [n, D], starts, rng -> returns [n]


def as_they_are(start, rng):
    return start


def of_nothing(start, rng):
    """Numbers that say nothing of the start."""
    return rng.standard_normal((len(start), 5))


def lqr(states, actions, seed, seen=as_they_are):
    """A linear system from a random start, as `recoup.tasks.lqr` has it."""
    a, b = system_of(states, actions, seed)

    def earns(theta, start, rng):
        x, gains, total = start, theta.reshape(-1, states, actions), 0.0
        for _ in range(LQR_STEPS):
            u = np.clip(np.einsum("ns,nsa->na", x, gains), -1e6, 1e6)
            cost = np.sum(x**2, axis=1) + PUSH * np.sum(u**2, axis=1)
            total = total - cost / (1 + cost / MOST_COST) / LQR_STEPS
            x = np.clip(x @ a.T + u @ b.T + STATE_NOISE * rng.standard_normal(x.shape), -1e6, 1e6)
        return total

    return Task(states * actions, 0.5, lambda rng, n: rng.standard_normal((n, states)), seen, earns)


def pendulum(seed):
    """Gymnasium's, from any angle; a linear policy on cos, sin, velocity and 1."""

    def earns(theta, start, rng):
        angle, speed, total = start[:, 0].copy(), start[:, 1].copy(), np.zeros(len(start))
        for _ in range(200):
            seen = np.stack([np.cos(angle), np.sin(angle), speed, np.ones_like(angle)], axis=1)
            torque = np.clip(np.sum(seen * theta, axis=1), -2, 2)
            away = (angle + np.pi) % (2 * np.pi) - np.pi
            total -= away**2 + 0.1 * speed**2 + 0.001 * torque**2
            speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * 0.05, -8, 8)
            angle = angle + speed * 0.05
        return total

    def begin(rng, n):
        return np.stack([rng.uniform(-np.pi, np.pi, n), rng.uniform(-1, 1, n)], axis=1)

    def seen(start, rng):
        return np.stack([np.cos(start[:, 0]), np.sin(start[:, 0]), start[:, 1]], axis=1)

    return Task(4, 2.0, begin, seen, earns)


def payload(seed):
    """Six gains; a load that shifts the return and steepens it, and a temperature."""
    rng = np.random.default_rng([9, seed])
    best, steep = rng.standard_normal(6), rng.uniform(0.3, 3, 6)

    def begin(rng, n):
        return np.stack([rng.uniform(0, 5, n), 20 + 8 * rng.standard_normal(n)], axis=1)

    def earns(theta, start, rng):
        load, warm = start.T
        bowl = np.sum((theta - best) ** 2 * steep, axis=1) * (1 + 0.1 * load)
        return -bowl - 2 * load - 0.5 * load**2 + 0.2 * (warm - 20) + rng.standard_normal(len(load))

    return Task(6, 1.0, begin, as_they_are, earns)


def unrelated(dim, value):
    """A function of theta alone, about a random best, with contexts that say nothing."""

    def made(seed):
        best = np.random.default_rng([8, seed]).standard_normal(dim)

        def earns(theta, start, rng):
            return value(theta - best, rng)

        return Task(dim, 1.0, lambda rng, n: np.zeros((n, 1)), of_nothing, earns)

    return made


def noisy(x, rng):
    return -np.sum(x**2, axis=1) + 3 * rng.standard_normal(len(x))


def smooth(x, rng):
    return -np.sum(x**2, axis=1)


def curved(x, rng):
    return -np.sum(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2, axis=1)


def rugged(x, rng):
    return -np.sum(x**2 + 3 * (1 - np.cos(2 * np.pi * x)), axis=1)


def success(x, rng):
    return (rng.uniform(size=len(x)) < np.exp(-np.sum(x**2, axis=1) / 2)).astype(float)


TASKS = {
    "lqr-8": lambda seed: lqr(4, 2, seed),
    "lqr-18": lambda seed: lqr(6, 3, seed),
    "pendulum": pendulum,
    "payload": payload,
    "lqr-8, unrelated": lambda seed: lqr(4, 2, seed, of_nothing),
    "sphere-10 and noise, unrelated": unrelated(10, noisy),
    "sphere-10, unrelated": unrelated(10, smooth),
    "Rosenbrock-6, unrelated": unrelated(6, curved),
    "Rastrigin-10, unrelated": unrelated(10, rugged),
    "rare success-4, unrelated": unrelated(4, success),
}


def searched(task, seed, context):
    """J and m after each number of episodes `[E, 2]`, and the share explained late."""
    rng, fresh = np.random.default_rng([1, seed]), np.random.default_rng([2, seed])
    starts, noise = task.begin(fresh, FRESH), fresh.standard_normal((FRESH, task.dim))
    settings = {"dim": task.dim, "std": task.std, "seed": seed, "context": context}
    study, found, spent = Study.create(None, resolved(settings), {}), [], 0
    for episodes in EPISODES:
        while spent < episodes:
            trials = study.ask(study.batch)
            begun = task.begin(rng, len(trials))
            returns = task.earns(np.stack([x.theta for x in trials]), begun, rng)
            contexts = task.seen(begun, rng)
            told = zip(returns, contexts, strict=True)
            results = [study.result(float(x), context=c.tolist()) for x, c in told]
            study.tell_all([(x.id, r) for x, r in zip(trials, results, strict=True)])
            spent += len(trials)
        rho = study.opened.rho(study.store.newest().numbers)
        policies = np.asarray(rho.theta(noise)), np.tile(np.asarray(rho.mean), (FRESH, 1))
        world = [np.random.default_rng([3, seed]) for _ in policies]
        earned = [task.earns(x, starts, one).mean() for x, one in zip(policies, world, strict=True)]
        found.append(earned)
    late = [x.info["notes"].get("context", 0.0) for x in study.store.moves()[-10:]]
    study.close()
    return np.array(found), float(np.mean(late))


def row(name, runs, first=0):
    """One task: with less without, paired."""
    pairs = [
        [searched(TASKS[name](seed), seed, context) for context in (False, True)]
        for seed in range(first, first + runs)
    ]
    values = np.array([[found for found, _ in pair] for pair in pairs])
    differ = values[:, 1] - values[:, 0]
    error = 2 * differ.std(axis=0, ddof=1) / np.sqrt(runs)
    print(f"{name} ({runs} runs, {np.mean([pair[1][1] for pair in pairs]):.0%} explained late)")
    for i, which in enumerate("Jm"):
        cells = [
            f"{values[:, 0, e, i].mean():.4g} {differ[:, e, i].mean():+.2g} +- {error[e, i]:.1g}"
            for e in range(len(EPISODES))
        ]
        print(f"  {which}  " + "   ".join(cells), flush=True)


def cost(dim, numbers, moves=15):
    """Median milliseconds of processor time of a move once its window is full."""
    rng, times = np.random.default_rng(0), []
    study = Study.create(None, resolved({"dim": dim, "std": 1.0}), {})
    for _ in range((100 + 2 * dim) // study.batch + moves):
        trials = study.ask(study.batch)
        known = [rng.standard_normal(numbers) for _ in trials]
        results = [
            study.result(
                -float(np.sum(x.theta**2)) + (float(c.sum()) if numbers else rng.normal()),
                context=c.tolist() if numbers else None,
            )
            for x, c in zip(trials, known, strict=True)
        ]
        start = time.process_time()
        study.tell_all([(x.id, r) for x, r in zip(trials, results, strict=True)])
        times.append(1e3 * (time.process_time() - start))
    study.close()
    return float(np.median(times[-moves:]))


def main():
    """Prints what each task's mean return is without, and how much is gained with contexts."""
    given = sys.argv[1:]
    if given == ["cost"]:
        for dim in (4, 10, 50):
            found = ", ".join(f"{cost(dim, n):.1f} ms of {n} numbers" for n in (0, 3, 30))
            print(f"a move of {dim} parameters, contexts: {found}")
        return
    runs = int(given.pop(0)) if given and given[0].isdigit() else RUNS
    print(f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores")
    print(f"after {', '.join(map(str, EPISODES))} episodes: without, and what contexts add\n")
    for name in given or TASKS:
        row(name, runs)


if __name__ == "__main__":
    main()
