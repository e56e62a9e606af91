"""The paper's mountain car, with the force as printed (unbounded) or bounded."""

from functools import partial
from math import pi

import numpy as np

from recoup.checks import check_positive
from recoup.core.types import Array, Namespace, State
from recoup.tasks.models import Model

CAR_MASS, FRICTION, CAR_STEP = 0.2, 0.3, 0.1
LOW, HIGH = (-1.2, -1.5), (0.5, 1.5)
GOAL = 0.45
CENTRES = np.array([(x, v) for x in (-1.2, -0.35, 0.5) for v in (-1.5, -0.5, 0.5, 1.5)])


def mountain_car(force_limit: float | None = None) -> Model:
    """The car: state (position, velocity), action the force, held to +-force_limit if given."""
    limit = float("inf") if force_limit is None else check_positive("force_limit", force_limit)
    return Model(
        initial=initial,
        transition=partial(transition, limit),
        reward=reward,
        basis=basis,
        features=len(CENTRES),
        low=LOW,
        high=HIGH,
        action_limit=limit,
        picture=picture,
    )


def picture(state: State) -> np.ndarray:
    """The car on its slope, `[360, 480, 3]`."""
    from recoup.tasks.car_picture import car_picture

    return car_picture(state)


def initial(xp: Namespace, noise: Array) -> Array:
    """The first state `[2]`: at rest at the bottom, x = -pi / 6."""
    return xp.asarray([-pi / 6, 0.0]) + 0 * noise


def transition(limit: float, xp: Namespace, state: State, action: Array, noise: Array) -> State:
    """The next state `[2]`.

    Implements: zhao2013 S4.2 v' = v + (-9.8 w cos(3x) + a / w - k v) dt, x' = x + v' dt, each held
    to the paper's range of states. Differs: `limit` bounds the force; the paper gives no
    number for its "not strong enough".
    """
    x, v = state[0], state[1]
    a = xp.clip(action[0], -limit, limit)
    pull = -9.8 * CAR_MASS * xp.cos(3 * x) + a / CAR_MASS - FRICTION * v
    v = xp.clip(v + pull * CAR_STEP, LOW[1], HIGH[1])
    x = xp.clip(x + v * CAR_STEP, LOW[0], HIGH[0])
    return xp.stack([x, v])


def reward(xp: Namespace, state: State, action: Array, after: State) -> Array:
    """1 at the goal, -1 elsewhere.

    Implements: zhao2013 S4.2 r = 1 if x_{t+1} >= 0.45 else -1.
    """
    return xp.where(after[0] >= GOAL, 1.0, -1.0)


def basis(xp: Namespace, state: State) -> Array:
    """The features `[12]`: Gaussian kernels of width 1 on a 3 x 4 grid.

    Implements: zhao2013 S4.2 phi(s) = exp(-||s - c||^2 / 2).
    """
    return xp.exp(-xp.sum((state - CENTRES) ** 2, axis=-1) / 2)
