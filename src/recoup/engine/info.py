"""What a move was made of. No JAX."""

from typing import NamedTuple

import numpy as np

from recoup.core.in_short import count_for, with_error
from recoup.core.pareto import pareto_k
from recoup.core.types import Array, Plain, Pytree, Samples
from recoup.core.worth import Interval, student


class Info(NamedTuple):
    """What one move was made of, at the distribution before it.

    `Search.tell` gives it.

    >>> population, state = search.ask(key, state)
    >>> state, info = search.tell(key, state, population, -jnp.sum(population**2, axis=1))
    >>> info
    Info(objective ... ± ...; 10 samples that count for 10.0)
    """

    objective: Array  # estimated expected return of the distribution that moved
    objective_stderr: Array  # its standard error
    ess: Array  # effective sample size, in pairs under mirrored sampling
    max_weight: Array  # the largest of the weights
    weights: Array  # [B, N] of every sample in the archive, zero where there is none
    baseline: Array  # that was subtracted
    samples: Samples  # valid samples in the archive
    kl: Array  # KL(new || old) of the move; in action space, of an episode of the new batch
    flatten: Array  # nu of w^nu, for methods that may choose it
    mean_weight: Array = 1.0  # near 1 if the samples cover the distribution
    censored: Array = 0  # failed samples that are left out: the objective is given success
    failed: Array = 0  # results of the new batch that are not finite
    stale: Array = 0  # results of it whose proposal is too old to be remembered
    dropped: Array = 0  # batches that a full archive has dropped so far
    notes: Pytree = None  # of the method `recoup`, or a mover: why the step was as long as it was

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the objective of a move that has been made; not a number if none.

        >>> population, state = search.ask(key, state)
        >>> state, info = search.tell(key, state, population, -jnp.sum(population**2, axis=1))
        >>> low, high = info.interval
        >>> bool(low < info.objective < high)
        True
        """
        numbers = (self.objective, self.objective_stderr, self.ess, self.mean_weight)
        return student(*(float(x) for x in numbers))

    def __repr__(self) -> str:
        worth = with_error(self.objective, self.objective_stderr)
        return f"Info(objective {worth}; {count_for(self.samples, self.ess)})"

    def plain(self, draw: int = 1) -> Plain:
        """The numbers of a move that has been made, as JSON can hold them.

        `draw` is how many samples one draw makes: the effective sample size is then in samples.

        Raises an error of JAX inside traced code.

        >>> population, state = search.ask(key, state)
        >>> state, info = search.tell(key, state, population, -jnp.sum(population**2, axis=1))
        >>> info.plain()["samples"]
        10
        """
        low, high = self.interval
        return {
            "objective": float(self.objective),
            "objective_stderr": float(self.objective_stderr),
            "low": low,
            "high": high,
            "samples": int(self.samples),
            "ess": float(self.ess) * draw,
            "max_weight": float(self.max_weight),
            "mean_weight": float(self.mean_weight),
            "censored": int(self.censored),
            "pareto_k": pareto_k(self.weights),
            "kl": float(self.kl),
            "flatten": None if self.flatten is None else float(self.flatten),
        } | ({} if self.notes is None else {"notes": _plain(self.notes)})


def _plain(notes: Pytree) -> Plain:
    """Scalars of a record, as JSON can hold them."""
    found = notes if isinstance(notes, dict) else notes._asdict()
    known = {key: value for key, value in found.items() if value is not None}
    return {key: np.asarray(value).item() for key, value in known.items()}
