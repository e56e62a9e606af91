"""Cases of the reaching tasks: learning curves, motions along an episode, and energy."""

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

METHODS = ("iw-reinforce-ob", "niw-pgpe-ob", "pgpe-ob", "iw-pgpe-ob")
OURS, TRUNCATED = "iw-pgpe-ob", "tiw-pgpe-ob"
OTHERS = METHODS[:3]
TESTED = {  # iterations at which runs are tested
    2: np.array([0, 3, 6, 9, 12, 15, 18, 20, 21, 24, 30, 36, 42, 48, 50, 54, 60]),
    4: np.array([0, 15, 20, 30, 45, 50, 60, 75, 90, 105, 120, 135, 150, 165, 180, 210, 240, 300]),
    9: np.array([0, 20, 40, 60, 80, 100, 120, 140, 160, 200, 240, 280, 320, 360, 400]),
}


def neutral(joints):
    data = {"iterations": TESTED[joints]}
    for method in (*METHODS, TRUNCATED, "mis-pgpe-ob"):
        data[method] = np.full((RUNS, len(TESTED[joints])), NONE)
        for what in ("ess", "max weight"):
            data[f"{method} {what}"] = np.ones((RUNS, TESTED[joints][-1]))
    return data


def at(joints, iteration):
    return int(np.flatnonzero(TESTED[joints] == iteration)[0])


TWENTY = at(2, 20)
REINFORCE = "iw-reinforce-ob"
SIDES = np.resize([1.0, -1.0], RUNS)  # runs to both sides of the middle
TWO = {
    "improves": Case(moves(OURS, 1.0, 1 + HAIR), (put(OURS, -1, 1 - HAIR),)),
    "pgpe-ob-slower": Case(
        both(
            moves("pgpe-ob", 1.0, 1 + HAIR),
            put("pgpe-ob", TWENTY, 0.0),
            put(OURS, TWENTY, HAIR),
        ),
        (put("pgpe-ob", -1, 1 - HAIR), put("pgpe-ob", TWENTY, 2 * HAIR)),
    ),
    "niw-ob-falls-behind": Case(
        both(level([OURS, "niw-pgpe-ob"], [TWENTY, -1]), put(OURS, -1, HAIR)),
        (both(put(OURS, -1, -HAIR), put(OURS, TWENTY, -2 * HAIR)), put(OURS, TWENTY, 2 * HAIR)),
    ),
    "reinforce-stays": Case(
        both(moves(OURS, 1.0, 2.0), moves(REINFORCE, 5.0, 5.19)), (put(REINFORCE, -1, 5.21),)
    ),
    "reinforce-depends-on-start": Case(
        both(moves(REINFORCE, SIDES, (1 + HAIR) * SIDES), moves(OURS, -3 * SIDES, 9 + SIDES)),
        (put(OURS, -1, 9 + (1 + 2 * HAIR) * SIDES), put(REINFORCE, 0, -SIDES)),
    ),
}
THIRD, HALF = at(4, 105), at(4, 150)
FOUR = {
    "improves-throughout": Case(
        both(moves(OURS, 1.0, 1 + 2 * HAIR), put(OURS, HALF, 1 + HAIR)),
        (put(OURS, HALF, 1 - HAIR), put(OURS, -1, 1 + HAIR / 2)),
    ),
    "ahead-early": leads(OURS, OTHERS, THIRD),
    "best": leads(OURS, OTHERS, -1),
}


# -- nine joints --


def neutral_nine():
    data = neutral(9)
    for joints in (2, 4, 9):
        for what in ("", " energy", " gained", " paid"):
            data[f"{joints} joints{what}"] = np.full(RUNS, NONE)
        data[f"{joints} joints max weight"] = np.full((RUNS, TESTED[joints][-1]), NONE)
    data["longer iterations"], data["longer"] = np.array([0, 400, 600]), np.full((RUNS, 3), NONE)
    return data


def weights(joints, value):
    """The largest weights in the iterations that all tasks have."""
    return put(f"{joints} joints max weight", slice(0, 60), value)


NINE = {
    "truncated-best": leads(TRUNCATED, METHODS, -1),
    "degrades": leads("pgpe-ob", [OURS], -1),
    "weights-grow": Case(
        both(weights(2, 1.0), weights(4, 1 + HAIR), weights(9, 1 + 2 * HAIR)),
        (weights(4, 1 - HAIR), weights(9, 1 + HAIR / 2)),
    ),
    "returns-fall": Case(  # with two joints the target is another: not looked at
        both(put_all("4 joints", HAIR), put_all("9 joints", 0.0)), (put_all("4 joints", -HAIR),)
    ),
    "more-iterations-still-less": Case(
        both(put_all("4 joints", HAIR), put("longer", 2, 0.0)),
        (put("longer", 2, 2 * HAIR),),
    ),
    "more-joints-more-energy": Case(
        both(put_all("9 joints energy", HAIR), put_all("4 joints energy", 0.0)),
        (put_all("9 joints energy", -HAIR),),
    ),
    "energy-lowers-returns": Case(
        both(
            level_all(["4 joints paid", "9 joints gained"]),
            put_all("9 joints paid", 2 * HAIR),
            put_all("4 joints gained", HAIR),
        ),
        (
            both(put_all("9 joints paid", -HAIR), put_all("4 joints gained", -2 * HAIR)),
            put_all("4 joints gained", 3 * HAIR),
        ),
    ),
}


