"""Functions of theta as tasks of one step: what many parameters cost when returns are noisy.

Each is a model with one feature, which is 1, and as many actions as parameters: the action is theta
itself. The return is -f(theta) plus noise N(0, sigma^2); `noise=0` leaves it out.
"""

from collections.abc import Callable
from functools import partial
from math import e, inf, pi

import numpy as np

from recoup.checks import InputError, check_between, check_choice, check_count
from recoup.core.types import Array, Namespace, State
from recoup.tasks.bounded.landscapes import rosenbrock
from recoup.tasks.models import Model

RATIO = 1e3  # of the ellipsoid's largest weight to its smallest: 10^(3 i / (d - 1))


def sphere(xp: Namespace, x: Array) -> Array:
    """sum x_i^2."""
    return xp.sum(x**2)


def ellipsoid(xp: Namespace, x: Array) -> Array:
    """sum w_i x_i^2 with weights from 1 to 1000: in f, so the axes differ by a factor of 32."""
    return xp.sum(RATIO ** np.linspace(0.0, 1.0, x.shape[-1]) * x**2)


def rastrigin(xp: Namespace, x: Array) -> Array:
    """sum x_i^2 + 10 (1 - cos 2 pi x_i): a minimum near every whole number."""
    return xp.sum(x**2 + 10 * (1 - xp.cos(2 * pi * x)))


def ackley(xp: Namespace, x: Array) -> Array:
    """20 (1 - exp(-0.2 |x| / sqrt d)) + e - exp(mean cos 2 pi x_i): a funnel full of holes."""
    far = xp.exp(-0.2 * xp.sqrt(xp.mean(x**2)))
    return 20 * (1 - far) + e - xp.exp(xp.mean(xp.cos(2 * pi * x)))


FUNCTIONS: dict[str, Callable[[Namespace, Array], Array]] = {
    "sphere": sphere,
    "ellipsoid": ellipsoid,
    "rosenbrock": rosenbrock,
    "rastrigin": rastrigin,
    "ackley": ackley,
}


def function(name: str, dim: int, noise: float = 1.0) -> Model:
    """The task of a function of `dim` parameters, its return with so much noise."""
    f = FUNCTIONS[check_choice("the function", name, FUNCTIONS)]
    dim = check_count("dim", dim)
    if name == "rosenbrock" and dim < 2:
        raise InputError(f"rosenbrock has at least 2 parameters, got {dim}.")
    return Model(
        initial=nothing,
        transition=partial(drawn, check_between("noise", noise, 0.0, inf)),
        reward=partial(reward, f),
        basis=one,
        features=1,
        low=(-inf,),
        high=(inf,),
        actions=dim,
    )


def nothing(xp: Namespace, noise: Array) -> Array:
    """The first state `[1]`, zero: there is nothing to see."""
    return 0 * noise


def drawn(sigma: float, xp: Namespace, state: State, action: Array, noise: Array) -> State:
    """The next state `[1]`: the noise of the return."""
    return sigma * noise


def reward(
    f: Callable[[Namespace, Array], Array], xp: Namespace, state: State, action: Array, after: State
) -> Array:
    """-f(theta) and the noise."""
    return after[0] - f(xp, action)


def one(xp: Namespace, state: State) -> Array:
    """The only feature `[1]`."""
    return xp.ones_like(state)
