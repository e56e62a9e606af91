"""What weighed results say of a candidate: its mean return, by weights and with a model.

Weights say how far results of other distributions count for a candidate, not what lies where none
were drawn: an effective sample size of 3 can come with a small spread and a wrong mean. So how much
of the candidate was never looked at is computed from the densities, not from the results, and a
model of the returns takes part where it explains them. `core.worth` makes an interval of it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.archive import Archive, log_densities
from recoup.core.arrays import behind
from recoup.core.families.family import Family, later
from recoup.core.mixtures import mixture_density
from recoup.core.surrogate import fitted
from recoup.core.sweeps import totals_by
from recoup.core.weights import by_draw, effective_sample_size, mixture_ratio, weigh
from recoup.core.worth import FAR_AWAY, FEW, MOST, NEGLIGIBLE, Seen, probes


class Weighed(NamedTuple):
    """Results and their weights: draws of `size` adjacent samples each."""

    weights: Array  # [n] against the mixture of all proposals, zero where not drawn
    returns: Array  # [n]
    valid: Array  # [n]
    drawn: Array  # [n] valid, or failed: how many of a proposal's draws fail is chance too
    stratum: Array  # [n] the proposal that drew each, below `strata`
    strata: int
    size: int = 1


def standard_error(residuals: Array, drew: Array, stratum: Array, strata: int) -> Array:
    """Standard error of a sum of independent `residuals [G]`, drawn in strata.

    Implements: owen2013 S9.1, S9.2 and S9.11 standard error of an importance-sampled mean,
    sqrt(sum_l G_l / (G_l - 1) sum_g (u_g - mean_l)^2), u_g the residual of draw g of proposal l.

    How many draws each proposal makes is not random, so what differs between proposals is no noise.
    Differs: a proposal with one draw lends its residual about the common mean, with G / (G - 1)
    over all G. Not a number below two draws.
    """
    drew = drew.astype(residuals.dtype)
    total = jnp.sum(drew)
    count = totals_by(stratum, strata, drew)
    mean = totals_by(stratum, strata, drew * residuals) / jnp.maximum(count, 1)
    several = count > 1
    overall = jnp.where(total > 1, total / (total - 1), jnp.nan)
    factor = jnp.where(several, count / jnp.maximum(count - 1, 1), overall)
    apart = residuals - jnp.where(several, mean, 0.0)[stratum]
    return jnp.where(total > 1, 1.0, jnp.nan) * jnp.sqrt(jnp.sum(drew * factor[stratum] * apart**2))


def looked_at(data: Weighed, points: Callable[[Array], Array] | None) -> Seen:
    """What `data` says.

    `points(rows)` gives samples of those rows in coordinates where the candidate is N(0, I);
    without it there is no model.
    """
    returns, valid = data.returns, data.valid
    kept = data._replace(weights=jnp.where(valid, data.weights, 0.0))
    n = jnp.sum(valid, dtype=returns.dtype)
    weighted, stderr = _mean_of(kept, returns)
    ess = effective_sample_size(by_draw(kept.weights, data.size))
    modelled = (weighted, stderr, jnp.asarray(jnp.inf, returns.dtype))
    if points is not None:
        modelled = _with_model(data, weighted, points)
    return Seen(
        weighted,
        stderr,
        *modelled,
        ess=ess,
        even=ess / jnp.maximum(n / data.size, 1),
        mean_weight=jnp.sum(kept.weights) / jnp.maximum(n, 1),
        spread=_largest(returns, valid) + _largest(-returns, valid),
        std=jnp.sqrt(_mean_of(kept, (returns - weighted) ** 2)[0]),
        samples=n,
    )


def _largest(x: Array, valid: Array) -> Array:
    return jnp.max(jnp.where(valid, x, -jnp.inf))


def _mean_of(data: Weighed, values: Array) -> tuple[Array, Array]:
    """The self-normalised mean of `values [n]`, and its standard error."""
    total = jnp.sum(data.weights)
    total = jnp.where(total > 0, total, 1.0)
    mean = jnp.sum(data.weights * values) / total
    residuals = by_draw(data.weights * (values - mean), data.size)
    drew = by_draw(data.drawn, data.size) > 0
    stratum = data.stratum[:: data.size]
    return mean, standard_error(residuals, drew, stratum, data.strata) / total


def _with_model(
    data: Weighed, centre: Array, points: Callable[[Array], Array]
) -> tuple[Array, Array, Array]:
    """The mean return with the model as control variate, the error of its correction, and its own.

    Implements: robins1994 augmented weighting, E_p[g] + sum w (y - g) / sum w, every residual by a
    model g that was fitted without it. Here y = R - `centre`, and 0 for what failed: the mean of
    those that did not fail is then `centre` + E_p[y] / P_p(no failure), for any centre near it.
    """
    heavy = _heaviest(data)
    part = data._replace(
        weights=data.weights[heavy],
        returns=jnp.where(data.valid, data.returns - centre, 0.0)[heavy],
        drawn=data.drawn[heavy] & (data.weights[heavy] > FAR_AWAY * jnp.max(data.weights)),
        stratum=data.stratum[heavy],
    )
    model = fitted(points(heavy), part.returns, part.drawn)
    left, stderr = _mean_of(part, model.residuals)
    n = jnp.maximum(jnp.sum(part.drawn, dtype=left.dtype), 1)
    without = jnp.sum(model.pulls * model.residuals) / n  # the mean follows each return a little
    kept = jnp.sum(part.weights) >= (1 - NEGLIGIBLE) * jnp.sum(data.weights)
    success = successes(data)
    mean = centre + (model.mean + left - without) / success
    return mean, stderr / success, jnp.where(kept, model.std / success, jnp.inf)


def successes(data: Weighed) -> Array:
    """The share of the candidate that does not fail, by weights; 1 where nothing has."""
    kept = jnp.sum(jnp.where(data.valid, data.weights, 0.0))
    return jnp.where(kept > 0, kept / jnp.sum(data.weights), 1.0)


def _heaviest(data: Weighed) -> Array:
    """Which samples belong to the draws of most weight, as many as the model looks at."""
    draws = by_draw(data.weights, data.size)
    _, chosen = jax.lax.top_k(draws, min(MOST // data.size, draws.size))
    return (chosen[:, None] * data.size + jnp.arange(data.size)).ravel()


def unseen_share(family: Family, rho: Any, archive: Archive, noise: Any) -> Array:
    """How much of a candidate lies where hardly any sample could have been drawn, a scalar.

    Implements: chatterjee2018 P(w > n / 6) under the candidate, w = p / sum_l (n_l / n) q_l.

    That importance sampling needs an n above most of the weights *under the candidate* is a
    statement about densities: no result has to be lucky enough to reveal it.
    """
    reference = jax.tree.map(lambda x: x[0], archive.proposals)
    drawn = jax.vmap(rho.theta)(noise)
    mixture = mixture_density(family, archive.proposals, archive.counts, reference, drawn)
    after = later(family, mixture)
    target = jax.vmap(lambda sample: after.log_ratio(rho, reference, sample))(drawn)
    return jnp.mean(target - mixture > -np.log(FEW), dtype=target.dtype)


def judged_archive(
    family: Family, rho: Any, archive: Archive, size: int = 1, noise: Any = None
) -> tuple[Seen, Array, Array, Array]:
    """What the samples of an archive of one block say of any rho; draws have `size` samples.

    The numbers, the weights against the mixture of all proposals `[n]`, the share of rho that is
    unseen (not a number where samples cannot be drawn: trajectories), and how many samples failed
    and are left out. `noise` is what rho is looked at with; unless given it is a constant of the
    compiled program, which is too large for very many dimensions.
    """
    assert archive.batches is not None
    b = jax.tree.map(lambda x: x[0], archive.batches)
    densities = log_densities(family, rho, archive)
    in_theta = isinstance(b.samples, Array)  # a trajectory that failed has no density
    drawn = b.valid | b.failed
    weighed = drawn if in_theta else b.valid
    weights = weigh(mixture_ratio, (), densities, weighed[None])[0]
    data = Weighed(weights, b.returns, b.valid, drawn, b.proposal, archive.counts.size, size)
    whitened = family.whitened and jax.vmap(partial(family.whitened, behind(jnp, rho, weights)))
    seen = looked_at(data, whitened and (lambda rows: whitened(b.samples[rows])))
    unseen = jnp.asarray(jnp.nan)
    if in_theta and noise is None:
        noise = jnp.asarray(probes(b.samples.shape[-1]), b.samples.dtype)
    if in_theta:  # of what does not fail, no more than this can be out of sight
        after = later(family, weights, seen.modelled)
        unseen = jnp.minimum(unseen_share(after, rho, archive, noise) / successes(data), 1.0)
    return seen, jnp.where(b.valid, weights, 0.0), unseen, jnp.sum(b.failed)
