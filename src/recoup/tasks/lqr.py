"""Linear-quadratic control from random initial states: many systems, drawn by a number each."""

from functools import partial
from typing import NamedTuple

import numpy as np

from recoup.checks import check_count
from recoup.core.types import Array, Namespace, State
from recoup.tasks.models import Model

LQR_STEPS = 25  # of an episode; the return is a mean over them
RADIUS = 1.1  # largest modulus of an eigenvalue of A: without control, states grow slowly
PUSH = 0.1  # what the square of an action costs
STATE_NOISE = 0.1  # standard deviation of what moves the state at every step
COST_LIMIT = 100.0  # the cost of a step stays below this, however far the state is
STATE_LIMIT = 1e6  # states are held to +- this
SYSTEMS = 7301  # where the random numbers of the systems begin


class System(NamedTuple):
    """x' = A x + B u + noise."""

    a: Array  # [S, S]
    b: Array  # [S, A]


def system_of(states: int, actions: int, number: int) -> System:
    """System `number` of this size: A normal, scaled to its radius; B normal over sqrt S."""
    rng = np.random.default_rng([SYSTEMS, states, actions, number])
    a = rng.standard_normal((states, states))
    b = rng.standard_normal((states, actions)) / np.sqrt(states)
    return System(a * RADIUS / np.abs(np.linalg.eigvals(a)).max(), b)


def lqr(states: int, actions: int, system: int = 0) -> Model:
    """The task of one system; u = theta^T x."""
    number = check_count("system", system, least=0)
    return controlled(system_of(states, actions, number), states, actions)


def controlled(system: System, states: int, actions: int) -> Model:
    """The task of a system that is given, of NumPy or JAX."""
    return Model(
        initial=initial,
        transition=partial(transition, system),
        reward=reward,
        basis=basis,
        features=states,
        low=(-STATE_LIMIT,) * states,
        high=(STATE_LIMIT,) * states,
        actions=actions,
    )


def initial(xp: Namespace, noise: Array) -> Array:
    """The first state `[S]`, standard normal."""
    return noise


def transition(system: System, xp: Namespace, state: State, action: Array, noise: Array) -> State:
    """The next state `[S]`."""
    after = system.a @ state + system.b @ action + STATE_NOISE * noise
    return xp.clip(after, -STATE_LIMIT, STATE_LIMIT)


def reward(xp: Namespace, state: State, action: Array, after: State) -> Array:
    """Minus the cost c = |x|^2 + 0.1 |u|^2, bounded as c / (1 + c / 100), over the steps."""
    held = xp.clip(action, -STATE_LIMIT, STATE_LIMIT)
    cost = xp.sum(state**2) + PUSH * xp.sum(held**2)
    return -cost / (1 + cost / COST_LIMIT) / LQR_STEPS


def basis(xp: Namespace, state: State) -> Array:
    """The features `[S]`: the state itself."""
    return state
