"""What a long horizon costs on the toy: the variance of PGPE's gradient, and of REINFORCE's."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.axes import Axes

from recoup.core import theory
from recoup.core.families.action_policy import Policy
from recoup.core.families.family import draw
from recoup.core.families.gaussian import score
from recoup.core.families.trajectory import discounted_rewards
from recoup.core.families.trajectory import score as trajectory_score
from recoup.reproduce.claims import Said
from recoup.reproduce.drawing import LOOKS
from recoup.reproduce.figures.gradients import rho_of
from recoup.reproduce.jobs import Arrays, FigureJob, Tick
from recoup.tasks.registry import make_task

DISCOUNT = 0.9
GROUPS = 20  # of trials, for standard errors
HORIZONS = (5, 10, 20, 40, 80)
LONGER = np.array(HORIZONS) >= 10  # those that the claims are held against
FACTORS = [theory.return_scale(DISCOUNT, horizon) ** 2 for horizon in HORIZONS]
POLICY = (-0.5, 0.5)  # eta and tau, or mu and sigma


def horizon_job(trials: int) -> FigureJob:
    """Gradients of single samples at every horizon."""
    return FigureJob("toy/horizons", {"trials": trials}, 15, partial(_horizons, trials))


def _horizons(trials: int, tick: Tick) -> Arrays:
    """Variance of one sample's gradient `[T, group]` of the mean: PGPE's and REINFORCE's."""
    rho, count = rho_of(*POLICY), trials * 10
    pgpe: list[np.ndarray] = []
    reinforce: list[np.ndarray] = []
    with jax.enable_x64(True):
        for horizon in HORIZONS:
            task = make_task("toy", horizon)

            def run(key: Array, task: Any = task) -> tuple[Array, Array]:
                key_draw, key_roll = jax.random.split(key)
                keys = jax.random.split(key_roll, count)
                theta = draw(key_draw, rho, count)
                s = jax.vmap(lambda one: score(rho, one).mean[0])(theta)
                h = task.episodes(keys, Policy(*(jnp.broadcast_to(x, (count, 1)) for x in rho)))
                returns = jax.vmap(lambda x: jnp.sum(discounted_rewards(DISCOUNT, x)))(h)
                s_h = jax.vmap(lambda x: trajectory_score(Policy(*rho), x).mean[0])(h)
                return task.rollouts(keys, theta) * s, returns * s_h

            found = [np.asarray(x) for x in jax.jit(run)(jax.random.key(horizon))]
            for terms, kept in zip(found, (pgpe, reinforce), strict=True):
                kept.append(terms.reshape(GROUPS, -1).var(1, ddof=1))
            tick(1 / len(HORIZONS))
    return {"pgpe": np.stack(pgpe), "reinforce": np.stack(reinforce)}


def collect_horizons(results: dict[str, Arrays]) -> Arrays:
    """Variances `[T, group]` by method."""
    return {f"horizon {name}": found for name, found in results["toy/horizons"].items()}


def _log_variance(data: Arrays, method: str) -> np.ndarray:
    return np.log(data[f"horizon {method}"])[LONGER]


def _slope(log_variance: np.ndarray) -> np.ndarray:
    """Of log variance `[T, group]` over log T, by least squares `[group]`."""
    log_t = np.log(np.array(HORIZONS)[LONGER])
    log_t -= log_t.mean()
    return log_t @ log_variance / (log_t @ log_t)


def draw_horizons(axes: Axes, data: Arrays) -> None:
    """Variances over the horizon."""
    for name, method in (("reinforce", "iw-reinforce-ob"), ("pgpe", "pgpe")):
        variances, look = data[f"horizon {name}"], LOOKS[method]
        axes.plot(
            HORIZONS,
            variances.mean(1),
            color=look.colour,
            ls=look.line,
            marker=look.marker,
            label=name,
        )
    axes.set(xscale="log", yscale="log", xlabel="horizon T", xticks=HORIZONS)
    axes.set_xticks([], minor=True)
    axes.set_xticklabels([str(horizon) for horizon in HORIZONS])
    axes.set_title("variance of one sample's gradient", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8)


SAID = (
    Said(
        "bounds.horizon",
        "The variance of gradient estimates in PGPE does not increase with respect to "
        "trajectory length T.",
        lambda data: {
            "minus the slope of log variance over log T, T = 10 to 80": (
                -_slope(_log_variance(data, "pgpe"))
            )
        },
        "Read literally: returns themselves grow with T until the discount ends them, and so "
        "does the variance. The next claim takes that out.",
        where="S2.2",
    ),
    Said(
        "bounds.horizon-scaled",
        "... beyond the factor (1 - gamma^T)^2 / (1 - gamma)^2 of the bound.",
        lambda data: {
            "minus that slope, variance over that factor": (
                -_slope(_log_variance(data, "pgpe") - np.log(FACTORS)[LONGER, None])
            )
        },
        where="S2.2, Theorem 1",
    ),
    Said(
        "bounds.horizon-reinforce",
        "Standard policy gradient methods were shown to suffer from high variance due to "
        "randomness introduced by the stochastic policy; PGPE has low variance.",
        lambda log: {
            "log variance of REINFORCE over PGPE at T = 80": log["reinforce"][-1] - log["pgpe"][-1],
            "slope of REINFORCE minus slope of PGPE": _slope(log["reinforce"])
            - _slope(log["pgpe"]),
        },
        f"No baseline, mean {POLICY[0]}; PGPE's standard deviation and REINFORCE's are both "
        f"{POLICY[1]}.",
        lambda data: {method: _log_variance(data, method) for method in ("pgpe", "reinforce")},
        where="S2.2",
    ),
)
