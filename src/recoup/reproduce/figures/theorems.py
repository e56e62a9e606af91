"""The theory, measured on the toy: Theorems 1-3, the Corollary, and what a long horizon costs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.figure import Figure as Picture

from recoup.core import theory
from recoup.core.families.gaussian import Rho, draw, log_ratio, score
from recoup.core.families.trajectory import discounted_rewards
from recoup.core.families.trajectory import score as trajectory_score
from recoup.reproduce.claims import Claim, Contrast, contrast
from recoup.reproduce.drawing import LOOKS, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.gradients import rho_of
from recoup.reproduce.jobs import Arrays, Job, Tick
from recoup.reproduce.sizes import Size
from recoup.tasks.registry import make_task

HORIZON, DISCOUNT = 10, 0.9
ALPHA, BETA = 1.0, 2.0  # the toy's rewards lie in (1, 2]
CASES = {  # target and proposal, (eta, tau) each; the farther, the larger the weights
    "on-policy": ((-0.8, 0.5), (-0.8, 0.5)),
    "near": ((-0.8, 0.5), (-0.9, 0.6)),
    "apart": ((-0.8, 0.5), (-1.2, 0.8)),
    "far": ((-0.8, 0.5), (-1.6, 1.0)),
}
SAMPLES = (10, 40)  # N'
GROUPS = 20  # of trials, for standard errors
HORIZONS = (5, 10, 20, 40, 80)
POLICY = (-0.5, 0.5)  # eta and tau, or mu and sigma
CLOSE = 0.1  # relative


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
    return [
        *cases,
        Job("toy/horizons", {"trials": trials}, 15, partial(_horizons, trials)),
    ]


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
                s = jax.vmap(lambda one: score(rho, one).eta[0])(theta)
                h = task.episodes(keys, Rho(*(jnp.broadcast_to(x, (count, 1)) for x in rho)))
                returns = jax.vmap(lambda x: jnp.sum(discounted_rewards(DISCOUNT, x)))(h)
                s_h = jax.vmap(lambda x: trajectory_score(rho, x).eta[0])(h)
                return task.rollouts(keys, theta) * s, returns * s_h

            found = [np.asarray(x) for x in jax.jit(run)(jax.random.key(horizon))]
            for terms, kept in zip(found, (pgpe, reinforce), strict=True):
                kept.append(terms.reshape(GROUPS, -1).var(1, ddof=1))
            tick(1 / len(HORIZONS))
    return {"pgpe": np.stack(pgpe), "reinforce": np.stack(reinforce)}


def collect(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Everything by case, the bounds beside it."""
    data = {f"horizon {name}": v for name, v in results["toy/horizons"].items()}
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
    n, blocks = SAMPLES[0], ("eta", "tau")

    def each(what: str, difference: Any) -> tuple[Contrast, ...]:
        return tuple(
            contrast(f"{what}, {case}, {block}", difference(case)[:, i])
            for case in CASES
            for i, block in enumerate(blocks)
            if difference(case) is not None
        )

    def reduction(case: str) -> np.ndarray:
        return data[f"{case} none {n}"] - data[f"{case} own {n}"]

    def below(case: str, name: str, measured: np.ndarray) -> np.ndarray | None:
        bound = data.get(f"{case} {name} {n}")
        return None if bound is None else bound - measured

    def excess(case: str, name: str, b: float) -> np.ndarray:
        """Measured excess variance over both blocks, over that of Theorem 2."""
        curvature, optimal = data[f"{case} curvature"][2], data[f"{case} baselines"][2]
        formula = theory.excess_variance(b, optimal, curvature, n)
        measured = (data[f"{case} {name} {n}"] - data[f"{case} joint {n}"]).sum(1)
        return measured / formula

    def near_one(what: str, ratios: np.ndarray) -> Contrast:
        found = contrast(what, ratios)
        return found._replace(effect=CLOSE - abs(found.effect - 1))

    inverse = {
        case: (data[f"{case} none {n}"].sum(1) * n)
        / (data[f"{case} none {SAMPLES[1]}"].sum(1) * SAMPLES[1])
        for case in CASES
    }
    total = {case: data[f"{case} none {n}"].sum(1).mean() for case in CASES}
    wider = (
        "Judged where the weights are largest: the paper says that it can, not that it must. With "
        "a proposal a little wider than the target there is less variance, and less to remove: "
        f"without a baseline it is {total['on-policy']:.0f} on-policy, {total['near']:.0f} near, "
        f"{total['far']:.0f} far."
    )
    trivial = (
        "Of two different Gaussians the smallest weight is 0: only the on-policy case has a bound "
        "that says anything."
    )
    return [
        Claim(
            "bounds.theorem-1",
            "Theorem 1",
            "Var[grad IW] <= beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2), twice that for "
            "tau.",
            each("bound minus variance", lambda c: below(c, "theorem 1", data[f"{c} none {n}"])),
        ),
        Claim(
            "bounds.inverse-in-samples",
            "S3.1",
            "[The upper bound of the variance] is inverse-proportional to sample size N'.",
            tuple(
                near_one(f"{CLOSE} minus |N' Var at {n} over at {SAMPLES[1]} - 1|, {case}", ratio)
                for case, ratio in inverse.items()
            ),
            f"The variance itself, equal within {CLOSE:.0%}.",
        ),
        Claim(
            "bounds.theorem-2-minimum",
            "Theorem 2",
            "The optimal constant baseline for IW-PGPE minimises the variance.",
            tuple(
                contrast(
                    f"variance with {name} minus with b*, {case}",
                    (data[f"{case} {key} {n}"] - data[f"{case} joint {n}"]).sum(1),
                )
                for case in CASES
                for key, name in (("none", "no baseline"), ("mean", "the mean return"))
            ),
        ),
        Claim(
            "bounds.theorem-2-excess",
            "Theorem 2",
            "The excess variance for a constant baseline b is (b - b*)^2 E[w^2 ||s||^2] / N'.",
            tuple(
                near_one(
                    f"{CLOSE} minus |measured over formula - 1| at b = 0, {c}",
                    excess(c, "none", 0.0),
                )
                for c in CASES
            ),
            f"Equal within {CLOSE:.0%}.",
        ),
        Claim(
            "bounds.theorem-3-lower",
            "Theorem 3",
            "The baseline reduces the variance by at least alpha^2 (1 - gamma^T)^2 B w_min / (N' "
            "(1 - gamma)^2).",
            each(
                "reduction minus bound",
                lambda c: (
                    None if (gap := below(c, "theorem 3 below", reduction(c))) is None else -gap
                ),
            ),
            f"With each block's own optimal baseline. {trivial}",
        ),
        Claim(
            "bounds.theorem-3-upper",
            "Theorem 3",
            "... and by at most beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2).",
            each("bound minus reduction", lambda c: below(c, "theorem 3 above", reduction(c))),
        ),
        Claim(
            "bounds.larger-weights-more-reduction",
            "S3.2",
            "If importance weights are larger, using the optimal baseline can reduce the variance "
            "more.",
            tuple(
                contrast(
                    f"reduction {case} minus on-policy, {block}",
                    reduction(case)[:, i] - reduction("on-policy")[:, i],
                )
                for case in ("far",)
                for i, block in enumerate(blocks)
            ),
            wider,
        ),
        Claim(
            "bounds.corollary",
            "Corollary",
            "Var[grad IW with b*] <= (1 - gamma^T)^2 B (beta^2 w_max - alpha^2 w_min) / (N' (1 - "
            "gamma)^2), twice that for tau.",
            each("bound minus variance", lambda c: below(c, "corollary", data[f"{c} own {n}"])),
            trivial,
        ),
        *_horizon_claims(data),
    ]


