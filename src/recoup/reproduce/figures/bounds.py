"""What the paper proves, and says of what it proves, as claims about measured variances."""

import numpy as np

from recoup.core import theory
from recoup.reproduce.claims import Claim, Contrast, certain, contrast
from recoup.reproduce.jobs import Arrays

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
ASIDE = 0.1  # of b*, how far beside the minimum its neighbours lie
ELSEWHERE = {  # baselines beside b*
    "none": "no baseline",
    "mean": "the mean return",
    "lower": f"{1 - ASIDE:g} b*",
    "higher": f"{1 + ASIDE:g} b*",
}
FRESH = "b* and E[w^2 ||s||^2] come from other samples than the variances."
TRIVIAL = (
    "Of two different Gaussians the smallest weight is 0: only the on-policy case has a bound "
    "that says anything."
)
RARE = (
    "Beside the toy a made-up task, by quadrature: one parameter, on-policy, reward 1 within three "
    "standard deviations of the mean and 1,000 beyond."
)


def bound_claims(data: Arrays) -> list[Claim]:
    """Theorems 1 to 3 and the Corollary."""
    said = (
        _variance_is_bounded,
        _variance_is_inverse_in_samples,
        _optimal_baseline_is_the_minimum,
        _excess_variance_is_quadratic,
        _reduction_is_bounded_below_as_printed,
        _reduction_is_bounded_below_by_blocks,
        _reduction_is_bounded_above,
        _larger_weights_more_reduction,
        _optimal_variance_is_bounded,
    )
    return [claim(data) for claim in said]


def _variance(data: Arrays, baseline: str, n: int = N) -> dict[str, np.ndarray]:
    """Variances `[group, (eta, tau)]` by case."""
    return {case: data[f"{case} {baseline} {n}"] for case in CASES}


def _reduction(data: Arrays, baseline: str = "own") -> dict[str, np.ndarray]:
    """What a baseline takes off the variance of each block, by case."""
    none, left = _variance(data, "none"), _variance(data, baseline)
    return {case: none[case] - left[case] for case in CASES}


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
    """How much closer to 1 than `CLOSE` the mean of ratios `[group]` lies."""
    found = contrast(what, ratios)
    return found._replace(effect=CLOSE - abs(found.effect - 1), most=CLOSE)


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
        f"The variance itself, equal within {CLOSE:.0%}; no sample serves both N'.",
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
            for key, name in ELSEWHERE.items()
        ),
        FRESH,
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
        f"Equal within {CLOSE:.0%}. {FRESH}",
    )


def _excess(data: Arrays, case: str) -> np.ndarray:
    """Excess variance over both blocks at b = 0, measured over that of Theorem 2 `[group]`."""
    curvature, optimal = data[f"{case} curvature"][2], data[f"{case} baselines"][2]
    measured = _variance(data, "none")[case] - _variance(data, "joint")[case]
    return measured.sum(1) / theory.excess_variance(0.0, optimal, curvature, N)


def _above_the_bound(data: Arrays, baseline: str) -> tuple[Contrast, ...]:
    """The reduction by a baseline minus Theorem 3's lower bound: on the toy, and where it fails."""
    room = _room(data, "theorem 3 below", _reduction(data, baseline))
    rare = data[f"rare {baseline}"]
    return (
        *_each("reduction minus bound", {case: -below for case, below in room.items()}),
        *(
            certain(f"reduction minus bound, rare reward, {block}", rare[i])
            for i, block in enumerate(BLOCKS)
        ),
    )


def _reduction_is_bounded_below_as_printed(data: Arrays) -> Claim:
    return Claim(
        "bounds.theorem-3-lower-printed",
        "Theorem 3",
        "The baseline b* reduces the variance [with respect to eta, and to tau] by at least "
        "alpha^2 (1 - gamma^T)^2 B w_min / (N' (1 - gamma)^2).",
        _above_the_bound(data, "joint"),
        f"As printed: b* is Theorem 2's, one number for both blocks. {RARE} {TRIVIAL}",
    )


def _reduction_is_bounded_below_by_blocks(data: Arrays) -> Claim:
    return Claim(
        "bounds.theorem-3-lower-blocks",
        "Theorem 3",
        "The same, read with a baseline of its own for each block, as the proof needs it.",
        _above_the_bound(data, "own"),
        f"Another reading than the printed one. {RARE} {TRIVIAL}",
    )


def _reduction_is_bounded_above(data: Arrays) -> Claim:
    joint, own = (_room(data, "theorem 3 above", _reduction(data, b)) for b in ("joint", "own"))
    return Claim(
        "bounds.theorem-3-upper",
        "Theorem 3",
        "... and by at most beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2).",
        (*_each("bound minus reduction by b*", joint), *_each("by each block's own", own)),
        "Both readings of b*.",
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
        "Judged where the weights are largest: the paper says that it can, not that it must. "
        f"Without a baseline the variance is {total['on-policy']:.0f} on-policy, "
        f"{total['near']:.0f} near, {total['far']:.0f} far.",
    )


def _optimal_variance_is_bounded(data: Arrays) -> Claim:
    joint, own = (_room(data, "corollary", _variance(data, b)) for b in ("joint", "own"))
    return Claim(
        "bounds.corollary",
        "Corollary",
        "Var[grad IW with b*] <= (1 - gamma^T)^2 B (beta^2 w_max - alpha^2 w_min) / (N' (1 - "
        "gamma)^2), twice that for tau.",
        (*_each("bound minus variance with b*", joint), *_each("with each block's own", own)),
        f"Both readings of b*. {TRIVIAL}",
    )