# -- along an episode; the joints stand in another order than in the model --


def neutral_motion(joints, shown):
    shape = (len(shown), RUNS, 100)
    return {
        "shown": np.array(shown),
        "joints": np.array(joints),
        "distance": np.full(shape, NONE),
        "cost": np.full(shape, NONE),
        "torque2": np.full((*shape, len(joints)), NONE),
        "angle": np.full((*shape, len(joints)), NONE),
        "arm alone": np.array(NONE),
    }


def neutral_two():
    return neutral_motion(("r_el_pitch", "r_sh_pitch"), (0, 20, 50))


def neutral_four():
    return neutral_motion(("r_el_pitch", "r_sh_roll", "waist_yaw", "r_sh_pitch"), (0, 20, 50, 300))


def step(key, iteration, steps, value, joint=None):
    """Sets steps, counted from 1, of the policies after an iteration."""

    def change(data):
        values = data[key][data["shown"].tolist().index(iteration)]
        if joint is not None:
            values = values[..., data["joints"].tolist().index(joint)]
        values[:, slice(steps[0] - 1, steps[1])] = value

    return change


def swings(joint, early, iteration=50, half=(3, 5)):
    """A joint that has moved by `early` at one step and by 1 at another."""
    return both(
        step("angle", iteration, (1, 100), 0.0, joint),
        step("angle", iteration, (half[0], half[1] - 1), early, joint),
        step("angle", iteration, (half[1], 100), 1.0, joint),
    )


def falling(lowered):
    """Costs that fall by a hair from each of the first six steps to the next.

    The first `lowered` are lower by two hairs: from the last of them on, the next step costs more.
    """

    def change(data):
        cost = HAIR * np.arange(6.0, 0.0, -1.0)
        cost[:lowered] -= 2 * HAIR
        data["cost"][2, :, :6] = cost

    return change


SHOULDER, ELBOW, WAIST, ROLL = "r_sh_pitch", "r_el_pitch", "waist_yaw", "r_sh_roll"
COST = {
    "nears-soonest": Case(
        both(
            *(step("distance", i, (1, 20), 1.0) for i in (0, 20, 50)),
            step("distance", 50, (20, 20), 1 - HAIR),
        ),
        tuple(step("distance", i, (20, 20), 1 - 2 * HAIR) for i in (0, 20)),
    ),
    "falls": Case(falling(0), tuple(falling(t) for t in range(1, 6))),
    "shoulder": Case(
        both(
            step("torque2", 50, (1, 10), 0.0, SHOULDER),
            step("torque2", 50, (1, 10), 0.0, ELBOW),
            step("torque2", 50, (10, 10), HAIR, SHOULDER),
        ),
        (step("torque2", 50, (10, 10), 2 * HAIR, ELBOW),),
    ),
    "elbow-later": Case(  # the shoulder is half-way at step 4, the elbow at 5, then at 3
        both(swings(SHOULDER, 1.0, half=(4, 5)), swings(ELBOW, 0.49)), (swings(ELBOW, 0.51),)
    ),
    "cheaper-20": Case(
        both(
            step("cost", 50, (1, 100), 1.0),
            step("cost", 20, (1, 100), 1 - HAIR),
            step("distance", 20, (1, 100), 1.0),
            step("distance", 20, (90, 90), 0.051),
        ),
        (step("cost", 20, (1, 100), 1 + HAIR), step("distance", 20, (90, 90), 0.049)),
    ),
}
STRIP_2 = {
    "arrives": Case(
        both(step("distance", 50, (1, 10), 1.0), step("distance", 50, (10, 10), 0.049)),
        (step("distance", 50, (10, 10), 0.051),),
    )
}
ARM = (SHOULDER, ROLL, ELBOW)
STRIP_4 = {
    "out-of-reach": Case(put_all("arm alone", 0.051), (put_all("arm alone", 0.049),)),
    "arrives": Case(
        both(step("distance", 300, (1, 100), 1.0), step("distance", 300, (90, 90), 0.049)),
        (step("distance", 300, (90, 90), 0.051),),
    ),
    "waist-first": Case(  # the waist is half-way at step 4, each joint of the arm at 5, then at 3
        both(
            swings(WAIST, 1.0, 300, (4, 5)),
            *(swings(joint, 0.49, 300) for joint in ARM),
        ),
        tuple(swings(joint, 0.51, 300) for joint in ARM),
    ),
}


def figure(name, made, cases):
    return FigureCases(made, {f"{name}.{k}": case for k, case in cases.items()})


FIGURES = {
    "reach-2": figure("reach-2", lambda: neutral(2), TWO),
    "reach-4": figure("reach-4", lambda: neutral(4), FOUR),
    "reach-9": figure("reach-9", neutral_nine, NINE),
    "reach-2-cost": figure("reach-2-cost", neutral_two, COST),
    "reach-2-strip": figure("reach-2-strip", neutral_two, STRIP_2),
    "reach-4-strip": figure("reach-4-strip", neutral_four, STRIP_4),
}
