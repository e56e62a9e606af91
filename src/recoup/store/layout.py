"""What a sample of a study is made of."""

from typing import NamedTuple

import numpy as np


class Layout(NamedTuple):
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

    def trajectory(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Features `[t, F]`, actions `[t, A]` and rewards `[t]` of a trajectory `[t, F + A + 1]`.

        A ValueError where the rows have another width.
        """
        features = self.dim // self.actions
        if rows.ndim != 2 or rows.shape[1] != features + self.actions + 1:
            raise ValueError(f"a trajectory of the shape {list(rows.shape)}")
        return rows[:, :features], rows[:, features:-1], rows[:, -1]
