"""Two causes that the paper supposes on the mountain car, measured on paths of real runs.

Each path is that of a run. At some of its points the estimate that the method would make there is
made again and again, from fresh samples of all the proposals before.
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.archive import Drawn, from_samples
from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import discounted_rewards
from recoup.engine.composition import composed
from recoup.engine.estimate import estimate
from recoup.engine.methods import METHODS
from recoup.reproduce.claims import Said
from recoup.reproduce.figures.gradients import joint
from recoup.reproduce.jobs import Arrays, FigureJob, Tick
from recoup.runs.lockstep import learn, search_of
from recoup.runs.plan import task_settings
from recoup.tasks.registry import make_task, task_row
from recoup.tasks.task import Task

TASK, BATCH = "mountain-car", 10
EARLY, LATE = 10, 30  # iterations at which estimates are made again
REFERENCE = 4_000  # on-policy samples of the direction that a bias is counted from
WEIGHTED, BASED, ENAC = "iw-pgpe", "iw-pgpe-ob", "tiw-enac"


def cause_jobs(trials: int, starts: int) -> list[FigureJob]:
    """The variance of iw-pgpe and of iw-pgpe-ob, and the bias of tiw-enac, on their paths."""
    estimates = max(trials // 100, 20)
    settings = {"estimates": estimates, "starts": starts, "early": EARLY, "late": LATE}
    seconds = 8 + starts * estimates * BATCH * (EARLY + LATE) * 40 / 1e6
    return [
        FigureJob(
            f"{TASK}/cause-variance", settings, seconds, partial(_variances, estimates, starts)
        ),
        FigureJob(f"{TASK}/cause-bias", settings, seconds, partial(_biases, estimates, starts)),
    ]


@lru_cache
def _car() -> Task:
    return make_task(TASK)


def _paths(method: str, starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations `[start, L, D]` of what drew each batch of a run."""
    row = task_row(TASK)
    search = search_of(_car(), method, BATCH, LATE, task_settings(row, method))
    runs = learn(_car(), search, range(starts), LATE, checkpoints=range(LATE + 1), tests=0)
    return runs.mean[:, :LATE], runs.std[:, :LATE]


# -- the variance of iw-pgpe --


def _variances(estimates: int, starts: int, tick: Tick) -> Arrays:
    """Variances of the gradient `[start, (EARLY, LATE)]` by method, summed over rho."""
    means, stds = _paths(WEIGHTED, starts)
    found: dict[str, list[list[float]]] = {WEIGHTED: [], BASED: []}
    with jax.enable_x64(True):
        for start in range(starts):
            rows: dict[str, list[float]] = {method: [] for method in found}
            for length in (EARLY, LATE):
                keys = jax.random.split(jax.random.key(1_000 * start + length), estimates)
                each = _gradients(keys, means[start, :length], stds[start, :length])
                for method, gradients in zip(found, each, strict=True):
                    rows[method].append(float(np.asarray(gradients).var(0, ddof=1).sum()))
            for method, values in rows.items():
                found[method].append(values)
            tick(1 / starts)
    return {method: np.array(rows) for method, rows in found.items()}


@jax.jit
def _gradients(keys: Array, means: Array, stds: Array) -> tuple[Array, Array]:
    """Estimates `[M, 2 D]` at the last proposal from samples of all: without and with baseline."""
    drawn_by = jnp.repeat(jnp.arange(len(means)), BATCH)

    def one(key: Array) -> tuple[Array, Array]:
        key_draw, key_roll = jax.random.split(key)
        noise = jax.random.normal(key_draw, (len(drawn_by), means.shape[1]), means.dtype)
        theta = means[drawn_by] + stds[drawn_by] * noise
        returns = _car().rollouts(jax.random.split(key_roll, len(theta)), theta)
        found = [
            estimate(
                theta,
                returns,
                proposals=(means, stds),
                proposal=drawn_by,
                target=(means[-1], stds[-1]),
                weighting="own",
                baseline=METHODS[method].baseline,
            )
            for method in (WEIGHTED, BASED)
        ]
        return joint(found[0]), joint(found[1])

    return jax.lax.map(one, keys)


# -- the bias of tiw-enac --


