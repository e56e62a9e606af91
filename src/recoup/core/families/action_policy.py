"""Policies: the linear one, and the Gaussian one around it that explores in action space.

Features `[F]` and actions `[A]` are of one step; theta and mu are `[F A]`, row by row.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array
from recoup.core.families.family import block
from recoup.core.families.gaussian import Diagonal, log_ratio, score


class Policy(NamedTuple):
    """Of the linear Gaussian policy: means `mu [F A]`, standard deviations `sigma [A]` of actions.

    Here the sample is a trajectory; theta, what a trial is given, is the policy's mu.
    """

    mu: Array
    sigma: Array

    @property
    def mean(self) -> Array:
        """Means `[..., F A]`."""
        return self.mu

    @property
    def std(self) -> Array:
        """Standard deviations of the actions `[..., A]`."""
        return self.sigma

    @classmethod
    def start(cls, mean: Array, std: Array) -> "Policy":
        """The policy with these means `[F A]` and standard deviations `[A]`."""
        return cls(mean, std)

    def theta(self, noise: Array) -> Array:
        """mu, whatever the noise: such a policy draws its actions, not its parameters."""
        return self.mu

    @property
    def positive(self) -> Array:
        """What must be positive `[..., A]`."""
        return self.sigma

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., F A + A]`."""
        return block(self.mu, self.sigma)

    @classmethod
    def unpacked(cls, numbers: Array, dim: int) -> "Policy":
        """What `packed` has packed, of `dim` means."""
        return cls(numbers[..., :dim], numbers[..., dim:])


def linear(theta: Array, features: Array) -> Array:
    """The action `[A]` of the linear policy, in JAX or NumPy.

    Implements: zhao2013 eq. 1 a = theta^T phi(s), one column of theta an action.
    """
    return features @ theta.reshape(features.shape[-1], -1)


def action_distribution(policy: Policy, features: Array) -> Diagonal:
    """Means `mu^T phi(s)` and standard deviations `sigma` of the actions, each `[A]`.

    Implements: zhao2013 S4.2 p(a | s, theta) = N(a | mu^T phi(s), sigma^2), one sigma an action.
    """
    return Diagonal(linear(policy.mu, features), policy.sigma)


def step_log_ratio(policy: Policy, reference: Policy, features: Array, action: Array) -> Array:
    """log p(a | s, policy) - log p(a | s, reference) of one step, a scalar."""
    return log_ratio(
        action_distribution(policy, features), action_distribution(reference, features), action
    )


def step_score(policy: Policy, features: Array, action: Array) -> Policy:
    """Gradient of log p(a | s, policy) with respect to mu `[F A]` and sigma `[A]`.

    Implements: williams1992 score of a Gaussian policy, (a - mu^T phi) phi / sigma^2 and
    ((a - mu^T phi)^2 - sigma^2) / sigma^3.
    """
    by_action = score(action_distribution(policy, features), action)
    return Policy((features[:, None] * by_action.eta).ravel(), by_action.tau)
