"""Cases of `mountain-car`: both cars, learning curves over 30 iterations, and supposed causes."""

import numpy as np

from claim_cases.parts import (
    HAIR,
    NONE,
    RUNS,
    Case,
    FigureCases,
    both,
    leads,
    level,
    level_all,
    moves,
    put,
    put_all,
)

TASKS = ("mountain-car", "mountain-car-weak")
PGPE = ("pgpe-ob", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
POLICY_GRADIENTS = ("iw-reinforce-ob", "tiw-enac")
OURS = "iw-pgpe-ob"
OTHERS = ("pgpe-ob", "niw-pgpe-ob", "iw-pgpe", "iw-reinforce-ob", "tiw-enac", "r3")
METHODS = (*OTHERS, OURS, "tiw-pgpe-ob", "mis-pgpe-ob")
THIRD, HALF, END = 10, 15, 30
LITTLE = 0.243  # 1 % of the range of returns


def neutral():
    data = {}
    for task in TASKS:
        for method in METHODS:
            data[f"{task} {method}"] = np.full((RUNS, END + 1), NONE)
            data[f"{task} {method} ess"] = np.ones((RUNS, END))
    for name in ("iw-pgpe", "iw-pgpe-ob", "lost", "bias"):
        data[f"cause {name}"] = np.full((RUNS, 2), NONE)
    return data


def wavers(key, fall):
    """Up by 1 early, down by `fall` late: of all moves a share of fall / (1 + fall) goes down."""

    def change(data):
        data[key][:, 0], data[key][:, 1:] = 0.0, 1.0
        data[key][:, -1] = 1.0 - fall

    return change


def half_of_ours(key, ours):
    """A gain of just more than half of what ours gains, from another start."""
    true = both(moves(ours, 1.0, 2.0), moves(key, 3.0, 3.51))
    return Case(true, (put(key, END, 3.49),))


def one_below(task, method, other):
    """`other` above `method`, and below all other methods that search parameters."""
    higher = [put(f"{task} {m}", END, 3 * HAIR) for m in PGPE if m != method]
    return both(put(f"{task} {other}", END, 2 * HAIR), *higher)


def cases_of(task):
    at = task + " {}"
    ours, rest = f"{task} {OURS}", [m for m in PGPE if m != OURS]
    pgpe_ob, r3 = f"{task} pgpe-ob", f"{task} r3"
    gains = [moves(f"{task} {m}", 1.0, 1 + HAIR) for m in POLICY_GRADIENTS]
    early = [put(f"{task} {m}", THIRD, 1.0) for m in POLICY_GRADIENTS]
    return {
        "best": leads(OURS, OTHERS, END, at),
        "ahead-early": leads(OURS, OTHERS, THIRD, at),
        "smooth": Case(
            both(wavers(ours, 0.49), *(wavers(f"{task} {m}", 0.5) for m in rest)),
            tuple(wavers(f"{task} {m}", 0.48) for m in rest),
        ),
        "iw-improves": half_of_ours(f"{task} iw-pgpe", ours),
        "iw-below-iw-ob": leads(OURS, ["iw-pgpe"], END, at),
        "niw-ob-fair": half_of_ours(f"{task} niw-pgpe-ob", ours),
        "pgpe-ob-improves": Case(
            both(moves(pgpe_ob, 0.0, 2 * HAIR), put(pgpe_ob, HALF, HAIR)),
            (put(pgpe_ob, HALF, -HAIR), put(pgpe_ob, END, HAIR / 2)),
        ),
        "others-improve": Case(
            both(*gains, *early, put(ours, THIRD, 1 + HAIR)),
            (
                *(put(f"{task} {m}", END, 1 - HAIR) for m in POLICY_GRADIENTS),
                *(put(f"{task} {m}", THIRD, 1 + 2 * HAIR) for m in POLICY_GRADIENTS),
            ),
        ),
        "others-below-pgpe": Case(
            both(
                level([f"{task} {m}" for m in PGPE], END, HAIR),
                level([f"{task} {m}" for m in POLICY_GRADIENTS], END),
            ),
            tuple(one_below(task, m, other) for m in PGPE for other in POLICY_GRADIENTS),
        ),
        "reinforce-above-enac": leads("iw-reinforce-ob", ["tiw-enac"], END, at),
        "r3-stays": Case(moves(r3, 5.0, 5 + LITTLE - 1e-3), (put(r3, END, 5 + LITTLE + 1e-3),)),
        "baseline-over-weights": leads("niw-pgpe-ob", ["iw-pgpe"], END, at),
    }


def no_direction(data):
    """A start from which nothing can be learned: left out."""
    data["cause bias"][0, 0] = np.nan


CAUSES = {
    "mountain-car.iw-varies": Case(
        both(put_all("cause iw-pgpe-ob", 1.0), put_all("cause iw-pgpe", 1 + HAIR)),
        (put("cause iw-pgpe", 0, 1 - HAIR), put("cause iw-pgpe", 1, 1 - HAIR)),
    ),
    "mountain-car.enac-bias-grows": Case(
        both(
            level_all(["cause lost", "cause bias"], 1.0),
            level(["cause lost", "cause bias"], 1, 1 + HAIR),
            no_direction,
        ),
        (put("cause lost", 1, 1 - HAIR), put("cause bias", 1, 1 - HAIR)),
    ),
}
FIGURES = {
    "mountain-car": FigureCases(
        neutral,
        {
            **{f"{task}.{k}": c for task in TASKS for k, c in cases_of(task).items()},
            **CAUSES,
        },
    )
}
