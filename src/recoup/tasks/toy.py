"""The paper's illustrative example: a noisy one-dimensional linear system."""

from recoup.core.types import Array, Namespace, State
from recoup.tasks.models import Model

TOY_NOISE = 0.5


def toy() -> Model:
    """The toy: state s, action a = theta s."""
    infinity = float("inf")
    return Model(
        initial=initial,
        transition=transition,
        reward=reward,
        basis=basis,
        features=1,
        low=(-infinity,),
        high=(infinity,),
    )


def initial(xp: Namespace, noise: Array) -> Array:
    """The first state `[1]`, standard normal.

    Implements: zhao2013 S4.1 s_1 ~ N(0, 1).
    """
    return noise


def transition(xp: Namespace, state: State, action: Array, noise: Array) -> State:
    """The next state `[1]`.

    Implements: zhao2013 S4.1 s' = s + a + e, e ~ N(0, 0.5^2).
    """
    return state + action + TOY_NOISE * noise


def reward(xp: Namespace, state: State, action: Array, after: State) -> Array:
    """The immediate reward, in (1, 2].

    Implements: zhao2013 S4.1 r = exp(-s^2 / 2 - a^2 / 2) + 1.
    """
    return xp.exp(-(state[0] ** 2) / 2 - action[0] ** 2 / 2) + 1


def basis(xp: Namespace, state: State) -> Array:
    """The features `[1]`: the state itself."""
    return state
