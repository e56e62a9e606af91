"""How long a comparison takes, roughly: measured once on one core of a small machine."""

import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from recoup.compare.arenas import POLICY_TESTS, Arena, Asking, arena_of, start_of
from recoup.compare.comparison import ComparisonPlan
from recoup.compare.entrants import Entrant
from recoup.compare.fields import field_of
from recoup.compare.side_by_side import on_host
from recoup.compare.work import Chunk
from recoup.tasks.own.host import HostTask

STARTING = 1.5  # seconds for each process
COMPILING = 10.0  # for each method on each task that JAX computes, in every process
MUJOCO = 0.01  # of an episode of ours that MuJoCo rolls out
TRACED_STEP = 2e-6  # of a step of one that JAX does
TIMED, ENOUGH = 5, 0.2  # episodes on the host that are timed, at most; seconds that are enough
METHODS = {  # of an episode told, for ten parameters
    "recoup": 0.0035,
    "cma-es": 0.0005,
    "lq-cma-es": 0.03,
    "optuna-tpe": 0.008,
    "optuna-cma-es": 0.003,
    "optuna-gp": 0.2,
    "botorch-qlognei": 0.7,
    "smac": 0.5,
    "nevergrad-tbpsa": 0.004,
    "nevergrad-ngopt": 0.006,
    "turbo": 0.02,
    "gibo": 0.004,
    "mpd": 0.004,
}
OTHERS = 0.001
GROWS = {
    "recoup": 0.0
}  # the power of the number of parameters that it grows with: batches grow too
USUALLY_GROWS = 0.5


def seconds(plan: ComparisonPlan, left: Sequence[Chunk], workers: int) -> float:
    """Seconds that the chunks which are left take in so many processes."""
    firsts = plan.chunks[:: len(plan.entrants)]  # one of each task
    arenas = {chunk.task: arena for chunk, arena in zip(firsts, plan.arenas, strict=True)}
    entrants = {entrant.label: entrant for entrant in plan.entrants}
    total, compiled = 0.0, set()
    for chunk in left:
        arena, entrant = arenas[chunk.task], entrants[chunk.method]
        total += len(chunk.runs) * _run(arena, entrant, chunk)
        if not on_host(arena, entrant):
            compiled.add((chunk.task, chunk.method))
    together = max(min(workers, len(left)), 1)
    return STARTING + (total + COMPILING * len(compiled)) / together


def _run(arena: Arena, entrant: Entrant, chunk: Chunk) -> float:
    episode = TRACED_STEP * arena.problem.horizon if arena.traced else MUJOCO
    if isinstance(arena.problem, HostTask):
        episode = timed(chunk.task, chunk.asking)
    tests = (1 + len(chunk.checkpoints)) * (arena.draws + arena.policy_episodes)
    told = METHODS.get(entrant.name, OTHERS)
    told *= (arena.dim / 10) ** GROWS.get(entrant.name, USUALLY_GROWS)
    return chunk.checkpoints[-1] * (episode + told) + tests * episode


@lru_cache(maxsize=64)
def timed(task: str, asking: Asking) -> float:
    """Seconds of an episode on the host, by a few of them at the start of a search."""
    arena = arena_of(task, asking)
    field, theta = field_of(arena, 0, [0]), start_of(arena, 0, 0)[None, None]
    times: list[float] = []
    try:
        while len(times) < TIMED and sum(times) < ENOUGH:
            began = time.perf_counter()
            field.test(theta, POLICY_TESTS)
            times.append(time.perf_counter() - began)
    finally:
        field.close()
    return float(np.median(times))


def in_words(estimate: float) -> str:
    """A time as people say it."""
    if estimate < 90:
        return f"{max(round(estimate, -1), 10):.0f} seconds"
    if estimate < 5400:
        return f"{estimate / 60:.0f} minutes"
    return f"{estimate / 3600:.1f} hours"
