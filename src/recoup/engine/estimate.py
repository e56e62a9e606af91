"""`recoup.estimate`: what given samples say about any target distribution, in one call."""

from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import (
    InputError,
    check_finite,
    check_numbers,
    check_shape,
    check_stds,
    is_traced,
)
from recoup.core.archive import Archive, Drawn, from_samples, with_failures
from recoup.core.families.family import Family
from recoup.core.families.rho import RHOS, Full
from recoup.core.intervals import judged_archive
from recoup.core.pareto import pareto_k
from recoup.core.sweeps import precise
from recoup.core.worth import Interval, probes, worth
from recoup.engine.composition import composed
from recoup.engine.methods import Method, method_row


class GradientEstimate(NamedTuple):
    """Expected return of a target distribution and its gradient, from samples of others."""

    mean_gradient: Any  # [D], plain derivatives with respect to the means
    std_gradient: Any  # [D], with respect to the standard deviations; [D, D] to a factor
    weights: Any  # [N'] after shaping, zero where the return is not finite
    ess: Any  # (sum w)^2 / sum w^2; in pairs if `mirrored`
    max_weight: Any
    objective: Any  # (1/N') sum w R
    objective_stderr: Any
    baseline: Any  # scalar; [2D] for coordinate; [N'] for leave-one-out, earlier and split
    pareto_k: Any  # of the weights; None inside traced code
    failed: Any  # returns that are not finite
    given: Any = None  # what it was made of, for `interval`; None inside traced code

    def interval(self) -> Interval:
        """The 95 % interval of the expected return of the target; not a number where there is none.

        Whatever the weights of the estimate, this one rests on balance weights and, where it helps,
        on a model of the returns. There is none where the effective sample size is below 5, or more
        than 15 % of the target lies where hardly any sample could have been drawn.
        """
        if self.given is None:
            raise InputError("an interval is not computed inside traced code.")
        row, data = self.given
        with jax.enable_x64(True):
            dim = np.shape(data.theta)[1]
            found = _judge(row)(_in_one_type(data, True), probes(dim))
            seen, _, unseen, _ = jax.device_get(found)
        return worth(seen, float(unseen), dim).interval


class Data(NamedTuple):
    """The samples of an estimate, what drew them, and what it is about."""

    theta: Any  # [N', D]
    returns: Any  # [N']
    proposals: Any  # rho, leading axis [L]
    drawn_by: Any  # [N']
    target: Any  # rho
    told: Any = None  # [N'] which of them there are; None: all


def estimate(
    theta: Any,
    returns: Any,
    *,
    proposals: Any,
    proposal: Any,
    target: Any,
    family: Any = "diagonal",
    weighting: Any = "balance",
    power: float | None = None,
    flatten: float | None = None,
    truncate: float | None = None,
    normalize: bool = False,
    baseline: Any = "optimal",
    mirrored: bool = False,
    failure: Any = "censored",
    told: Any = None,
) -> GradientEstimate:
    """Expected return of `target` and its gradient, from samples that `proposals` drew.

    `theta [N', D]`, `returns [N']`, `proposals` means and stds `[L, D]`, `proposal [N']` which of
    them drew each sample, `target` mean and std `[D]`; NumPy or JAX arrays. `weighting` is one of
    none, own, balance, power-mean (with `power` its lambda, 0.1 unless said); then `flatten`:
    w^nu; `truncate`: min(w, c); `normalize`: w over its mean, in that order. `baseline` is one of
    none, mean, optimal, coordinate, leave-one-out, earlier (which takes proposals to be in the
    order they were made), split. Either may be a function of your own.
    `mirrored` says that samples 2i and 2i + 1 are a mirrored pair: errors and effective sample size
    then count pairs. A return that is not finite is a failed rollout, counted in `failed`. By
    default it is `censored`: it counts as drawn, the weights of the others are divided by their
    mean, and everything is about the return *given success*. `failure="worst"` gives it the worst
    return of all, a number that one. `told [N']` says which samples there are, all unless said: the
    others fill up arrays of one shape and take part in nothing.

    With `family="full"`, Cholesky factors `[D, D]` of the covariance may stand in place of standard
    deviations; with a family of your own, `proposals` and `target` are its rho.

    Computed in float64 if any array is float64, in float32 otherwise.
    """
    given: dict[str, Any] = {"family": family, "weighting": weighting, "baseline": baseline}
    given |= {"flatten": flatten, "truncate": truncate, "normalize": normalize}
    given |= {"mirrored": mirrored, "failure": failure}
    given |= {} if power is None else {"power": power}
    row = method_row(Method("estimate"), **given)
    data = _checked(row, Data(theta, returns, proposals, proposal, target, told))
    arrays = jax.tree.leaves(data)
    double = any(_dtype(x) == np.float64 for x in arrays)
    if is_traced(*arrays):
        double = double and jnp.result_type(float) == jnp.float64
        return _compute(row, _in_one_type(data, double))
    with jax.enable_x64(True) if double else nullcontext():
        result = jax.device_get(_compiled(row)(_in_one_type(data, double)))
    return result._replace(pareto_k=pareto_k(result.weights), given=(row, data))


@lru_cache(maxsize=256)
def _compiled(row: Method) -> Any:
    return jax.jit(partial(_compute, row))


@lru_cache(maxsize=64)
def _judge(row: Method) -> Any:
    family = composed(row).family

    @jax.jit
    @precise
    def judged(data: Data, noise: Any) -> Any:
        archive = with_failures(_archive(family, data, "running"), row.failure)
        return judged_archive(family, data.target, archive, row.draw, noise)

    return judged


def _archive(family: Family, data: Data, keep: str) -> Archive:
    told = jnp.ones(data.returns.shape, bool) if data.told is None else data.told
    drawn = Drawn(data.theta, data.returns, told, data.proposals, data.drawn_by, data.target)
    return from_samples(family, drawn, keep=keep)


