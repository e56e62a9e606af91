"""How long a comparison takes, roughly: measured once on one core of a small machine."""

from collections.abc import Sequence

from recoup.compare.arenas import Arena
from recoup.compare.comparison import ComparisonPlan
from recoup.compare.entrants import Entrant
from recoup.compare.work import Chunk

COMPILING = 10.0  # seconds for each method on each task, in every process that computes it
ON_HOST = 0.01  # of an episode that is not rolled out by JAX
STEP = 2e-6  # of a step that is
METHODS = {  # of an episode told, for ten parameters; it grows with their number
    "recoup": 0.005,
    "cma-es": 0.0005,
    "lq-cma-es": 0.03,
    "optuna-tpe": 0.01,
    "optuna-cma-es": 0.003,
}
OTHERS = 0.001


def seconds(plan: ComparisonPlan, left: Sequence[Chunk], workers: int) -> float:
    """Seconds that the chunks which are left take in so many processes."""
    firsts = plan.chunks[:: len(plan.entrants)]  # one of each task
    arenas = {chunk.task: arena for chunk, arena in zip(firsts, plan.arenas, strict=True)}
    entrants = {entrant.label: entrant for entrant in plan.entrants}
    total, compiled = 0.0, set()
    for chunk in left:
        arena, entrant = arenas[chunk.task], entrants[chunk.method]
        total += len(chunk.runs) * _run(arena, entrant, chunk)
        compiled.add((chunk.task, chunk.method))
    together = max(min(workers, len(left)), 1)
    return (total + COMPILING * len(compiled)) / together


def _run(arena: Arena, entrant: Entrant, chunk: Chunk) -> float:
    episode = STEP * arena.problem.horizon if arena.traced else ON_HOST
    tests = (1 + len(chunk.checkpoints)) * (arena.draws + arena.policy_episodes)
    told = METHODS.get(entrant.name, OTHERS) * max(arena.dim / 10, 1.0)
    return chunk.checkpoints[-1] * (episode + told) + tests * episode


def in_words(estimate: float) -> str:
    """A time as people say it."""
    if estimate < 90:
        return f"{max(round(estimate, -1), 10):.0f} seconds"
    if estimate < 5400:
        return f"{estimate / 60:.0f} minutes"
    return f"{estimate / 3600:.1f} hours"
