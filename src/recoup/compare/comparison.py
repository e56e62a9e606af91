"""`compare`: what was asked for is checked, what is missing computed, and all of it summed up."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError, check_choice, check_count, check_finite, check_positive
from recoup.compare.arenas import Arena, Asking, arena_of, expanded
from recoup.compare.checked import check_same_batch
from recoup.compare.entrants import Entrant, check_place, entrant_of
from recoup.compare.run_results import CurveFiles, key_of
from recoup.compare.side_by_side import RunCurve, on_host
from recoup.compare.work import Chunk, Show, chunks_of, compute_all
from recoup.runs.engines import default_workers
from recoup.runs.plan import check_seed
from recoup.tasks.suite import TEST_SEED

FEW = (20, 50, 100, 200)  # trials after which bounded tasks are tested
TARGETS = "iw-pgpe-ob"  # whose end is the target, where it takes part


class Order(NamedTuple):
    """A comparison as it was asked for."""

    tasks: Sequence[str]
    methods: Sequence[str]
    runs: int
    episodes: int
    checkpoints: Sequence[int] | None = None
    seed: int = TEST_SEED
    asking: Asking = Asking()
    against: str | None = None
    target: float | None = None


class ComparisonPlan(NamedTuple):
    """The same, resolved."""

    arenas: list[Arena]
    entrants: list[Entrant]
    chunks: list[Chunk]  # one for each task and method, in that order
    runs: int
    checkpoints: tuple[int, ...]
    seed: int
    against: str  # the method that others are held against
    target_of: str  # the method whose end is the target
    target: float | None


class MethodCurves(NamedTuple):
    """Curves of one method on one task: arrays `[R, 1 + C]`, the start first."""

    task: str
    method: str
    search: np.ndarray  # J
    policy: np.ndarray  # m
    batch: int
    spent: list[int]  # episodes, at each point
    seconds: float  # a run
    failed: list[int]  # learning episodes of each run that failed
    failed_tests: list[int]
    lead: str = "search"  # which of J and m is looked at first

    @property
    def leading(self) -> np.ndarray:
        """J, or m where what is deployed is what counts."""
        return self.policy if self.lead == "policy" else self.search


def plan_of(order: Order) -> ComparisonPlan:
    """The plan of a comparison, once everything in it is such as it may be."""
    runs = check_count("runs", order.runs)
    seed = check_seed(order.seed)
    check_positive("std_factor", order.asking.factor)
    if order.target is not None:
        check_finite("target", order.target)
    if not order.tasks or not order.methods:
        raise InputError("give at least one --task and one --method.")
    entrants = [entrant_of(text) for text in dict.fromkeys(map(str.strip, order.methods))]
    tasks = _tasks(order.tasks, order.asking)
    few = all(arena.bounded for _, arena in tasks)
    episodes = check_count("episodes", order.episodes)
    checkpoints = checkpoints_of(order.checkpoints, episodes, FEW if few else ())
    for _, arena in tasks:
        for one in entrants:
            check_place(one, arena.name, arena.bounded)
    labels = [one.label for one in entrants]
    against = labels[0] if order.against is None else order.against
    check_choice("against", against, labels)
    chunks = [
        Chunk(text, order.asking, label, seed, tuple(range(runs)), checkpoints)
        for text, _ in tasks
        for label in labels
    ]
    target_of = TARGETS if TARGETS in labels else against
    arenas = [arena for _, arena in tasks]
    return ComparisonPlan(
        arenas, entrants, chunks, runs, checkpoints, seed, against, target_of, order.target
    )


def _tasks(names: Sequence[str], asking: Asking) -> list[tuple[str, Arena]]:
    """Tasks as they are written and as they are, each once: `toy` and `toy@1` are the same."""
    found: dict[str, tuple[str, Arena]] = {}
    for text in expanded(names):
        arena = arena_of(text, asking)
        found.setdefault(arena.name, (text, arena))
    return list(found.values())


def checkpoints_of(
    given: Sequence[int] | None, episodes: int, usual: Sequence[int] = ()
) -> tuple[int, ...]:
    """Numbers of episodes at which runs are tested; the last is always the end."""
    if given is None and usual:
        given = [at for at in usual if at < episodes]
    if given is None:
        return tuple(sorted({max(episodes // part, 1) for part in (8, 4, 2, 1)}))
    found = sorted({check_count("checkpoints", at) for at in given} | {episodes})
    if found[-1] > episodes:
        raise InputError(
            f"checkpoints must lie within the {episodes} episodes, got {found[-1]}: give fewer, or "
            "more --episodes."
        )
    return tuple(found)


def left_of(plan: ComparisonPlan, results: CurveFiles) -> list[Chunk]:
    """What has to be computed."""
    left: list[Chunk] = []
    for chunk, (arena, entrant) in zip(plan.chunks, _pairs(plan), strict=True):
        left += chunks_of(chunk, arena, entrant, results)
    return left


def _pairs(plan: ComparisonPlan) -> list[tuple[Arena, Entrant]]:
    return [(arena, entrant) for arena in plan.arenas for entrant in plan.entrants]


def workers_of(plan: ComparisonPlan) -> int:
    """In how many processes a comparison is computed unless somebody says."""
    return default_workers(compiled=not all(on_host(*pair) for pair in _pairs(plan)))


def compare(
    order: Order,
    out: str | Path,
    workers: int | None = None,
    show: Show = lambda name, episodes: None,
) -> list[MethodCurves]:
    """The curves of a comparison; what lies in `out` already is not computed again."""
    results = CurveFiles(Path(out).absolute())  # a task that is made may change the directory
    plan = plan_of(order)
    results.prepare()
    processes = workers_of(plan) if workers is None else check_count("workers", workers)
    compute_all(left_of(plan, results), results, processes, show)
    return measured(plan, results)


def measured(plan: ComparisonPlan, results: CurveFiles) -> list[MethodCurves]:
    """The curves that lie in `results`, which are all there."""
    return [_measured(plan, results, arena, entrant) for arena, entrant in _pairs(plan)]


def _measured(
    plan: ComparisonPlan, results: CurveFiles, arena: Arena, entrant: Entrant
) -> MethodCurves:
    curves: list[RunCurve] = []
    for run in range(plan.runs):
        curve = results.load(key_of(arena, entrant, plan.seed, run, plan.checkpoints))
        if curve is None:
            raise RuntimeError(
                f"{arena.name} by {entrant.label}, run {run}, was not computed: its code has "
                "changed meanwhile; the same command computes it."
            )
        curves.append(curve)
    check_same_batch(f"{entrant.label} on {arena.name}", [curve.batch for curve in curves])
    columns: Any = ([getattr(curve, name) for curve in curves] for name in ("search", "policy"))
    search, policy = (np.array(column, float) for column in columns)
    seconds = float(np.mean([curve.seconds for curve in curves]))
    first = curves[0]
    return MethodCurves(
        arena.name,
        entrant.label,
        search,
        policy,
        first.batch,
        first.spent,
        seconds,
        [curve.failed for curve in curves],
        [curve.failed_tests for curve in curves],
        "policy" if arena.bounded else "search",
    )
