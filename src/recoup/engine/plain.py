"""From the words of a method's row to the functions of `core.plain`: the moves that NumPy makes.

Which moves those are depends on the method and on how many results there are, and on nothing else:
whatever process makes a move makes the same.
"""

from typing import NamedTuple

import numpy as np

from recoup.checks import check_stds
from recoup.core.families.family import Family, moving
from recoup.core.families.table import FAMILIES
from recoup.core.gradient import Direction
from recoup.core.movers import Experience, first_memory, moved
from recoup.core.objective import Estimate
from recoup.core.plain import rule as rules
from recoup.core.plain import small_archive as plain
from recoup.core.plain.densities import Proposals, gained_mixture, own_density
from recoup.core.plain.judge import Drew, judged
from recoup.core.plain.limit_chance import LimitsToKeep
from recoup.core.plain.small_archive import estimate as estimate
from recoup.core.rules.classics_on_archive import fit
from recoup.core.rules.window import Rule
from recoup.core.rules.window import first_memory as first_rule_memory
from recoup.core.types import Array, Memory, Rho
from recoup.core.weights import MIXTURE, OWN, LogDensities, Shaper, flatten, needs_of, truncate
from recoup.core.worth import Seen
from recoup.engine.failure import AVOID
from recoup.engine.info import Info
from recoup.engine.methods import Method, family_name
from recoup.engine.parts import BASELINES, UPDATES, UTILITIES, WEIGHTINGS, part_of

NOTHING = np.zeros(0)
NUMPY_NUMBERS = 2**20  # numbers of the samples: above, what was compiled is faster
WEIGHED_NUMBERS = 2**23  # likewise of a candidate, for which nothing is compiled as yet


class Data(NamedTuple):
    """The samples of an estimate, what drew them, and what it is about."""

    theta: Array  # [N', D]
    returns: Array  # [N']
    proposals: Rho  # rho, leading axis [L]
    drawn_by: Array  # [N']
    target: Rho  # rho
    told: Array | None = None  # [N'] which of them there are; None: all


def family_of(row: Method) -> Family:
    """The family of the row's samples."""
    if row.space == "parameters" and not isinstance(row.family, str):
        return row.family
    return FAMILIES[family_name(row)].made()


def numpy_family_of(row: Method) -> Family:
    """The family of distributions of theta, of NumPy's arrays, whoever has written it."""
    if isinstance(row.family, str):
        return family_of(row)
    from recoup.engine.own_family import by_numpy  # needs JAX, as such a family does

    return by_numpy(row.family)


def as_asked(row: Method, rho: Rho) -> Rho:
    """The rho that a mover is given: one that answers it, whoever has written its family."""
    if isinstance(row.family, str):
        return rho
    from recoup.engine.own_family import answering  # needs JAX, as such a family does

    return answering(row.family, rho)


def can_judge(row: Method, n: int, dim: int) -> bool:
    """Whether a candidate of so many results is judged here at once."""
    return _in_numbers(row, n, dim, NUMPY_NUMBERS)


def can_weigh(row: Method, n: int, dim: int) -> bool:
    """Whether candidates of so many results are judged here: a second, where compiling takes ten.

    No number that a move is made of depends on it.
    """
    return _in_numbers(row, n, dim, WEIGHED_NUMBERS)


def _in_numbers(row: Method, n: int, dim: int, most: int) -> bool:
    """Whether densities of so many results can be computed here, by so many numbers at most."""
    if row.space != "parameters" or not isinstance(row.family, str):
        return False
    return n * family_of(row).work(dim) <= most


def can_move(row: Method, n: int, dim: int) -> bool:
    """Whether the moves of a method with so many results are made here."""
    return row.way.rule or (has_parts(row) and can_judge(row, n, dim))


def has_parts(row: Method) -> bool:
    """Whether all that an estimate and a step of the row are made of can be computed here."""
    words = ((row.weighting, WEIGHTINGS), (row.baseline, BASELINES), (row.update, UPDATES))
    ours = all(isinstance(word, str) and not table[word].compiled for word, table in words)
    fits = row.direction == "fit" and isinstance(row.utility, str)
    moves = row.way.mover is not None and not row.way.mover.compiled
    return ours and (fits or moves or row.direction == "gradient")


def needs(row: Method) -> tuple[bool, bool]:
    """Whether the weights look at densities of the own proposals, and of their mixture."""
    wanted = needs_of(part_of(WEIGHTINGS, row.weighting, row))
    return OWN in wanted, MIXTURE in wanted