def _horizon_claims(data: Arrays) -> list[Claim]:
    longer = [HORIZONS.index(t) for t in (10, 20, 40, 80)]
    log_t = np.log([HORIZONS[i] for i in longer])
    log_t -= log_t.mean()
    scale = np.log([theory.return_scale(DISCOUNT, HORIZONS[i]) ** 2 for i in longer])

    def slope(log_variance: np.ndarray) -> np.ndarray:
        return log_t @ log_variance / (log_t @ log_t)

    pgpe, reinforce = (np.log(data[f"horizon {m}"])[longer] for m in ("pgpe", "reinforce"))
    return [
        Claim(
            "bounds.horizon",
            "S2.2",
            "The variance of gradient estimates in PGPE does not increase with respect to "
            "trajectory length T.",
            (contrast("minus the slope of log variance over log T, T = 10 to 80", -slope(pgpe)),),
            "Read literally: returns themselves grow with T until the discount ends them, and so "
            "does the variance. The next claim takes that out.",
        ),
        Claim(
            "bounds.horizon-scaled",
            "S2.2, Theorem 1",
            "... beyond the factor (1 - gamma^T)^2 / (1 - gamma)^2 of the bound.",
            (
                contrast(
                    "minus that slope, variance over that factor", -slope(pgpe - scale[:, None])
                ),
            ),
        ),
        Claim(
            "bounds.horizon-reinforce",
            "S2.2",
            "Standard policy gradient methods were shown to suffer from high variance due to "
            "randomness introduced by the stochastic policy; PGPE has low variance.",
            (
                contrast("log variance of REINFORCE over PGPE at T = 80", reinforce[-1] - pgpe[-1]),
                contrast("slope of REINFORCE minus slope of PGPE", slope(reinforce) - slope(pgpe)),
            ),
            f"No baseline, mean {POLICY[0]}; PGPE's standard deviation and REINFORCE's are both "
            f"{POLICY[1]}.",
        ),
    ]


