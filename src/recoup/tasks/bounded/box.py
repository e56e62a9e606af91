"""Named parameters between bounds, and the unit box that they are searched in."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from recoup.core.types import Array

LINEAR, LOG, INT = "linear", "log", "int"


class Bounded(NamedTuple):
    """One parameter: its name, its bounds and its scale."""

    name: str
    low: float
    high: float
    scale: str = LINEAR


@dataclass(frozen=True)
class Box:
    """The parameters of a task; in the unit box a log scale is linear, a whole number a cell."""

    parameters: tuple[Bounded, ...]

    @property
    def dim(self) -> int:
        """How many there are, D."""
        return len(self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names `[D]`."""
        return tuple(p.name for p in self.parameters)

    @cached_property
    def whole(self) -> np.ndarray:
        """Which are whole numbers `[D]`."""
        return np.array([p.scale == INT for p in self.parameters])

    @cached_property
    def _logs(self) -> np.ndarray:
        return np.array([p.scale == LOG for p in self.parameters])

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Low and high bounds `[2, D]`."""
        return np.array([(p.low, p.high) for p in self.parameters], float).T

    @cached_property
    def _ends(self) -> np.ndarray:
        """What 0 and 1 stand for `[2, D]`: logarithms on a log scale; cells of whole numbers."""
        ends = self._bounds.copy()
        ends[:, self._logs] = np.log(ends[:, self._logs])
        return ends + 0.5 * self.whole * np.array([[-1.0], [1.0]])

    def units(self, x: Array) -> np.ndarray:
        """Values `[..., D]` in units of points `[..., D]` of the unit box."""
        low, high = self._ends
        value = low + (high - low) * np.clip(x, 0.0, 1.0)
        value[..., self._logs] = np.exp(value[..., self._logs])
        value[..., self.whole] = np.round(value[..., self.whole])
        return np.clip(value, *self._bounds)

    def unit(self, values: Array) -> np.ndarray:
        """The point `[..., D]` of the unit box that has these values `[..., D]`."""
        low, high = self._ends
        value = np.array(values, float)
        value[..., self._logs] = np.log(value[..., self._logs])
        return (value - low) / (high - low)

    def snapped(self, x: Array) -> np.ndarray:
        """The point that is tried for `x`: whole numbers where they are wanted."""
        return np.where(self.whole, self.unit(self.units(x)), np.clip(x, 0.0, 1.0))
