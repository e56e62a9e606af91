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
from recoup.reproduce.claims import Claim, Contrast, contrast
from recoup.reproduce.drawing import LOOKS, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.gradients import rho_of
from recoup.reproduce.figures.horizons import (
    DISCOUNT,
    GROUPS,
    collect_horizons,
    draw_horizons,
    horizon_claims,
    horizon_job,
)
from recoup.reproduce.jobs import Arrays, Job, Tick
from recoup.reproduce.sizes import Size
from recoup.tasks.registry import make_task

HORIZON = 10
ALPHA, BETA = 1.0, 2.0  # the toy's rewards lie in (1, 2]
CASES = {  # target and proposal, (eta, tau) each; the farther, the larger the weights
    "on-policy": ((-0.8, 0.5), (-0.8, 0.5)),
    "near": ((-0.8, 0.5), (-0.9, 0.6)),
    "apart": ((-0.8, 0.5), (-1.2, 0.8)),
    "far": ((-0.8, 0.5), (-1.6, 1.0)),
}
BLOCKS = ("eta", "tau")
SAMPLES = (10, 40)  # N'
N, MORE = SAMPLES  # the bounds are judged and drawn at the smaller
CLOSE = 0.1  # relative
TRIVIAL = (
    "Of two different Gaussians the smallest weight is 0: only the on-policy case has a bound "
    "that says anything."
)


def bound_jobs(size: Size) -> list[Job]:
    """Single samples of the estimator in every case; estimates and horizons."""
    trials = max(size.trials, 2_000)
    cases = [
        Job(
            f"toy/bounds/{case}",
            {"trials": trials, "target": rhos[0], "proposal": rhos[1]},
            4,
            partial(_terms, trials, *rhos),
        )
        for case, rhos in CASES.items()
    ]
    return [*cases, horizon_job(trials)]


def _terms(trials: int, target: Any, proposal: Any, tick: Tick) -> Arrays:
    """Returns, weights and scores of trials x 40 samples: what every estimate is made of."""
    task, rho, source = make_task("toy"), rho_of(*target), rho_of(*proposal)
    count = trials * max(SAMPLES)

    @jax.jit
    def run(key: Array) -> tuple[Array, ...]:
        key_draw, key_roll = jax.random.split(key)
        theta = draw(key_draw, source, count)
        returns = task.rollouts(jax.random.split(key_roll, count), theta)
        weights = jnp.exp(jax.vmap(lambda one: log_ratio(rho, source, one))(theta))
        scores = jax.vmap(lambda one: score(rho, one))(theta)
        return returns, weights, jnp.concatenate(scores, -1)

    with jax.enable_x64(True):
        returns, weights, scores = (np.asarray(x) for x in run(jax.random.key(0)))
    tick(1.0)
    return _summary(trials, returns, weights, scores)


