"""What a study gives: trials to roll out, and the judgement of a distribution."""

from typing import Any, NamedTuple

import numpy as np

from recoup.store.rows import DRAWN, MIRROR

AGES = ((0, 1), (1, 3), (3, 10), (10, 30), (30, None))  # batches back, from and before


class Trial(NamedTuple):
    """One theta to roll out, in the user's units, and a seed for the episode's randomness."""

    id: int
    theta: np.ndarray
    seed: int
    kind: str = DRAWN  # or mirror, the other of a pair; mean; own, of one's own choice
    std: np.ndarray | None = None  # of the policy's actions, for methods that explore in them
    names: tuple[str, ...] = ()

    @property
    def params(self) -> dict[str, float]:
        """The parameters by name, where they have names."""
        return dict(zip(self.names, self.theta.tolist(), strict=False))

    def plain(self) -> dict[str, Any]:
        """The trial as JSON can hold it."""
        found: dict[str, Any] = {"id": self.id, "theta": self.theta.tolist(), "seed": self.seed}
        if self.names:
            found["params"] = self.params
        if self.std is not None:
            found["std"] = self.std.tolist()
        return found if self.kind in (DRAWN, MIRROR) else {**found, "kind": self.kind}


class Evaluation(NamedTuple):
    """The expected return of a distribution, from results that others drew."""

    mean: float  # not a number where the results say nothing
    stderr: float
    ess: float
    pareto_k: float
    samples: int
    words: str  # what that means
    low: float  # of the 95 % interval; not a number where none can be given
    high: float
    unseen: float  # share of the distribution where hardly any result could have been drawn
    explained: float  # share of the returns' variance that a model took over; 0: weights alone
