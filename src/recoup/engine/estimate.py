"""`recoup.estimate`: what given samples say about any target distribution, in one call."""

from typing import NamedTuple

import numpy as np

from recoup.checks import (
    InputError,
    check_finite,
    check_numbers,
    check_shape,
    check_stds,
    is_traced,
)
from recoup.core.arrays import leaves, namespace, tree_map
from recoup.core.families.table import FAMILIES
from recoup.core.in_short import count_for, in_short, with_error
from recoup.core.objective import Estimate
from recoup.core.pareto import pareto_k
from recoup.core.plain.densities import Proposals
from recoup.core.plain.judge import Drew
from recoup.core.plain.small_archive import Samples
from recoup.core.types import Array, Chosen, Given, Plain, Pytree, Rho
from recoup.core.weights import LogDensities
from recoup.core.worth import Interval, Seen, worth
from recoup.engine import plain
from recoup.engine.methods import Method, method_row
from recoup.engine.plain import Data
from recoup.notebooks import facts


class GradientEstimate(NamedTuple):
    """Expected return of a target distribution and its gradient, from samples of others.

    `recoup.estimate` gives it.

    >>> found = recoup.estimate(theta, returns, **drawn, target=([0.5, 0.5], [0.8, 0.8]))
    >>> found
    GradientEstimate(-1.751 ± 0.12; 40 samples that count for 24.6; gradient [1.2..., 1.1...] by...)
    >>> found.mean_gradient.shape, found.weights.shape, int(found.failed)
    ((2,), (40,), 0)
    """

    mean_gradient: Array  # [D], plain derivatives with respect to the means
    std_gradient: Array  # [D], with respect to the standard deviations; [D, D] to a factor
    weights: Array  # [N'] after shaping, zero where the return is not finite
    ess: Array  # (sum w)^2 / sum w^2; in pairs if `mirrored`
    max_weight: Array  # the largest of the weights
    objective: Array  # (1/N') sum w R
    objective_stderr: Array  # its standard error
    baseline: Array  # scalar; [2D] for coordinate; [N'] for leave-one-out, earlier and split
    pareto_k: Array | None  # of the weights; None inside traced code
    failed: Array  # returns that are not finite
    given: Given = None  # what it was made of, for `interval`; None inside traced code

    def __repr__(self) -> str:
        worth, samples, *gradient = self._rows().values()
        mean, std = gradient
        return f"GradientEstimate({worth}; {samples}; gradient {mean} by means, {std} by stds)"

    def _repr_html_(self) -> str:
        return facts("Estimate of a distribution", self._rows())

    def _rows(self) -> dict[str, str]:
        return {
            "expected return": with_error(self.objective, self.objective_stderr),
            "rests on": count_for(np.shape(self.weights)[0], self.ess),
            "gradient by means": in_short(self.mean_gradient),
            "gradient by standard deviations": in_short(self.std_gradient),
        }

    def interval(self) -> Interval:
        """The 95 % interval of the expected return of the target; not a number where there is none.

        Whatever the weights of the estimate, this one rests on balance weights and, where it helps,
        on a model of the returns. There is none where the effective sample size is below 5, or more
        than 15 % of the target lies where hardly any sample could have been drawn.

        Raises `InputError` inside traced code.

        >>> found = recoup.estimate(theta, returns, **drawn, target=([0.5, 0.5], [0.8, 0.8]))
        >>> low, high = found.interval()
        >>> bool(low < found.objective < high)
        True
        """
        if self.given is None:
            raise InputError("an interval is not computed inside traced code.")
        row, data = self.given
        if _is_small(row, data):
            seen, unseen = _judged(row, data)
        else:
            from recoup.engine.compiled_estimate import judged

            seen, unseen = judged(row, data)
        return worth(seen, unseen, np.shape(data.theta)[1]).interval


