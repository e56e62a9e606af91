"""What a failed rollout is worth to the rule: a bad return, the worse the more theta decides it.

A failure has no return. Left out, it teaches nothing, and a search whose returns rise towards where
rollouts fail walks in there. So, where failing is seen to depend on theta, it stands for a bad
return: from that where the worst tenth of returns begins, as far as it depends, down to the lowest
of all. Failures that come by chance are left out: they would be noise, and nothing else.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, mean_of, quantiles
from recoup.core.rules.tuning import TUNED
from recoup.core.types import Namespace

BELOW = 1e-3  # of a return, by which a failure is worse than the only one that is known


class ByOutcome(NamedTuple):
    """Samples that were told, by what came of them."""

    z: Array  # [n, D]
    returns: Array  # [n]
    succeeded: Array  # [n]
    failed: Array  # [n]


def worth_of_failing(xp: Namespace, known: ByOutcome, worst: Array, share: Array) -> Array:
    """The return that a failure stands for; `worst` is the lowest ever seen, infinite before one.

    `share` is how far failing depends on theta. Zero before any return: then all are equal. Any
    number below will do where only one return is known: the rule looks at no unit.
    """
    part, any_return = known.succeeded, xp.any(known.succeeded)
    bad = quantiles(xp, known.returns, part | ~any_return, (TUNED.bad,))[0]
    lowest = xp.minimum(xp.min(xp.where(part, known.returns, xp.inf)), worst)
    lowest = xp.where(xp.isfinite(lowest), lowest, 0.0)
    bad = xp.where(any_return, bad, lowest)
    equal = any_return & (xp.max(xp.where(part, known.returns, -xp.inf)) == lowest)
    lowest = xp.where(equal, lowest - BELOW * (1 + xp.abs(lowest)), lowest)
    return xp.where(equal, lowest, (1 - share) * bad + share * lowest)


def dependence(xp: Namespace, known: ByOutcome) -> Array:
    """How far failing is seen to depend on theta, from 0 to 1.

    As James and Stein shrink, the share 1 - 2 c / t^2, at least 0, of the difference between the
    mean of those that failed and that of the others: t^2 is the sum of its squares in standard
    errors, and c what that is by chance, about D. 1 where there are none of the one or the other,
    so that nothing can be compared, and 0 where there are too few.
    """
    failed, succeeded = xp.sum(known.failed), xp.sum(known.succeeded)
    of_failed = mean_of(xp, known.z, known.failed)
    of_succeeded = mean_of(xp, known.z, known.succeeded)
    apart = xp.where(known.failed[:, None], known.z - of_failed, 0.0)
    apart = apart + xp.where(known.succeeded[:, None], known.z - of_succeeded, 0.0)
    degrees = failed + succeeded - 2
    variance = xp.sum(apart**2, axis=0) / xp.maximum(degrees, 1)
    each = 1 / xp.maximum(failed, 1) + 1 / xp.maximum(succeeded, 1)
    tiny = float(np.finfo(known.z.dtype).tiny)
    square = xp.sum((of_failed - of_succeeded) ** 2 / xp.maximum(variance * each, tiny))
    by_chance = known.z.shape[1] * degrees / xp.maximum(degrees - 2, 1)
    share = xp.clip(1 - TUNED.doubt * by_chance / xp.maximum(square, tiny), 0.0, 1.0)
    return xp.where((failed > 0) & (succeeded > 0), xp.where(degrees > 2, share, 0.0), 1.0)
