"""The tasks as Gymnasium environments, on the same equations as the vectorised rollouts."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Array, Plain
from recoup.tasks.models import Model
from recoup.tasks.registry import make_problem


class ModelEnv(gymnasium.Env):
    """A model as an environment: observes the state, acts with `[A]` numbers.

    No episode terminates; the registered horizon truncates. Rewards are not discounted here.
    """

    metadata: Plain = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: str, render_mode: str | None = None, **options: Any) -> None:
        model: Model = make_problem(task, **options)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(map(repr, self.metadata["render_modes"])) or "none: it has no picture"
            raise InputError(f"render_mode {render_mode!r} is not one of {task}'s; it has {known}.")
        self.render_mode = render_mode
        low, high = np.array(model.low), np.array(model.high)
        self.model = model
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        self.action_space = spaces.Box(
            -model.action_limit, model.action_limit, (model.actions,), np.float64
        )
        self.state = np.zeros(len(low))

    def reset(
        self, *, seed: int | None = None, options: Plain | None = None
    ) -> tuple[np.ndarray, Plain]:
        """The first observation of a new episode."""
        super().reset(seed=seed)
        self.state = np.asarray(self.model.initial(np, self._noise()), np.float64)
        return self.state.copy(), {}

    def step(self, action: Array) -> tuple[np.ndarray, float, bool, bool, Plain]:
        """One transition under `action [A]`."""
        action = np.asarray(action, np.float64).reshape(self.model.actions)
        after = self.model.transition(np, self.state, action, self._noise())
        reward = float(self.model.reward(np, self.state, action, after))
        self.state = after
        return after.copy(), reward, False, False, {}

    def _noise(self) -> np.ndarray:
        return self.np_random.standard_normal(self.state.size)


class PictureEnv(ModelEnv):
    """One whose model has a picture."""

    metadata: Plain = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def render(self) -> np.ndarray | None:
        """The picture `[height, width, 3]` of the state."""
        if self.render_mode is None or self.model.picture is None:
            return None
        return self.model.picture(self.state)
