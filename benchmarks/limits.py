"""Where a number beside the return has a limit: how far it is kept, and what that costs.

Every task has a return, numbers beside it with limits on them, noise on both, and a start. The
truth is known: what is deployed (the mean policy; of Optuna: its best trial within the limits) is
scored by the chance that a rollout of it is within each limit and by its noise-free return. `lost`
is how much less it returns than the best theta that is within each limit with `WITHIN`; it is said
of those that are within alone, for what is not within may return more than anything that is.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, poisson

from benchmarks.parts import in_parts
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.study.voice.keeping import keeping_at

STUDIES, TRIALS, WITHIN = 16, 150, 0.95
LATE = 50  # trials at the end, whose broken limits are counted by themselves
PENALTY = 10.0  # that users take off a return where a limit is broken
JUST = 0.9  # chance of being within, above which what is deployed is nearly so


class Number(NamedTuple):
    """A number told beside a return."""

    expected: object  # of theta [..., D]
    noise: float  # standard deviation; None: a count with that mean
    bound: float  # it is to lie below, or at, this

    def chance(self, theta):
        """That a rollout is within."""
        if self.noise is None:
            return poisson.cdf(self.bound, self.expected(theta))
        return norm.cdf((self.bound - self.expected(theta)) / max(self.noise, 1e-9))

    def drawn(self, theta, rng):
        if self.noise is None:
            return float(rng.poisson(self.expected(theta)))
        return float(self.expected(theta) + self.noise * rng.normal())


class Task(NamedTuple):
    """A return and numbers beside it over theta `[..., D]`, and where the search starts."""

    earns: object
    numbers: tuple
    mean: tuple
    std: float
    noise: float
    top: tuple  # near which theta is best within the limits


def sphere(centre, level=0.0):
    return lambda theta: level - np.sum((theta - np.array(centre)) ** 2, axis=-1)


def plane(weights, level=0.0):
    return lambda theta: level + theta @ np.array(weights)


def growing(weights, height):
    """A force that grows by orders of magnitude."""
    return lambda theta: height * np.exp(np.clip(theta @ np.array(weights), -50, 50))


def radius(centre):
    return lambda theta: np.sqrt(np.sum((theta - np.array(centre)) ** 2, axis=-1) + 1e-12)


def contact(weights, edge, before, behind):
    """A force that jumps where something is touched."""
    return lambda theta: before + behind / (1 + np.exp(-8 * (theta @ np.array(weights) - edge)))


def valley(theta):
    """A curved valley, whose floor rises towards (1, 1)."""
    x, y = theta[..., 0], theta[..., 1]
    return -2 * (y - x**2) ** 2 - (1 - x) ** 2 - np.sum(theta[..., 2:] ** 2, axis=-1)


CHOSEN_WITH = {  # tasks by which constants were chosen
    "border, 3": Task(
        sphere((3, 0, 0)),
        (Number(plane((10, 0, 0), 40), 1.0, 50),),
        (-2, 1, -1),
        1.0,
        0.5,
        (0.8, 0, 0),
    ),
    "deep inside, 2": Task(
        plane((4, 1), 0),
        (Number(growing((1.5, 0.5), 10), 1.0, 50), Number(plane((0, 1), 0), 0.05, 1)),
        (-1, -1),
        0.7,
        0.5,
        (0.7, 0.9),
    ),
    "two limits, 4": Task(
        sphere((2, 2, 0, 0), 50),
        (
            Number(plane((5, 0, 1, 0), 20), 1.0, 25),
            Number(lambda x: 60 + 8 * x[..., 1] + x[..., 3] ** 2, 0.5, 68),
        ),
        (-1, -1, 1, -1),
        0.7,
        0.5,
        (0.6, 0.8, 0, 0),
    ),
    "many parameters, 12": Task(
        sphere((1.5,) * 4 + (0.5,) * 8),
        (Number(plane((1,) * 4 + (0,) * 8), 0.2, 3),),
        (0,) * 12,
        0.5,
        0.5,
        (0.65,) * 4 + (0.5,) * 8,
    ),
    "noisy number, 3": Task(
        sphere((2, 1, 0)),
        (Number(plane((5, 0, 0), 40), 5.0, 50),),
        (-1, 0, 0.5),
        0.7,
        0.5,
        (0.3, 1, 0),
    ),
    "starts beyond, 4": Task(
        sphere((1, 1, 0, 0)),
        (Number(radius((-2, 0, 0, 0)), 0.1, 2),),
        (1.5, 0.5, 0.5, -0.5),
        0.7,
        0.5,
        (-0.3, 0.4, 0, 0),
    ),
}
HELD_OUT = {  # tasks that were first tried when all was chosen
    "valley and ring, 3": Task(
        valley,
        (Number(radius((0, 0, 0)), 0.05, 1),),
        (-0.8, -0.5, 0.5),
        0.4,
        0.2,
        (0.7, 0.5, 0),
    ),
    "counts, 3": Task(
        sphere((2, 0, 0), -20),
        (Number(growing((1.2, 0, 0.3), 0.6), None, 2),),
        (-1.5, 0.5, 0.5),
        0.7,
        0.5,
        (0.2, 0, -0.1),
    ),
    "contact, 6": Task(
        sphere((1.5, 0.5, 0, 0, 0, 0), 5),
        (Number(contact((1, 0.3, 0, 0, 0, 0), 0.8, 5, 200), 3.0, 50),),
        (-0.5, 0, 0.7, -0.7, 0.7, -0.7),
        0.6,
        0.5,
        (0.45, 0.3, 0, 0, 0, 0),
    ),
    "band, 5": Task(
        sphere((1, -1, 0.5, 0, 0)),
        (
            Number(plane((2, 1, 0, 0, 0)), 0.3, 1),
            Number(plane((-1, 1, 0, 0, 1)), 0.3, 0.5),
        ),
        (-1, -1, 0, 0.5, -0.5),
        0.6,
        0.5,
        (0.8, -1.3, 0.5, 0, 0),
    ),
}
TASKS = {**CHOSEN_WITH, **HELD_OUT}


class Rollouts:
    """Rolls out thetas of a task: a return, and the numbers beside it."""

    def __init__(self, task, seed):
        self.task, self.broken = task, []
        self._rng = np.random.default_rng(seed + 90_000)

    def __call__(self, theta):
        value = float(self.task.earns(theta) + self.task.noise * self._rng.normal())
        numbers = [number.drawn(theta, self._rng) for number in self.task.numbers]
        past = [x - number.bound for x, number in zip(numbers, self.task.numbers, strict=True)]
        self.broken.append(max(past) > 0)
        return value, numbers, past


def by_study(tell, **settings):
    """The default method, told in some way."""

    def search(task, rollouts, seed, trials):
        given = {"dim": len(task.mean), "mean": task.mean, "std": task.std, "seed": seed}
        if tell is within_limits:
            names = enumerate(task.numbers)
            given |= {"limits": [f"x{i}<={x.bound}" for i, x in names], "within": WITHIN}
        study = Study.create(None, resolved({**given, **settings}))
        for _ in range(trials):
            trial = study.ask()[0]
            tell(study, trial.id, *rollouts(trial.theta))
        return study.mean, study

    return search


def within_limits(study, trial, value, numbers, past):
    study.tell(trial, value, also={f"x{i}": x for i, x in enumerate(numbers)})


def penalised(study, trial, value, numbers, past):
    study.tell(trial, value - PENALTY * (max(past) > 0))


def as_failed(study, trial, value, numbers, past):
    if max(past) > 0:
        study.tell(trial, failed="broke a limit")
    else:
        study.tell(trial, value)


def by_tpe(task, rollouts, seed, trials):
    """Optuna's TPE with its constraints, told by how much each limit is broken."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=lambda t: t.user_attrs["past"])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    start, width = np.array(task.mean, float), 5 * task.std
    best = (False, -np.inf, start)

    def objective(trial):
        nonlocal best
        theta = np.array(
            [trial.suggest_float(f"x{i}", x - width, x + width) for i, x in enumerate(start)]
        )
        value, _, past = rollouts(theta)
        trial.set_user_attr("past", past)
        best = max(best, (max(past) <= 0, value, theta), key=lambda found: found[:2])
        return value

    study.enqueue_trial({f"x{i}": x for i, x in enumerate(start)})
    study.optimize(objective, n_trials=trials)
    return best[2], None


