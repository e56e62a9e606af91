"""Networks: numbers `[I]` to numbers `[O]`, with all weights in one vector theta `[D]`.

Each has `parameters`, how many; `spread()`, standard deviations `[D]` for a search to start with,
such that outputs are of the order of one; and `bound(theta)`, the function for one theta, in NumPy
or in JAX as theta is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from recoup.checks import InputError, check_count, check_flag
from recoup.core.types import Array, Given, Namespace

Function = Callable[[Any], Any]


class Network(Protocol):
    """What a policy needs of a network."""

    @property
    def parameters(self) -> int:
        """How many weights there are, D."""

    def spread(self) -> np.ndarray:
        """Standard deviations `[D]` to start from."""

    def bound(self, theta: Array) -> Function:
        """The function `[I] -> [O]` of one theta."""


@dataclass(frozen=True)
class Linear:
    """Weights times inputs, and a bias unless there is none."""

    inputs: int
    outputs: int
    bias: bool = True

    @property
    def parameters(self) -> int:
        """Weights row by row, one row an input, then the bias."""
        return (self.inputs + self.bias) * self.outputs

    def spread(self) -> np.ndarray:
        """One over the root of the number of inputs."""
        return np.full(self.parameters, (self.inputs + self.bias) ** -0.5)

    def bound(self, theta: Array) -> Function:
        """`y = x W + b`."""
        weights = theta.reshape(self.inputs + self.bias, self.outputs)
        if not self.bias:
            return lambda x: x @ weights
        first, last = weights[:-1], weights[-1]
        return lambda x: x @ first + last


@dataclass(frozen=True)
class Kernels:
    """Weights times Gaussian kernels exp(-|x - c|^2 / (2 w^2)) of the inputs, and a bias."""

    centres: tuple[tuple[float, ...], ...]  # [K, I]
    widths: tuple[float, ...]  # [I], one for each input
    outputs: int

    @property
    def parameters(self) -> int:
        """Weights row by row, one row a kernel, then the bias."""
        return (len(self.centres) + 1) * self.outputs

    def spread(self) -> np.ndarray:
        """One: a few kernels are near one at a time, the others near zero."""
        return np.ones(self.parameters)

    def bound(self, theta: Array) -> Function:
        """`y = phi(x) W + b`."""
        xp = namespace(theta)
        widths = np.array(self.widths)
        centres = xp.asarray(np.array(self.centres) / widths)
        weights = theta.reshape(len(self.centres) + 1, self.outputs)
        first, last = weights[:-1], weights[-1]

        def function(x: Array) -> Array:
            near = xp.exp(-0.5 * xp.sum((x / widths - centres) ** 2, axis=-1))
            return near @ first + last

        return function


@dataclass(frozen=True)
class MLP:
    """Layers with tanh between them."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of each layer, the bias the last row."""
        sizes = (self.inputs, *self.hidden, self.outputs)
        return [(rows + 1, columns) for rows, columns in pairwise(sizes)]

    @property
    def parameters(self) -> int:
        """Layer by layer, each row by row with its bias last."""
        return sum(rows * columns for rows, columns in self.shapes)

    def spread(self) -> np.ndarray:
        """One over the root of the number of each layer's inputs."""
        return np.concatenate([np.full(r * c, r**-0.5) for r, c in self.shapes])

    def bound(self, theta: Array) -> Function:
        """`x <- tanh(x W + b)` layer by layer, the last without tanh."""
        xp, layers, at = namespace(theta), [], 0
        for rows, columns in self.shapes:
            weights = theta[at : at + rows * columns].reshape(rows, columns)
            layers.append((weights[:-1], weights[-1]))
            at += rows * columns

        def function(x: Array) -> Array:
            for weights, bias in layers[:-1]:
                x = xp.tanh(x @ weights + bias)
            weights, bias = layers[-1]
            return x @ weights + bias

        return function


def layers_of(
    network: Linear | Kernels | MLP, theta: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Weights `[rows, columns]` and bias `[columns]`, or None, of each layer of one of ours."""
    if isinstance(network, Linear) and not network.bias:
        return [(theta.reshape(network.inputs, network.outputs), None)]
    shapes = network.shapes if isinstance(network, MLP) else [(-1, network.outputs)]
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    blocks = [
        block.reshape(shape) for block, shape in zip(np.split(theta, ends), shapes, strict=True)
    ]
    return [(block[:-1], block[-1]) for block in blocks]


def namespace(theta: Array) -> Namespace:
    """`jax.numpy` for an array of JAX, `numpy` for any other."""
    if isinstance(theta, np.ndarray):
        return np
    import jax.numpy as jnp

    return jnp


MOST_KERNELS = 10_000  # kernels of a grid


def grid(low: Any, high: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres `[size^I, I]` on a grid between bounds, and widths `[I]`: the distance of two."""
    lows, highs = np.asarray(low, float), np.asarray(high, float)
    size = check_count("size", size, least=2)
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        raise InputError(
            "kernels on a grid need bounds of every observation, and this task's have none: give "
            "warm_up=5 (--warm-up 5), and centres are taken from what is observed in 5 episodes."
        )
    if size ** len(lows) > MOST_KERNELS:
        raise InputError(
            f"a grid of {size} in {len(lows)} dimensions has {size ** len(lows):,} kernels: give "
            "warm_up=5 (--warm-up 5), and centres are taken from what is observed in 5 episodes."
        )
    axes = [np.linspace(a, b, size) for a, b in zip(lows, highs, strict=True)]
    centres = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    return centres, np.maximum((highs - lows) / (size - 1), 1e-12)


def fitted(observed: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres `[count, I]` among observations `[n, I]`, far from each other, and widths `[I]`.

    Each centre is the observation that lies farthest from those before it, the first the one
    nearest to the mean; distances in standard deviations. The width is that of the typical
    distance of a centre to its nearest neighbour.
    """
    count = check_count("size", count)
    scale = np.maximum(observed.std(0), 1e-8)
    points = np.unique(observed / scale, axis=0)
    count = min(count, len(points))
    chosen = [int(np.argmin(np.sum((points - points.mean(0)) ** 2, axis=1)))]
    far = np.full(len(points), np.inf)
    while len(chosen) < count:
        far = np.minimum(far, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
        chosen.append(int(np.argmax(far)))
    centres = points[chosen]
    apart = np.sqrt(np.sum((centres[:, None] - centres) ** 2, axis=-1))
    np.fill_diagonal(apart, np.inf)
    width = float(np.median(apart.min(1))) if count > 1 else 1.0
    return centres * scale, np.maximum(width, 1e-8) * scale


def hidden_of(given: Given) -> tuple[int, ...]:
    """Sizes of hidden layers, a number or several."""
    sizes = list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
    return tuple(check_count("hidden", size) for size in sizes)


def linear(inputs: int, outputs: int, bias: Any = True) -> Linear:
    """A linear network, its options checked."""
    return Linear(inputs, outputs, check_flag("bias", bias))
