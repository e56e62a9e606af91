"""The rule of `core.rules` on the results of a study, unpadded: `rules.on_archive` by NumPy."""

from typing import NamedTuple

import numpy as np

from recoup.core.families.family import Family, moving
from recoup.core.objective import Estimate
from recoup.core.plain.context import explained
from recoup.core.plain.densities import row_of
from recoup.core.plain.limit_chance import LimitsToKeep, beyond, worth_within
from recoup.core.rules import recoup_rule
from recoup.core.rules.tuning import TUNED
from recoup.core.rules.weighted import objective
from recoup.core.rules.window import Memory, Rule, Window, first_memory, narrowest, reach_of
from recoup.core.types import Rho


class ToldResults(NamedTuple):
    """Results in the order of telling, and what drew them."""

    theta: np.ndarray  # [n, D]
    returns: np.ndarray  # [n], zero where not valid
    valid: np.ndarray  # [n]
    failed: np.ndarray  # [n] not valid, as the rollout failed
    fresh: np.ndarray  # [n] told since the last move, and drawn by the search itself
    drawn_by: np.ndarray  # [n] which of the proposals
    also: np.ndarray  # [n, A] numbers told beside them that have limits; not a number: not known
    foreign: np.ndarray  # [n] those drawn under other bounds, which are not weighed
    context: np.ndarray  # [n, C] what was known before each began; not a number: nothing was told
    proposals: Rho  # rho, leading axis [P]


class RuleMove(NamedTuple):
    """A move, and what it was made of."""

    rho: Rho
    memory: Memory
    found: Estimate


def move(
    family: Family,
    rule: Rule,
    window: int | None,
    rho: Rho,
    told: ToldResults,
    memory: Memory,
    limits: LimitsToKeep | None = None,
) -> RuleMove:
    """The move that the fresh results make, within limits; a memory of None has not begun."""
    asked = moving(family)
    spread = asked.log_spread(rho)
    if memory is None:
        memory = first_memory(np, rule, spread)
    reach = reach_of(told.theta.shape[1], max(int(np.sum(told.fresh)), 1), window)
    n = len(told.returns)
    first = max(n - max(reach), 0)
    kept = told._replace(**{key: getattr(told, key)[first:] for key in told._fields[:-1]})
    newness, z = np.arange(n - first)[::-1], asked.whitened(rho, kept.theta)
    recent = newness < reach.recent
    failed = kept.failed if rule.avoids and kept.failed.any() else None
    counted = kept.valid if failed is None else kept.valid | failed
    near = recent & ~kept.foreign
    seen = Window(
        z=z,
        returns=kept.returns,
        valid=counted,
        fresh=kept.fresh,
        modelled=newness < reach.modelled,
        recent=recent & counted,
        log_weights=log_weights(family, rho, kept._replace(valid=counted), near, z),
        failed=failed,
    )
    alike, share = _alike(rule, seen, kept.context, memory)
    within = alike if limits is None else _within(alike, kept.also, limits)
    made = recoup_rule.step(np, rule, within, memory, spread)
    made = made._replace(notes=made.notes._replace(context=share))
    after = asked.stretched(rho, *made.stretch, narrowest(np, rule, memory))
    return RuleMove(after, made.memory, _summary(told, kept, seen, made))


def _alike(
    rule: Rule, seen: Window, context: np.ndarray, memory: Memory
) -> tuple[Window, np.float64 | None]:
    """The window with returns as if all had begun alike; and the share that this takes off."""
    returned = seen.valid if seen.failed is None else seen.valid & ~seen.failed
    known = returned & np.isfinite(context).all(axis=1)
    if not rule.context or not context.shape[1] or not known.any():
        return seen, None
    found = explained(seen.z, seen.returns, known, seen.modelled, context, memory.hyper)
    return seen._replace(returns=seen.returns - found.part), found.share


def _within(seen: Window, also: np.ndarray, limits: LimitsToKeep) -> Window:
    """The window with returns as the rule is to see them where limits are broken too likely."""
    known = seen.valid if seen.failed is None else seen.valid & ~seen.failed
    over = beyond(seen.z, also, limits)
    return seen._replace(returns=worth_within(seen.returns, known, over, seen.modelled))


def log_weights(
    family: Family, rho: Rho, told: ToldResults, recent: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """log p(theta | rho) less that of the mixture of proposals that are near `[n]`.

    `z [n, D]` is the noise that became theta under rho. All proposals are near of a family without
    a divergence that says so; one without a ratio of noise has that of many samples.
    """
    ratio, renyi2 = family.ratio_of_noise, family.renyi2
    mixture, part = np.full(len(recent), -np.inf), np.zeros(len(recent), bool)
    total = 0
    for slot in np.unique(told.drawn_by[recent]):
        drew = row_of(told.proposals, slot)
        if renyi2 is not None and not renyi2(rho, drew) < TUNED.far:
            continue
        mine = recent & (told.drawn_by == slot)
        count = int(np.sum(mine))
        row = family.log_ratio(drew, rho, told.theta) if ratio is None else ratio(drew, rho, z)
        mixture = np.logaddexp(mixture, np.log(count) + row)
        part, total = part | mine, total + count
    found = np.log(max(total, 1)) - mixture
    return np.where(part & told.valid, found, -np.inf)


def _summary(
    told: ToldResults, kept: ToldResults, seen: Window, made: recoup_rule.Step
) -> Estimate:
    """What the weights say of the objective, and why the step was made."""
    proposals = len(told.proposals[0])
    found = objective(
        np, made.weighed, seen.log_weights, seen.returns, seen.failed, kept.drawn_by, proposals
    )
    older = np.zeros(len(told.returns) - len(found.weights))
    return Estimate(
        gradient=made.stretch,
        objective=found.mean,
        objective_stderr=found.stderr,
        weights=np.concatenate([older, found.weights]),
        ess=found.ess,
        max_weight=np.max(found.weights, initial=0.0),
        baseline=found.mean,
        samples=np.sum(told.valid),
        mean_weight=found.mean_weight,
        censored=np.sum(~told.valid),
        notes=made.notes,
    )
