"""A cluster with a virtual clock, and the tasks that it learns.

Workers lose trials, nodes fail and come back; the expected return of a Gaussian is known exactly.
"""

import heapq
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recoup.tasks.engines.engine import Job, Outcome

WORKERS = (1, 4, 16, 64, 256, 1000, 4000, 10_000)
LARGE = 1000  # batches of more, half as many; clusters from here on, fewer seeds
SMALLEST = 10  # batch
EPISODES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
TIMES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # virtual
METHOD = "mis-pgpe-ob"
SETTINGS: dict[str, dict[str, Any]] = {
    "normalised": {},  # the step that the method has unless said
    "natural": {"update": "natural", "kl": 0.3},
    "long": {"update": "natural", "kl": 1.0},
    "unweighted": {"method": "pgpe-ob", "update": "natural", "kl": 0.3},  # late ones as if new
    "still": {"epsilon": 1e-9},  # the distribution stays where it is: what is left is the bias
}


# -- the tasks: a return, and the expected return of a Gaussian, exactly --


class Problem(NamedTuple):
    """What is learned."""

    start: tuple[list[float], list[float]]  # mean and std
    roll: Callable[[np.ndarray, int], float]  # theta, seed -> return
    worth: Callable[[np.ndarray, np.ndarray], float]  # mean, std -> expected return
    centre: float  # mean and deviation of returns at the start, which episode times may follow
    spread: float
    target: float  # an expected return of the distribution that counts as learned


HORIZON, DISCOUNT, NOISE = 10, 0.9, 0.5  # of the toy
ROUGH, OPTIMUM = 1.0, 1.0  # of the quadratic: noise of a return, and where it is highest


def toy_return(theta: np.ndarray, seed: int) -> float:
    """One episode of the toy, by the equations of `recoup.tasks.toy`."""
    model = _toy_model()
    noise = np.random.default_rng(seed).standard_normal((HORIZON + 1, 1))
    state, total = model.initial(np, noise[0]), 0.0
    for t in range(HORIZON):
        action = theta * model.basis(np, state)
        after = model.transition(np, state, action, noise[t + 1])
        total += DISCOUNT**t * float(model.reward(np, state, action, after))
        state = after
    return total


@lru_cache
def _toy_model() -> Any:
    from recoup.tasks.toy import toy

    return toy()


def toy_policy_worth(theta: Any) -> np.ndarray:
    """The expected return of the policy a = theta s: its states are normal with mean zero.

    s_t ~ N(0, v_t) with v' = (1 + theta)^2 v + 0.5^2, so that
    E exp(-s^2 (1 + theta^2) / 2) = 1 / sqrt(1 + v (1 + theta^2)).
    """
    theta = np.asarray(theta, float)
    variance, total = np.ones_like(theta), np.zeros_like(theta)
    for t in range(HORIZON):
        total += DISCOUNT**t * (1 + 1 / np.sqrt(1 + variance * (1 + theta**2)))
        variance = (1 + theta) ** 2 * variance + NOISE**2
    return total


def toy_worth(mean: np.ndarray, std: np.ndarray) -> float:
    """The expected return of theta ~ N(mean, std^2), by quadrature."""
    z = np.linspace(-8, 8, 801)
    mass = np.exp(-(z**2) / 2)
    return float(np.sum(mass * toy_policy_worth(mean[0] + std[0] * z)) / mass.sum())


def quadratic_return(theta: np.ndarray, seed: int) -> float:
    noise = np.random.default_rng(seed).standard_normal()
    return float(ROUGH * noise - np.sum((theta - OPTIMUM) ** 2))


def quadratic_worth(mean: np.ndarray, std: np.ndarray) -> float:
    return -float(np.sum((mean - OPTIMUM) ** 2 + std**2))


PROBLEMS = {  # both start three standard deviations away from the best parameters
    "toy": Problem(([1.0], [0.5]), toy_return, toy_worth, 7.85, 1.39, 11.5),
    "quadratic": Problem(
        ([0.0] * 10, [1.0] * 10), quadratic_return, quadratic_worth, -20.0, 7.9, -2.0
    ),
}


# -- the cluster --


class Losses(NamedTuple):
    """What goes wrong: trials that a worker loses, and nodes that fail with all their trials."""

    trials: float = 0.0  # share of attempts that are lost, at a uniform moment
    rate: float = 0.0  # failures of a node in a unit of time
    away: float = 20.0  # units of time until it is back
    size: int = 50  # workers on a node


