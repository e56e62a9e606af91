"""How often 95 % intervals hold the truth: `python -m benchmarks.coverage [STUDIES] [PROCESSES]`.

Three tables. *Candidates*: n results from N(0, I), a candidate that lies some standard deviations
away (and is 0.8 times as wide), as `Study.evaluate` and `estimate(...).interval()` judge it.
*Archives*: the same in a hundred dimensions (there the candidate is as wide as the proposal), from
mirrored pairs, from several proposals, and where rollouts fail, more of them the farther theta lies
to one side. *Moves*: the objective of a search distribution from archives of several proposals, as
`info` has it.

Returns are drawn anew for every study (`benchmarks.returns`).
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from benchmarks.returns import KINDS, function, noise
from recoup.core.archive import Drawn, from_samples
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.judgement import judged_archive, unseen_share
from recoup.core.worth import UNSEEN, probes, student, worth

SHIFTS, DIMS, COUNTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5), (1, 3, 10), (20, 40, 200)
STD = 0.8
LEAST_GIVEN = 20  # intervals of which a coverage is shown
TARGET, WIDEST = 0.9, 1.3
TRUTH = 100_000  # draws that the truth is found with, where rollouts fail


class Design(NamedTuple):
    """What the results of a study were drawn from, on a line through the candidate."""

    name: str
    places: tuple = (0.0,)  # of the proposals' means
    std: float = 1.0
    mirrored: bool = False
    fails: bool = False
    candidate: float = STD  # its standard deviation

    def proposals(self, dim):
        """Means and standard deviations `[L, D]`."""
        means = np.outer(self.places, np.ones(dim)) / np.sqrt(dim)
        return means, np.full(means.shape, self.std)


ONE = Design("one proposal")
FOUR = (-1.5, -1.0, -0.5, 0.0)
ARCHIVES = [
    (Design("as wide", candidate=1.0), 100, 40),
    (Design("as wide", candidate=1.0), 100, 200),
    (Design("mirrored", mirrored=True), 3, 60),
    (Design("four proposals", FOUR), 3, 60),
    (Design("four narrow proposals", (-1.2, -0.4, 0.4, 1.2), 0.5), 1, 60),
    (Design("failures", fails=True), 3, 60),
    (Design("failures, four proposals", FOUR, fails=True), 3, 60),
    (Design("failures, four narrow proposals", (-1.2, -0.4, 0.4, 1.2), 0.5, fails=True), 1, 60),
]


class Cell(NamedTuple):
    """What the studies of one cell of a table got."""

    held: list  # of those that got an interval, whether it holds the truth
    halves: list  # half its width
    plain: list  # 1.96 standard errors of the weighted mean
    drawn: int


@partial(jax.jit, static_argnames="size")
def judged(theta, returns, proposals, drawn_by, target, size):
    """What all studies `[S, n, D]` say of one candidate."""
    family = diagonal_gaussian()

    def one(theta, returns):
        drawn = Drawn(theta, returns, jnp.ones(returns.size, bool), proposals, drawn_by, target)
        archive = from_samples(family, drawn, keep="running")
        return judged_archive(family, target, archive, size)

    return jax.lax.map(lambda both: one(*both), (theta, returns), batch_size=20)


def study(design, kind, dim, n, mean, rng):
    """One study: theta `[n, D]`, returns (not a number where it failed), and the truth."""
    f = function(kind, dim, rng)
    means, stds = design.proposals(dim)
    drawn_by = np.arange(n) * len(means) // n
    z = rng.standard_normal((n, dim))
    if design.mirrored:
        z[1::2] = -z[::2]
    theta = means[drawn_by] + stds[drawn_by] * z
    returns = f.value(theta) + noise(f, theta, rng)
    if not design.fails:
        return theta, returns, f.mean(mean, design.candidate)
    side = rng.standard_normal(dim)
    side /= np.linalg.norm(side)
    returns[rng.random(n) < ndtr(1.5 * theta @ side - 1)] = np.nan
    draws = mean + design.candidate * np.random.default_rng(0).standard_normal((TRUTH, dim))
    success = ndtr(1 - 1.5 * draws @ side)
    return theta, returns, np.average(f.value(draws), weights=success)


@partial(jax.jit, static_argnames="n")
def out_of_sight(proposals, drawn_by, target, n):
    """How much of a candidate no study can have seen."""
    family, nothing = diagonal_gaussian(), jnp.zeros(n)
    theta = jnp.zeros((n, target.mean.size))
    drawn = Drawn(theta, nothing, nothing == 0, proposals, drawn_by, target)
    archive = from_samples(family, drawn, keep="running")
    return unseen_share(family, target, archive, probes(drawn.samples.shape[1]))


def cell(design, kind, dim, n, shift, studies):
    """One cell of a table."""
    rng = np.random.default_rng([KINDS.index(kind), dim, n, int(10 * shift), len(design.name)])
    mean = shift * np.ones(dim) / np.sqrt(dim)
    means, stds = design.proposals(dim)
    found = Cell([], [], [], studies)
    with jax.enable_x64(True):
        proposals = Diagonal(jnp.asarray(means), jnp.asarray(stds))
        target = Diagonal(jnp.asarray(mean), jnp.full(dim, design.candidate))
        drawn_by = jnp.arange(n, dtype=jnp.int32) * len(means) // n
        if out_of_sight(proposals, drawn_by, target, n) > UNSEEN:
            return found
        made = [study(design, kind, dim, n, mean, rng) for _ in range(studies)]
        theta, returns, truths = (np.stack(x) for x in zip(*made, strict=True))
        arrays = (jnp.asarray(theta), jnp.asarray(returns), proposals, drawn_by, target)
        seen, _, unseen, _ = jax.device_get(judged(*arrays, size=2 if design.mirrored else 1))
    for i, truth in enumerate(truths):
        low, high = worth(jax.tree.map(lambda x, i=i: x[i], seen), float(unseen[i]), dim).interval
        if np.isfinite(low):
            found.held.append(low <= truth <= high)
            found.halves.append((high - low) / 2)
            found.plain.append(1.96 * float(seen.weighted_stderr[i]))
    return found


def moves(weighting, studies):
    """Coverage of a move's interval by its effective sample size: {bin: [held, given, drawn]}."""
    found = {}
    for seed in range(studies):
        rng = np.random.default_rng([7, seed])
        dim, proposals = int(rng.choice([1, 2, 5])), int(rng.choice([1, 3, 8]))
        n = int(rng.choice([5, 10, 20]))
        f = function(KINDS[rng.integers(4)], dim, rng)
        step = rng.choice([0.3, 0.8, 1.5]) * np.ones(dim) / np.sqrt(dim)
        means = (np.arange(proposals) - proposals + 1)[:, None] * step
        stds = np.broadcast_to(1.05 ** (proposals - 1 - np.arange(proposals))[:, None], means.shape)
        drawn_by = np.repeat(np.arange(proposals), n)
        theta = means[drawn_by] + stds[drawn_by] * rng.standard_normal((proposals * n, dim))
        returns = f.value(theta) + noise(f, theta, rng)
        e = objective(weighting)(theta, returns, means, stds, drawn_by)
        ess, truth = float(e.ess), f.mean(np.zeros(dim), 1.0)
        low, high = student(
            *(float(x) for x in (e.objective, e.objective_stderr, ess, e.mean_weight))
        )
        where = next(i for i, top in enumerate((5, 7, 10, 20, np.inf)) if ess < top)
        row = found.setdefault((proposals, where), [0, 0, 0])
        row[0] += low <= truth <= high
        row[1] += bool(np.isfinite(low))
        row[2] += 1
    return found


