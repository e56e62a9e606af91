"""Families of a user's own: one with a third array, and two that could be taken for it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

import recoup


class Leaning(NamedTuple):
    """A Gaussian whose coordinates all lean on the first: correlated, by an array of its own."""

    centre: jax.Array  # [D]
    log_width: jax.Array  # [D]
    lean: jax.Array  # [D], of which the first counts for nothing

    mean = property(lambda self: self.centre)

    @property
    def leans(self):
        return self.lean * (jnp.arange(self.lean.shape[-1]) > 0)

    @property
    def std(self):
        return jnp.exp(self.log_width) * jnp.sqrt(1 + self.leans**2)

    def theta(self, noise):
        return self.centre + jnp.exp(self.log_width) * (noise + self.leans * noise[..., :1])


def leaning_density(rho, theta):
    seen = (theta - rho.centre) / jnp.exp(rho.log_width)
    noise = seen - rho.leans * seen[..., :1]
    return jnp.sum(-0.5 * noise**2 - rho.log_width)


def leaning(name="leaning", lean=0.0):
    """The family, its start leaning by `lean`."""

    def start(mean, std):
        leans = lean * (jnp.arange(len(mean)) > 0)
        return Leaning(mean, jnp.log(std / jnp.sqrt(1 + leans**2)), leans)

    return recoup.family(name, start=start, log_density=leaning_density)


class PlainWidths(NamedTuple):
    """As many numbers as `Leaning` has, which mean another distribution."""

    centre: jax.Array
    width: jax.Array
    third: jax.Array

    mean = property(lambda self: self.centre)
    std = property(lambda self: self.width)

    def theta(self, noise):
        return self.centre + self.width * noise


def width_density(rho, theta):
    return jnp.sum(-0.5 * ((theta - rho.centre) / rho.width) ** 2 - jnp.log(rho.width))


def plain_widths(name):
    """A family that draws each coordinate for itself."""
    return recoup.family(
        name,
        start=lambda mean, std: PlainWidths(mean, std, 0 * std),
        log_density=width_density,
    )


class WidthFirst(NamedTuple):
    """Against the rule that means come first."""

    width: jax.Array
    centre: jax.Array

    mean = property(lambda self: self.centre)
    std = property(lambda self: self.width)

    def theta(self, noise):
        return self.centre + self.width * noise


def width_first():
    """A family whose widths stand before its means."""
    return recoup.family(
        "width-first",
        start=lambda mean, std: WidthFirst(std, mean),
        log_density=width_density,
    )


class Round(NamedTuple):
    """A Gaussian with one standard deviation for all coordinates."""

    centre: jax.Array
    log_width: jax.Array

    mean = property(lambda self: self.centre)
    std = property(lambda self: jnp.exp(self.log_width) + 0 * self.centre)

    def theta(self, noise):
        return self.centre + jnp.exp(self.log_width) * noise


def round_density(rho, theta):
    return jnp.sum(-0.5 * ((theta - rho.centre) / jnp.exp(rho.log_width)) ** 2 - rho.log_width)


def rounded(name="round", **more):
    """The family, with the width of its first coordinate."""
    start = lambda mean, std: Round(mean, jnp.log(std[:1]))  # noqa: E731
    return recoup.family(name, start=start, log_density=round_density, **more)


def stretched_round(rho, delta, log, least):
    wider = rho.log_width + jnp.mean(log)
    return Round(rho.theta(delta), jnp.maximum(wider, jnp.mean(jnp.log(least))))


ROUND_MOVING = {  # what a rule asks for
    "whitened": lambda rho, theta: (theta - rho.centre) / jnp.exp(rho.log_width),
    "log_spread": lambda rho: rho.log_width + 0 * rho.centre,
    "stretched": stretched_round,
    "refitted": lambda rho, delta, variance: Round(
        rho.theta(delta), rho.log_width + jnp.log(jnp.mean(variance)) / 2
    ),
    "shape": "diagonal",
}
