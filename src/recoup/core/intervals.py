"""What weighed results say of a candidate: its mean return, by weights and with a model.

Weights say how far results of other distributions count for a candidate, not what lies where none
were drawn: an effective sample size of 3 can come with a small spread and a wrong mean. So how much
of the candidate was never looked at is computed from the densities, not from the results, and a
model of the returns takes part where it explains them. `core.worth` makes an interval of it.

Arrays of NumPy stay so; those of JAX may be traced.
"""

from collections.abc import Callable
from typing import NamedTuple

from recoup.core.arrays import Array, largest, namespace, when
from recoup.core.objective import standard_error
from recoup.core.surrogate import fitted
from recoup.core.weights import by_draw, effective_sample_size
from recoup.core.worth import FAR_AWAY, MODELLED, NEGLIGIBLE, Seen


class WeighedDraws(NamedTuple):
    """Results and their weights: draws of `size` adjacent samples each."""

    weights: Array  # [n] against the mixture of all proposals, zero where not drawn
    returns: Array  # [n]
    valid: Array  # [n]
    drawn: Array  # [n] valid, or failed: how many of a proposal's draws fail is chance too
    stratum: Array  # [n] the proposal that drew each, below `strata`
    strata: int
    size: int = 1


def looked_at(data: WeighedDraws, points: Callable[[Array], Array] | None) -> Seen:
    """What `data` says.

    `points(rows)` gives samples of those rows in coordinates where the candidate is N(0, I);
    without it there is no model.
    """
    seen = by_weights(data)
    return seen if points is None else with_model(data, seen, points)


def by_weights(data: WeighedDraws) -> Seen:
    """What `data` says without a model."""
    xp, returns, valid = namespace(data.weights), data.returns, data.valid
    kept = data._replace(weights=xp.where(valid, data.weights, 0.0))
    n = xp.sum(valid, dtype=returns.dtype)
    weighted, stderr = _mean_of(kept, returns)
    ess = effective_sample_size(by_draw(kept.weights, data.size))
    return Seen(
        weighted,
        stderr,
        modelled=weighted,
        modelled_stderr=stderr,
        model_std=xp.asarray(xp.inf, dtype=returns.dtype),
        ess=ess,
        even=ess / xp.maximum(n / data.size, 1),
        mean_weight=xp.sum(kept.weights) / xp.maximum(n, 1),
        spread=_largest(returns, valid) + _largest(-returns, valid),
        std=xp.sqrt(_mean_of(kept, (returns - weighted) ** 2)[0]),
        samples=n,
    )


def _largest(x: Array, valid: Array) -> Array:
    xp = namespace(x)
    return xp.max(xp.where(valid, x, -xp.inf), initial=-xp.inf)


def _mean_of(data: WeighedDraws, values: Array) -> tuple[Array, Array]:
    """The self-normalised mean of `values [n]`, and its standard error."""
    xp = namespace(data.weights)
    total = xp.sum(data.weights)
    total = xp.where(total > 0, total, 1.0)
    mean = xp.sum(data.weights * values) / total
    residuals = by_draw(data.weights * (values - mean), data.size)
    drew = by_draw(data.drawn, data.size) > 0
    stratum = data.stratum[:: data.size]
    return mean, standard_error(residuals, drew, stratum, data.strata) / total


def with_model(data: WeighedDraws, seen: Seen, points: Callable[[Array], Array]) -> Seen:
    """What was seen by weights, and with a model if it sees all but a `NEGLIGIBLE` share of them.

    It is not fitted otherwise: most candidates of a large archive need none.
    """
    xp, heavy = namespace(data.weights), _heaviest(data)
    known = xp.sum(data.weights[heavy]) >= (1 - NEGLIGIBLE) * xp.sum(data.weights)

    def modelled(before: Seen) -> Seen:
        return _modelled(data, before, heavy, points(heavy))

    return when(xp, known, modelled, lambda before: before, seen)


def _modelled(data: WeighedDraws, seen: Seen, heavy: Array, at: Array) -> Seen:
    """The mean return with the model as control variate, the error of its correction, and its own.

    Implements: robins1994 augmented weighting, E_p[g] + sum w (y - g) / sum w, every residual by a
    model g that was fitted without it. Here y = R - `centre`, and 0 for what failed: the mean of
    those that did not fail is then `centre` + E_p[y] / P_p(no failure), for any centre near it.
    """
    xp, centre = namespace(data.weights), seen.weighted
    least = FAR_AWAY * xp.max(data.weights, initial=0.0)
    part = data._replace(
        weights=data.weights[heavy],
        returns=xp.where(data.valid, data.returns - centre, 0.0)[heavy],
        drawn=data.drawn[heavy] & (data.weights[heavy] > least),
        stratum=data.stratum[heavy],
    )
    model = fitted(at, part.returns, part.drawn)
    left, stderr = _mean_of(part, model.residuals)
    n = xp.maximum(xp.sum(part.drawn, dtype=left.dtype), 1)
    without = xp.sum(model.pulls * model.residuals) / n  # the mean follows each return a little
    success = successes(data)
    return seen._replace(
        modelled=centre + (model.mean + left - without) / success,
        modelled_stderr=stderr / success,
        model_std=model.std / success,
    )


def successes(data: WeighedDraws) -> Array:
    """The share of the candidate that does not fail, by weights; 1 where nothing has."""
    xp = namespace(data.weights)
    kept = xp.sum(xp.where(data.valid, data.weights, 0.0))
    total = xp.sum(data.weights)
    return xp.where(kept > 0, kept / xp.where(kept > 0, total, 1.0), 1.0)


def _heaviest(data: WeighedDraws) -> Array:
    """Which samples belong to the draws of most weight, as many as the model looks at."""
    xp, draws = namespace(data.weights), by_draw(data.weights, data.size)
    chosen = largest(xp, draws, MODELLED // data.size)
    return (chosen[:, None] * data.size + xp.arange(data.size)).ravel()
