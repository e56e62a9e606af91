"""The tasks that methods are compared on, and their episodes: rolled out by number, alike for all.

An episode's randomness is a function of (seed, run, number of the episode), a start's of (seed,
run): what differs between methods is what they make of them.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple, cast

import numpy as np

from recoup.checks import InputError, check_count
from recoup.compare.code import own_code
from recoup.core.types import Plain, Settings
from recoup.runs.problem import Problem, Settled, is_ours, settled
from recoup.tasks.bounded.bounded_suite import BOUNDED, BoundedTask, bounded_task
from recoup.tasks.own.found import REGISTERED, unknown
from recoup.tasks.own.host import HostTask, How
from recoup.tasks.registry import TASKS, environments, make_task, task_row
from recoup.tasks.suite import GYM_TASKS, LISTS, NOISY, GymTask
from recoup.tasks.task import Task

DRAWS = 100  # policies drawn for the return of the search distribution, an episode each
POLICY = 100  # episodes of the mean policy, where they differ
START, EPISODES, TESTS, POLICY_TESTS, DRAWN, SYSTEM, METHOD = range(7)  # uses of randomness


class Asking(NamedTuple):
    """What was asked for beside a task's name."""

    factor: float = 1.0  # of the standard deviations at the start
    dim: int | None = None  # of a function of theta
    horizon: int | None = None
    tests: int | None = None  # episodes of a test, in place of the task's own


class Arena(NamedTuple):
    """A task, where searches on it start, and how they are tested."""

    name: str  # as it is shown: with the factor of the start's spread
    task: str  # its name alone
    found: Settled  # as `recoup train` finds it
    test: Problem  # without noise that says nothing about a policy
    std: np.ndarray  # [D] at the start
    draws: int  # test episodes of the search distribution, a policy each
    policy_episodes: int  # of the mean policy
    code: str = ""  # a digest of the user's, where it is the user's

    @property
    def bounded(self) -> bool:
        """Whether it is a task of bounded parameters, which has its own place in every run."""
        return self.task in BOUNDED

    @property
    def problem(self) -> Problem:
        """What searches learn on."""
        return self.found.problem

    @property
    def dim(self) -> int:
        """How many parameters there are, D."""
        return self.problem.dim

    @property
    def traced(self) -> bool:
        """Whether JAX can roll out all runs together."""
        return self.problem.traced

    def about(self) -> Plain:
        """What results on it depend on, as JSON can hold it."""
        spread = np.unique(self.std)
        return {
            "task": self.task,
            "dim": self.dim,
            "horizon": self.problem.horizon,
            "discount": self.problem.discount,
            "std": spread.tolist() if len(spread) < 3 else self.std.tolist(),
            "centre": self.found.centre,
            "drawn": self.found.drawn,
            "policy": self.found.policy,
            "tests": [self.draws, self.policy_episodes],
        }


def expanded(names: Sequence[str]) -> list[str]:
    """Names of tasks, each once, with those that a list such as `suite` stands for."""
    found = [one for name in names for one in LISTS.get(name, (name,))]
    return list(dict.fromkeys(found))


def arena_of(text: str, asking: Asking = Asking()) -> Arena:  # noqa: B008
    """The task written `name` or `name@factor`."""
    name, at, words = text.partition("@")
    factor = float(f"{asking.factor * (_factor(text, words) if at else 1.0):.12g}")
    if asking.dim is not None and (name in GYM_TASKS or name in BOUNDED or is_ours(name)):
        raise _has_its_own(name)
    if name in BOUNDED:
        _check_bounded(text, factor, asking)
    if name in GYM_TASKS:
        arena = _of_gym(GYM_TASKS[name], asking.horizon)
    elif name in BOUNDED:
        arena = _of_box(name)
    elif is_ours(name):
        arena = _ours(name, asking.horizon)
    else:
        arena = _own(name, asking)
    shown = name if factor == 1.0 else f"{name}@{factor:.12g}"
    arena = arena._replace(name=shown, task=name, std=factor * arena.std)
    if asking.tests is None:
        return arena
    tests = check_count("test_episodes", asking.tests)
    fewer = 1 if arena.policy_episodes == 1 else tests
    return arena._replace(draws=tests, policy_episodes=fewer)


def _has_its_own(name: str) -> InputError:
    return InputError(f"{name} has parameters of its own: leave --dim out, it is for functions.")


