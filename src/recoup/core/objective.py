"""The expected return by weights, its standard error, and what else an estimate says of a rho.

Arrays of NumPy stay so; those of JAX may be traced.
"""

from collections.abc import Sequence
from typing import NamedTuple

from recoup.core.arrays import Array, namespace, totals_by
from recoup.core.in_short import count_for, with_error
from recoup.core.types import Pytree, Rho
from recoup.core.weights import (
    Ratio,
    Shaper,
    by_draw,
    effective_sample_size,
    mixture_ratio,
    own_ratio,
)


class Estimate(NamedTuple):
    """What samples say about one rho.

    `Update.step` asks for it and gives it; `Search.estimate` gives it too. Equation: `zhao2013
    S3.2` gradient estimator with baseline.

    >>> from recoup.core.objective import Estimate
    >>> Estimate._fields[:3]
    ('gradient', 'objective', 'objective_stderr')
    """

    gradient: Rho  # pytree of rho: plain derivatives of the expected return, or another direction
    objective: Array  # (1/n) sum w R
    objective_stderr: Array  # its standard error
    weights: Array  # [B, N] after shaping, zero where not valid
    ess: Array  # in pairs where samples come in mirrored pairs
    max_weight: Array  # the largest of the weights
    baseline: Pytree  # scalar, [B, N] or pytree of rho; by step, with leading axis [T]
    samples: Array  # n, the valid samples
    flatten: Array | None = None  # nu of w^nu, for methods that may choose it
    mean_weight: Array | float = 1.0  # before any division by it; near 1 if samples cover rho
    censored: Array | int = 0  # failed samples, left out: the objective is given success
    notes: Pytree = None  # of a rule that says why its step was as long as it was

    def __repr__(self) -> str:
        worth = with_error(self.objective, self.objective_stderr)
        return f"Estimate(objective {worth}; {count_for(self.samples, self.ess)})"


class Sources(NamedTuple):
    """Which samples were drawn, and by which proposals."""

    valid: Array  # [B, N] those with a return
    failed: Array  # [B, N] those without
    proposal: Array  # [B, N] below `proposals`
    proposals: int

    @property
    def each(self) -> Array:
        """Which samples `[B, N]` were drawn and told, whether they failed or not."""
        return self.valid | self.failed


def mean_weight(ratio: Ratio, shapers: Sequence[Shaper], weights: Array, drawn: Sources) -> Array:
    """The mean of the weights of all samples that were drawn, which should be 1, a scalar.

    Not a number where several proposals drew and the weights are no plain ratios of densities:
    whatever their mean is, it does not say that an estimate can be believed.
    """
    xp, each = namespace(weights), drawn.each.astype(weights.dtype)
    mean = xp.sum(weights) / xp.maximum(xp.sum(each), 1)
    if ratio in (own_ratio, mixture_ratio) and not shapers:
        return mean
    counts = totals_by(xp, drawn.proposal.ravel(), drawn.proposals, each.ravel())
    return xp.where(xp.sum(counts > 0) > 1, xp.nan, mean)


def summary(
    drawn: Sources,
    rewards: Array,
    weights: Array,
    *,
    size: int = 1,
    normalised: bool | Array = False,
    **found: Pytree,
) -> Estimate:
    """An `Estimate` with what was `found`, and what the weights make of the objective.

    Rewards and weights are `[T, B, N]`, by step: T = 1 for samples that are weighed as a whole; the
    weights of the last step are those of the whole sample. `normalised` ones are over their mean;
    `size` adjacent samples are one draw.
    """
    xp, valid = namespace(rewards, weights), drawn.valid
    n = xp.sum(valid, dtype=rewards.dtype)
    by_step = expected_return(rewards, weights, n)
    objective, whole = xp.sum(by_step), weights[-1]
    residuals = xp.where(
        normalised,
        xp.sum(weights * (rewards - by_step.reshape(-1, *(1,) * valid.ndim)), axis=0),
        xp.sum(weights * rewards, axis=0) - objective,
    )
    stderr = standard_error(
        by_draw(xp.where(valid, residuals, 0.0), size),
        by_draw(drawn.each, size) > 0,
        drawn.proposal.ravel()[::size],
        drawn.proposals,
    )
    return Estimate(
        objective=xp.where(n > 0, objective, xp.nan),
        objective_stderr=stderr / xp.maximum(n, 1),
        weights=whole,
        ess=effective_sample_size(by_draw(whole, size)),
        max_weight=xp.max(whole, initial=0.0),
        samples=n,
        censored=xp.sum(drawn.failed),
        **found,
    )


def expected_return(returns: Array, weights: Array, n: Array) -> Array:
    """The estimated expected return of the search distribution, `[T]` of `[T, B, N]` samples.

    Implements: zhao2013 S2.2 J(rho), by the importance-weighted average (1/N') sum w R.
    """
    xp = namespace(returns, weights)
    samples = tuple(range(1, returns.ndim))
    return xp.sum(weights * returns, axis=samples) / xp.maximum(n, 1)


def standard_error(residuals: Array, drew: Array, stratum: Array, strata: int) -> Array:
    """Standard error of a sum of independent `residuals [G]`, drawn in strata.

    Implements: owen2013 S9.1, S9.2 and S9.11 standard error of an importance-sampled mean,
    sqrt(sum_l G_l / (G_l - 1) sum_g (u_g - mean_l)^2), u_g the residual of draw g of proposal l.

    How many draws each proposal makes is not random, so what differs between proposals is no noise.
    Differs: a proposal with one draw lends its residual about the common mean, with G / (G - 1)
    over all G. Not a number below two draws.
    """
    xp = namespace(residuals)
    largest = xp.max(xp.abs(residuals), initial=0.0)
    unit = xp.where((largest > 0) & xp.isfinite(largest), largest, 1.0)
    residuals = residuals / unit  # squares of any returns are then numbers
    drew = drew.astype(residuals.dtype)
    total = xp.sum(drew)
    count = totals_by(xp, stratum, strata, drew)
    mean = totals_by(xp, stratum, strata, drew * residuals) / xp.maximum(count, 1)
    several = count > 1
    overall = xp.where(total > 1, total / xp.maximum(total - 1, 1), xp.nan)
    factor = xp.where(several, count / xp.maximum(count - 1, 1), overall)
    apart = residuals - xp.where(several, mean, 0.0)[stratum]
    error = xp.sqrt(xp.sum(drew * factor[stratum] * apart**2))
    return xp.where(total > 1, unit * error, xp.nan)
