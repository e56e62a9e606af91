"""The classics: samples that earned more count more, and rho is fitted to them anew.

Each sample has a coefficient c_n = omega_n u(R_n), with omega the self-normalised importance
weights and u what the method is known by: CEM's elite, the exponential of reward-weighted
regression, that of REPS with a bounded divergence. On samples of rho itself omega is 1/n, as in the
textbook; old samples take part through omega alone. None of them has a step size.

u sees returns in [-1, 0], from the worst to the best that takes part: adding a constant to all
returns, or multiplying them by one, changes nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

from recoup.core.arrays import Array, repeat, tree_map
from recoup.core.families.shapes import Shape, Symmetric
from recoup.core.types import Namespace

ALONE = 1e-3  # 1 - sum c^2 below which one sample is all there is: it says nothing of the spread
COLDEST, HOTTEST = -30.0, 20.0  # log eta, over the range of returns, between which REPS looks
HALVINGS = 60

Utility = Callable[
    [Namespace, Array, Array], Array
]  # xp, omega [n], returns [n] in [-1, 0] -> u [n]


def elite(share: float) -> Utility:
    """u is 1 for the best `share` of the weight and 0 for the rest.

    Implements: rubinstein1999 elite samples, u = I{R >= gamma}, gamma the quantile of 1 - share.

    Differs: those at gamma itself, one or a tie, count by what the ones above leave of the share,
    so that the elite weighs exactly that, whatever the batch and the weights.
    """

    def utility(xp: Namespace, omega: Array, returns: Array) -> Array:
        keyed = xp.where(omega > 0, returns, -xp.inf)
        order = xp.argsort(keyed)
        total = xp.concatenate([xp.zeros(1, dtype=omega.dtype), xp.cumsum(omega[order])])
        first = xp.searchsorted(keyed[order], keyed, side="left")
        last = xp.searchsorted(keyed[order], keyed, side="right")
        above, tied = total[-1] - total[last], total[last] - total[first]
        return xp.clip((share - above) / xp.where(tied > 0, tied, 1.0), 0.0, 1.0)

    return utility


def exponential(temperature: float) -> Utility:
    """u = exp(R / (temperature s)), with s the standard deviation of the returns under omega.

    Implements: peters2007 u(R) = exp(beta R), here with beta = 1 / (temperature s).

    Differs: there beta is adapted along with the policy; by s it follows the scale of the returns.
    """

    def utility(xp: Namespace, omega: Array, returns: Array) -> Array:
        away = returns - xp.sum(omega * returns)
        spread = xp.sqrt(xp.sum(omega * away**2))
        return xp.exp(returns / xp.where(spread > 0, temperature * spread, 1.0))

    return utility


def bounded(kl: float) -> Utility:
    """u = exp(R / eta), with eta such that the coefficients diverge by `kl` from the weights.

    Implements: peters2010 dual, eta = argmin eta kl + eta log sum_n omega_n exp(R_n / eta).

    The dual is convex, and its derivative is kl - KL(c || omega), so that eta is found by bisection
    in log eta. Where the best sample alone diverges by less than `kl`, it is the best alone.
    """

    def utility(xp: Namespace, omega: Array, returns: Array) -> Array:
        def halve(at: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = at
            middle = (low + high) / 2
            far = _divergence(xp, omega, returns / xp.exp(middle)) > kl
            return xp.where(far, middle, low), xp.where(far, high, middle)

        ends = tuple(xp.asarray(end, dtype=omega.dtype) for end in (COLDEST, HOTTEST))
        _, warm = repeat(xp, HALVINGS, halve, ends)
        return xp.exp(returns / xp.exp(warm))

    return utility


def _divergence(xp: Namespace, omega: Array, log: Array) -> Array:
    """KL(c || omega) of c = omega exp(log), normalised; `log` is at most 0, and 0 somewhere."""
    tilted = omega * xp.exp(log)
    mass = xp.maximum(xp.sum(tilted), 1e-30)
    return xp.sum(tilted * log) / mass - xp.log(mass)


def coefficients(xp: Namespace, utility: Utility, weights: Array, returns: Array) -> Array:
    """c `[n]`, omega u(R) with a sum of 1; all zero where there is nothing to learn.

    That is so where all returns are equal, or none has any weight. `weights [n]` are zero for
    samples that take no part.
    """
    part = weights > 0
    best = xp.max(xp.where(part, returns, -xp.inf))
    below = xp.where(part, returns - best, 0.0)
    worst = xp.min(below)
    known = worst < 0
    omega = weights / xp.where(known, xp.sum(weights), 1.0)
    c = omega * utility(xp, omega, below / xp.where(known, -worst, 1.0))
    mass = xp.sum(c)
    known = known & (mass > 0)
    return xp.where(known, c / xp.where(known, mass, 1.0), 0.0)


class FittedGaussian(NamedTuple):
    """A Gaussian in the coordinates z of the distribution that moves."""

    mean: Array  # [D]
    covariance: Symmetric


def fitted(xp: Namespace, z: Array, c: Array, shape: Shape) -> FittedGaussian:
    """The Gaussian of the largest likelihood, for samples `z [n, D]` that count by `c [n]`.

    Implements: deisenroth2013 weighted maximum likelihood, mean = sum c z and covariance =
    sum c (z - mean) (z - mean)^T / Z about that new mean, with Z = 1 - sum c^2 against its bias.

    Differs: for CEM too, whose textbook form has Z = 1 and shrinks the spread for no reason but a
    small elite. Where one sample is all that counts, the spread stays as it was.
    """
    mean = c @ z
    known, mass = unbiased(xp, c)
    found = shape.covariance(xp, z - mean, c, mass)
    as_it_was = shape.even(xp, found, 1.0)
    return FittedGaussian(mean, tree_map(xp, lambda x, y: xp.where(known, x, y), found, as_it_was))


def unbiased(xp: Namespace, c: Array) -> tuple[Array, Array]:
    """Whether more than one sample counts, and Z; 1 where none does."""
    z = xp.sum(c * (1 - c))
    return z > ALONE, xp.where(z > ALONE, z, 1.0)