@cache
def objective(weighting):
    """`estimate` of the newest proposal, by its weighting."""
    from recoup.engine.composition import composed
    from recoup.engine.methods import Method

    method = composed(Method("coverage", weighting=weighting))

    @jax.jit
    def found(theta, returns, means, stds, drawn_by):
        target = Diagonal(means[-1], stds[-1])
        told = jnp.ones(returns.size, bool)
        drawn = Drawn(theta, returns, told, Diagonal(means, stds), drawn_by, target)
        keep = "running" if method.mixture else "own"
        return method.estimate(target, from_samples(method.family, drawn, keep=keep))

    def in_double(*arrays):
        with jax.enable_x64(True):
            return jax.device_get(found(*(jnp.asarray(x) for x in arrays)))

    return in_double


def row_of(design, dim, n, kind, studies):
    """One row of a table of candidates."""
    return design, dim, n, kind, [cell(design, kind, dim, n, shift, studies) for shift in SHIFTS]


def main(studies=400, processes=1):
    """Prints the tables, and how many cells miss their targets."""
    rows = [(ONE, dim, n, kind) for kind, dim, n in product(KINDS, DIMS, COUNTS)]
    rows += [(*archive, kind) for archive in ARCHIVES for kind in KINDS]
    slowest_first = sorted(range(len(rows)), key=lambda i: -rows[i][2])
    found = {}
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        jobs = [(*rows[i], studies) for i in slowest_first]
        for i, row in zip(slowest_first, pool.map(row_of, *zip(*jobs, strict=True)), strict=True):
            found[i] = row
            print(f"{len(found)} of {len(rows)} rows", file=sys.stderr, flush=True)
    ordered = [found[i] for i in range(len(rows))]
    print(
        f"{studies} studies a cell: coverage of the 95 % interval, and its width over 1.96 standard"
    )
    print("errors of the weighted mean; in brackets, how many studies got one")
    print_candidates("returns, D, n", [row for row in ordered if row[0] == ONE])
    print_candidates("archive, D, n, returns", [row for row in ordered if row[0] != ONE])
    print_moves(4 * studies)


