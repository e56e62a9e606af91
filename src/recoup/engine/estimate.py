"""`recoup.estimate`: what given samples say about any target distribution, in one call."""

from contextlib import nullcontext
from functools import lru_cache
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
from recoup.core.archive import from_samples
from recoup.core.families.gaussian import Rho, diagonal_gaussian
from recoup.core.pareto import pareto_k
from recoup.engine.composition import estimator_of
from recoup.engine.methods import Method, checked


class GradientEstimate(NamedTuple):
    """Expected return of a target distribution and its gradient, from samples of others."""

    mean_gradient: Any  # [D], plain derivatives with respect to the means
    std_gradient: Any  # [D], with respect to the standard deviations
    weights: Any  # [N'] after shaping, zero where the return is not finite
    ess: Any  # (sum w)^2 / sum w^2; in pairs if `mirrored`
    max_weight: Any
    objective: Any  # (1/N') sum w R
    objective_stderr: Any
    baseline: Any  # scalar; [2D] for coordinate; [N'] for leave-one-out and split
    pareto_k: Any  # of the weights; None inside traced code
    failed: Any  # returns that are not finite: masked, and not part of N'


def estimate(
    theta: Any,
    returns: Any,
    *,
    proposals: tuple[Any, Any],
    proposal: Any,
    target: tuple[Any, Any],
    weighting: str = "balance",
    power: float = 0.1,
    flatten: float | None = None,
    truncate: float | None = None,
    normalize: bool = False,
    baseline: str = "optimal",
    mirrored: bool = False,
) -> GradientEstimate:
    """Expected return of `target` and its gradient, from samples that `proposals` drew.

    `theta [N', D]`, `returns [N']`, `proposals` means and stds `[L, D]`, `proposal [N']` which of
    them drew each sample, `target` mean and std `[D]`; NumPy or JAX arrays. `weighting` is one of
    none, own, balance, power-mean (with `power` its lambda); then `flatten`: w^nu; `truncate`:
    min(w, c); `normalize`: w over its mean, in that order. `baseline` is one of none, mean,
    optimal, coordinate, leave-one-out, split. `mirrored` says that samples 2i and 2i + 1 are a
    mirrored pair: errors and effective sample size then count pairs. A return that is not finite is
    a failed rollout: masked, counted in `failed`.

    Computed in float64 if any array is float64, in float32 otherwise.
    """
    row = checked(
        Method(
            "estimate",
            "",
            weighting=weighting,
            power=power,
            flatten=flatten,
            truncate=truncate,
            normalize=normalize,
            baseline=baseline,
            mirrored=mirrored,
        )
    )
    arrays = _checked_arrays(theta, returns, proposals, proposal, target, row.mirrored)
    double = any(_dtype(x) == np.float64 for x in arrays)
    if is_traced(*arrays):
        double = double and jnp.result_type(float) == jnp.float64
        return _compute(row, *_in_one_type(arrays, double))
    with jax.enable_x64(True) if double else nullcontext():
        result = jax.device_get(_compiled(row)(*_in_one_type(arrays, double)))
    return result._replace(pareto_k=pareto_k(result.weights))


@lru_cache(maxsize=256)
def _compiled(row: Method) -> Any:
    return jax.jit(lambda *arrays: _compute(row, *arrays))


def _compute(
    row: Method,
    theta: Array,
    returns: Array,
    means: Array,
    stds: Array,
    drawn_by: Array,
    mean: Array,
    std: Array,
) -> GradientEstimate:
    family = diagonal_gaussian(row.mirrored)
    rho, valid = Rho(mean, std), jnp.isfinite(returns)
    keep = "running" if row.weighting == "balance" else "own"
    archive = from_samples(
        family, theta, returns, valid, Rho(means, stds), drawn_by, rho, keep=keep
    )
    e = estimator_of(row, family)(rho, archive)
    b = jnp.concatenate(e.baseline) if isinstance(e.baseline, Rho) else e.baseline
    return GradientEstimate(
        mean_gradient=e.gradient.eta,
        std_gradient=e.gradient.tau,
        weights=e.weights[0],
        ess=e.ess,
        max_weight=e.max_weight,
        objective=e.objective,
        objective_stderr=e.objective_stderr,
        baseline=b[0] if b.ndim == 2 else b,
        pareto_k=None,
        failed=jnp.sum(~valid),
    )


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def _in_one_type(arrays: tuple[Any, ...], double: bool) -> tuple[Array, ...]:
    real = jnp.float64 if double else jnp.float32
    return tuple(jnp.asarray(x, jnp.int32 if i == 4 else real) for i, x in enumerate(arrays))


def _checked_arrays(
    theta: Any, returns: Any, proposals: Any, proposal: Any, target: Any, mirrored: bool
) -> tuple[Any, ...]:
    """The seven arrays of an estimate, once their shapes and values fit together."""
    (means, stds), (mean, std) = _pair("proposals", proposals), _pair("target", target)
    check_numbers("`estimate(theta=...)`", theta)
    check_numbers("`estimate(proposals=...)` means", means)
    if np.ndim(theta) != 2 or 0 in np.shape(theta):
        raise InputError(
            f"`estimate(theta=...)` must have shape [N', D], got {list(np.shape(theta))}."
        )
    n, dim = np.shape(theta)
    check_shape("`estimate(returns=...)`", returns, "[N']", (n,))
    if np.ndim(means) != 2 or np.shape(means)[0] == 0:
        raise InputError(
            f"`estimate(proposals=...)` must have means of shape [L, D] = [L, {dim}], got "
            f"{list(np.shape(means))}."
        )
    lines = np.shape(means)[0]
    check_shape("`estimate(proposals=...)` means", means, "[L, D]", (lines, dim))
    check_shape("`estimate(proposals=...)` stds", stds, "[L, D]", (lines, dim))
    check_shape("`estimate(target=...)` mean", mean, "[D]", (dim,))
    check_shape("`estimate(target=...)` std", std, "[D]", (dim,))
    check_shape("`estimate(proposal=...)`", proposal, "[N']", (n,))
    _check_index(proposal, lines)
    if mirrored and n % 2:
        raise InputError(f"`estimate(mirrored=True)` needs an even number of samples, got {n}.")
    check_finite("`estimate(theta=...)`", theta)
    check_finite("`estimate(proposals=...)` means", means)
    check_finite("`estimate(target=...)` mean", mean)
    check_stds("`estimate(proposals=...)` stds", stds)
    check_stds("`estimate(target=...)` std", std)
    return theta, returns, means, stds, proposal, mean, std


def _pair(what: str, value: Any) -> tuple[Any, Any]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputError(
            f"`estimate({what}=...)` must be a pair (means, stds), got {type(value).__name__}."
        )
    return value[0], value[1]


def _check_index(proposal: Any, lines: int) -> None:
    if is_traced(proposal):
        return
    index = np.asarray(proposal)
    if not np.issubdtype(index.dtype, np.integer):
        raise InputError(f"`estimate(proposal=...)` must be whole numbers, got {index.dtype}.")
    if index.min() < 0 or index.max() >= lines:
        wrong = index[(index < 0) | (index >= lines)][0]
        raise InputError(f"`estimate(proposal=...)` must lie in 0..{lines - 1}, got {wrong}.")