def _factor(text: str, words: str) -> float:
    try:
        factor = float(words)
    except ValueError:
        factor = float("nan")
    if not (isfinite(factor) and factor > 0):
        raise InputError(
            f"a task's spread is written task@factor, such as sphere-10@0.25; got {text!r}."
        )
    return factor


def _ours(name: str, horizon: int | None) -> Arena:
    found, row = settled(name, How(horizon)), task_row(name)
    test: Any = make_task(name, horizon, noise=0.0) if name in NOISY else found.problem
    same = name in NOISY or not row.random
    draws = DRAWS if isinstance(found.problem, Task) and found.problem.traced else row.test_episodes
    return _arena(found, test, draws, 1 if same else min(POLICY, row.test_episodes))


def _of_gym(task: GymTask, horizon: int | None) -> Arena:
    how = How(horizon or task.horizon, policy_options=dict(task.options))
    found = settled(task.env_id, how)
    arena = _arena(found, found.problem, DRAWS, task.test_episodes)
    return arena._replace(std=np.full(arena.dim, task.std))


def _check_bounded(text: str, factor: float, asking: Asking) -> None:
    """Raises where a start or a horizon is given for a task that has bounds in their place."""
    if factor != 1.0 or asking.horizon is not None:
        raise InputError(
            f"{text} is searched between its bounds, from the start that a study takes by itself: "
            "leave @, --std-factor and --horizon out."
        )


def _of_box(name: str) -> Arena:
    dim = BOUNDED[name].dim
    words = f"function of {dim} named parameters"
    task = HostTask(name, dim, 1, 1.0, cast(Any, None), 1.0, words)  # each run has its own
    return _arena(Settled(name, task, 1.0), task, DRAWS, 1)


def _own(name: str, asking: Asking) -> Arena:
    """A task of Gymnasium's or of the user's, with what it was registered with."""
    known = ("horizon", "discount", "options", "policy", "policy_options", "dim")
    defaults: Settings = REGISTERED[name].defaults if name in REGISTERED else {}
    given: Plain = {key: defaults[key] for key in known if key in defaults}
    given |= {k: v for k, v in (("horizon", asking.horizon), ("dim", asking.dim)) if v is not None}
    if ":" not in name and name not in REGISTERED:
        _check_known(name)
    found = settled(name, How(**given))
    if asking.dim is not None and not isinstance(found.problem, HostTask):
        raise _has_its_own(name)
    arena = _arena(found, found.problem, found.test_episodes, found.test_episodes)
    arena = arena._replace(code=own_code(name))
    if "std" in defaults:
        arena = arena._replace(std=np.broadcast_to(np.asarray(defaults["std"], float), arena.dim))
    return arena


def _check_known(name: str) -> None:
    """Raises for a name that nobody has, with one that it may have meant."""
    from recoup.tasks.own.found import registered

    others = (*registered(), *environments())
    if name not in others:
        raise InputError(unknown(name, [*TASKS, *GYM_TASKS, *BOUNDED, *LISTS, *others]))


def _arena(found: Settled, test: Problem, draws: int, policy_episodes: int) -> Arena:
    return Arena(
        found.name,
        found.name,
        found,
        test,
        np.broadcast_to(np.asarray(found.std, float), found.problem.dim).copy(),
        draws,
        policy_episodes,
    )


def generator(seed: int, run: int, use: int) -> np.random.Generator:
    """Random numbers of one run for one use."""
    return np.random.default_rng([seed, run, use])


def keys_of(seed: int, runs: Sequence[int]) -> list[int]:
    """A number for each run, from which its method draws."""
    return [int(generator(seed, run, METHOD).integers(2**31)) for run in runs]


def box_task(arena: Arena, seed: int, run: int) -> BoundedTask:
    """The bounded task of run `run`: where its best lies follows from (seed, run)."""
    return bounded_task(arena.task, [seed, run, SYSTEM])


def start_of(arena: Arena, seed: int, run: int) -> np.ndarray:
    """The mean `[D]` that all methods start run `run` from; of bounded ones the middle."""
    if arena.bounded:
        return box_task(arena, seed, run).box.units(np.full(arena.dim, 0.5))
    drawn = generator(seed, run, START).standard_normal(arena.dim)
    return arena.found.centre + arena.found.drawn * drawn


def noise_of(arena: Arena, seed: int, run: int) -> np.ndarray:
    """Standard normal noise `[n, D]` that the policies of a test are drawn with."""
    return generator(seed, run, DRAWN).standard_normal((arena.draws, arena.dim))
