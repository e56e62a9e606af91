"""What the next moves should gain: they are made many times over, on batches that are imagined.

The candidates of the next batch are known, since a trial's randomness depends on its number alone.
What they will return is not: it is drawn, many times, from what the model of the returns believes;
each time the move is made as it will be made, and the model, which has then seen that batch too,
says what the new mean policy and the new distribution are worth beside today's.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.plain.belief import FittedCell, Looks, factored, joined
from recoup.core.types import Rho
from recoup.core.worth import Interval, quantile
from recoup.engine.plain import can_move
from recoup.store.rows import DRAWN, MIRROR, SAMPLED, Asked
from recoup.study.moves.settling import begin
from recoup.study.moves.steps import Before
from recoup.study.reader.batches import batch_after
from recoup.study.reader.ledger import Ledger
from recoup.study.reader.ledger import Results as Rows
from recoup.study.reader.opened import Opened
from recoup.study.space.charts import at_bounds
from recoup.study.voice.landscape import Landscape, doubt, may_be_better, reaching

DRAWS = ((10, 32), (30, 12), (100, 8), (np.inf, 6))  # rehearsals, by the number of parameters
REHEARSED = 300  # results of a move, at most: its time grows with their cube, many times over


class ForecastGain(NamedTuple):
    """What moves gain together, beside today."""

    value: float
    stderr: float
    interval: Interval


class Forecast(NamedTuple):
    """What the first so many of the next moves gain."""

    results: int  # that they need
    policy: ForecastGain  # of the mean policy, which is deployed
    draw: ForecastGain  # of a draw of the distribution


class Scene(NamedTuple):
    """What all rehearsals of a study share.

    Where some came `later` they begin at the last move, so that forecasts change with moves alone.
    """

    study: Opened
    ledger: Ledger
    found: Landscape  # of what was known then
    unit: float  # of the model's returns
    later: Sequence[Asked] = ()  # trials whose results came after it


class Stage(NamedTuple):
    """How far a rehearsal has come."""

    rows: Rows
    old: int  # rows that the last move has seen
    before: Before
    last: int  # number of the last trial
    cell: FittedCell
    today: Looks  # the mean policy and a draw as they are before all of it
    newest: np.ndarray  # [K] the distribution that draws


def can_rehearse(study: Opened) -> bool:
    """Whether moves of a study are made without a compiler, and so can be made many times."""
    whole = study.method.space == "parameters" and not study.missing and not study.has_own_family
    return whole and can_move(study.method, 0, study.dim) and study.batch <= REHEARSED


def forecasts(scene: Scene, batches: int = 1) -> list[Forecast]:
    """What the next `batches` moves gain, the first, the first two, and so on; in `reading()`.

    None may be due: that one is made of results that are there, not of imagined ones.
    Each rehearsal has random numbers of its own: the first moves of many are those of few.
    """
    study, belief = scene.study, scene.found.belief
    draws = next(draws for most, draws in DRAWS if study.dim <= most)
    rng = np.random.default_rng([study.settings["seed"], study.store.last_notes().id])
    sizes = _sizes(study, batches, scene.later)
    left = study.until_move() - sizes[0]  # of the first batch some have results
    waiting = [theta for theta, _ in _waiting(scene)]
    if study.method.mirrored:  # only whole pairs are results
        sizes, waiting = [size + size % 2 for size in sizes], []
    first, *_ = cells = belief.chosen(draws)
    begun, pairs = _begun(scene, first, sizes[0]), zip(cells, rng.spawn(draws), strict=True)
    stages = ((begun._replace(cell=cell), own) for cell, own in pairs)
    gains = [list(_rehearsed(scene, stage, waiting, sizes, own)) for stage, own in stages]
    means, variances = np.split(np.array(gains), 2, axis=2)  # [draws, batches, 2] each
    means, variances = belief.scale * means, belief.scale**2 * variances
    errors = np.sqrt(np.var(means, axis=0) + np.mean(variances, axis=0)) * [1.0, doubt(study.dim)]
    t, better = quantile(belief.results), may_be_better(scene.found)

    def gain(batch: int, of: int) -> ForecastGain:
        value, stderr = float(np.mean(means[:, batch, of])), float(errors[batch, of])
        return ForecastGain(value, stderr, reaching(value, t * stderr, better))

    return [Forecast(sum(sizes[: i + 1]) + left, gain(i, 0), gain(i, 1)) for i in range(batches)]


def _sizes(study: Opened, batches: int, later: Sequence[Asked] = ()) -> list[int]:
    """How many results each of the next moves is made of, as noisy as now; but for those there."""
    last, sizes = study.store.last_move(), [study.batch if later else study.until_move()]
    seen = study.store.counters().counted + study.until_move()
    for _ in range(batches - 1):
        sizes.append(batch_after(study.settings, last, seen))
        seen += sizes[-1]
    return sizes


def _waiting(scene: Scene) -> list[tuple[np.ndarray, int]]:
    """Latent thetas of drawn trials that had no result yet, and what drew them, as asked."""
    study = scene.study
    trials = sorted((*scene.later, *study.store.pending()), key=lambda trial: trial.id)
    drawn = [trial for trial in trials if trial.kind in SAMPLED]
    found = zip(map(study.here, drawn), drawn, strict=True)
    return [(theta, int(trial.proposal or 0)) for (theta, inside), trial in found if inside]


def _begun(scene: Scene, cell: FittedCell, size: int) -> Stage:
    """How far a study has come before the next `size` results, and where their move begins."""
    study, ledger = scene.study, scene.ledger
    move, counters = study.store.last_move(), study.store.counters()
    upto = move.counted if scene.later else counters.counted
    numbers, rows = study.store.newest().numbers, ledger.results(upto)
    coming = Counter(proposal for _, proposal in _waiting(scene)[:size])
    coming[move.proposal] += size - coming.total()
    start = begin(study, move, upto, coming)
    before = Before(study.store.proposal(start.proposal).numbers, start.memory)
    old = int(np.searchsorted(ledger.counted, start.counted, "right"))
    today = _looks(scene, study.rho(numbers))
    return Stage(rows, old, before, counters.last, cell, today, numbers)


def _rehearsed(
    scene: Scene,
    stage: Stage,
    waiting: list[np.ndarray],
    sizes: list[int],
    rng: np.random.Generator,
) -> Iterator[np.ndarray]:
    """Gains of mean policy and draw after each batch, and their variances `[4]`, of one cell."""
    for size in sizes:
        stage = _moved(scene, stage, waiting[:size], size, rng)
        waiting = []
        yield _gains(scene, stage)


def _moved(
    scene: Scene, stage: Stage, waiting: list[np.ndarray], size: int, rng: np.random.Generator
) -> Stage:
    """A rehearsal after one more batch and its move."""
    theta = np.array([*waiting, *_next_draws(scene.study, stage, size - len(waiting))])
    looks, belief, hyper = scene.found.at(theta), scene.found.belief, stage.cell.hyper
    mean, spread = stage.cell.expects(looks)
    y = mean + factored(spread, hyper.signal * hyper.noise) @ rng.standard_normal(size)
    returns = scene.unit * (belief.level + belief.scale * y)
    rows = _with_results(stage.rows, stage.newest, theta, returns)
    after = _step(scene, stage, rows)
    cell = stage.cell.told(looks, y)
    return Stage(rows, rows.n, after, stage.last + size, cell, stage.today, after.numbers)


def _next_draws(study: Opened, stage: Stage, n: int) -> list[np.ndarray]:
    """The latent thetas that the distribution of a stage draws next."""
    rho, pairs = study.rho(stage.newest), study.method.mirrored
    kinds = [MIRROR if pairs and i % 2 else DRAWN for i in range(n)]
    return [study.drawn(rho, stage.last + i, kind) for i, kind in enumerate(kinds, 1)]


def _step(scene: Scene, stage: Stage, rows: Rows) -> Before:
    """The move that the rows make."""
    from recoup.study.moves import uncompiled

    row, ledger = scene.study.method, scene.ledger
    with np.errstate(all="ignore"):
        made = uncompiled.stepped(row, ledger, rows, stage.old, stage.before)
    return Before(made.numbers, made.memory)


def _gains(scene: Scene, stage: Stage) -> np.ndarray:
    """What a rehearsal has gained: mean policy, draw, and the variances of both, over the unit."""
    looks = joined(stage.today, _looks(scene, scene.study.rho(stage.before.numbers)))
    mean, c = stage.cell.expects(looks)
    policy = stage.cell.expects_apart(looks)  # what lies about the mean goes along with it
    variances = [c[i, i] + c[i + 2, i + 2] - 2 * c[i, i + 2] for i in (0, 1)]
    return np.array([policy[2] - policy[0], mean[3] - mean[1], *np.maximum(variances, 0.0)])


def _looks(scene: Scene, rho: Rho) -> Looks:
    """The mean policy of a distribution, and its draws: about a bound, where it lies beyond one."""
    found, latent = scene.found, np.asarray(rho.mean)[None]
    there = found.whitened(at_bounds(scene.study.parameters, latent))
    mean, spread = found.coordinates.of(rho)
    back = there - found.whitened(latent)
    return joined(found.belief.looks(there), found.belief.looks(mean + back, spread))


def _with_results(rows: Rows, block: np.ndarray, theta: np.ndarray, returns: np.ndarray) -> Rows:
    """Rows, and more of them that the distribution of a block of numbers drew."""
    n, more, slot = rows.n, len(theta), len(rows.blocks)

    def longer(x: np.ndarray, added: np.ndarray) -> np.ndarray:
        return np.concatenate([x[:n], added])

    return rows._replace(
        samples=(longer(rows.samples[0], theta),),
        returns=longer(rows.returns, returns),
        also=longer(rows.also, np.full((more, rows.also.shape[1]), np.nan)),
        context=longer(rows.context, np.full((more, rows.context.shape[1]), np.nan)),
        proposal=longer(rows.proposal, np.full(more, slot, np.int32)),
        outside=longer(rows.outside, np.zeros(more, bool)),
        blocks=np.concatenate([rows.blocks, block[None]]),
        charts=np.append(rows.charts, 0),
        imported=np.append(rows.imported, False),
        order=np.append(rows.order, rows.order.max() + 1),
        n=n + more,
    )
