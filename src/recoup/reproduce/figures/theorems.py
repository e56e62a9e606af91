"""The theory, measured on the toy: Theorems 1-3, the Corollary, and what a long horizon costs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.figure import Figure as Picture

from recoup.core import theory
from recoup.core.families.family import draw
from recoup.core.families.gaussian import log_ratio, score
from recoup.core.types import Plain
from recoup.reproduce.drawing import LOOKS, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import bounds, consistency, horizons
from recoup.reproduce.figures.bounds import APART, ASIDE, CASES, SAMPLES, N
from recoup.reproduce.figures.consistency import collect_consistency, consistency_job
from recoup.reproduce.figures.gradients import rho_of, surface_job
from recoup.reproduce.figures.horizons import (
    DISCOUNT,
    GROUPS,
    collect_horizons,
    draw_horizons,
    horizon_job,
)
from recoup.reproduce.jobs import Arrays, FigureJob, Tick
from recoup.reproduce.sizes import Size
from recoup.tasks.registry import make_task

HORIZON = 10
ALPHA, BETA = 1.0, 2.0  # the toy's rewards lie in (1, 2]
FIT = 40  # samples a trial that b* and the curvature come from, and nothing else
TAIL, RARE = 3.0, 1_000.0  # the made-up task against Theorem 3: a rare reward, far out


def bound_jobs(size: Size) -> list[FigureJob]:
    """Single samples of the estimator in every case; estimates, and horizons."""
    trials = max(size.trials, 2_000)
    cases = [
        FigureJob(
            f"toy/bounds/{case}",
            {"trials": trials, "target": rhos[0], "proposal": rhos[1], "fit": FIT},
            8,
            partial(_terms, trials, *rhos),
        )
        for case, rhos in CASES.items()
    ]
    return [surface_job(), *cases, consistency_job(), horizon_job(trials)]


def _terms(trials: int, target: Any, proposal: Any, tick: Tick) -> Arrays:
    """What estimates of every N' are made of, and other samples to find b* with."""
    task, rho, source = make_task("toy"), rho_of(*target), rho_of(*proposal)

    @partial(jax.jit, static_argnums=1)
    def run(key: Array, count: int) -> tuple[Array, ...]:
        key_draw, key_roll = jax.random.split(key)
        theta = draw(key_draw, source, count)
        returns = task.rollouts(jax.random.split(key_roll, count), theta)
        weights = jnp.exp(jax.vmap(lambda one: log_ratio(rho, source, one))(theta))
        scores = jax.vmap(lambda one: score(rho, one))(theta)
        return returns, weights, jnp.concatenate(scores, -1)

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 1 + len(SAMPLES))
        sets = []
        for key, n in zip(keys, (FIT, *SAMPLES), strict=True):
            sets.append(tuple(np.asarray(x) for x in run(key, trials * n)))
            tick(1 / len(keys))
    return _summary(sets[0], dict(zip(SAMPLES, sets[1:], strict=True)))


def _summary(fit: Any, fresh: dict[int, Any]) -> Arrays:
    """Variances `[group, (eta, tau)]` of estimates by N' and baseline, and Theorem 2's terms.

    `fit` is returns, weights and scores of the samples that baselines are found with; `fresh[N']`
    those that N' at a time make an estimate.
    """
    returns, weights, scores = fit
    squares = weights[:, None] ** 2 * scores**2
    optimal = (returns[:, None] * squares).mean(0) / squares.mean(0)
    joint = (returns @ squares.sum(1)) / squares.sum()
    found: Arrays = {
        "largest": weights.max(),
        "smallest": weights.min(),
        "curvature": np.array([*squares.mean(0), squares.sum() / len(returns)]),
        "baselines": np.array([*optimal, joint]),
    }
    choices = {
        "none": np.zeros(2),
        "own": optimal,  # each block's own, as the proof of Theorem 3 needs
        "joint": np.full(2, joint),  # Theorem 2's
        "mean": np.full(2, (weights @ returns) / weights.sum()),
        "lower": np.full(2, (1 - ASIDE) * joint),
        "higher": np.full(2, (1 + ASIDE) * joint),
    }
    for n, (returns, weights, scores) in fresh.items():
        for name, b in choices.items():
            terms = weights[:, None] * (returns[:, None] - b) * scores
            estimates = terms.reshape(GROUPS, -1, n, 2).mean(2)
            found[f"{name} {n}"] = estimates.var(1, ddof=1)
    return found


