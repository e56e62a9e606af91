"""What a distribution is worth on fresh episodes, which teach the search nothing. No JAX."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from recoup.core.types import Rho
from recoup.notebooks import facts
from recoup.runs.plan import Plan
from recoup.store.rows import DRAWN
from recoup.study.reader.draws import episode_seed
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import by_name
from recoup.tasks.engines.engine import Engine, Job, Outcome
from recoup.tasks.measured import Measured, measured

FRESH, LAST_KEY = 2**31 - 1, 2**31 - 2  # of keys: an evaluation's, and the last test's of a run
UNUSED = 2**40 + 2**30  # numbers of test episodes: no trial has them, nor the seeds they lead to
APART = 2**10  # numbers of a block of tests, at least
TESTED_EACH = 10  # iterations at the start that are tested one by one


class Evaluated(NamedTuple):
    """What fresh episodes say about a run.

    `recoup.evaluate` gives it.

    >>> recoup.evaluate(run, episodes=30)
    Evaluated(search distribution ... ± ... of 30 episodes, mean policy ... ± ... of 30 episodes)
    """

    return_search: Measured  # of draws of the distribution
    return_mean_policy: Measured  # of the one to deploy
    failed: int = 0  # episodes that gave no return, and are not part of these

    def __repr__(self) -> str:
        texts = [f"{name} {words}" for name, words in self._rows().items()]
        return f"Evaluated({', '.join(texts)})"

    def _repr_html_(self) -> str:
        return facts("Expected returns on fresh episodes", self._rows())

    def _rows(self) -> dict[str, str]:
        both = zip(("search distribution", "mean policy"), self[:2], strict=True)
        rows = {k: f"{m.mean:.4g} ± {m.stderr:.2g} of {m.episodes} episodes" for k, m in both}
        return {**rows, "failed": str(self.failed)} if self.failed else rows


def is_tested(plan: Plan, iteration: int) -> bool:
    """Whether the distribution after so many iterations is tested, for a point of the curve.

    The first ten, every second up to 20, every fourth up to 40, and so on: a curve changes less the
    longer it gets. It depends on the number alone, so that a run that is stopped or extended keeps
    its points; but for the last iteration, which is tested always.
    """
    if not plan.tested:
        return False
    return plan.test_all or iteration == plan.iterations or iteration % _gap(iteration) == 0


def _gap(iteration: int) -> int:
    """How many iterations lie between two tests: 1 up to 10, 2 up to 20, 4 up to 40."""
    return 1 << (max(iteration - 1, 0) // TESTED_EACH).bit_length()


class Tests(Protocol):
    """Fresh episodes of a run's distribution and of its mean policy."""

    def search(self, number: int, rho: Rho) -> Measured:
        """What a distribution earns; `number` makes the episodes others."""

    def both(self, number: int, rho: Rho, seed: int | None = None) -> Evaluated:
        """What a distribution earns, and its mean policy."""


class EngineTests:
    """On a task that is rolled out a trial at a time, by the engine of the run.

    Tests have numbers beyond those of trials, in blocks: two for the end of a run, and two for each
    seed of an evaluation.
    """

    def __init__(self, opened: Opened, engine: Engine, episodes: int) -> None:
        self._opened, self._engine, self._episodes = opened, engine, episodes
        self._failed = 0

    def search(self, number: int, rho: Rho) -> Measured:
        """What a distribution earns, on the episodes of a block."""
        numbers = self._block(number)
        return self._earns(numbers, [self._opened.drawn(rho, n, DRAWN) for n in numbers])

    def both(self, number: int, rho: Rho, seed: int | None = None) -> Evaluated:
        """What a distribution earns, and its mean policy, where they succeed."""
        first, self._failed = 0 if seed is None else 2 + 2 * seed, 0
        search = self.search(first, rho)
        means = [np.asarray(rho.mean)] * self._episodes
        policy = self._earns(self._block(first + 1), means)
        return Evaluated(search, policy, self._failed)

    def _block(self, number: int) -> range:
        apart = max(APART, 1 << (self._episodes - 1).bit_length())
        first = UNUSED + apart * number
        return range(first, first + self._episodes)

    def _earns(self, numbers: Sequence[int], latent: list[np.ndarray]) -> Measured:
        opened, seed = self._opened, self._opened.settings["seed"]
        thetas = opened.in_units(np.array(latent))
        kinds = (opened.whole, opened.choices)  # as a trial gives them
        jobs = [
            Job(n, theta, episode_seed(seed, n), by_name(opened.names, theta, *kinds) or None)
            for n, theta in zip(numbers, thetas, strict=True)
        ]
        found = {outcome.id: outcome for outcome in rolled_out(self._engine, jobs)}
        values = [np.mean(found[n].values) for n in numbers if found[n].failed is None]
        finite = [value for value in values if np.isfinite(value)]
        self._failed += len(jobs) - len(finite)
        if len(finite) < 2:
            return Measured(float("nan"), float("nan"), len(finite))
        return measured(finite)


def rolled_out(engine: Engine, jobs: Sequence[Job]) -> list[Outcome]:
    """What came of jobs, in any order; none is tried again."""
    line, out = list(reversed(jobs)), 0
    done: list[Outcome] = []
    while len(done) < len(jobs):
        while line and out < engine.slots:
            engine.submit(line.pop())
            out += 1
        found = engine.wait()
        done += found
        out -= len(found)
    return done
