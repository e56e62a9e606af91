"""Cases of `bounds`: 20 groups of estimates, two blocks, four proposals."""

from functools import partial

import numpy as np

from claim_cases.parts import HAIR, NONE, Case, FigureCases, both, put_all

CASES = ("on-policy", "near", "apart", "far")
APART = CASES[1:]
GROUPS, BLOCKS = 20, ("eta", "tau")
HORIZONS = (5, 10, 20, 40, 80)
BASELINES = ("none", "own", "joint", "mean", "lower", "higher")


def neutral():
    data = {"rare own": np.full(2, NONE), "rare joint": np.full(2, NONE)}
    for case in CASES:
        for name in BASELINES:
            for n in (10, 40):
                data[f"{case} {name} {n}"] = np.full((GROUPS, 2), NONE)
        for name in ("theorem 1", "theorem 3 above"):
            for n in (10, 40):
                data[f"{case} {name} {n}"] = np.full(2, NONE)
        data[f"{case} curvature"] = np.array([NONE, NONE, 5.0])
        data[f"{case} baselines"] = np.array([NONE, NONE, 2.0])
    for name in ("theorem 3 below", "corollary"):
        for n in (10, 40):
            data[f"on-policy {name} {n}"] = np.full(2, NONE)
    for case in APART:
        for method in ("niw", "iw"):
            for n in (40, 400, 4000):
                data[f"error {case} {method} {n}"] = np.full(GROUPS, NONE)
    for method in ("pgpe", "reinforce"):
        data[f"horizon {method}"] = np.full((len(HORIZONS), GROUPS), NONE)
    return data


def pair(key, eta, tau):
    """Both blocks of a bound, or of the variances of all groups."""
    return put_all(key, np.array([eta, tau]))


def block_of(key, block, value):
    def change(data):
        data[key][..., BLOCKS.index(block)] = value

    return change


def each_block(cases, change):
    """`change(case, block)` for all cases and blocks, in the order of contrasts."""
    return tuple(change(case, block) for case in cases for block in BLOCKS)


def bounded(bound, baselines, cases=CASES):
    """Variances just below a bound of 1 and 2, then one of them just above."""
    top = {"eta": 1.0, "tau": 2.0}
    true = [pair(f"{case} {bound} 10", 1.0, 2.0) for case in cases]
    true += [pair(f"{case} {name} 10", 1 - HAIR, 2 - HAIR) for name in baselines for case in cases]
    false = (
        block_of(f"{case} {name} 10", block, top[block] + HAIR)
        for name in baselines
        for case in cases
        for block in BLOCKS
    )
    return Case(both(*true), tuple(false))


def reduced_below(baselines, cases=CASES):
    """Reductions just below a bound of 1 and 2: variances 5 without, more than 4 and 3 with."""
    left = {"eta": 4.0, "tau": 3.0}
    true = [pair(f"{case} theorem 3 above 10", 1.0, 2.0) for case in cases]
    true += [pair(f"{case} none 10", 5.0, 5.0) for case in cases]
    true += [pair(f"{case} {b} 10", 4 + HAIR, 3 + HAIR) for b in baselines for case in cases]
    false = (
        block_of(f"{case} {name} 10", block, left[block] - HAIR)
        for name in baselines
        for case in cases
        for block in BLOCKS
    )
    return Case(both(*true), tuple(false))


def reduced_above(baseline):
    """On-policy reductions just above a bound of 1 and 2, and those of the rare reward above 0."""
    key, rare = f"on-policy {baseline} 10", f"rare {baseline}"
    true = both(
        pair("on-policy theorem 3 below 10", 1.0, 2.0),
        pair("on-policy none 10", 5.0, 5.0),
        pair(key, 4 - HAIR, 3 - HAIR),
        pair(rare, HAIR, HAIR),
    )
    false = (
        block_of(key, "eta", 4 + HAIR),
        block_of(key, "tau", 3 + HAIR),
        block_of(rare, "eta", -HAIR),
        block_of(rare, "tau", -HAIR),
    )
    return Case(true, false)


def times(ratio, case):
    """The variance at N' = 10 as if it fell by `ratio` less than it should to N' = 40."""
    return both(pair(f"{case} none 10", 4 * ratio, 4 * ratio), pair(f"{case} none 40", 1.0, 1.0))


