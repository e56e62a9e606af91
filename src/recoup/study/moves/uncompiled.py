"""Moves and judgements of small studies, by NumPy: nothing is compiled, nothing is padded.

Only here are results known that were drawn under other bounds.
"""

import numpy as np

from recoup.core.plain.densities import Proposals, gained_mixture, own_density
from recoup.core.plain.judge import Drew
from recoup.core.plain.rule import ToldResults
from recoup.core.plain.small_archive import Samples, valued
from recoup.core.weights import LogDensities
from recoup.core.worth import Seen
from recoup.engine import plain
from recoup.engine.methods import Method
from recoup.study.moves.memory import flattened, kept_alike, remembered
from recoup.study.moves.steps import Before, Stepped
from recoup.study.reader.ledger import Ledger, Placed, Results

NOTHING = np.zeros(0)


def stepped(row: Method, ledger: Ledger, results: Results, old: int, before: Before) -> Stepped:
    """The move of all `results`; those after the first `old` are new."""
    if row.way.rule:
        return _by_rule(row, ledger, results, old, before)
    return _by_estimate(row, ledger, results, before)


def _by_estimate(row: Method, ledger: Ledger, results: Results, before: Before) -> Stepped:
    """The move of a method that follows an estimate, or of a mover, which sees its weights."""
    samples, proposals, outside = _placed(row, ledger, results)
    needs_own, needs_mixture = plain.needs(row)
    own = _extended_own(samples, proposals, ledger.own) if needs_own else NOTHING
    mixture = _extended_mixture(samples, proposals, ledger.mixture) if needs_mixture else NOTHING
    rho = plain.family_of(row).unpacked(before.numbers, ledger.dim)
    target = np.where(outside, -np.inf, proposals.density(rho, samples.theta))
    densities = LogDensities(target, own, mixture - np.log(max(results.n, 1)))
    memory = remembered(row, rho, before.memory) if row.way.mover else None
    order = results.order[samples.drawn_by]
    after, later, info = plain.make_move(row, rho, samples, densities, memory, order)
    return Stepped(after.packed(), kept_alike(later, memory), info, own, mixture)


def _by_rule(row: Method, ledger: Ledger, results: Results, old: int, before: Before) -> Stepped:
    """The move of a method that looks at the samples themselves."""
    n, family = max(results.n, 1), plain.numpy_family_of(row)  # all dropped: one without return
    returns, valid = valued(results.returns[:n], row.stated)
    inside = ~results.outside[:n]
    drawn_by = results.proposal[:n]
    told = ToldResults(
        theta=results.samples[0][:n],
        returns=returns,
        valid=valid & inside,
        failed=~valid & inside & (np.arange(n) < results.n),
        fresh=(np.arange(n) >= old) & ~results.imported[drawn_by],
        drawn_by=drawn_by,
        also=np.where(inside[:, None], results.also[:n], np.nan),
        foreign=results.charts[drawn_by] != 0,
        context=results.context[:n],
        proposals=family.unpacked(results.blocks, ledger.dim),
    )
    rho = family.unpacked(before.numbers, ledger.dim)
    memory = remembered(row, rho, before.memory)
    after, memory, info = plain.make_rule_move(row, rho, told, memory, ledger.limits.kept())
    return Stepped(family.packed(after), flattened(memory), info, NOTHING, NOTHING)


def judged(
    row: Method, ledger: Ledger, results: Results, target: np.ndarray
) -> tuple[Seen, np.ndarray, float, int]:
    """What `results` say of the distribution of a block of numbers."""
    samples, drew = placed_samples(row, ledger, results)
    proposals = drew.proposals
    return plain.judge(row, proposals.family.unpacked(target, ledger.dim), samples, drew)


def placed_samples(row: Method, ledger: Ledger, results: Results) -> tuple[Samples, Drew]:
    """Samples, and what drew them, whatever candidate they are to be weighed for.

    Kept in the ledger, which is another one once a result is amended, until there are more results
    or the densities are those of another move.
    """
    kept = ledger.placed
    if kept is None or kept.n != results.n or kept.mixture is not ledger.mixture:
        samples, proposals, outside = _placed(row, ledger, results)
        mixture = _extended_mixture(samples, proposals, ledger.mixture)
        made = samples, Drew(proposals, outside, mixture)
        kept = ledger.placed = Placed(results.n, ledger.mixture, made)
    found: tuple[Samples, Drew] = kept.made
    return found


def _placed(row: Method, ledger: Ledger, results: Results) -> tuple[Samples, Proposals, np.ndarray]:
    """Samples, what drew them, and which of them lie outside of the study's bounds `[n]`."""
    n, family = results.n, plain.family_of(row)
    samples = Samples(results.samples[0][:n], results.returns[:n], results.proposal[:n])
    rhos, reference = (
        family.unpacked(block, ledger.dim) for block in (results.blocks, results.reference)
    )
    if not ledger.charts:
        return samples, Proposals(family, rhos, reference), np.zeros(n, bool)
    charts = [ledger.charts[i - 1] if i else None for i in results.charts]
    return samples, Proposals(family, rhos, reference, charts), results.outside[:n]


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
