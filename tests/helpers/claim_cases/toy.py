"""Cases of `toy-returns`, `toy-weights` and `toy-paths`."""

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

SIX = ("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
*OTHERS, OURS = SIX
END = 20


def neutral():
    return {method: np.full((RUNS, 21), NONE) for method in (*SIX, "tiw-pgpe-ob", "mis-pgpe-ob")}


RETURNS = {
    "converges-early": Case(
        both(moves(OURS, 1.0, 2.0), put(OURS, 10, 1.91)),
        (both(put(OURS, 10, 1.0), put(OURS, END, 0.99)), put(OURS, 10, 1.89)),
    ),
    "niw-stays": Case(
        both(moves(OURS, 1.0, 2.0), moves("niw-pgpe", 3.0, 3.49)), (put("niw-pgpe", END, 3.51),)
    ),
    "iw-above-niw": leads("iw-pgpe", ["niw-pgpe"], END),
    "iw-saturates": Case(
        both(moves("iw-pgpe", 1.0, 2.0), put("iw-pgpe", 9, 1.81)),
        (put("iw-pgpe", 9, 1.79),),
    ),
    "late-advantage": Case(
        both(level([OURS, "niw-pgpe-ob"], [5, END]), put(OURS, END, HAIR)),
        (both(put(OURS, END, -HAIR), put(OURS, 5, -2 * HAIR)), put(OURS, 5, 2 * HAIR)),
    ),
    "above-pgpe-ob": Case(
        both(moves(OURS, 1.0, 2.0), moves("pgpe-ob", 1.0, 1.51)),
        (put("pgpe-ob", END, 1.49), put("pgpe-ob", END, 2.01)),
    ),
    "best": leads(OURS, OTHERS, END),
    "baseline-over-weights": leads("niw-pgpe-ob", ["iw-pgpe"], END),
}


def neutral_weights():
    return {method: np.full((RUNS, 20), NONE) for method in ("iw-pgpe", "iw-pgpe-ob")}


WEIGHTS = {
    "grow": Case(
        both(
            level_all(["iw-pgpe", "iw-pgpe-ob"], 1.0),
            level(["iw-pgpe", "iw-pgpe-ob"], -1, 1 + HAIR),
        ),
        (put("iw-pgpe", -1, 1 - HAIR), put("iw-pgpe-ob", -1, 1 - HAIR)),
    )
}


# -- paths --

MANY, BEST = 3_000, 11.0
STARTS = np.array([1.0, 2.0, 3.0])
WALKED = ("niw-pgpe", "iw-pgpe", "iw-pgpe-ob")


def neutral_paths():
    data = {"best": np.array([BEST, -1.0, 0.05]), "start return": STARTS.copy()}
    for method in (*WALKED, "mis-pgpe-ob"):
        for batch in (10, 1):
            data[f"{method} N={batch} return"] = np.full((3, MANY), NONE)
        data[f"{method} N=10 detour"] = np.full((3, MANY), NONE)
    return data


def near(key, share):
    """A share of runs just nearer than nine tenths of the way, the others just not so near."""

    def change(data):
        way = np.where(np.arange(MANY) < round(share * MANY), 0.901, 0.899)
        data[f"{key} return"] = STARTS[:, None] + way * (BEST - STARTS[:, None])

    return change


def most(key):
    return Case(near(key, 0.54), (near(key, 0.46),))


def few(key):
    return Case(near(key, 0.46), (near(key, 0.54),))


ARRIVES = most("iw-pgpe-ob N=10")
PATHS = {
    "niw-fails": few("niw-pgpe N=10"),
    "iw-sometimes": Case(
        near("iw-pgpe N=10", 0.07),
        tuple(near("iw-pgpe N=10", share) for share in (0.03, 0.97)),
        also=(near("iw-pgpe N=10", 0.93),),
    ),
    "iw-ob-arrives": Case(
        both(ARRIVES.true, put_all("iw-pgpe-ob N=10 detour", 1.49)),
        (*ARRIVES.false, put_all("iw-pgpe-ob N=10 detour", 1.51)),
    ),
    "baseline-helps": Case(
        both(put_all("iw-pgpe-ob N=10 return", HAIR), put_all("iw-pgpe N=10 return", 0.0)),
        (put_all("iw-pgpe N=10 return", 2 * HAIR),),
    ),
    "niw-fails-n1": few("niw-pgpe N=1"),
    "iw-not-always-n1": Case(near("iw-pgpe N=1", 0.93), (near("iw-pgpe N=1", 0.97),)),
    "iw-ob-reliable-n1": most("iw-pgpe-ob N=1"),
}
FIGURES = {
    "toy-returns": FigureCases(neutral, {f"toy-returns.{k}": c for k, c in RETURNS.items()}),
    "toy-weights": FigureCases(
        neutral_weights, {f"toy-weights.{k}": c for k, c in WEIGHTS.items()}
    ),
    "toy-paths": FigureCases(neutral_paths, {f"toy-paths.{k}": c for k, c in PATHS.items()}),
}