def print_candidates(what, rows):
    """One table of candidates, and what it misses."""
    print(f"\n| {what} | " + " | ".join(f"{shift:g} std" for shift in SHIFTS) + " |")
    print("|---|" + "---|" * len(SHIFTS))
    given, low, wide, few = 0, [], [], []
    for design, dim, n, kind, cells in rows:
        name = f"{kind}, {dim}, {n}" if design == ONE else f"{design.name}, {dim}, {n}, {kind}"
        print(f"| {name} | " + " | ".join(map(shown, cells)) + " |")
        for shift, one in zip(SHIFTS, cells, strict=True):
            if len(one.held) < LEAST_GIVEN:
                few += one.held
                continue
            given += 1
            if np.mean(one.held) < TARGET:
                low.append(np.mean(one.held))
            if shift <= 1 and width(one) > WIDEST:
                wide.append(width(one))
    print(
        f"\n{given} of {len(rows) * len(SHIFTS)} cells have intervals. Below {TARGET:.0%}: "
        f"{len(low)}{extremes(low, '.0%')} (target: none); at shifts up to 1 wider than {WIDEST}: "
        f"{len(wide)}{extremes(wide, '.2f')} (target: none)."
    )
    if few:
        print(
            f"Cells with fewer than {LEAST_GIVEN} intervals are called refused: {np.mean(few):.0%} "
            f"of their {len(few)} intervals hold the truth."
        )


def width(one):
    """The median width of a cell over that of the weighted mean."""
    return np.median(one.halves) / np.median(one.plain)


def shown(one):
    """A cell in words."""
    if len(one.held) < LEAST_GIVEN:
        return "refused"
    given = len(one.held) / one.drawn
    share = "" if given == 1 else f" [{given:.0%}]" if given < 0.995 else " [>99%]"
    return f"{np.mean(one.held):.0%}, {width(one):.2f}{share}"


def extremes(numbers, form):
    """The smallest and the largest, in brackets."""
    return f" ({min(numbers):{form}} to {max(numbers):{form}})" if numbers else ""


def print_moves(studies):
    """The table of moves."""
    print(f"\nmoves, {studies} archives: coverage of the 95 % interval by effective sample size,")
    print("and in brackets how many got one\n")
    bins = ("below 5", "5 to 7", "7 to 10", "10 to 20", "20 and more")
    print("| weights, proposals | " + " | ".join(bins) + " |")
    print("|---|" + "---|" * len(bins))
    for weighting in ("own", "balance"):
        found = moves(weighting, studies)
        for proposals in (1, 3, 8):
            cells = [found.get((proposals, i), [0, 0, 0]) for i in range(len(bins))]
            shown = [
                f"{held / given:.0%} [{given / drawn:.0%}]"
                if given >= LEAST_GIVEN
                else ("refused" if drawn and not given else "-")
                for held, given, drawn in cells
            ]
            print(f"| {weighting}, {proposals} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:3]))
