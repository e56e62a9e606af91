"""The rule of `core.rules` on the results of a study, by NumPy: as `rules.traced`, unpadded."""

from typing import Any, NamedTuple

import numpy as np

from recoup.core.families.rho import Diagonal, Full
from recoup.core.plain.densities import Rho, log_ratio, row_of
from recoup.core.plain.errors import standard_error
from recoup.core.plain.limits import Kept, beyond, worth_within
from recoup.core.plain.move import Estimate
from recoup.core.rules import blend
from recoup.core.rules.blend import FAR, Memory, Notes, Rule, Window, reach_of
from recoup.core.weights import effective_sample_size


class Told(NamedTuple):
    """Results in the order of telling, and what drew them."""

    theta: np.ndarray  # [n, D]
    returns: np.ndarray  # [n], zero where not valid
    valid: np.ndarray  # [n]
    failed: np.ndarray  # [n] not valid, as the rollout failed
    fresh: np.ndarray  # [n] told since the last move, and drawn by the search itself
    drawn_by: np.ndarray  # [n] which of the proposals
    also: np.ndarray  # [n, A] numbers told beside them that have limits; not a number: not known
    foreign: np.ndarray  # [n] those drawn under other bounds, which are not weighed
    proposals: Any  # rho, leading axis [P]


class Made(NamedTuple):
    """A move, and what it was made of."""

    rho: Rho
    memory: Memory
    found: Estimate
    notes: Notes


def move(
    rule: Rule, window: int | None, rho: Rho, told: Told, memory: Any, limits: Kept | None = None
) -> Made:
    """The move that the fresh results make, within limits; a memory of None has not begun."""
    spread = rho.log_spread(np)
    if memory is None:
        memory = blend.first_memory(np, rule, spread)
    reach = reach_of(rho.mean.size, max(int(np.sum(told.fresh)), 1), window)
    n = len(told.returns)
    first = max(n - max(reach), 0)
    kept = told._replace(**{key: getattr(told, key)[first:] for key in told._fields[:-1]})
    newness = np.arange(n - first)[::-1]
    recent = newness < reach.recent
    failed = kept.failed if rule.avoids and kept.failed.any() else None
    counted = kept.valid if failed is None else kept.valid | failed
    seen = Window(
        z=rho.whitened(np, kept.theta),
        returns=kept.returns,
        valid=counted,
        fresh=kept.fresh,
        modelled=newness < reach.modelled,
        recent=recent & counted,
        log_weights=log_weights(rho, kept._replace(valid=counted), recent & ~kept.foreign),
        failed=failed,
    )
    within = seen if limits is None else _within(seen, kept.also, limits)
    made = blend.step(np, rule, within, memory, spread)
    after = rho.stretched(np, *made.stretch, blend.narrowest(np, rule, memory))
    return Made(after, made.memory, _summary(told, kept, seen, made), made.notes)


def _within(seen: Window, also: np.ndarray, limits: Kept) -> Window:
    """The window with returns as the rule is to see them where limits are broken too likely."""
    known = seen.valid if seen.failed is None else seen.valid & ~seen.failed
    over = beyond(seen.z, also, limits)
    return seen._replace(returns=worth_within(seen.returns, known, over, seen.modelled))


def log_weights(rho: Rho, told: Told, recent: np.ndarray) -> np.ndarray:
    """log p(theta | rho) less that of the mixture of proposals that are near `[n]`."""
    mixture, part = np.full(len(recent), -np.inf), np.zeros(len(recent), bool)
    total, z = 0, rho.whitened(np, told.theta)
    for slot in np.unique(told.drawn_by[recent]):
        drew = row_of(told.proposals, slot)
        if not renyi2(rho, drew) < FAR:
            continue
        mine = recent & (told.drawn_by == slot)
        count = int(np.sum(mine))
        mixture = np.logaddexp(mixture, np.log(count) + log_ratio(drew, rho, told.theta, z))
        part, total = part | mine, total + count
    found = np.log(max(total, 1)) - mixture
    return np.where(part & told.valid, found, -np.inf)


def renyi2(p: Rho, q: Rho) -> float:
    """log E_q[(p / q)^2], as the families' `renyi2`; infinite where it does not exist."""
    away = q.whitened(np, p.mean[None])[0]
    if isinstance(p, Diagonal):
        values = (p.std / q.std) ** 2
    else:
        turned = _seen(p, q)
        values, axes = np.linalg.eigh(turned @ turned.T)
        away = axes.T @ away
    gap = 2 - values
    if not (gap > 0).all():
        return float("inf")
    return float(np.sum(away**2 / gap - 0.5 * np.log(gap * values)))


def divergence(p: Rho, q: Rho) -> float:
    """KL(p || q), as the families' `divergence`."""
    away, grown = q.whitened(np, p.mean[None]), p.log_spread(np) - q.log_spread(np)
    scaled = (p.std / q.std) ** 2 if isinstance(p, Diagonal) else _seen(p, q) ** 2
    return float((np.sum(scaled) - p.mean.size + np.sum(away**2)) / 2 - np.sum(grown))


def _seen(p: Full, q: Rho) -> np.ndarray:
    """p's factor `[D, D]` as q sees it."""
    return q.whitened(np, q.mean + p.factor.T).T


def _summary(told: Told, kept: Told, seen: Window, made: blend.Step) -> Estimate:
    """What the weights say of the objective, as `rules.traced`."""
    omega, part = made.weighed.omega, np.isfinite(seen.log_weights)
    if seen.failed is not None:  # the objective is the return of what does not fail
        part = part & ~seen.failed
        omega = np.where(part, omega, 0.0)
        omega = omega / (np.sum(omega) or 1.0)
    raw = np.where(part, np.exp(seen.log_weights), 0.0)
    objective = float(np.sum(omega * seen.returns))
    residuals = np.where(part, omega * (seen.returns - objective), 0.0)
    n = int(np.sum(part))
    return Estimate(
        gradient=None,
        objective=objective if n else float("nan"),
        objective_stderr=standard_error(residuals, part, kept.drawn_by),
        weights=np.concatenate([np.zeros(len(told.returns) - len(raw)), raw]),
        ess=float(effective_sample_size(omega)),
        max_weight=float(np.max(raw, initial=0.0)),
        samples=int(np.sum(told.valid)),
        mean_weight=float(np.sum(raw)) / max(n, 1),
        censored=int(np.sum(~told.valid)),
    )
