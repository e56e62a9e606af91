"""How often 95 % intervals hold the truth: `python -m benchmarks.coverage [STUDIES] [PROCESSES]`.

Two tables. *Candidates*: n results from N(0, I), a candidate that lies some standard deviations
away (and is 0.8 times as wide), as `Study.evaluate` and `estimate(...).interval()` judge it.
*Moves*: the objective of a search distribution from archives of several proposals, as `info` has
it.

Returns are drawn anew for every study, of four kinds whose expectations are known in closed form.
The constants of `recoup.core.intervals` were chosen on other functions than these, but for two that
were tightened after a first table of this benchmark: it is no longer held out.
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

from recoup.core.archive import Drawn, from_samples
from recoup.core.families.gaussian import diagonal_gaussian
from recoup.core.families.rho import Diagonal
from recoup.core.intervals import UNSEEN, judged_archive, student, unseen_share, worth

SHIFTS, DIMS, COUNTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5), (1, 3, 10), (20, 40, 200)
KINDS = ("smooth", "rough", "plateau", "noisy")
STD = 0.8
LEAST_GIVEN = 20  # intervals of which a coverage is shown


class Function(NamedTuple):
    """Returns over theta, their mean under N(m, s^2 I), and the noise on top of them."""

    value: object  # theta [..., D] -> [...]
    mean: object  # m [D], s -> number
    noise: float = 0.0


def function(kind, dim, rng):
    """A function of a kind; where it rises is not where the candidates lie, but not far from it."""
    towards = np.ones(dim) / np.sqrt(dim) + 0.3 * rng.standard_normal(dim) / np.sqrt(dim)
    towards /= np.linalg.norm(towards)
    if kind == "plateau":
        edge = rng.uniform(-1.0, 1.5)
        return Function(
            lambda x: (x @ towards > edge) * 1.0, lambda m, s: ndtr((m @ towards - edge) / s)
        )
    if kind == "rough":
        pace, phase = rng.uniform(3, 6, dim), rng.uniform(0, 6.3, dim)
        slope = 0.3 * towards
        return Function(
            lambda x: np.cos(pace * x + phase).sum(-1) / np.sqrt(dim) + x @ slope,
            lambda m, s: (
                (np.cos(pace * m + phase) * np.exp(-((pace * s) ** 2) / 2)).sum() / np.sqrt(dim)
                + m @ slope
            ),
        )
    best, wave = rng.uniform(0, 2.5) * towards, 0.8 * rng.standard_normal(dim) / np.sqrt(dim)
    curvature = rng.uniform(0.3, 1.0, dim) / np.sqrt(dim)
    return Function(
        lambda x: -((x - best) ** 2 @ curvature) / 2 + 0.5 * np.sin(x @ wave),
        lambda m, s: (
            -(((m - best) ** 2 + s**2) @ curvature) / 2
            + 0.5 * np.sin(m @ wave) * np.exp(-(s**2) * (wave @ wave) / 2)
        ),
        noise=2.0 if kind == "noisy" else 0.0,
    )


@partial(jax.jit, static_argnames="dim")
def judged(theta, returns, mean, *, dim):
    """What all studies `[S, n, D]` say of one candidate."""
    family, like = diagonal_gaussian(), jnp.ones(dim)
    start = Diagonal(jnp.zeros((1, dim)), like[None])
    target = Diagonal(mean, STD * like)

    def one(theta, returns):
        n = returns.size
        drawn = Drawn(theta, returns, jnp.ones(n, bool), start, jnp.zeros(n, jnp.int32), target)
        return judged_archive(family, target, from_samples(family, drawn, keep="running"))

    return jax.lax.map(lambda both: one(*both), (theta, returns), batch_size=20)


def out_of_sight(mean, n):
    """Whether every study is refused, which the densities alone decide."""
    family, like = diagonal_gaussian(), jnp.ones(mean.size)
    target = Diagonal(jnp.asarray(mean), STD * like)
    drawn = Drawn(
        jnp.zeros((n, mean.size)),
        jnp.zeros(n),
        jnp.ones(n, bool),
        Diagonal(jnp.zeros((1, mean.size)), like[None]),
        jnp.zeros(n, jnp.int32),
        target,
    )
    archive = from_samples(family, drawn, keep="running")
    return float(unseen_share(family, target, archive)) > UNSEEN


def cell(kind, dim, n, shift, studies):
    """Coverage, share given and width over the weighted one's, in one cell of the table."""
    rng = np.random.default_rng([KINDS.index(kind), dim, n, int(10 * shift)])
    mean = shift * np.ones(dim) / np.sqrt(dim)
    if out_of_sight(mean, n):
        return [], [], []
    thetas, returns, truths = [], [], []
    for _ in range(studies):
        f = function(kind, dim, rng)
        theta = rng.standard_normal((n, dim))
        thetas.append(theta)
        returns.append(f.value(theta) + f.noise * rng.standard_normal(n))
        truths.append(f.mean(mean, STD))
    with jax.enable_x64(True):
        arrays = (jnp.asarray(np.stack(x)) for x in (thetas, returns))
        seen, _, unseen, _ = jax.device_get(judged(*arrays, jnp.asarray(mean), dim=dim))
    held, halves, plain = [], [], []
    for i, truth in enumerate(truths):
        found = worth(jax.tree.map(lambda x, i=i: x[i], seen), float(unseen[i])).interval
        if np.isfinite(found.low):
            held.append(found.low <= truth <= found.high)
            halves.append((found.high - found.low) / 2)
            plain.append(1.96 * float(seen.weighted_stderr[i] * seen.mean_weight[i]))
    return held, halves, plain


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
        returns = f.value(theta) + f.noise * rng.standard_normal(len(theta))
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