def by_cma(task, rollouts, seed, trials):
    """CMA-ES, with a penalty where a limit is broken."""
    from cmaes import CMA

    found = CMA(mean=np.array(task.mean, float), sigma=task.std, seed=seed)
    for _ in range(trials // found.population_size):
        told = []
        for _ in range(found.population_size):
            theta = found.ask()
            value, _, past = rollouts(theta)
            told.append((theta, PENALTY * (max(past) > 0) - value))
        found.tell(told)
    return found.mean, None


ENTRANTS = {
    "limits": by_study(within_limits),
    "penalty in return": by_study(penalised),
    "told as failed": by_study(as_failed),
    "failure=worst": by_study(as_failed, failure="worst"),
    "Optuna, constraints": by_tpe,
    "CMA-ES, penalty": by_cma,
}


def chance(task, theta):
    """That a rollout is within the limit that it breaks most often."""
    return np.min([number.chance(theta) for number in task.numbers], axis=0)


@cache
def attainable(name):
    """The most that any theta returns which is within each limit with `WITHIN`."""
    task = TASKS[name]
    rng, best, most = np.random.default_rng(0), np.array(task.top, float), -np.inf
    for spread in (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.05, 0.02, 0.01):
        near = np.vstack([best, best + spread * rng.normal(size=(20_000, len(best)))])
        earned = np.where(chance(task, near) >= WITHIN, task.earns(near), -np.inf)
        best, most = near[np.argmax(earned)], np.max(earned)
    return float(most)


def one(name, search, seed, trials):
    """Shares of broken trials, in all and late; of what is deployed: chance, return, loss."""
    task = TASKS[name]
    rollouts = Rollouts(task, seed)
    theta, _ = search(task, rollouts, seed, trials)
    broken, true = np.array(rollouts.broken), float(chance(task, theta))
    earned = float(task.earns(theta))
    lost = attainable(name) - earned if true >= JUST else np.nan
    return [np.mean(broken), np.mean(broken[-LATE:]), true, true >= JUST, earned, lost]


def main(studies=STUDIES, names=(), tasks=(), trials=TRIALS):
    """Prints one table a task: means over seeds, and their standard errors."""
    print(f"{studies} seeds, {trials} trials each; +- is a standard error")
    head = ("broke %", "late %", "chance %", "within %", "return", "lost")
    for name in tasks or TASKS:
        best = f"{name} ({attainable(name):.2f})"
        print(f"{best:28}" + "".join(f"{word:>15}" for word in head), flush=True)
        for entrant in names or ENTRANTS:
            rows = [one(name, ENTRANTS[entrant], seed, trials) for seed in range(studies)]
            found = np.array(rows) * [100, 100, 100, 100, 1, 1]
            known = np.maximum(np.sum(np.isfinite(found), axis=0), 1)
            with np.errstate(all="ignore"):
                mean, error = np.nanmean(found, axis=0), np.nanstd(found, axis=0) / known**0.5
            row = (f"{m:8.2f} +-{e:5.2f}" for m, e in zip(mean, error, strict=True))
            print(f"  {entrant:26}" + "".join(row), flush=True)


LOOKS = (40, 80, 120)


def held(studies, tasks=()):
    """Prints how often what is said of limits holds the truth, at the mean and at a draw."""
    print(
        f"{studies} seeds: what is said of limits after {', '.join(map(str, LOOKS))} trials, in %"
    )
    heads = ("chance held", "width", "number held", "said within", "truly")
    print(f"{'':28}" + "".join(f"{head:>15}" for head in heads))
    for name in tasks or TASKS:
        rows = [x for seed in range(studies) for x in _looked_at(TASKS[name], seed)]
        for where in ("mean", "draw"):
            found = 100 * np.array([row for at, *row in rows if at == where], float)
            mean, error = np.mean(found, axis=0), np.std(found, axis=0) / len(found) ** 0.5
            row = (f"{m:8.1f} +-{e:5.1f}" for m, e in zip(mean, error, strict=True))
            print(f"  {name + ', ' + where:26}" + "".join(row), flush=True)


def _looked_at(task, seed):
    """At the mean and at a draw, of each limit: is the truth held, how wide is the interval, the
    share of rollouts whose number is as said, the chance of being within as said, and truly.
    """
    rollouts, found = Rollouts(task, seed), []
    _, study = by_study(within_limits)(task, rollouts, seed, 0)
    for trials in np.diff([0, *LOOKS]):
        for _ in range(trials):
            trial = study.ask()[0]
            within_limits(study, trial.id, *rollouts(trial.theta))
        draw = study.std * np.random.default_rng(seed).normal(size=len(study.mean))
        for at, theta in (("mean", study.mean), ("draw", study.mean + draw)):
            said = {row.name: row for row in keeping_at(study.opened, theta)}
            for i, number in enumerate(task.numbers):
                row, true = said[f"x{i}"], float(number.chance(theta))
                inside = _between(number, theta, row.value_low, row.value_high)
                held = row.low - 1e-3 <= true <= row.high + 1e-3
                found.append([at, held, row.high - row.low, inside, row.chance, true])
    return found


def _between(number, theta, low, high):
    """The share of rollouts whose number lies in between."""
    if number.noise is None:
        law = poisson(number.expected(theta))
        return float(law.cdf(high) - law.cdf(np.ceil(low) - 1))
    law = norm(number.expected(theta), max(number.noise, 1e-9))
    return float(law.cdf(high) - law.cdf(low))


if __name__ == "__main__":
    in_parts(main, held, STUDIES)