INVERSE = Case(
    both(*(times(1.09 if case in ("near", "far") else 0.91, case) for case in CASES)),
    tuple(times(1.11 if case in ("near", "far") else 0.89, case) for case in CASES),
)
MINIMUM = Case(  # over both blocks together: what one loses, the other gains
    both(
        *(
            pair(f"{case} {name} 10", 0.5, 1.5 + HAIR)
            for case in CASES
            for name in BASELINES
            if name not in ("joint", "own")
        ),
        *(pair(f"{case} joint 10", 1.0, 1.0) for case in CASES),
    ),
    tuple(
        pair(f"{case} {name} 10", 0.5, 1.5 - HAIR)
        for case in CASES
        for name in ("none", "mean", "lower", "higher")
    ),
)


def excess(case, ratio):
    """(0 - 2)^2 5 / 10 = 2, times `ratio`, in the sum of both blocks."""
    return both(pair(f"{case} joint 10", 1.0, 1.0), pair(f"{case} none 10", 1.5, 0.5 + 2 * ratio))


EXCESS = Case(
    both(*(excess(case, 1.09) for case in CASES)), tuple(excess(case, 1.11) for case in CASES)
)
REDUCTION = Case(
    both(
        pair("far none 10", 3.0 + HAIR, 3.0 + HAIR),
        pair("on-policy none 10", 3.0, 3.0),
        *(pair(f"{case} own 10", 1.0, 1.0) for case in ("far", "on-policy")),
    ),
    tuple(block_of("far own 10", block, 1 + 2 * HAIR) for block in BLOCKS),
)


def error(case, method, rest, fall):
    """The squared error at N' = 4,000, and how many times larger it is at 400."""
    return both(
        put_all(f"error {case} {method} 4000", rest),
        put_all(f"error {case} {method} 400", rest * fall),
    )


def inconsistent():
    made = partial(error, method="niw")
    true = both(*(made(case, rest=0.0101, fall=1.99) for case in APART))
    false = []
    for case in APART:
        false += [made(case, rest=0.0099, fall=1.99), made(case, rest=0.0101, fall=2.01)]
    return Case(true, tuple(false))


CONSISTENT = Case(
    both(*(error(case, "iw", 1.0, 2.01) for case in APART)),
    tuple(error(case, "iw", 1.0, 1.99) for case in APART),
)


def at_horizon(method, horizon, value):
    def change(data):
        data[f"horizon {method}"][HORIZONS.index(horizon)] = value

    return change


def scaled(last):
    """PGPE's variance grows as the bound's factor does, and `last` times that at the end."""

    def change(data):
        factors = [((1 - 0.9**t) / 0.1) ** 2 for t in HORIZONS]
        data["horizon pgpe"][1:] = np.array(factors)[1:, None]
        data["horizon pgpe"][-1] *= last

    return change


def from_ten(method):
    """A variance of 1 at all horizons but 5."""

    def change(data):
        data[f"horizon {method}"][1:] = 1.0

    return change


FIGURES = {
    "bounds": FigureCases(
        neutral,
        {
            "bounds.theorem-1": bounded("theorem 1", ["none"]),
            "bounds.inverse-in-samples": INVERSE,
            "bounds.theorem-2-minimum": MINIMUM,
            "bounds.theorem-2-excess": EXCESS,
            "bounds.theorem-3-lower-printed": reduced_above("joint"),
            "bounds.theorem-3-lower-blocks": reduced_above("own"),
            "bounds.theorem-3-upper": reduced_below(["joint", "own"]),
            "bounds.larger-weights-more-reduction": REDUCTION,
            "bounds.corollary": bounded("corollary", ["joint", "own"], ["on-policy"]),
            "bounds.niw-inconsistent": inconsistent(),
            "bounds.iw-consistent": CONSISTENT,
            "bounds.horizon": Case(
                both(from_ten("pgpe"), at_horizon("pgpe", 80, 1 - HAIR)),
                (at_horizon("pgpe", 80, 1 + HAIR),),
            ),
            "bounds.horizon-scaled": Case(scaled(1 - HAIR), (scaled(1 + HAIR),)),
            "bounds.horizon-reinforce": Case(
                both(
                    from_ten("pgpe"), from_ten("reinforce"), at_horizon("reinforce", 80, 1 + HAIR)
                ),
                (
                    both(at_horizon("reinforce", 80, 0.99), at_horizon("reinforce", 10, 0.9)),
                    at_horizon("reinforce", 10, 1.1),
                ),
            ),
        },
    )
}
