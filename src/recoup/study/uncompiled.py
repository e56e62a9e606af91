"""Moves and judgements of small studies, by NumPy: nothing is compiled, nothing is padded.

Only here are results known that were drawn under other bounds.
"""

import numpy as np

from recoup.core.families.rho import Diagonal
from recoup.core.plain.densities import Proposals, gained_mixture, log_ratio, own_density
from recoup.core.plain.judge import Drew
from recoup.core.plain.move import Samples
from recoup.core.plain.weighing import Densities
from recoup.core.worth import Seen
from recoup.engine import plain
from recoup.engine.methods import Method
from recoup.study.ledger import Ledger, Results
from recoup.study.steps import Stepped

NOTHING = np.zeros(0)


def stepped(row: Method, ledger: Ledger, results: Results, numbers: np.ndarray) -> Stepped:
    """The move of all `results`, from the distribution of a block of numbers."""
    samples, proposals, outside = _placed(ledger, results)
    needs_own, needs_mixture = plain.needs(row)
    own = _extended_own(samples, proposals, ledger.own) if needs_own else NOTHING
    mixture = _extended_mixture(samples, proposals, ledger.mixture) if needs_mixture else NOTHING
    rho = Diagonal.unpacked(numbers, ledger.dim)
    target = np.where(outside, -np.inf, log_ratio(rho, proposals.reference, samples.theta))
    densities = Densities(target, own, mixture - np.log(max(results.n, 1)))
    after, info = plain.make_move(row, rho, samples, densities)
    return Stepped(after.packed(), None, info, own, mixture)


def judged(
    row: Method, ledger: Ledger, results: Results, target: np.ndarray
) -> tuple[Seen, np.ndarray, float, int]:
    """What `results` say of the distribution of a block of numbers."""
    samples, proposals, outside = _placed(ledger, results)
    drew = Drew(proposals, outside, _extended_mixture(samples, proposals, ledger.mixture))
    return plain.judge(row, Diagonal.unpacked(target, ledger.dim), samples, drew)


def _placed(ledger: Ledger, results: Results) -> tuple[Samples, Proposals, np.ndarray]:
    """Samples, what drew them, and which of them lie outside of the study's bounds `[n]`."""
    n = results.n
    samples = Samples(results.samples[0][:n], results.returns[:n], results.proposal[:n])
    rhos, reference = (
        Diagonal.unpacked(block, ledger.dim) for block in (results.blocks, results.reference)
    )
    if not ledger.charts:
        return samples, Proposals(rhos, reference), np.zeros(n, bool)
    charts = [ledger.charts[i - 1] if i else None for i in results.charts]
    return samples, Proposals(rhos, reference, charts), results.outside[:n]


def _extended_own(samples: Samples, proposals: Proposals, before: np.ndarray) -> np.ndarray:
    """Densities under the own proposals `[n]`; those `before` are known."""
    new = slice(len(before), None)
    found = own_density(proposals, samples.drawn_by[new], samples.theta[new])
    return np.concatenate([before, found])


def _extended_mixture(samples: Samples, proposals: Proposals, before: np.ndarray) -> np.ndarray:
    """Densities under the mixture `[n]`; those `before` are known, but for what it has gained."""
    old, slots = len(before), len(proposals.rhos.mean)
    gained = np.bincount(samples.drawn_by[old:], minlength=slots)
    counts = np.bincount(samples.drawn_by, minlength=slots)
    known = gained_mixture(proposals, gained, samples.theta[:old], before)
    nothing = np.full(len(samples.theta) - old, -np.inf)
    new = gained_mixture(proposals, counts, samples.theta[old:], nothing)
    return np.concatenate([known, new])
