"""What the paper proves, and says of what it proves, as claims about measured variances."""

from collections.abc import Callable

import numpy as np

from recoup.core import theory
from recoup.reproduce.claims import Contrast, Said, certain, contrast
from recoup.reproduce.jobs import Arrays

CASES = {  # target and proposal, (eta, tau) each; the farther, the larger the weights
    "on-policy": ((-0.8, 0.5), (-0.8, 0.5)),
    "near": ((-0.8, 0.5), (-0.9, 0.6)),
    "apart": ((-0.8, 0.5), (-1.2, 0.8)),
    "far": ((-0.8, 0.5), (-1.6, 1.0)),
}
APART = {case: rhos for case, rhos in CASES.items() if case != "on-policy"}
BLOCKS = ("eta", "tau")
Measured = Callable[[Arrays, str], dict[str, np.ndarray]]  # with a baseline, by case
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


def _of_one_sample(data: Arrays, case: str, n: int) -> np.ndarray:
    """N' times the variance over both blocks without a baseline `[group]`."""
    return _variance(data, "none", n)[case].sum(1) * n


def _above_least(data: Arrays, case: str, baseline: str) -> np.ndarray:
    """Variance over both blocks with a baseline minus that with b* `[group]`."""
    return (_variance(data, baseline)[case] - _variance(data, "joint")[case]).sum(1)


def _excess(data: Arrays, case: str) -> np.ndarray:
    """Excess variance over both blocks at b = 0, measured over that of Theorem 2 `[group]`."""
    curvature, optimal = data[f"{case} curvature"][2], data[f"{case} baselines"][2]
    return _above_least(data, case, "none") / theory.excess_variance(0.0, optimal, curvature, N)


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


def _below_the_bound(
    data: Arrays, bound: str, measured: Measured, name: str, by: str
) -> tuple[Contrast, ...]:
    """A bound minus what it bounds, for both readings of b*."""
    joint, own = (_room(data, bound, measured(data, b)) for b in ("joint", "own"))
    return (*_each(f"bound minus {name} {by} b*", joint), *_each(f"{by} each block's own", own))


SAID = (
    Said(
        "bounds.theorem-1",
        "Var[grad IW] <= beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2), twice that for tau.",
        lambda data: _each(
            "bound minus variance", _room(data, "theorem 1", _variance(data, "none"))
        ),
        where="Theorem 1",
    ),
    Said(
        "bounds.inverse-in-samples",
        "[The upper bound of the variance] is inverse-proportional to sample size N'.",
        lambda data: tuple(
            _near_one(
                f"{CLOSE} minus |N' Var at {N} over at {MORE} - 1|, {case}",
                _of_one_sample(data, case, N) / _of_one_sample(data, case, MORE),
            )
            for case in CASES
        ),
        f"The variance itself, equal within {CLOSE:.0%}; no sample serves both N'.",
        where="S3.1",
    ),
    Said(
        "bounds.theorem-2-minimum",
        "The optimal constant baseline for IW-PGPE minimises the variance.",
        lambda data: {
            f"variance with {name} minus with b*, {case}": _above_least(data, case, key)
            for case in CASES
            for key, name in ELSEWHERE.items()
        },
        FRESH,
        where="Theorem 2",
    ),
    Said(
        "bounds.theorem-2-excess",
        "The excess variance for a constant baseline b is (b - b*)^2 E[w^2 ||s||^2] / N'.",
        lambda data: tuple(
            _near_one(
                f"{CLOSE} minus |measured over formula - 1| at b = 0, {case}", _excess(data, case)
            )
            for case in CASES
        ),
        f"Equal within {CLOSE:.0%}. {FRESH}",
        where="Theorem 2",
    ),
    Said(
        "bounds.theorem-3-lower-printed",
        "The baseline b* reduces the variance [with respect to eta, and to tau] by at least "
        "alpha^2 (1 - gamma^T)^2 B w_min / (N' (1 - gamma)^2).",
        lambda data: _above_the_bound(data, "joint"),
        f"As printed: b* is Theorem 2's, one number for both blocks. {RARE} {TRIVIAL}",
        where="Theorem 3",
    ),
    Said(
        "bounds.theorem-3-lower-blocks",
        "The same, read with a baseline of its own for each block, as the proof needs it.",
        lambda data: _above_the_bound(data, "own"),
        f"Another reading than the printed one. {RARE} {TRIVIAL}",
        where="Theorem 3",
    ),
    Said(
        "bounds.theorem-3-upper",
        "... and by at most beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2).",
        lambda data: _below_the_bound(data, "theorem 3 above", _reduction, "reduction", "by"),
        "Both readings of b*.",
        where="Theorem 3",
    ),
    Said(
        "bounds.larger-weights-more-reduction",
        "If importance weights are larger, using the optimal baseline can reduce the variance "
        "more.",
        lambda data: {
            f"reduction far minus on-policy, {block}": (
                _reduction(data)["far"] - _reduction(data)["on-policy"]
            )[:, i]
            for i, block in enumerate(BLOCKS)
        },
        lambda data: (
            "Judged where the weights are largest: the paper says that it can, not that it must. "
            "Without a baseline the variance is "
            + ", ".join(
                f"{_variance(data, 'none')[case].sum(1).mean():.0f} {case}"
                for case in ("on-policy", "near", "far")
            )
            + "."
        ),
        where="S3.2",
    ),
    Said(
        "bounds.corollary",
        "Var[grad IW with b*] <= (1 - gamma^T)^2 B (beta^2 w_max - alpha^2 w_min) / (N' (1 - "
        "gamma)^2), twice that for tau.",
        lambda data: _below_the_bound(data, "corollary", _variance, "variance", "with"),
        f"Both readings of b*. {TRIVIAL}",
        where="Corollary",
    ),
)