TROUBLE = Losses(trials=0.01, rate=0.001)


class Attempt(NamedTuple):
    """A trial at a worker."""

    job: Job
    worker: int
    began: float
    outcome: Outcome


class Meter(NamedTuple):
    """Worker time up to a moment."""

    now: float = 0.0
    up: float = 0.0  # of workers whose node is there
    busy: float = 0.0  # of those that have a trial
    wasted: float = 0.0  # of attempts that were lost


class Cluster:
    """An engine with a virtual clock: what happens next is on top of a heap."""

    def __init__(
        self,
        workers: int,
        roll: Callable[[Job], float],
        length: Callable[[Job, float], float],
        losses: Losses | None = None,
        seed: int = 0,
    ) -> None:
        """`length` says how long the episode of a trial with this return takes."""
        self.workers, self.slots, self.losses = workers, workers, losses or Losses()
        self._roll, self._length = roll, length
        self._free = deque(range(workers))
        self._running: dict[int, Attempt] = {}  # by worker
        self._tries: dict[int, int] = {}
        self._events: list[tuple[float, int, Callable[[Any], list[Outcome] | None], Any]] = []
        self._count = 0
        self.meter = self.handed_out = Meter()  # now, and when the last trial was handed out
        self.lost_trials = self.lost_nodes = 0
        self._rng = np.random.default_rng([seed, 7])
        if self.losses.rate:
            for node in range(-(-workers // self.losses.size)):
                self._later(self._rng.exponential(1 / self.losses.rate), self._falls, node)

    @property
    def now(self) -> float:
        return self.meter.now

    def submit(self, job: Job) -> None:
        """Takes a trial: its end, or its loss, is known from here on."""
        worker = self._free.popleft()
        value = self._roll(job)
        length, outcome = self._length(job, value), Outcome(job.id, (value,))
        tries = self._tries[job.id] = self._tries.get(job.id, 0) + 1
        if self.losses.trials:
            lost, moment = np.random.default_rng([job.seed, 3, tries]).random(2)
            if lost < self.losses.trials:
                length, outcome = moment * length, Outcome(job.id, failed="its worker was lost")
        attempt = Attempt(job, worker, self.now, outcome)
        self._running[worker] = attempt
        self._later(length, self._ends, attempt)
        if tries == 1:
            self.handed_out = self.meter

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """What happens next; nothing where only the number of workers has changed."""
        while self._events:
            moment, _, happens, what = heapq.heappop(self._events)
            self._pass(moment)
            found = happens(what)
            if found is not None:
                return found
        return []

    def close(self) -> None:
        pass

    def _later(self, wait: float, happens: Callable[[Any], Any], what: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + wait, self._count, happens, what))

    def _pass(self, moment: float) -> None:
        passed, (_, up, busy, wasted) = moment - self.now, self.meter
        running = len(self._running)
        self.meter = Meter(moment, up + self.slots * passed, busy + running * passed, wasted)

    def _ends(self, attempt: Attempt) -> list[Outcome] | None:
        if self._running.get(attempt.worker) is not attempt:
            return None  # it went with its node
        del self._running[attempt.worker]
        self._free.append(attempt.worker)
        if attempt.outcome.failed is not None:
            self._wastes([attempt])
        return [attempt.outcome]

    def _wastes(self, attempts: list[Attempt]) -> None:
        wasted = self.meter.wasted + sum(self.now - attempt.began for attempt in attempts)
        self.meter = self.meter._replace(wasted=wasted)
        self.lost_trials += len(attempts)

    def _falls(self, node: int) -> list[Outcome]:
        """A node fails: every trial on it is lost at this moment."""
        on_it = self._workers_of(node)
        gone = [self._running.pop(worker) for worker in on_it if worker in self._running]
        self._free = deque(worker for worker in self._free if worker not in on_it)
        self.slots -= len(on_it)
        self.lost_nodes += 1
        self._wastes(gone)
        self._later(self.losses.away, self._returns, node)
        return [Outcome(one.job.id, failed="its node was lost") for one in gone]

    def _returns(self, node: int) -> list[Outcome]:
        self._free.extend(self._workers_of(node))
        self.slots += len(self._workers_of(node))
        self._later(self._rng.exponential(1 / self.losses.rate), self._falls, node)
        return []

    def _workers_of(self, node: int) -> range:
        size = self.losses.size
        return range(node * size, min((node + 1) * size, self.workers))
