"""From the words of a method's row to the functions of `core.plain`: the moves that NumPy makes.

Which moves those are depends on the method and on how many results there are, and on nothing else:
whatever process makes a move makes the same.
"""

from typing import Any

import numpy as np

from recoup.core.families.rho import Diagonal
from recoup.core.plain import move as plain
from recoup.core.plain import rule as rules
from recoup.core.plain.densities import Rho, kl_divergence
from recoup.core.plain.judge import Drew, judged
from recoup.core.plain.limits import Kept
from recoup.core.rules.blend import Memory, Rule, first_memory
from recoup.core.weights import MIXTURE, OWN, LogDensities, flatten, needs_of, truncate
from recoup.core.worth import Seen
from recoup.engine.failure import AVOID
from recoup.engine.info import Info
from recoup.engine.methods import Method
from recoup.engine.parts import BASELINES, WEIGHTINGS, part_of

LARGEST = 2**20  # numbers of the samples: above, what was compiled is faster
STEPS: dict[str, Any] = {
    "normalised": lambda row: plain.normalised_ascent(row.epsilon, row.tau_floor),
    "natural": lambda row: plain.natural_step(row.kl, row.tau_floor),
}


def can_judge(row: Method, n: int, dim: int) -> bool:
    """Whether candidates of so many results are judged here."""
    if row.space != "parameters" or row.family not in ("diagonal", "full"):
        return False
    return n * dim * (dim if row.family == "full" else 1) <= LARGEST


def can_move(row: Method, n: int, dim: int) -> bool:
    """Whether the moves of a method with so many results are made here."""
    parts = ((row.weighting, WEIGHTINGS), (row.baseline, BASELINES), (row.update, STEPS))
    if row.direction == "blend":
        return True
    known = all(isinstance(word, str) and word in table for word, table in parts)
    ours = (row.direction, row.family) == ("gradient", "diagonal")
    return known and ours and can_judge(row, n, dim)


def needs(row: Method) -> tuple[bool, bool]:
    """Whether the weights look at densities of the own proposals, and of their mixture."""
    wanted = needs_of(part_of(WEIGHTINGS, row.weighting, row))
    return OWN in wanted, MIXTURE in wanted


def make_move(
    row: Method, rho: Diagonal, samples: plain.Samples, densities: LogDensities
) -> tuple[Diagonal, Info]:
    """Where the distribution goes, and what the move was made of."""
    shapers = [
        make(value)
        for make, value in ((flatten, row.flatten), (truncate, row.truncate))
        if value is not None
    ]
    parts = plain.Parts(
        ratio=part_of(WEIGHTINGS, row.weighting, row),
        shapers=shapers,
        normalised=row.normalize,
        baseline=part_of(BASELINES, row.baseline, row),
        failure=row.failure,
        size=row.draw,
    )
    found = plain.estimate(parts, rho, samples, densities)
    after = STEPS[row.update](row)(rho, found.gradient)
    info = Info(
        objective=found.objective,
        objective_stderr=found.objective_stderr,
        ess=found.ess,
        max_weight=found.max_weight,
        weights=found.weights,
        baseline=None,
        samples=found.samples,
        kl=kl_divergence(after, rho),
        flatten=None,
        mean_weight=found.mean_weight,
        censored=found.censored,
    )
    return after, info


def settings_of_rule(row: Method) -> Rule:
    """The row's settings, as the rule of `core.rules` takes them."""
    own = {key: getattr(row, key) for key in Rule._fields if key not in ("full", "avoids")}
    return Rule(full=row.family == "full", avoids=row.failure == AVOID, **own)


def first_rule_memory(row: Method, rho: Any) -> Memory:
    """What the rule of `core.rules` remembers before its first move."""
    return first_memory(np, settings_of_rule(row), rho.log_spread(np))


def make_rule_move(
    row: Method, rho: Any, told: rules.Told, memory: Any, limits: Kept | None = None
) -> tuple[Any, Any, Info]:
    """Where the rule of `core.rules` takes the distribution, its memory, and the move."""
    made = rules.move(settings_of_rule(row), row.window, rho, told, memory, limits)
    found = made.found
    info = Info(
        objective=found.objective,
        objective_stderr=found.objective_stderr,
        ess=found.ess,
        max_weight=found.max_weight,
        weights=found.weights,
        baseline=found.objective,
        samples=found.samples,
        kl=rules.divergence(made.rho, rho),
        flatten=None,
        mean_weight=found.mean_weight,
        censored=found.censored,
        notes=made.notes,
    )
    return made.rho, made.memory, info


def judge(
    row: Method, rho: Rho, samples: plain.Samples, drew: Drew
) -> tuple[Seen, np.ndarray, float, int]:
    """What samples say of `rho`, their weights, its unseen share, and how many are left out."""
    return judged(rho, samples, drew, failure=row.stated, size=row.draw)
