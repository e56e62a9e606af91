"""Where trials can fail: what the default method makes of it, beside its other ways and its peers.

Every task has a return, a chance of failing and a start. The truth is known: the mean policy (of
Optuna: its best trial) is scored by its noise-free return and its chance of failing, and `lost` is
how much less it earns than the best there is where a failure earns `CRASH`.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.parts import in_parts
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.study.voice.failing import failing_at

STUDIES, TRIALS = 24, 150
CRASH = -20.0  # what a failure earns, where one number is made of return and failing
LATE = 50  # trials at the end, whose failures are counted by themselves


class Task(NamedTuple):
    """A return and a chance of failing over theta `[..., D]`, and where the search starts."""

    earns: object
    fails: object
    mean: tuple
    std: float
    noise: float
    top: tuple  # near which theta is best, all told


def sphere(centre, level=0.0):
    return lambda theta: level - np.sum((theta - np.array(centre)) ** 2, axis=-1)


def logistic(x):
    return 1 / (1 + np.exp(-np.clip(x, -50, 50)))


def beyond(weights, edge, sharp=None):
    """Fails behind a plane; `sharp` is how fast the chance rises there, None at once."""
    weights = np.array(weights)

    def chance(theta):
        out = theta @ weights - edge
        return (out > 0) * 1.0 if sharp is None else logistic(sharp * out)

    return chance


def disc(centre, radius):
    return lambda theta: (np.sum((theta - np.array(centre)) ** 2, axis=-1) < radius**2) * 1.0


def outside(centre, radius, sharp):
    def chance(theta):
        away = np.sqrt(np.sum((theta - np.array(centre)) ** 2, axis=-1))
        return logistic(sharp * (away - radius))

    return chance


def walls(edge, sides):
    """Fails where any of the first `sides` coordinates is above an edge."""
    return lambda theta: np.any(theta[..., :sides] > edge, axis=-1) * 1.0


def always(chance):
    return lambda theta: np.full(np.shape(theta)[:-1], chance)


TASKS = {
    "cliff, 3": Task(
        sphere((3, 0, 0)), beyond((1, 0, 0), 1.0), (-2, 1, -1), 1.0, 0.5, (0.95, 0, 0)
    ),
    "disc on the way, 2": Task(
        sphere((2, 0.5)), disc((0.6, 0.2), 0.8), (-1.5, 0), 0.7, 0.3, (2, 0.5)
    ),
    "smooth chance, 6": Task(
        sphere((2, 1, 0, 0, 0, 0), 5.0),
        beyond((1, 0.5, 0, 0, 0, 0), 1.2, 3.0),
        (0, 0, 1, -1, 1, -1),
        0.7,
        0.5,
        (0.5, 0.2, 0, 0, 0, 0),
    ),
    "at random, 5": Task(
        sphere((1, -1, 1, 0, 0)), always(0.2), (0,) * 5, 1.0, 0.5, (1, -1, 1, 0, 0)
    ),
    "far start, 4": Task(
        sphere((0, 0, 0, 0)),
        outside((0, 0, 0, 0), 2.4, 6.0),
        (2.4, 1.2, 1.2, 0),
        0.8,
        0.5,
        (0, 0, 0, 0),
    ),
    "two walls, 8": Task(
        sphere((1.5, 1.5, 0, 0, 0, 0, 0.5, -0.5), 100.0),
        walls(0.7, 2),
        (-0.7, -0.7, 1, 1, -1, -1, 0, 0),
        0.7,
        0.5,
        (0.65, 0.65, 0, 0, 0, 0, 0.5, -0.5),
    ),
}


class Rollouts:
    """Rolls out thetas of a task: a return, or None where it failed."""

    def __init__(self, task, seed):
        self.task, self.failed = task, []
        self._rng = np.random.default_rng(seed + 70_000)

    def __call__(self, theta):
        noise, luck = self._rng.normal(), self._rng.uniform()
        self.failed.append(bool(luck < self.task.fails(theta)))
        return None if self.failed[-1] else float(self.task.earns(theta) + self.task.noise * noise)


def by_study(failure):
    """The default method with a setting of `failure`; None: its own."""

    def search(task, rollouts, seed, trials):
        given = {"dim": len(task.mean), "mean": task.mean, "std": task.std, "seed": seed}
        if failure is not None:
            given["failure"] = failure
        study = Study.create(None, resolved(given))
        for _ in range(trials):
            trial = study.ask()[0]
            value = rollouts(trial.theta)
            study.tell(trial.id, value, failed=None if value is not None else "crashed")
        return study.mean, study.store.last_move().id, study

    return search


def by_tpe(task, rollouts, seed, trials):
    """Optuna's TPE, whose failed trials are infeasible by its constraints."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=_broken)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    start, width = np.array(task.mean, float), 5 * task.std
    worst, best = 0.0, (-np.inf, start)

    def objective(trial):
        nonlocal worst, best
        theta = np.array(
            [trial.suggest_float(f"x{i}", x - width, x + width) for i, x in enumerate(start)]
        )
        value = rollouts(theta)
        trial.set_user_attr("failed", value is None)
        if value is None:
            return worst
        worst, best = min(worst, value), max(best, (value, theta), key=lambda found: found[0])
        return value

    study.enqueue_trial({f"x{i}": x for i, x in enumerate(start)})
    study.optimize(objective, n_trials=trials)
    return best[1], trials, None


