"""Gymnasium's pendulum, Pendulum-v1, with its equations in JAX: swing up, with little torque."""

from math import inf, pi

import numpy as np

from recoup.core.types import Array, Namespace, State
from recoup.tasks.models import Model

PENDULUM_GRAVITY, PENDULUM_MASS, LENGTH, PENDULUM_STEP = 10.0, 1.0, 1.0, 0.05
MOST_TORQUE, MOST_SPEED = 2.0, 8.0


def pendulum() -> Model:
    """The pendulum: state (angle, velocity), angle 0 upright; the policy sees cos, sin and 1."""
    return Model(
        initial=initial,
        transition=transition,
        reward=reward,
        basis=basis,
        features=4,
        low=(-inf, -MOST_SPEED),
        high=(inf, MOST_SPEED),
        action_limit=MOST_TORQUE,
    )


def initial(xp: Namespace, noise: Array) -> Array:
    """The first state `[2]`: any angle, a velocity in [-1, 1], both uniform."""
    return (2 * _uniform(xp, noise) - 1) * xp.asarray([pi, 1.0])


def transition(xp: Namespace, state: State, action: Array, noise: Array) -> State:
    """The next state `[2]`, the torque held to +-2 and the velocity to +-8."""
    angle, speed = state[0], state[1]
    pull = 3 * PENDULUM_GRAVITY / (2 * LENGTH) * xp.sin(angle)
    push = 3 / (PENDULUM_MASS * LENGTH**2) * _torque(xp, action)
    speed = xp.clip(speed + (pull + push) * PENDULUM_STEP, -MOST_SPEED, MOST_SPEED)
    return xp.stack([angle + speed * PENDULUM_STEP, speed])


def reward(xp: Namespace, state: State, action: Array, after: State) -> Array:
    """Minus angle^2 + 0.1 velocity^2 + 0.001 torque^2 of the state before, angle in [-pi, pi)."""
    angle = (state[0] + pi) % (2 * pi) - pi
    return -(angle**2 + 0.1 * state[1] ** 2 + 0.001 * _torque(xp, action) ** 2)


def basis(xp: Namespace, state: State) -> Array:
    """The features `[4]`: cos, sin, velocity, 1."""
    return xp.stack([xp.cos(state[0]), xp.sin(state[0]), state[1], xp.ones_like(state[0])])


def _torque(xp: Namespace, action: Array) -> Array:
    return xp.clip(action[0], -MOST_TORQUE, MOST_TORQUE)


def _uniform(xp: Namespace, noise: Array) -> Array:
    """Numbers uniform in [0, 1] of standard normal ones."""
    if xp is np:
        from scipy.special import ndtr
    else:
        from jax.scipy.special import ndtr
    return ndtr(noise)
