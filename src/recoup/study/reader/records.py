"""What a study gives: trials to roll out, and what came of them.

Each shows itself in a line, and in notebooks as a small table.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from recoup.checks import printable
from recoup.core.types import Plain, Value
from recoup.notebooks import facts
from recoup.store.rows import DRAWN, MIRROR
from recoup.study.space.goals import GOALS, MAXIMIZE
from recoup.study.text.notebook import digits, in_a_row, parameter_rows

AGES = ((0, 1), (1, 3), (3, 10), (10, 30), (30, None))  # batches back, from and before


Choices = tuple[tuple[str, tuple[str, ...]], ...]  # names of parameters, and what each is one of


class Named(Plain):
    """Values of parameters by name, in their order; NumPy takes them as an array `[P]`.

    >>> list(study.mean_policy)
    ['gain', 'offset']
    >>> import numpy as np
    >>> np.asarray(study.mean_policy).shape
    (2,)
    """

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        values = list(self.values())
        words = any(isinstance(value, str) for value in values)
        return np.array(values, object if words and dtype is None else dtype)


def by_name(
    names: Sequence[str], theta: np.ndarray, whole: Sequence[str] = (), choices: Choices = ()
) -> Plain:
    """Values by name, whole numbers and choices as such; none where there are no names."""
    values = zip(names, in_order(names, theta, choices), strict=False)
    return {name: int(value) if name in whole else value for name, value in values}


def in_order(names: Sequence[str], theta: np.ndarray, choices: Choices) -> list[Value]:
    """Values as a list of numbers, and of choices as such."""
    words, values = dict(choices), theta.tolist()
    if not words:
        return list(values)
    both = zip(names, values, strict=True)
    return [words[name][int(value)] if name in words else value for name, value in both]


class Trial(NamedTuple):
    """One theta to roll out, in the user's units, and a seed for the episode's randomness.

    >>> [trial] = study.ask()
    >>> trial
    Trial(37, gain=..., offset=..., seed=...)
    """

    id: int  # its number, as `tell` takes it
    theta: np.ndarray  # [D]; of a choice its place, from 0
    seed: int  # of the episode's randomness
    kind: str = DRAWN  # or mirror, repeat, mean, own: as `TrialResult` has them
    std: np.ndarray | None = None  # of the policy's actions, for methods that explore in them
    names: tuple[str, ...] = ()  # of the parameters, if they have any
    whole: tuple[str, ...] = ()  # names of those that are whole numbers
    choices: Choices = ()  # and of those that are one of several; in `theta` its place, from 0

    @property
    def params(self) -> Plain:
        """The parameters by name, where they have names.

        >>> [trial] = study.ask()
        >>> list(trial.params)
        ['gain', 'offset']
        """
        return by_name(self.names, self.theta, self.whole, self.choices)

    @property
    def values(self) -> list[Value]:
        """The parameters in order, choices as such.

        >>> [trial] = study.ask()
        >>> len(trial.values)
        2
        """
        return in_order(self.names, self.theta, self.choices)

    def plain(self) -> Plain:
        """The trial as JSON can hold it.

        >>> [trial] = study.ask()
        >>> list(trial.plain())
        ['id', 'theta', 'seed', 'params']
        """
        found: Plain = {"id": self.id, "theta": self.values, "seed": self.seed}
        if self.names:
            found["params"] = self.params
        if self.std is not None:
            found["std"] = self.std.tolist()
        return found if self.kind in (DRAWN, MIRROR) else {**found, "kind": self.kind}

    def __repr__(self) -> str:
        kind = "" if self.kind == DRAWN else f", {self.kind}"
        return f"Trial({self.id}{kind}, {in_a_row(self.names, self.values)}, seed={self.seed})"

    def _repr_html_(self) -> str:
        rows = {"seed": str(self.seed), **parameter_rows(self.names, self.values)}
        return facts(f"Trial {self.id}{_kind(self.kind)}", rows)


class TrialResult(NamedTuple):
    """A trial and what came of it, as `Study.trials` lists them.

    >>> trial = study.trials()[0]
    >>> trial.id, trial.kind, trial.status, trial.episodes
    (1, 'drawn', 'ok', 1)
    """

    id: int  # its number
    kind: str  # drawn; mirror, the other of a pair; repeat, the theta of the one drawn before it
    # once more; mean; own, of one's own choice; imported
    status: str  # pending, ok or failed; cancelled
    value: float | None  # its return
    stderr: float | None  # of several episodes
    episodes: int | None  # of which the return is the mean
    note: str | None  # why it failed, or was cancelled
    theta: np.ndarray  # [D] in the user's units
    seed: int  # of the episode's randomness
    proposal: int | None  # that drew it, if one did
    asked_at: float  # in seconds since 1970
    told_at: float | None  # likewise; None while it waits
    names: tuple[str, ...] = ()  # of the parameters, if they have any
    whole: tuple[str, ...] = ()  # names of those that are whole numbers
    direction: str = MAXIMIZE.word  # minimize: its value is a cost
    notes: tuple[str, ...] = ()  # what was written down about it
    choices: Choices = ()  # in `theta` a choice is its place, from 0
    also: Mapping[str, float] = MappingProxyType({})  # numbers told beside its return, by name
    broken: tuple[str, ...] = ()  # limits that they broke

    @property
    def params(self) -> Plain:
        """The parameters by name, where they have names.

        >>> list(study.trials()[0].params)
        ['gain', 'offset']
        """
        return by_name(self.names, self.theta, self.whole, self.choices)

    @property
    def values(self) -> list[Value]:
        """The parameters in order, choices as such.

        >>> len(study.trials()[0].values)
        2
        """
        return in_order(self.names, self.theta, self.choices)

    @property
    def remark(self) -> str:
        """Why it failed, and what was written down about it.

        >>> study.note("it hummed", trial=1)
        >>> study.trials()[0].remark
        'it hummed'
        """
        return "; ".join([*([self.note] if self.note else []), *self.notes])

    def plain(self) -> Plain:
        """The trial as JSON can hold it.

        >>> study.trials()[0].plain()["status"]
        'ok'
        """
        keys = ("id", "kind", "status", "stderr", "episodes", "note", "seed", "proposal")
        found: Plain = {key: getattr(self, key) for key in keys}
        found |= {"return": self.value, "notes": list(self.notes), "theta": self.values}
        found |= {"params": self.params} if self.names else {}
        found |= {"also": dict(self.also), "broken": list(self.broken)} if self.also else {}
        return {**found, "asked_at": self.asked_at, "told_at": self.told_at}

    def __repr__(self) -> str:
        came = self.status if self.value is None else digits(self.value)
        note = f" ({printable(self.note)})" if self.note else ""
        return f"TrialResult({self.id}: {came}{note}, {in_a_row(self.names, self.values)})"

    def _repr_html_(self) -> str:
        rows = {"status": self.status}
        if self.value is not None:
            error = "" if self.stderr is None else f" ± {self.stderr:.2g} of {self.episodes}"
            rows[GOALS[self.direction].noun] = f"{digits(self.value)}{error}"
        for name, value in self.also.items():
            rows[name] = digits(value)
        if self.broken:
            rows["broke"] = ", ".join(self.broken)
        if self.remark:
            rows["note"] = self.remark
        rows |= parameter_rows(self.names, self.values)
        return facts(f"Trial {self.id}{_kind(self.kind)}", rows)


def _kind(kind: str) -> str:
    return "" if kind in (DRAWN, MIRROR) else f" ({kind})"
