"""What a sample of a study is made of."""

from typing import NamedTuple

import numpy as np

from recoup.store.file import unpacked


class Shape(NamedTuple):
    """What a sample is made of."""

    dim: int
    stds: int  # of the distribution: D, or A in action space
    horizon: int | None = None  # T, in action space
    actions: int = 1

    def arrays(self, n: int) -> tuple[np.ndarray, ...]:
        """Room for `n` samples: theta, or features, actions, rewards and steps."""
        if self.horizon is None:
            return (np.zeros((n, self.dim)),)
        features = self.dim // self.actions
        widths = ((self.horizon, features), (self.horizon, self.actions), (self.horizon,))
        return (*(np.zeros((n, *width)) for width in widths), np.zeros(n, np.int32))

    def trajectory(self, steps: int, content: bytes) -> tuple[np.ndarray, ...]:
        """Features `[t, F]`, actions `[t, A]` and rewards `[t]` as they were packed."""
        features = self.dim // self.actions
        rows = unpacked(content).reshape(steps, features + self.actions + 1)
        return rows[:, :features], rows[:, features:-1], rows[:, -1]