def row_of(kind, dim, n, studies):
    """One row of the table of candidates."""
    return kind, dim, n, [cell(kind, dim, n, shift, studies) for shift in SHIFTS]


def main(studies=400, processes=1):
    """Prints both tables, and how many cells miss their target."""
    jobs = sorted(product(KINDS, DIMS, COUNTS), key=lambda job: -job[2])
    missed = wide = given_cells = 0
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        rows = list(pool.map(row_of, *zip(*jobs, strict=True), [studies] * len(jobs)))
    print(
        f"candidates, {studies} studies a cell: coverage of the 95 % interval, and its width over"
    )
    print("1.96 standard errors of the weighted mean; in brackets, how many studies got one\n")
    print("| returns, D, n | " + " | ".join(f"{shift:g} std" for shift in SHIFTS) + " |")
    print("|---|" + "---|" * len(SHIFTS))
    for kind, dim, n, cells in sorted(rows, key=lambda r: (KINDS.index(r[0]), r[1], r[2])):
        shown = []
        for shift, (held, halves, plain) in zip(SHIFTS, cells, strict=True):
            if len(held) < LEAST_GIVEN:
                shown.append("refused")
                continue
            share, ratio = np.mean(held), np.median(halves) / np.median(plain)
            given = "" if len(held) == studies else f" [{len(held) / studies:.0%}]"
            shown.append(f"{share:.0%}, {ratio:.2f}{given}")
            given_cells += 1
            missed += share < 0.9
            wide += shift <= 1 and ratio > 1.3
        print(f"| {kind}, {dim}, {n} | " + " | ".join(shown) + " |")
    print(
        f"\n{given_cells} of {len(rows) * len(SHIFTS)} cells have intervals; {missed} cover less "
        f"than 90 % (target: none), {wide} at shifts up to 1 are wider than 1.3 (target: none)\n"
    )
    print_moves(4 * studies)


def print_moves(studies):
    """The table of moves."""
    print(
        f"moves, {studies} archives: coverage of the 95 % interval by effective sample size, and in"
    )
    print("brackets how many got one\n")
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