def draw_bounds(data: Arrays) -> Picture:
    """Variances beside their bounds, and what the horizon does."""
    figure, axes = picture(3, width=12, height=4)
    n, x = SAMPLES[0], np.arange(len(CASES))
    for ax, (i, block) in zip(axes[0], enumerate(("mean η", "std τ")), strict=False):
        for name, label, method in (
            ("none", "no baseline", "iw-pgpe"),
            ("own", "optimal baseline", "iw-pgpe-ob"),
        ):
            values = [data[f"{case} {name} {n}"][:, i].mean() for case in CASES]
            look = LOOKS[method]
            marker = "^" if name == "none" else "D"
            ax.plot(x, values, marker, color=look.colour, label=f"variance, {label}")
        bounds = [data[f"{case} theorem 1 {n}"][i] for case in CASES]
        ax.plot(x, bounds, "_", color="black", markersize=22, label="Theorem 1")
        low = [data[f"{case} own {n}"][:, i].mean() for case in CASES]
        ax.vlines(x, low, bounds, color="0.8", linewidth=1, zorder=0)
        ax.plot(
            0, data[f"on-policy corollary {n}"][i], "_", color="#b0528a", ms=22, label="Corollary"
        )
        ax.set(yscale="log", xlim=(-0.5, len(CASES) - 0.5))
        ax.set_xticks(x, [f"{c}\nw ≤ {data[f'{c} range'][1]:.3g}" for c in CASES], fontsize=8)
        ax.set_title(f"gradient of the {block}, N' = {n}", loc="left", fontsize=10)
    axes[0, 0].set_ylim(top=3e3)
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    last = axes[0, 2]
    for name, method in (("reinforce", "iw-reinforce-ob"), ("pgpe", "pgpe")):
        variances, look = data[f"horizon {name}"], LOOKS[method]
        last.plot(
            HORIZONS,
            variances.mean(1),
            color=look.colour,
            ls=look.line,
            marker=look.marker,
            label=name,
        )
    last.set(xscale="log", yscale="log", xlabel="horizon T", xticks=HORIZONS)
    last.set_xticks([], minor=True)
    last.set_xticklabels(HORIZONS)
    last.set_title("variance of one sample's gradient", loc="left", fontsize=10)
    last.legend(frameon=False, fontsize=8)
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