def densities_of(row: Method, proposals: Proposals, samples: plain.Samples) -> LogDensities:
    """What the weights of the reference look at."""
    needs_own, needs_mixture = needs(row)
    n, nothing = len(samples.returns), np.zeros(0)
    own = own_density(proposals, samples.drawn_by, samples.theta) if needs_own else nothing
    mixture = mixture_of(proposals, samples) if needs_mixture else nothing
    return LogDensities(np.zeros(n), own, mixture - np.log(max(n, 1)))


def mixture_of(proposals: Proposals, samples: plain.Samples) -> np.ndarray:
    """The log of the counted sum of the samples' densities `[n]`."""
    counts = np.bincount(samples.drawn_by, minlength=len(proposals.rhos.mean))
    nothing = np.full(len(samples.theta), -np.inf)
    return gained_mixture(proposals, counts, samples.theta, nothing)


def make_move(
    row: Method,
    rho: Rho,
    samples: plain.Samples,
    densities: LogDensities,
    memory: Memory = None,
    order: Array | None = None,
) -> tuple[Rho, Memory, Info]:
    """Where the distribution goes, a mover's memory, and what the move was made of.

    A mover sees the `order [n]` in which what drew the samples was made.
    """
    family, parts = family_of(row), parts_of(row)

    def at(candidate: Rho) -> Estimate:
        return plain.estimate(parts, candidate, samples, densities)

    if row.way.mover is None:
        after, _, found = part_of(UPDATES, row.update, row, family).step(at, rho, ())
        return after, None, _info(family, rho, after, found)
    found = at(rho)
    returns, valid = plain.valued(samples.returns, row.stated)
    experience = Experience(samples.theta, returns, valid, np.ravel(found.weights), order)
    after, memory, notes = moved(np, row.way.mover, experience, rho, memory)
    check_stds(f"the spread that {row.name} moves to", after.positive)
    return after, memory, _info(family, rho, after, found._replace(notes=notes))


def parts_of(row: Method) -> plain.Parts:
    """What an estimate of the row is made of."""
    return plain.Parts(
        ratio=part_of(WEIGHTINGS, row.weighting, row),
        shapers=shapers_of(row),
        normalised=row.normalize,
        direction=_direction_of(row),
        failure=row.failure,
        size=row.draw,
    )


def shapers_of(row: Method) -> list[Shaper]:
    """The row's shapers, in their order: flatten, truncate; weights are normalised after them."""
    given = ((flatten, row.flatten), (truncate, row.truncate))
    return [make(value) for make, value in given if value is not None]


def _direction_of(row: Method) -> Direction:
    if row.direction == "fit":
        return fit(part_of(UTILITIES, row.utility, row), family_of(row))
    return plain.likelihood_ratio(family_of(row), part_of(BASELINES, row.baseline, row))


def _info(
    family: Family, rho: Rho, after: Rho, found: Estimate, theta: Array = None, new: Array = NOTHING
) -> Info:
    """What the move from `rho` was made of; a user's KL may look at which `theta` are `new`."""
    return Info(
        objective=found.objective,
        objective_stderr=found.objective_stderr,
        ess=found.ess,
        max_weight=found.max_weight,
        weights=found.weights,
        baseline=found.baseline,
        samples=found.samples,
        kl=family.divergence(after, rho, theta, new),
        flatten=None,
        mean_weight=found.mean_weight,
        censored=found.censored,
        notes=found.notes,
    )


def settings_of_rule(row: Method) -> Rule:
    """The row's settings, as the rule of `core.rules` takes them."""
    own = {key: getattr(row, key) for key in Rule._fields if key not in ("shape", "avoids")}
    return Rule(moving(family_of(row)).shape, avoids=row.failure == AVOID, **own)


def remembered_first(row: Method, rho: Rho) -> Memory:
    """What the rule or the mover of a row remembers before its first move."""
    if row.way.mover:
        return first_memory(np, row.way.mover, as_asked(row, rho))
    spread = moving(numpy_family_of(row)).log_spread(rho)
    return first_rule_memory(np, settings_of_rule(row), spread)


def make_rule_move(
    row: Method,
    rho: Rho,
    told: rules.ToldResults,
    memory: Memory,
    limits: LimitsToKeep | None = None,
) -> tuple[Rho, Memory, Info]:
    """Where the rule of `core.rules` takes the distribution, its memory, and the move."""
    family = numpy_family_of(row)
    made = rules.move(family, settings_of_rule(row), row.window, rho, told, memory, limits)
    new = told.fresh & told.valid
    return made.rho, made.memory, _info(family, rho, made.rho, made.found, told.theta, new)


def judge(
    row: Method, rho: Rho, samples: plain.Samples, drew: Drew
) -> tuple[Seen, np.ndarray, float, int]:
    """What samples say of `rho`, their weights, its unseen share, and how many are left out."""
    return judged(rho, samples, drew, failure=row.stated, size=row.draw)
