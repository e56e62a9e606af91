"""From the words of a method's row to the functions it is made of: where words end."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp

from recoup.checks import InputError
from recoup.core import weights
from recoup.core.archive import Archive, with_failures
from recoup.core.baselines import Baseline
from recoup.core.directions import likelihood_ratio
from recoup.core.estimators.per_decision import decision_estimator
from recoup.core.estimators.reward_weighted import reward_weighted
from recoup.core.estimators.whole import Estimator, estimator
from recoup.core.families.family import Family
from recoup.core.families.trajectory import discounted_score
from recoup.core.gradient import Direction
from recoup.core.movers import Experience, Mover, first_memory, moved
from recoup.core.objective import Estimate
from recoup.core.regressions import natural_gradient
from recoup.core.rules.classics_on_archive import fit
from recoup.core.rules.on_archive import TracedRule, estimator_of_rule, traced
from recoup.core.types import Memory, Plain, Rho
from recoup.core.updates import Update, ascend
from recoup.engine.methods import Method
from recoup.engine.parts import BASELINES, UPDATES, UTILITIES, WEIGHTINGS, part_of
from recoup.engine.plain import as_asked, family_of, settings_of_rule, shapers_of


class Composed(NamedTuple):
    """A method as functions: what draws, what estimates, what moves, and what must be kept."""

    family: Family
    estimate: Estimator  # estimate(rho, archive), for any rho
    init: Callable[[Rho], Memory]  # rho -> the memory that moves begin with
    step: Callable[[Archive, Rho, Memory], tuple[Rho, Memory, Estimate]]
    # archive, rho, memory -> rho, memory, and what the archive says at the old rho
    own: bool  # whether weights look at the densities of the own proposals
    mixture: bool  # and of the mixture of all proposals


@lru_cache(maxsize=256)
def composed(row: Method, discount: float = 1.0) -> Composed:
    """The functions of a row; `discount` is for those that look inside episodes."""
    family = family_of(row)
    kept = weights.needs_of(ratio_of(row))
    estimate = estimator_of(row, family, discount)
    moves = _moves_of(row, family, discount)
    return Composed(
        family=family,
        estimate=estimate,
        init=moves.init,
        step=moves.step,
        own=weights.OWN in kept,
        mixture=weights.MIXTURE in kept,
    )


def _moves_of(row: Method, family: Family, discount: float) -> TracedRule:
    """What makes the moves of a row: a rule, a mover, or an update along an estimate."""
    if row.way.rule:
        return rule_of(row, family)
    if row.way.mover:
        return _by_mover(row, row.way.mover, _estimator_of(row, family, discount))
    return _by_estimate(row, family, estimator_of(row, family, discount))


def ratio_of(row: Method) -> weights.Ratio:
    """The ratio of the row's weighting."""
    return part_of(WEIGHTINGS, row.weighting, row)


def baseline_of(row: Method) -> Baseline:
    """The row's baseline."""
    return part_of(BASELINES, row.baseline, row)


def estimator_of(row: Method, family: Family, discount: float = 1.0) -> Estimator:
    """The estimator of the row, on samples of `family`."""
    if row.way.rule:
        direction = _direction_of(row, family, discount)
        estimate = estimator_of_rule(family, settings_of_rule(row), row.window, direction)
    else:
        estimate = _estimator_of(row, family, discount)
    return lambda rho, archive: estimate(rho, with_failures(archive, row.stated))


def _estimator_of(row: Method, family: Family, discount: float) -> Estimator:
    if row.direction == "em":
        return reward_weighted(
            discount=discount,
            nu=row.flatten,
            ridge=row.ridge,
            floor=row.tau_floor,
            folds=row.folds,
        )
    weighing: Plain = {
        "ratio": ratio_of(row),
        "shapers": shapers_of(row),
        "normalised": row.normalize,
    }
    if row.per_decision:
        return decision_estimator(discount=discount, baseline=baseline_of(row), **weighing)
    direction = _direction_of(row, family, discount)
    return estimator(family, direction=direction, paired=row.mirrored, **weighing)


def _direction_of(row: Method, family: Family, discount: float) -> Direction:
    if not isinstance(row.direction, str) and row.way.mover is None:
        return row.direction
    if row.direction == "regression":
        return natural_gradient(discounted_score(discount), row.ridge)
    if row.direction == "fit":
        return fit(part_of(UTILITIES, row.utility, row), family)
    return likelihood_ratio(family.score, baseline_of(row), family.coordinates)


def rule_of(row: Method, family: Family) -> TracedRule:
    """The rule that makes a move of the samples themselves."""
    made = traced(family, settings_of_rule(row), row.window)
    return TracedRule(
        made.init, lambda archive, *at: made.step(with_failures(archive, row.stated), *at)
    )


def _by_mover(row: Method, mover: Mover, estimate: Estimator) -> TracedRule:
    """Moves by a mover, which sees the samples and their weights."""

    def step(archive: Archive, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        archive = with_failures(archive, row.stated)
        found, b = estimate(rho, archive), archive.batches
        assert b is not None
        flat = (x.ravel() for x in (b.returns, b.valid, found.weights, b.order))
        experience = Experience(b.samples.reshape(b.returns.size, -1), *flat)
        after, memory, notes = moved(jnp, mover, experience, as_asked(row, rho), memory)
        return type(rho)(*after), memory, found._replace(notes=notes)

    return TracedRule(lambda rho: first_memory(jnp, mover, as_asked(row, rho)), step)


def _by_estimate(row: Method, family: Family, estimate: Estimator) -> TracedRule:
    """Moves by an update rule, which may ask the estimate at any rho."""
    update = update_of(row, family)

    def step(archive: Archive, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        def at(candidate: Rho) -> Estimate:
            if candidate is rho:  # the newest proposal, whose densities the archive may hold
                return estimate(candidate, archive)
            return estimate(candidate, archive._replace(target=None))

        return update.step(at, rho, memory)

    return TracedRule(update.init, step)


def update_of(row: Method, family: Family) -> Update:
    """The row's update rule, for rho of `family`."""
    if isinstance(row.update, str):
        if row.update == "natural" and (family.natural is None or family.moved is None):
            raise InputError(
                f"update='natural' needs `natural` and `moved` of a family; {family.name!r} has "
                "not both."
            )
        return part_of(UPDATES, row.update, row, family)
    if hasattr(row.update, "step"):
        return row.update
    return ascend(family, row.update, row.tau_floor)
