"""Unordered choices: how often the right one is found, and what is deployed, beside other ways.

Every task has gains and a choice, and a return of both that is known: what is deployed is scored by
its noise-free return, `lost` is how much less that is than the best there is. What a study says of
its choices is held to the truth as well, and so are two ways in which its model could see them.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.parts import in_parts
from recoup.core.plain.belief import believed, expected
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.study.voice.best import best_of_each
from recoup.study.voice.landscape import landscape, results_of

STUDIES, TRIALS = 24, 100
LOOKS = (40, 100)  # trials after which a study is asked what it knows


class Task(NamedTuple):
    """A parabola for each choice: where its top is `[K, D]`, how high `[K]`, and how steep."""

    tops: np.ndarray
    heights: np.ndarray
    steep: float
    noise: float

    def earns(self, x, choice):
        """The noise-free return of gains `[D]` with a choice."""
        away = np.sum((np.asarray(x) - self.tops[choice]) ** 2)
        return float(self.heights[choice] - self.steep * away)

    @property
    def words(self):
        return [f"c{i}" for i in range(len(self.heights))]

    @property
    def dim(self):
        return self.tops.shape[1]


def apart(choices, dim, heights, seed, steep=1.0, noise=0.3, far=1.0):
    """Tops at random places at a distance from the start."""
    tops = np.random.default_rng(seed).normal(size=(choices, dim))
    tops *= far / np.linalg.norm(tops, axis=1, keepdims=True)
    return Task(tops, np.array(heights, float), steep, noise)


TASKS = {
    "3 gains, 2 choices": apart(2, 3, (0, 1), 1),
    "4 gains, 5 choices": apart(5, 4, (0, 0.3, 0.6, 0.9, 1.5), 2),
    "4 gains, 3 choices, no effect": Task(np.full((3, 4), 0.5), np.zeros(3), 1.0, 0.3),
    "3 gains, worse at the start": Task(
        np.array([[0.2, 0, 0], [1.2, 0.6, -0.6]]), np.array([0.0, 1.0]), 1.0, 0.3
    ),
}


class Rollouts:
    """Rolls out gains with a choice: a noisy return."""

    def __init__(self, task, seed):
        self.task, self._rng = task, np.random.default_rng(seed + 70_000)

    def __call__(self, x, choice):
        return self.task.earns(x, choice) + self.task.noise * self._rng.normal()


def _told(study, task, rollouts, trials):
    for _ in range(trials):
        trial = study.ask()[0]
        study.tell(trial.id, rollouts(trial.theta[: task.dim], int(trial.theta[-1])))


def new_study(task, seed):
    """A study of the gains and the choice."""
    names = {f"x{i}": None for i in range(task.dim)}
    return Study.create(None, resolved({"params": {**names, "choice": task.words}, "seed": seed}))


def by_study(task, rollouts, seed, trials):
    """One study of gains and choice."""
    study = new_study(task, seed)
    _told(study, task, rollouts, trials)
    theta = np.array(study.opened.in_units(study.mean))
    return theta[:-1], int(theta[-1])


def by_several(task, rollouts, seed, trials):
    """One study for each choice with its part of the trials; that of the highest estimate."""
    found = []
    for choice in range(len(task.words)):
        study = Study.create(None, resolved({"dim": task.dim, "seed": seed + 1000 * choice}))
        for _ in range(trials // len(task.words)):
            trial = study.ask()[0]
            study.tell(trial.id, rollouts(trial.theta, choice))
        worth = study.recommend().of_mean.value
        found.append((worth if np.isfinite(worth) else -np.inf, choice, study.mean))
    _, choice, x = max(found, key=lambda row: row[0])
    return x, choice


def by_tpe(task, rollouts, seed, trials):
    """Optuna's TPE with a categorical parameter; its best trial."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def objective(trial):
        x = [trial.suggest_float(f"x{i}", -3, 3) for i in range(task.dim)]
        return rollouts(x, task.words.index(trial.suggest_categorical("choice", task.words)))

    study.optimize(objective, n_trials=trials)
    best = study.best_trial.params
    return [best[f"x{i}"] for i in range(task.dim)], task.words.index(best["choice"])