def estimate(
    theta: Array,
    returns: Array,
    *,
    proposals: Rho,
    proposal: Rho,
    target: Rho,
    family: Chosen = "diagonal",
    weighting: Chosen = "balance",
    power: float | None = None,
    flatten: float | None = None,
    truncate: float | None = None,
    normalize: bool = False,
    baseline: Chosen = "optimal",
    mirrored: bool = False,
    failure: Chosen = "censored",
    told: Given = None,
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
    deviations; with `family="lowrank"` a rho of it may stand in place of a pair; with a family of
    your own, `proposals` and `target` are its rho.

    Computed in float64 if any array is float64, in float32 otherwise.

    Equations: `zhao2013 S3.2` gradient estimator with baseline; `veach1995 balance heuristic`;
    `zhao2013 Thm. 2`.

    Raises `InputError` where shapes do not fit together, a number is not finite or a word is
    unknown.

    >>> found = recoup.estimate(theta, returns, **drawn, target=([0.5, 0.5], [0.8, 0.8]))
    >>> print(f"{found.objective:.1f} +- {found.objective_stderr:.1f}, of {len(found.weights)}")
    -1.8 +- 0.1, of 40
    """
    given: Plain = {"family": family, "weighting": weighting, "baseline": baseline}
    given |= {"flatten": flatten, "truncate": truncate, "normalize": normalize}
    given |= {"mirrored": mirrored, "failure": failure}
    given |= {} if power is None else {"power": power}
    row = method_row(Method("estimate"), **given)
    data = _checked(row, Data(theta, returns, proposals, proposal, target, told))
    if _is_small(row, data):
        return _known(_result(data, _by_numpy(row, data)), row, data)
    from recoup.engine.compiled_estimate import computed

    result = _result(data, computed(row, data, _is_double(data)))
    return result if is_traced(result.objective) else _known(result, row, data)


def _known(result: GradientEstimate, row: Method, data: Data) -> GradientEstimate:
    """The result with what can only be said once its numbers are known."""
    return result._replace(pareto_k=pareto_k(result.weights), given=(row, data))


def _result(data: Data, e: Estimate) -> GradientEstimate:
    """An estimate in the words of the door."""
    xp = namespace(e.objective)
    mean_gradient, *rest = leaves(xp, e.gradient)
    told = True if data.told is None else data.told
    return GradientEstimate(
        mean_gradient=mean_gradient,
        std_gradient=rest[0] if len(rest) == 1 else tuple(rest),
        weights=e.weights,
        ess=e.ess,
        max_weight=e.max_weight,
        objective=e.objective,
        objective_stderr=e.objective_stderr,
        baseline=e.baseline,
        pareto_k=None,
        failed=xp.sum(~xp.isfinite(xp.asarray(data.returns)) & told),
    )


def _is_small(row: Method, data: Data) -> bool:
    """Whether NumPy computes it, which is quick below a million numbers: nothing is compiled."""
    if is_traced(*data) or not plain.has_parts(row):
        return False
    halves = row.mirrored and data.told is not None  # a pair of which one is not there
    return plain.can_judge(row, *np.shape(data.theta)) and not halves


def _by_numpy(row: Method, data: Data) -> Estimate:
    """The estimate from the samples that there are."""
    samples, proposals, told = _drawn(row, data)
    kind = np.float64 if _is_double(data) else np.float32
    with np.errstate(all="ignore"):  # as JAX does: what is beyond a type's numbers is infinite
        densities = plain.densities_of(row, proposals, samples)
        known = LogDensities(*(x if x is None else x.astype(kind) for x in densities))
        e = plain.estimate(plain.parts_of(row), proposals.reference, samples, known)
        each = {"weights": _spread(e.weights, told), "baseline": _flat(e.baseline, told)}
        numbers = e._replace(gradient=None, **each)._asdict()
        found = {key: x if x is None else np.asarray(x, kind)[()] for key, x in numbers.items()}
        gradient = tree_map(np, lambda x: x.astype(kind), e.gradient)
    return Estimate(**found | {"gradient": gradient})


def _flat(baseline: Pytree, told: np.ndarray) -> np.ndarray:
    """A baseline as one array: a scalar, one number a sample, or one a coordinate of rho."""
    if isinstance(baseline, tuple):
        return np.concatenate([np.ravel(leaf) for leaf in baseline])
    return baseline if np.ndim(baseline) == 0 else _spread(baseline, told)


def _spread(numbers: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Numbers of the samples that there are, zero for the others `[N']`."""
    found = np.zeros(len(told))
    found[told] = numbers
    return found


def _judged(row: Method, data: Data) -> tuple[Seen, float]:
    """What the samples say of the target, and which share of it they have not seen."""
    samples, proposals, _ = _drawn(row, data)
    outside = np.zeros(len(samples.returns), bool)
    with np.errstate(all="ignore"):
        drew = Drew(proposals, outside, plain.mixture_of(proposals, samples))
        seen, _, unseen, _ = plain.judge(row, proposals.reference, samples, drew)
    return seen, unseen


def _drawn(row: Method, data: Data) -> tuple[Samples, Proposals, np.ndarray]:
    """The samples that there are, what drew them, relative to the target, and which they are."""
    n = len(data.returns)
    told = np.ones(n, bool) if data.told is None else np.asarray(data.told, bool)
    theta, returns = (np.asarray(x, np.float64)[told] for x in (data.theta, data.returns))
    samples = Samples(theta, returns, np.asarray(data.drawn_by)[told])
    proposals, target = map(_in_double, (data.proposals, data.target))
    return samples, Proposals(plain.family_of(row), proposals, target), told


def _in_double(rho: Rho) -> Rho:
    return type(rho)(*(np.asarray(x, np.float64) for x in rho))


def _is_double(data: Data) -> bool:
    """Whether it is computed in float64: if any array is."""
    arrays = [data.theta, data.returns, *data.proposals, *data.target]
    return any((x if hasattr(x, "dtype") else np.asarray(x)).dtype == np.float64 for x in arrays)


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
    if data.told is not None and (np.shape(data.told) != (n,) or _kind(data.told) != "b"):
        raise InputError(f"`estimate(told=...)` must be True or False, of shape [N'] = [{n}].")
    _check_index(data.drawn_by, lines)
    if row.mirrored and n % 2:
        raise InputError(f"`estimate(mirrored=True)` needs an even number of samples, got {n}.")
    check_finite("`estimate(theta=...)`", theta)
    return data._replace(proposals=proposals, target=target)


def _kind(array: Array) -> str:
    """The kind of an array's type, as NumPy calls it."""
    return str((array if hasattr(array, "dtype") else np.asarray(array)).dtype.kind)


def _rho(row: Method, what: str, value: Given) -> Rho:
    """The rho of a pair (means, stds); with a family of one's own, what was given."""
    if not isinstance(row.family, str):
        if not hasattr(value, "mean") or not hasattr(value, "std"):
            raise InputError(
                f"`estimate({what}=...)` must be rho of the family, got {type(value).__name__}."
            )
        return value
    rho = FAMILIES[row.family].rho
    if isinstance(value, rho):
        return value
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputError(
            f"`estimate({what}=...)` must be a pair (means, stds), got {type(value).__name__}."
        )
    mean, std = (x if hasattr(x, "shape") else np.asarray(x) for x in value)
    if hasattr(rho, "check_factor") and std.ndim == mean.ndim + 1:
        return rho(mean, std)
    check_numbers(f"`estimate({what}=...)` means", mean)
    several = "s" if what == "proposals" else ""
    check_shape(f"`estimate({what}=...)` std{several}", std, "[..., D]", tuple(mean.shape))
    return rho.start(mean, std)


def _check_rho(what: str, rho: Rho, name: str, letters: str, shape: tuple[int, ...]) -> None:
    check_shape(f"`estimate({what}=...)` {name}", rho.mean, letters, shape)
    several = "s" if name.endswith("s") else ""
    if hasattr(rho, "check_factor"):
        rho.check_factor(f"`estimate({what}=...)` factor{several}", letters, shape)
    check_shape(f"`estimate({what}=...)` std{several}", rho.std, letters, shape)
    check_finite(f"`estimate({what}=...)` {name}", rho.mean)
    check_stds(f"`estimate({what}=...)` std{several}", rho.std)


def _check_index(proposal: Rho, lines: int) -> None:
    if is_traced(proposal):
        return
    index = np.asarray(proposal)
    if not np.issubdtype(index.dtype, np.integer):
        raise InputError(f"`estimate(proposal=...)` must be whole numbers, got {index.dtype}.")
    if index.min() < 0 or index.max() >= lines:
        wrong = index[(index < 0) | (index >= lines)][0]
        raise InputError(f"`estimate(proposal=...)` must lie in 0..{lines - 1}, got {wrong}.")
