"""The tasks as Gymnasium environments, on the same equations as the vectorised rollouts."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from recoup.tasks import make_task
from recoup.tasks.models import Model


class ModelEnv(gymnasium.Env):
    """A model as an environment: observes the state, acts with `[A]` numbers.

    No episode terminates; the registered horizon truncates. Rewards are not discounted here.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, model: Model) -> None:
        low, high = np.array(model.low), np.array(model.high)
        self.model = model
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        self.action_space = spaces.Box(
            -model.action_limit, model.action_limit, (model.actions,), np.float64
        )
        self.state = np.zeros(len(low))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The first observation of a new episode."""
        super().reset(seed=seed)
        self.state = np.asarray(self.model.initial(np, self._noise()), np.float64)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One transition under `action [A]`."""
        action = np.asarray(action, np.float64).reshape(self.model.actions)
        after = self.model.transition(np, self.state, action, self._noise())
        reward = float(self.model.reward(np, self.state, action, after))
        self.state = after
        return after.copy(), reward, False, False, {}

    def _noise(self) -> np.ndarray:
        return self.np_random.standard_normal(self.state.size)


def make_env(task: str) -> ModelEnv:
    """The environment of the built-in task `task`."""
    return ModelEnv(make_task(task).model)
