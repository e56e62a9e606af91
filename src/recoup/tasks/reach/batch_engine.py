"""Many reaching episodes in lock step on MuJoCo's batch engine, on all cores."""

import logging
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError, check_shape
from recoup.tasks.reach import rules
from recoup.tasks.reach.body import SUBSTEPS, Servos, compile_body, import_mujoco, servos_of
from recoup.tasks.reach.rules import Reach

log = logging.getLogger("recoup")

Act = Callable[[int, np.ndarray], np.ndarray]  # step, features [N, F] -> actions [N, n]


class Recorded(NamedTuple):
    """N episodes of T steps as they went; NaN rewards where one has failed."""

    features: np.ndarray  # [N, T, F]
    actions: np.ndarray  # [N, T, n] as the policy gave them
    rewards: np.ndarray  # [N, T]
    distance: np.ndarray  # [N, T] m, hand to target after the step
    cost: np.ndarray  # [N, T]
    failures: dict[int, str]  # episode -> what happened


class ReachBody:
    """The body of one task, compiled, with a batch of simulations for every size asked for."""

    def __init__(self, task: Reach, threads: int = 0) -> None:
        self.task, self.threads = task, threads
        self.model = compile_body(task.joints, task.target)
        self.servos: Servos = servos_of(self.model)
        self.hand = self.model.site("hand").id
        self._stages = import_mujoco().mjtStage
        self._batch = lru_cache(maxsize=8)(self._new_batch)
        self._busy = threading.Lock()

    def __reduce__(self) -> Any:
        return engine_of, (self.task, self.threads)

    def run(self, act: Act, noise: np.ndarray) -> Recorded:
        """Episodes under `act`, from rest with the arms hanging; `noise [N, T, n]` in rad.

        An episode whose policy gives no number, or that MuJoCo warns about, fails alone: what is
        measured of it from there on is NaN, and `failures` says why. Calls from several threads
        wait for each other: MuJoCo's batches cannot be shared.
        """
        check_shape("noise", noise, "[N, T, n]", (*noise.shape[:2], self.task.joints))
        if not len(noise):
            raise InputError("a batch needs at least one episode.")
        with self._busy:
            return self._run(act, noise)

    def _run(self, act: Act, noise: np.ndarray) -> Recorded:
        n, horizon, joints = noise.shape
        batch = self._batch(n)
        batch.reset(stage=self._stages.mjSTAGE_NONE)
        q, qdot, sent = batch.bind("qpos"), batch.bind("qvel"), batch.bind("ctrl")
        hand = batch.bind("site_xpos")[:, self.hand]
        went = Recorded(
            features=np.zeros((n, horizon, self.task.size)),
            actions=np.zeros((n, horizon, joints)),
            rewards=np.full((n, horizon), np.nan),
            distance=np.full((n, horizon), np.nan),
            cost=np.full((n, horizon), np.nan),
            failures={},
        )
        for t in range(horizon):
            went.features[:, t] = rules.features(np, self.task, self.servos, q, qdot)
            went.actions[:, t] = act(t, went.features[:, t])
            self._note_actions(t, went)
            sent[:] = rules.command(np, self.servos, went.actions[:, t], noise[:, t])
            if went.failures:
                sent[list(went.failures)] = self.servos.zero
            went.cost[:, t] = rules.control_cost(np, self.task, self.servos, q, qdot, sent)
            batch.step(nstep=SUBSTEPS, stage=self._stages.mjSTAGE_POS)
            self._note_warnings(t, batch, went)
            went.distance[:, t] = np.sqrt(((hand - self.task.target) ** 2).sum(-1))
            went.rewards[:, t] = rules.reward(np, self.task, went.distance[:, t], went.cost[:, t])
            for measured in (went.rewards, went.distance, went.cost) if went.failures else ():
                measured[list(went.failures), t] = np.nan
        for episode, reason in went.failures.items():
            log.warning("episode %d of %d failed: %s", episode, n, reason)
        return went

    def _new_batch(self, n: int) -> Any:
        return import_mujoco().batch.Batch(self.model, n, nthread=self.threads)

    def _note_actions(self, t: int, went: Recorded) -> None:
        """Notes the episodes whose action is not a number."""
        finite = np.isfinite(went.actions[:, t])
        if finite.all():
            return
        for episode in np.flatnonzero(~finite.all(-1)):
            went.failures.setdefault(int(episode), f"step {t}: the action is not finite")

    def _note_warnings(self, t: int, batch: Any, went: Recorded) -> None:
        """Notes the episodes that MuJoCo has warned about."""
        warned = batch.warning[:, :, 1] > 0
        for episode, kind in np.argwhere(warned) if warned.any() else ():
            name = import_mujoco().mjtWarning(int(kind)).name.removeprefix("mjWARN_")
            went.failures.setdefault(int(episode), f"step {t}: MuJoCo warns of {name}")


@lru_cache(maxsize=16)
def engine_of(task: Reach, threads: int = 0) -> ReachBody:
    """The engine of a task, compiled once."""
    return ReachBody(task, threads)
