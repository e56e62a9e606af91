"""Cases of `toy-variance` (squared biases and variances by start) and `toy-directions`."""

import numpy as np

from claim_cases.parts import (
    HAIR,
    NONE,
    RUNS,
    Case,
    FigureCases,
    both,
    level_all,
    put,
    put_all,
)

SIX = ("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
*OTHERS, OURS = SIX
SHAPED = ("truncated", "flattened", "normalised")
ITERATIONS = 20
CHANCE = 1e-4  # of a squared bias: variance 1 over 10,000 trials


def neutral():
    shape = (RUNS, ITERATIONS)
    data = {"truth": np.full((*shape, 2), 7.0), "trials": np.array(10_000)}
    data["truth"][..., 0] = 1.0  # of the mean; that of the standard deviation is not looked at
    for method in (*SIX, *SHAPED, "mis-pgpe-ob", "iw-pgpe-split"):
        for what in ("variance", "bias2", "largest weight"):
            data[f"{method} {what}"] = np.full(shape, NONE)
    return data


def varies(method, value):
    return put_all(f"{method} variance", value)


def biased(method, value):
    """A squared bias, and what chance adds to it."""
    return both(varies(method, 1.0), put_all(f"{method} bias2", value + CHANCE))


def below(ours, *others):
    rest = both(*(varies(other, 1.0) for other in others))
    return Case(
        both(rest, varies(ours, 1 - HAIR)), tuple(varies(other, 1 - 2 * HAIR) for other in others)
    )


def less_biased(*methods, least=0.0):
    true = both(*(biased(m, least + 0.0099) for m in methods))
    return Case(true, tuple(biased(m, least + 0.0101) for m in methods))


def more_biased(limit, *methods):
    true = both(*(biased(m, 1.01 * limit) for m in methods))
    return Case(true, tuple(biased(m, 0.99 * limit) for m in methods))


def errs(method, variance, bias2):
    return both(varies(method, variance), put_all(f"{method} bias2", bias2))


def gap(index, value):
    """By how much iw-pgpe varies more than iw-pgpe-ob in some iterations."""
    return both(put("iw-pgpe variance", index, 1 + value), put("iw-pgpe-ob variance", index, 1.0))


LEVEL = {m: both(varies(m, 1.0)) for m in SIX}
EARLY, LATE = slice(1, 6), slice(-5, None)  # iterations 2 to 6, and the last five


VARIANCES = {
    "lowest": below(OURS, *OTHERS),
    "iw-above-niw": below("niw-pgpe", "iw-pgpe"),
    # the edges of both stretches: iteration 16, and iterations 2 and 6
    "gap-grows": Case(
        both(gap(EARLY, 0.0), gap(LATE, 0.0), gap(-5, HAIR)),
        (both(gap(1, HAIR), gap(5, HAIR)),),
    ),
    "reduction-grows": Case(
        both(gap(slice(None), 0.0), gap(-1, HAIR)),
        (gap(-1, -HAIR),),
    ),
    "reuse-helps": Case(
        both(LEVEL["niw-pgpe-ob"], LEVEL[OURS], varies("pgpe-ob", 1 + HAIR)),
        (varies("niw-pgpe-ob", 1.02), varies(OURS, 1.02)),
    ),
    "iw-ob-below-niw-ob": below(OURS, "niw-pgpe-ob"),
    "baseline-helps-pgpe": below("pgpe-ob", "pgpe"),
    "baseline-adds-no-bias": Case(
        both(
            biased("pgpe-ob", 0.0099),
            biased("niw-pgpe", 1.0),
            biased("niw-pgpe-ob", 1.0099),
            biased(OURS, 0.0099),
        ),
        (biased("pgpe-ob", 0.0101), biased("niw-pgpe-ob", 1.0101), biased(OURS, 0.0101)),
    ),
    "niw-biased": more_biased(0.1, "niw-pgpe", "niw-pgpe-ob"),
    "iw-small-bias": less_biased("iw-pgpe"),
    "iw-ob-small-bias": less_biased(OURS),
    "plain-small-bias": less_biased("pgpe", "pgpe-ob"),
    "smallest-error": Case(
        both(errs(OURS, 0.5, 0.49), *(errs(m, 0.5, 0.5) for m in OTHERS)),
        tuple(errs(m, 0.5, 0.48) for m in OTHERS),
    ),
    "shaping-lowers-bound": Case(
        both(
            level_all([f"{m} largest weight" for m in SHAPED[:2]], 1.0),
            put_all("iw-pgpe largest weight", 1 + HAIR),
        ),
        tuple(put_all(f"{m} largest weight", 1 + 2 * HAIR) for m in SHAPED[:2]),
    ),
    "shaping-lowers-variance": Case(
        both(*(varies(m, 1.0) for m in SHAPED), varies("iw-pgpe", 1 + HAIR)),
        tuple(varies(m, 1 + 2 * HAIR) for m in SHAPED),
    ),
    "shaping-biases": more_biased(0.01, *SHAPED),
    "split-worse": Case(
        both(errs(OURS, 0.4, 0.6), errs("iw-pgpe-split", 0.5, 0.5 + HAIR)),
        (errs("iw-pgpe-split", 0.5, 0.5 - HAIR),),
    ),
    "baseline-over-weights": Case(
        both(errs("niw-pgpe-ob", 0.5, 0.5), errs("iw-pgpe", 0.4, 0.6 + HAIR), errs(OURS, 3.0, 7.0)),
        (errs("iw-pgpe", 0.4, 0.6 - HAIR),),
    ),
}


# -- directions --

ESTIMATES = 10_000
COMPARED = ("niw-pgpe", "iw-pgpe", "iw-pgpe-ob")


def neutral_angles():
    return {f"{method} angle": np.full(ESTIMATES, NONE) for method in COMPARED}


def split(method, share, inside, outside):
    """A share of the angles at those `inside`, in turn, the others at those `outside`."""

    def change(data):
        count = round(share * ESTIMATES)
        data[f"{method} angle"] = np.concatenate(
            [np.resize(inside, count), np.resize(outside, ESTIMATES - count)]
        )

    return change


def around(method, share, middle=0):
    """A share of the angles within 60 degrees of `middle`, evenly on both sides."""
    inside, outside = np.array([59, -59]), np.array([61, -61])
    return split(method, share, middle + inside, (middle + outside + 180) % 360 - 180)


ANGLES = {
    "niw-astray": Case(
        split("niw-pgpe", 0.53, [-149, -91], [-151, -89]),
        (split("niw-pgpe", 0.47, [-149, -91], [-151, -89]),),
    ),
    "niw-wrong-side": Case(
        split("niw-pgpe", 0.53, [91, -91], [89, -89]),
        (split("niw-pgpe", 0.47, [91, -91], [89, -89]),),
    ),
    "iw-wide": Case(  # about its own mean, which points far from the true gradient
        both(around("iw-pgpe", 0.47, 130), around("iw-pgpe-ob", 0.6, -90)),
        (around("iw-pgpe", 0.53, 130), around("iw-pgpe-ob", 0.43, -90)),
    ),
    "iw-ob-concentrated": Case(
        both(around("iw-pgpe-ob", 0.53), around("iw-pgpe", 0.5)),
        (
            both(around("iw-pgpe-ob", 0.47), around("iw-pgpe", 0.43)),
            around("iw-pgpe", 0.57),
        ),
    ),
}
FIGURES = {
    "toy-variance": FigureCases(neutral, {f"toy-variance.{k}": c for k, c in VARIANCES.items()}),
    "toy-directions": FigureCases(
        neutral_angles, {f"toy-directions.{k}": c for k, c in ANGLES.items()}
    ),
}