@precise
def _compute(row: Method, data: Data) -> GradientEstimate:
    method = composed(row)
    archive = _archive(method.family, data, "running" if method.mixture else "own")
    e = method.estimate(data.target, archive)
    mean_gradient, *rest = jax.tree.leaves(e.gradient)
    return GradientEstimate(
        mean_gradient=mean_gradient,
        std_gradient=rest[0] if len(rest) == 1 else tuple(rest),
        weights=e.weights[0],
        ess=e.ess,
        max_weight=e.max_weight,
        objective=e.objective,
        objective_stderr=e.objective_stderr,
        baseline=_flat(e.baseline),
        pareto_k=None,
        failed=jnp.sum(~jnp.isfinite(data.returns) & (True if data.told is None else data.told)),
    )


def _flat(baseline: Any) -> Array:
    """A baseline as one array: a scalar, one number a sample, or one a coordinate of rho."""
    leaves = jax.tree.leaves(baseline)
    if len(leaves) > 1:
        return jnp.concatenate([leaf.ravel() for leaf in leaves])
    return leaves[0][0] if leaves[0].ndim == 2 else leaves[0]


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def _in_one_type(data: Data, double: bool) -> Data:
    real = jnp.float64 if double else jnp.float32
    index = jnp.asarray(data.drawn_by, jnp.int32)
    told = None if data.told is None else jnp.asarray(data.told, bool)
    rest = jax.tree.map(lambda x: jnp.asarray(x, real), data._replace(drawn_by=None, told=None))
    return rest._replace(drawn_by=index, told=told)


def _checked(row: Method, data: Data) -> Data:
    """The data of an estimate with rho in place of pairs, once shapes and values fit together."""
    theta = data.theta
    check_numbers("`estimate(theta=...)`", theta)
    if np.ndim(theta) != 2 or 0 in np.shape(theta):
        raise InputError(
            f"`estimate(theta=...)` must have shape [N', D], got {list(np.shape(theta))}."
        )
    n, dim = np.shape(theta)
    check_shape("`estimate(returns=...)`", data.returns, "[N']", (n,))
    proposals = _rho(row, "proposals", data.proposals)
    means = proposals.mean
    check_numbers("`estimate(proposals=...)` means", means)
    if np.ndim(means) != 2 or np.shape(means)[0] == 0:
        raise InputError(
            f"`estimate(proposals=...)` must have means of shape [L, D] = [L, {dim}], got "
            f"{list(np.shape(means))}."
        )
    lines = np.shape(means)[0]
    _check_rho("proposals", proposals, "means", "[L, D]", (lines, dim))
    target = _rho(row, "target", data.target)
    _check_rho("target", target, "mean", "[D]", (dim,))
    check_shape("`estimate(proposal=...)`", data.drawn_by, "[N']", (n,))
    if data.told is not None and np.shape(data.told) != (n,):
        raise InputError(f"`estimate(told=...)` must have shape [N'] = [{n}].")
    _check_index(data.drawn_by, lines)
    if row.mirrored and n % 2:
        raise InputError(f"`estimate(mirrored=True)` needs an even number of samples, got {n}.")
    check_finite("`estimate(theta=...)`", theta)
    return data._replace(proposals=proposals, target=target)


def _rho(row: Method, what: str, value: Any) -> Any:
    """The rho of a pair (means, stds); with a family of one's own, what was given."""
    if not isinstance(row.family, str):
        if not hasattr(value, "mean") or not hasattr(value, "std"):
            raise InputError(
                f"`estimate({what}=...)` must be rho of the family, got {type(value).__name__}."
            )
        return value
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputError(
            f"`estimate({what}=...)` must be a pair (means, stds), got {type(value).__name__}."
        )
    mean, std = (x if hasattr(x, "shape") else np.asarray(x) for x in value)
    if row.family == "full" and std.ndim == mean.ndim + 1:
        return Full(mean, std)
    check_numbers(f"`estimate({what}=...)` means", mean)
    several = "s" if what == "proposals" else ""
    check_shape(f"`estimate({what}=...)` std{several}", std, "[..., D]", tuple(mean.shape))
    return RHOS[row.family].start(mean, std)


def _check_rho(what: str, rho: Any, name: str, letters: str, shape: tuple[int, ...]) -> None:
    check_shape(f"`estimate({what}=...)` {name}", rho.mean, letters, shape)
    several = "s" if name.endswith("s") else ""
    if isinstance(rho, Full):
        factor = f"`estimate({what}=...)` factor{several}"
        check_shape(factor, rho.factor, letters[:-1] + ", D]", (*shape, shape[-1]))
        check_finite(factor, rho.factor)
        if not is_traced(rho.factor) and np.triu(np.asarray(rho.factor), 1).any():
            raise InputError(f"{factor} must be lower triangular.")
        check_stds(f"{factor} diagonal", np.diagonal(rho.factor, axis1=-2, axis2=-1))
    check_shape(f"`estimate({what}=...)` std{several}", rho.std, letters, shape)
    check_finite(f"`estimate({what}=...)` {name}", rho.mean)
    check_stds(f"`estimate({what}=...)` std{several}", rho.std)


def _check_index(proposal: Any, lines: int) -> None:
    if is_traced(proposal):
        return
    index = np.asarray(proposal)
    if not np.issubdtype(index.dtype, np.integer):
        raise InputError(f"`estimate(proposal=...)` must be whole numbers, got {index.dtype}.")
    if index.min() < 0 or index.max() >= lines:
        wrong = index[(index < 0) | (index >= lines)][0]
        raise InputError(f"`estimate(proposal=...)` must lie in 0..{lines - 1}, got {wrong}.")