def by_cma(task, rollouts, seed, trials):
    """CMA-ES over gains and one number a choice, the largest of which counts; its mean."""
    from cmaes import CMA

    found = CMA(mean=np.zeros(task.dim + len(task.words)), sigma=1.0, seed=seed)
    for _ in range(trials // found.population_size):
        rows = [found.ask() for _ in range(found.population_size)]
        costs = [-rollouts(row[: task.dim], int(np.argmax(row[task.dim :]))) for row in rows]
        found.tell(list(zip(rows, costs, strict=True)))
    return found.mean[: task.dim], int(np.argmax(found.mean[task.dim :]))


ENTRANTS = {
    "recoup, choices": by_study,
    "recoup, one each": by_several,
    "Optuna TPE": by_tpe,
    "CMA-ES, one-hot": by_cma,
}


def one(task, search, seed, trials):
    """Whether the right choice was found, and how much less is earned than could be."""
    x, choice = search(task, Rollouts(task, seed), seed, trials)
    return [100.0 * (task.heights[choice] == np.max(task.heights)),
            np.max(task.heights) - task.earns(x, choice)]  # fmt: skip


def main(studies=STUDIES, names=(), trials=TRIALS):
    """Prints one table a task: means over seeds, and their standard errors."""
    print(f"{studies} seeds, {trials} trials each; +- is a standard error")
    for name, task in TASKS.items():
        print(f"{name:32}{'right %':>15}{'lost':>17}", flush=True)
        for entrant in names or ENTRANTS:
            found = [one(task, ENTRANTS[entrant], seed, trials) for seed in range(studies)]
            mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / studies**0.5
            print(
                f"  {entrant:30}{mean[0]:8.0f} +-{error[0]:4.0f}{mean[1]:10.3f} +-{error[1]:.3f}",
                flush=True,
            )


def held(studies=STUDIES):
    """Prints what is said of choices beside the truth, and how far two models are from it."""
    print(
        f"{studies} seeds: what a study says of its choices after {LOOKS[0]} or {LOOKS[1]} trials"
    )
    print(f"{'':32}{'said %':>8}{'right %':>14}{'by choice':>17}{'by latent':>17}")
    for name, task in TASKS.items():
        rows = np.array([row for seed in range(studies) for row in _looked_at(task, seed)])
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / len(rows) ** 0.5
        print(
            f"{name:32}{mean[0]:8.0f}{mean[1]:8.0f} +-{error[1]:3.0f}"
            + "".join(f"{mean[i]:9.3f} +-{error[i]:.3f}" for i in (2, 3)),
            flush=True,
        )


def _looked_at(task, seed):
    """How surely the likeliest choice is said to be best, whether it is; errors of both models."""
    study, rollouts, told, found = new_study(task, seed), Rollouts(task, seed), 0, []
    for look in LOOKS:
        _told(study, task, rollouts, look - told)
        told = look
        *x, deployed = study.opened.in_units(study.mean)
        truth = np.array([task.earns(x, k) for k in range(len(task.words))])
        with study.store.reading():
            results = results_of(study.opened)
            seen = landscape(study.opened, results)
        shares = list(best_of_each(study.opened, results, seen).choices["choice"].values())
        right = truth[int(np.argmax(shares))] >= np.max(truth) - 1e-9
        errors = _errors(seen, results, truth[int(deployed)])
        found.append([100 * max(shares), 100.0 * right, *errors])
    return found


def _errors(seen, results, truth):
    """How far the expected return of the mean policy is from the truth: by choices, by latents."""
    (by_choice,), _ = expected(seen.belief, seen.here())
    rho = seen.coordinates.centre
    belief = believed(rho.whitened(np, results.theta), results.values)
    (by_latent,), _ = expected(belief, belief.looks(np.zeros((1, len(results.mean)))))
    return [abs(float(x) - truth) for x in (by_choice, by_latent)]


if __name__ == "__main__":
    in_parts(main, held, STUDIES)
