"""The bounded suite: its table, and the door to one task of one run.

Half of the tasks are for choosing settings, the other half is never looked at while choosing. Both
hold every kind once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import check_choice
from recoup.core.types import Array
from recoup.tasks.bounded.arms import arm
from recoup.tasks.bounded.box import Box
from recoup.tasks.bounded.function_tasks import (
    Placed,
    box_of,
    cliff,
    heavy_tailed,
    peak,
    quadratic,
    ridges,
    success,
    two_tops,
    valley,
)
from recoup.tasks.bounded.furnace import furnace
from recoup.tasks.bounded.notch import notch
from recoup.tasks.bounded.placing import ANYWHERE, BORDER, CENTRE, CORNER
from recoup.tasks.bounded.quadrotor import quadrotor
from recoup.tasks.bounded.simulated import Machine, simulated

TUNING, UNTOUCHED = "tuning", "untouched"
Values = Mapping[str, float] | Array


class BoundedRow(NamedTuple):
    """A task of the bounded suite."""

    name: str
    half: str  # tuning or untouched
    kind: str
    best: str  # where it lies
    dim: int
    summary: str
    placed: Callable[[np.random.Generator], Placed]  # the task of one run


def _row(
    about: tuple[str, str, str],
    name: str,
    summary: str,
    make: Callable[..., Placed],
    over: Box | Machine,
) -> BoundedRow:
    """A row; `make` takes the box or the machine that the task is over."""
    half, kind, where = about
    placed = partial(make, over=over, where=where)
    return BoundedRow(f"bounded-{name}", half, kind, where, over.dim, summary, placed)


TABLE = (
    _row(
        (TUNING, "smooth", ANYWHERE),
        "bowl-3",
        "a rotated bowl over a rate, a count and a number",
        partial(quadratic, noise=0.1, condition=10.0, rotated=True),
        box_of(3, logs=1, ints=1),
    ),
    _row(
        (UNTOUCHED, "smooth", CENTRE),
        "peak-2",
        "a peak with a point, flat far away",
        partial(peak, noise=1.0, width=0.2),
        box_of(2, logs=1),
    ),
    _row(
        (TUNING, "valley", ANYWHERE),
        "rosenbrock-6",
        "Rosenbrock's bent valley",
        partial(valley, noise=20.0),
        box_of(6, logs=2),
    ),
    _row(
        (UNTOUCHED, "valley", ANYWHERE),
        "ellipsoid-20",
        "a rotated ellipsoid, weights from 1 to 100",
        partial(quadratic, noise=2.0, condition=100.0, rotated=True),
        box_of(20, logs=6, ints=2),
    ),
    _row(
        (TUNING, "rugged", ANYWHERE),
        "michalewicz-5",
        "Michalewicz's ridges, m = 2",
        partial(ridges, noise=0.2, steepness=2),
        box_of(5, logs=1),
    ),
    _row(
        (UNTOUCHED, "rugged", ANYWHERE),
        "styblinski-tang-6",
        "Styblinski and Tang's two tops a parameter",
        partial(two_tops, noise=10.0),
        box_of(6, logs=3),
    ),
    _row(
        (TUNING, "edge", BORDER),
        "border-8",
        "a slope that is best at the border of half of the parameters",
        partial(quadratic, noise=0.2, condition=4.0),
        box_of(8, logs=2, ints=1),
    ),
    _row(
        (UNTOUCHED, "edge", CORNER),
        "corner-4",
        "a slope that is best in a corner",
        partial(quadratic, noise=0.2, condition=4.0),
        box_of(4, logs=2),
    ),
    _row(
        (TUNING, "success", ANYWHERE),
        "success-3",
        "a trial succeeds or not: a plateau",
        partial(success, radius=0.3, soft=0.04),
        box_of(3, logs=1),
    ),
    _row(
        (UNTOUCHED, "success", ANYWHERE),
        "success-7",
        "a trial succeeds or not, counts among the parameters",
        partial(success, radius=0.55, soft=0.1),
        box_of(7, logs=2, ints=2),
    ),
    _row(
        (TUNING, "crash", ANYWHERE),
        "cliff-4",
        "a hill with a cliff close to its top, beyond which trials fail",
        partial(cliff, noise=0.5, floor=-25.0),
        box_of(4, logs=2),
    ),
    _row(
        (UNTOUCHED, "crash", ANYWHERE),
        "quadrotor",
        "six gains of a planar quadrotor in gusts; trials that fall or turn over fail",
        simulated,
        quadrotor((17.72, 6.918, 0.9103, 0.4409, 326.9, 46.36)),
    ),
    _row(
        (TUNING, "noise", CENTRE),
        "heavy-10",
        "a bowl under noise with heavy tails (Student's t, 2.5 degrees of freedom)",
        partial(heavy_tailed, noise=0.3, condition=10.0, rotated=True),
        box_of(10, logs=4),
    ),
    _row(
        (UNTOUCHED, "noise", ANYWHERE),
        "uneven-12",
        "a bowl under noise that grows with the distance from the best",
        partial(quadratic, noise=0.1, growing=1.0, condition=10.0, rotated=True),
        box_of(12, logs=3, ints=1),
    ),
    _row(
        (TUNING, "control", ANYWHERE),
        "arm-2",
        "four gains of an arm with two joints",
        simulated,
        arm(2, (89.95, 65.81, 13.39, 10.55)),
    ),
    _row(
        (UNTOUCHED, "control", ANYWHERE),
        "arm-3",
        "six gains of an arm with three joints",
        simulated,
        arm(3, (145.13, 54.601, 100.65, 26.95, 9.3179, 16.806)),
    ),
    _row(
        (TUNING, "process", ANYWHERE),
        "furnace",
        "PI control of a furnace with feed-forward and an average of measurements",
        simulated,
        furnace((0.232, 0.008632, 0.10527, 3)),
    ),
    _row(
        (UNTOUCHED, "process", ANYWHERE),
        "notch",
        "a notch and a low pass against hum and hiss",
        simulated,
        notch((0.5495, 0.2735, 0.4726)),
    ),
)
BOUNDED = {row.name: row for row in TABLE}
HALVES = {
    f"bounded-{half}": tuple(row.name for row in TABLE if row.half == half)
    for half in (TUNING, UNTOUCHED)
}


@dataclass(frozen=True)
class BoundedTask:
    """A task as it is in one run: the same seed places its best at the same point."""

    row: BoundedRow
    placed: Placed

    @property
    def box(self) -> Box:
        """Its parameters."""
        return self.placed.box

    @property
    def params(self) -> dict[str, tuple[float, float, str]]:
        """The parameters as a study takes them."""
        return {p.name: (p.low, p.high, p.scale) for p in self.box.parameters}

    @property
    def best(self) -> np.ndarray:
        """Where the expected return is highest `[D]`, in units."""
        return self.box.units(self.placed.best)

    @property
    def top(self) -> float:
        """The expected return there."""
        return float(self.placed.true(self._points(self.best))[0])

    def rollout(self, values: Values, seed: int | Sequence[int]) -> float:
        """The return of one trial; NaN: it failed. The same seed has the same noise."""
        return float(self.returns(self._array(values)[None], [seed])[0])

    def returns(self, values: Array, seeds: Sequence[Any]) -> np.ndarray:
        """Returns `[n]` of trials of values `[n, D]`, a seed each."""
        rngs = [np.random.default_rng(seed) for seed in seeds]
        return self.placed.play(self._points(values), rngs)

    def true_return(self, values: Values) -> float:
        """The expected return of a candidate, without noise: exact, or over fixed episodes.

        A trial that fails counts as the worst return that the task has.
        """
        return float(self.placed.true(self._points(self._array(values)))[0])

    def _array(self, values: Values) -> np.ndarray:
        if isinstance(values, Mapping):
            return np.array([values[name] for name in self.box.names], float)
        return np.asarray(values, float)

    def _points(self, values: Array) -> np.ndarray:
        """Points `[n, D]` of the unit box that have these values."""
        return self.box.snapped(self.box.unit(np.atleast_2d(values)))


def bounded_task(name: str, seed: int | Sequence[int]) -> BoundedTask:
    """The task `name` of the run that has this seed."""
    row = BOUNDED[check_choice("task", name, BOUNDED)]
    return BoundedTask(row, row.placed(np.random.default_rng(seed)))