def _summary(trials: int, returns: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> Arrays:
    """Variances `[group, (eta, tau)]` of estimates by N' and baseline, and Theorem 2's terms."""
    found: Arrays = {"largest": weights.max(), "smallest": weights.min()}
    squares = weights[:, None] ** 2 * scores**2
    joint = squares.sum() / len(returns)
    found["curvature"] = np.array([*squares.mean(0), joint])
    optimal = (returns[:, None] * squares).mean(0) / squares.mean(0)
    optimal_joint = (returns @ squares.sum(1)) / squares.sum()
    found["baselines"] = np.array([*optimal, optimal_joint])
    choices = {
        "none": np.zeros(2),
        "own": optimal,  # each block's own, as in Theorem 3
        "joint": np.full(2, optimal_joint),  # Theorem 2's
        "mean": np.full(2, (weights @ returns) / weights.sum()),
    }
    for name, b in choices.items():
        terms = weights[:, None] * (returns[:, None] - b) * scores
        for n in SAMPLES:
            estimates = terms[: trials * n].reshape(GROUPS, -1, n, 2).mean(2)
            found[f"{name} {n}"] = estimates.var(1, ddof=1)
    return found


def collect(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Everything by case, the bounds beside it."""
    data = collect_horizons(results)
    for case, (target, proposal) in CASES.items():
        for name, values in results[f"toy/bounds/{case}"].items():
            data[f"{case} {name}"] = values
        weights = theory.weight_range(_pair(target), _pair(proposal))
        data[f"{case} range"] = np.array([weights.w_min, weights.w_max])
        for n in SAMPLES:
            for name, bounds in _bounds(target[1], n, weights).items():
                data[f"{case} {name} {n}"] = np.array(bounds)
    return data


def _pair(rho: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([rho[0]]), np.array([rho[1]])


def _bounds(tau: float, n: int, weights: Any) -> dict[str, Any]:
    at: dict[str, Any] = {"discount": DISCOUNT, "horizon": HORIZON, "samples": n}
    stds, most, least = np.array([tau]), weights.w_max, weights.w_min
    bounds = {
        "theorem 1": theory.variance_bound(stds, beta=BETA, w_max=most, **at),
        "theorem 3 above": theory.reduction_upper_bound(stds, beta=BETA, w_max=most, **at),
    }
    if least > 0:
        both = {"w_min": least, "alpha": ALPHA, **at}
        bounds["theorem 3 below"] = theory.reduction_lower_bound(stds, **both)
        bounds["corollary"] = theory.optimal_variance_bound(stds, beta=BETA, w_max=most, **both)
    return bounds


def claims(data: Arrays) -> list[Claim]:
    """What the paper proves, and says of what it proves."""
    said = (
        _variance_is_bounded,
        _variance_is_inverse_in_samples,
        _optimal_baseline_is_the_minimum,
        _excess_variance_is_quadratic,
        _reduction_is_bounded_below,
        _reduction_is_bounded_above,
        _larger_weights_more_reduction,
        _optimal_variance_is_bounded,
    )
    return [*(claim(data) for claim in said), *horizon_claims(data)]


def _variance(data: Arrays, baseline: str, n: int = N) -> dict[str, np.ndarray]:
    """Variances `[group, (eta, tau)]` by case."""
    return {case: data[f"{case} {baseline} {n}"] for case in CASES}


def _reduction(data: Arrays) -> dict[str, np.ndarray]:
    """What each block's own optimal baseline takes off its variance, by case."""
    none, own = _variance(data, "none"), _variance(data, "own")
    return {case: none[case] - own[case] for case in CASES}


def _room(data: Arrays, bound: str, measured: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A bound minus what it bounds, by case, where there is such a bound."""
    bounds = {case: data.get(f"{case} {bound} {N}") for case in CASES}
    return {case: most - measured[case] for case, most in bounds.items() if most is not None}


def _each(what: str, differences: dict[str, np.ndarray]) -> tuple[Contrast, ...]:
    """Contrasts of numbers `[group, (eta, tau)]` by case, one for each block."""
    return tuple(
        contrast(f"{what}, {case}, {block}", by_block[:, i])
        for case, by_block in differences.items()
        for i, block in enumerate(BLOCKS)
    )


def _near_one(what: str, ratios: np.ndarray) -> Contrast:
    found = contrast(what, ratios)
    return found._replace(effect=CLOSE - abs(found.effect - 1))


def _variance_is_bounded(data: Arrays) -> Claim:
    return Claim(
        "bounds.theorem-1",
        "Theorem 1",
        "Var[grad IW] <= beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2), twice that for tau.",
        _each("bound minus variance", _room(data, "theorem 1", _variance(data, "none"))),
    )


def _variance_is_inverse_in_samples(data: Arrays) -> Claim:
    few, many = (_variance(data, "none", n) for n in SAMPLES)
    return Claim(
        "bounds.inverse-in-samples",
        "S3.1",
        "[The upper bound of the variance] is inverse-proportional to sample size N'.",
        tuple(
            _near_one(
                f"{CLOSE} minus |N' Var at {N} over at {MORE} - 1|, {case}",
                (few[case].sum(1) * N) / (many[case].sum(1) * MORE),
            )
            for case in CASES
        ),
        f"The variance itself, equal within {CLOSE:.0%}.",
    )


def _optimal_baseline_is_the_minimum(data: Arrays) -> Claim:
    least = _variance(data, "joint")
    return Claim(
        "bounds.theorem-2-minimum",
        "Theorem 2",
        "The optimal constant baseline for IW-PGPE minimises the variance.",
        tuple(
            contrast(
                f"variance with {name} minus with b*, {case}",
                (_variance(data, key)[case] - least[case]).sum(1),
            )
            for case in CASES
            for key, name in (("none", "no baseline"), ("mean", "the mean return"))
        ),
    )


def _excess_variance_is_quadratic(data: Arrays) -> Claim:
    return Claim(
        "bounds.theorem-2-excess",
        "Theorem 2",
        "The excess variance for a constant baseline b is (b - b*)^2 E[w^2 ||s||^2] / N'.",
        tuple(
            _near_one(
                f"{CLOSE} minus |measured over formula - 1| at b = 0, {case}", _excess(data, case)
            )
            for case in CASES
        ),
        f"Equal within {CLOSE:.0%}.",
    )


def _excess(data: Arrays, case: str) -> np.ndarray:
    """Excess variance over both blocks at b = 0, measured over that of Theorem 2 `[group]`."""
    curvature, optimal = data[f"{case} curvature"][2], data[f"{case} baselines"][2]
    measured = _variance(data, "none")[case] - _variance(data, "joint")[case]
    return measured.sum(1) / theory.excess_variance(0.0, optimal, curvature, N)


def _reduction_is_bounded_below(data: Arrays) -> Claim:
    room = _room(data, "theorem 3 below", _reduction(data))
    return Claim(
        "bounds.theorem-3-lower",
        "Theorem 3",
        "The baseline reduces the variance by at least alpha^2 (1 - gamma^T)^2 B w_min / (N' "
        "(1 - gamma)^2).",
        _each("reduction minus bound", {case: -below for case, below in room.items()}),
        f"With each block's own optimal baseline. {TRIVIAL}",
    )


def _reduction_is_bounded_above(data: Arrays) -> Claim:
    return Claim(
        "bounds.theorem-3-upper",
        "Theorem 3",
        "... and by at most beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2).",
        _each("bound minus reduction", _room(data, "theorem 3 above", _reduction(data))),
    )


def _larger_weights_more_reduction(data: Arrays) -> Claim:
    more = _reduction(data)["far"] - _reduction(data)["on-policy"]
    total = {case: found.sum(1).mean() for case, found in _variance(data, "none").items()}
    return Claim(
        "bounds.larger-weights-more-reduction",
        "S3.2",
        "If importance weights are larger, using the optimal baseline can reduce the variance "
        "more.",
        tuple(
            contrast(f"reduction far minus on-policy, {block}", more[:, i])
            for i, block in enumerate(BLOCKS)
        ),
        "Judged where the weights are largest: the paper says that it can, not that it must. With "
        "a proposal a little wider than the target there is less variance, and less to remove: "
        f"without a baseline it is {total['on-policy']:.0f} on-policy, {total['near']:.0f} near, "
        f"{total['far']:.0f} far.",
    )


def _optimal_variance_is_bounded(data: Arrays) -> Claim:
    return Claim(
        "bounds.corollary",
        "Corollary",
        "Var[grad IW with b*] <= (1 - gamma^T)^2 B (beta^2 w_max - alpha^2 w_min) / (N' (1 - "
        "gamma)^2), twice that for tau.",
        _each("bound minus variance", _room(data, "corollary", _variance(data, "own"))),
        TRIVIAL,
    )


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
        bounds = [data[f"{case} theorem 1 {N}"][i] for case in CASES]
        ax.plot(x, bounds, "_", color="black", markersize=22, label="Theorem 1")
        low = [data[f"{case} own {N}"][:, i].mean() for case in CASES]
        ax.vlines(x, low, bounds, color="0.8", linewidth=1, zorder=0)
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
        claims=claims,
        draw=draw_bounds,
    ),
)