def collect(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Everything by case, the bounds beside it."""
    data = {**collect_horizons(results), **collect_consistency(APART, results), **_rare()}
    for case, (target, proposal) in CASES.items():
        for name, values in results[f"toy/bounds/{case}"].items():
            data[f"{case} {name}"] = values
        weights = theory.weight_range(_pair(target), _pair(proposal))
        data[f"{case} range"] = np.array([weights.w_min, weights.w_max])
        for n in SAMPLES:
            for name, bound in _bounds(target[1], n, weights).items():
                data[f"{case} {name} {n}"] = np.array(bound)
    return data


def _rare() -> Arrays:
    """Reduction minus Theorem 3's lower bound `[(eta, tau)]` where a large reward is rare.

    One parameter, N(0, 1), on-policy, one step: reward 1 within `TAIL` and `RARE` beyond.
    """
    z = np.linspace(-12, 12, 240_001)
    mass = np.exp(-(z**2) / 2)
    mass /= mass.sum()
    returns, squares = np.where(np.abs(z) > TAIL, RARE, 1.0), np.stack([z, z**2 - 1]) ** 2
    at: Plain = {"alpha": 1.0, "discount": 0.0, "horizon": 1, "samples": 1, "w_min": 1.0}
    bound = np.array(theory.reduction_lower_bound(np.ones(1), **at))
    curvature, first = squares @ mass, squares @ (mass * returns)
    own, joint = first / curvature, np.full(2, first.sum() / curvature.sum())
    return {  # Var at 0 minus Var at b is 2 b E[R s^2] - b^2 E[s^2]
        f"rare {name}": 2 * b * first - b**2 * curvature - bound
        for name, b in (("own", own), ("joint", joint))
    }


def _pair(rho: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([rho[0]]), np.array([rho[1]])


def _bounds(tau: float, n: int, weights: Any) -> Plain:
    at: Plain = {"discount": DISCOUNT, "horizon": HORIZON, "samples": n}
    stds, most, least = np.array([tau]), weights.w_max, weights.w_min
    found = {
        "theorem 1": theory.variance_bound(stds, beta=BETA, w_max=most, **at),
        "theorem 3 above": theory.reduction_upper_bound(stds, beta=BETA, w_max=most, **at),
    }
    if least > 0:
        both = {"w_min": least, "alpha": ALPHA, **at}
        found["theorem 3 below"] = theory.reduction_lower_bound(stds, **both)
        found["corollary"] = theory.optimal_variance_bound(stds, beta=BETA, w_max=most, **both)
    return found


def draw_bounds(data: Arrays) -> Picture:
    """Variances beside their bounds, and what the horizon does."""
    figure, axes = picture(3, width=12, height=4)
    x = np.arange(len(CASES))
    for ax, (i, block) in zip(axes[0], enumerate(("mean η", "std τ")), strict=False):
        for name, label, method in (
            ("none", "no baseline", "iw-pgpe"),
            ("own", "optimal baseline", "iw-pgpe-ob"),
        ):
            values = [data[f"{case} {name} {N}"][:, i].mean() for case in CASES]
            look = LOOKS[method]
            marker = "^" if name == "none" else "D"
            ax.plot(x, values, marker, color=look.colour, label=f"variance, {label}")
        most = [data[f"{case} theorem 1 {N}"][i] for case in CASES]
        ax.plot(x, most, "_", color="black", markersize=22, label="Theorem 1")
        low = [data[f"{case} own {N}"][:, i].mean() for case in CASES]
        ax.vlines(x, low, most, color="0.8", linewidth=1, zorder=0)
        ax.plot(
            0, data[f"on-policy corollary {N}"][i], "_", color="#b0528a", ms=22, label="Corollary"
        )
        ax.set(yscale="log", xlim=(-0.5, len(CASES) - 0.5))
        ax.set_xticks(x, [f"{c}\nw ≤ {data[f'{c} range'][1]:.3g}" for c in CASES], fontsize=8)
        ax.set_title(f"gradient of the {block}, N' = {N}", loc="left", fontsize=10)
    axes[0, 0].set_ylim(top=3e3)
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    draw_horizons(axes[0, 2], data)
    return figure


FIGURES = (
    Figure(
        "bounds",
        "Theorems 1-3, Corollary",
        "The bounds, beside what they bound",
        "Measured variances of the gradient estimates on the toy, from ten samples of proposals "
        "ever farther from the target, beside the bounds; and the variance of one sample's "
        "gradient as the horizon grows.",
        jobs=bound_jobs,
        collect=collect,
        draw=draw_bounds,
        said=bounds.SAID + consistency.SAID + horizons.SAID,
    ),
)