def _broken(trial):
    return (1.0 if trial.user_attrs["failed"] else -1.0,)


def by_cma(task, rollouts, seed, trials):
    """CMA-ES, whose failures are as good as the worst return so far."""
    from cmaes import CMA

    found = CMA(mean=np.array(task.mean, float), sigma=task.std, seed=seed)
    worst, moves = np.inf, 0
    for _ in range(trials // found.population_size):
        thetas = [found.ask() for _ in range(found.population_size)]
        values = [rollouts(theta) for theta in thetas]
        worst = min([worst, *(value for value in values if value is not None)])
        known = worst if np.isfinite(worst) else 0.0
        costs = [-known if value is None else -value for value in values]
        found.tell(list(zip(thetas, costs, strict=True)))
        moves += 1
    return found.mean, moves, None


ENTRANTS = {
    "default": by_study(None),
    "failure=censored": by_study("censored"),
    "failure=worst": by_study("worst"),
    "Optuna, constraints": by_tpe,
    "CMA-ES": by_cma,
}


def attainable(task):
    """The most that any theta earns, where a failure earns `CRASH`."""
    rng, best = np.random.default_rng(0), np.array(task.top, float)
    for spread in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
        near = np.vstack([best, best + spread * rng.normal(size=(4000, len(best)))])
        best = near[np.argmax(score(task, near))]
    return float(score(task, best))


def score(task, theta):
    chance = task.fails(theta)
    return (1 - chance) * task.earns(theta) + chance * (task.earns(np.array(task.top)) + CRASH)


def one(task, search, seed, trials):
    """Shares of failed trials, in all and late; return, failing and loss of the mean; moves."""
    rollouts = Rollouts(task, seed)
    theta, moves, _ = search(task, rollouts, seed, trials)
    failed = np.array(rollouts.failed)
    lost = attainable(task) - score(task, theta)
    truth = (float(task.earns(theta)), float(task.fails(theta)))
    return [np.mean(failed), np.mean(failed[-LATE:]), *truth, lost, moves]


def held(studies):
    """Prints how often the interval of `failing_at` holds the truth, at the mean and at a draw."""
    print(f"{studies} seeds: the 95 % interval of the chance of failing, after 40, 80, 120 trials")
    print(f"{'':21}{'at the mean':>15}{'width':>8}{'at a draw':>15}{'width':>8}")
    for name, task in TASKS.items():
        found = [_looked_at(task, seed, trials) for seed in range(studies) for trials in LOOKS]
        hit, error, width = (f(found, axis=0) for f in (np.mean, _error, np.median))
        row = (f"{100 * hit[i]:8.0f} +-{100 * error[i]:3.0f}{width[i + 1]:9.2f}" for i in (0, 2))
        print(f"{name:21}" + "".join(row), flush=True)


LOOKS = (40, 80, 120)


def _looked_at(task, seed, trials):
    """Whether the interval holds the truth, and its width: at the mean, and at a draw."""
    study = by_study(None)(task, Rollouts(task, seed), seed, trials)[2]
    found = []
    for theta in (study.mean, study.ask()[0].theta):
        said = failing_at(study.opened, theta)
        found += [said.low <= task.fails(theta) <= said.high, said.high - said.low]
    return found


def _error(found, axis):
    return np.std(found, axis=axis, ddof=1) / len(found) ** 0.5


def main(studies=STUDIES, names=(), trials=TRIALS):
    """Prints one table a task: means over seeds, and their standard errors."""
    entrants = {name: ENTRANTS[name] for name in names or ENTRANTS}
    print(f"{studies} seeds, {trials} trials each; +- is a standard error")
    head = ("failed %", "late %", "return", "fails %", "lost", "moves")
    for name, task in TASKS.items():
        print(f"{name:21}" + "".join(f"{word:>15}" for word in head), flush=True)
        for entrant, search in entrants.items():
            found = np.array([one(task, search, seed, trials) for seed in range(studies)])
            found *= [100, 100, 1, 100, 1, 1]
            mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / studies**0.5
            row = (f"{m:8.2f} +-{e:5.2f}" for m, e in zip(mean, error, strict=True))
            print(f"  {entrant:19}" + "".join(row), flush=True)


if __name__ == "__main__":
    in_parts(main, held, STUDIES)