def _biases(estimates: int, starts: int, tick: Tick) -> Arrays:
    """What truncation takes off the mean weight, and the bias `[start, (EARLY, LATE)]`."""
    means, stds = _paths(ENAC, starts)
    lost, bias = np.zeros((starts, 2)), np.zeros((starts, 2))
    with jax.enable_x64(True):
        for start in range(starts):
            for i, length in enumerate((EARLY, LATE)):
                key, key_truth = jax.random.split(jax.random.key(1_000 * start + length))
                mu, sigma = means[start, :length], stds[start, :length]
                truth, _ = _direction(key_truth, mu[-1:], sigma[-1:], REFERENCE)
                again = [_direction(k, mu, sigma, BATCH) for k in jax.random.split(key, estimates)]
                found = np.stack([np.asarray(direction) for direction, _ in again])
                lost[start, i] = 1 - np.mean([float(weight) for _, weight in again])
                bias[start, i] = relative_bias(found, np.asarray(truth))
            tick(1 / starts)
    return {"lost": lost, "bias": bias}


def relative_bias(estimates: np.ndarray, truth: np.ndarray) -> float:
    """Squared bias of estimates `[M, D]`, less what chance adds to it, over the squared truth."""
    chance = estimates.var(0, ddof=1).sum() / len(estimates)
    squared = ((estimates.mean(0) - truth) ** 2).sum() - chance
    return float(squared / (truth @ truth)) if truth.any() else float("nan")


@partial(jax.jit, static_argnums=3)
def _direction(key: Array, mu: Array, sigma: Array, batch: int) -> tuple[Array, Array]:
    """tiw-enac's direction at the last policy, from `batch` episodes of each, and mean weight."""
    car = _car()
    drawn_by = jnp.repeat(jnp.arange(len(mu)), batch)
    keys = jax.random.split(key, len(drawn_by))
    episodes = car.episodes(keys, Policy(mu[drawn_by], sigma[drawn_by]))
    returns = jax.vmap(lambda h: jnp.sum(discounted_rewards(car.discount, h)))(episodes)
    method = composed(METHODS[ENAC], car.discount)
    proposals, target = Policy(mu, sigma), Policy(mu[-1], sigma[-1])
    drawn = Drawn(episodes, returns, jnp.isfinite(returns), proposals, drawn_by, target)
    found = method.estimate(target, from_samples(method.family, drawn, keep="own"))
    gradient = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(found.gradient)])
    return gradient, found.weights[0].mean()


# -- what is claimed --


def collect_causes(results: dict[str, Arrays]) -> Arrays:
    """Both measurements under one prefix."""
    return {
        f"cause {name}": values
        for job in ("cause-variance", "cause-bias")
        for name, values in results[f"{TASK}/{job}"].items()
    }


def _growth(early_and_late: np.ndarray) -> np.ndarray:
    return early_and_late[:, 1] - early_and_late[:, 0]


def _moved(data: Arrays) -> np.ndarray:
    """The starts `[start]` that have a direction to count a bias from."""
    return np.asarray(np.isfinite(data["cause bias"]).all(1))


SAID = (
    Said(
        f"{TASK}.iw-varies",
        "[IW-PGPE] is outperformed by the proposed IW-PGPE_OB, perhaps because the estimation "
        "variance in IW-PGPE is large.",
        lambda log_ratio: {
            f"log variance of {WEIGHTED} over {BASED} at iteration {iteration}": log_ratio[:, i]
            for i, iteration in enumerate((EARLY, LATE))
        },
        f"Both from the same samples, on the paths of runs of {WEIGHTED}; the force as printed.",
        lambda data: np.log(data[f"cause {WEIGHTED}"]) - np.log(data[f"cause {BASED}"]),
    ),
    Said(
        f"{TASK}.enac-bias-grows",
        "... truncating the importance weights can lead to a larger bias over iterations in "
        "TIW-eNAC.",
        lambda data: {
            f"what truncation takes off the mean weight, iteration {LATE} minus {EARLY}": (
                _growth(data["cause lost"])
            ),
            f"squared bias over squared gradient, iteration {LATE} minus {EARLY}": (
                _growth(data["cause bias"][_moved(data)])
            ),
        },
        lambda data: (
            "Untruncated weights have mean 1. The bias is counted from the direction that "
            f"{REFERENCE:,} on-policy episodes give; {_moved(data).sum()} of {len(_moved(data))} "
            "starts have one, in the others all returns are equal. The force as printed."
        ),
    ),
)
