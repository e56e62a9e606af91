"""What a served study gives: trials, receipts, answers; and episodes as it takes them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from recoup.checks import InputError, check_count, shortly
from recoup.core.types import Given, Plain


@dataclass(frozen=True)
class RemoteTrial:
    """A trial of a served study: what to roll out, and, once that is told, what came of it.

    `RemoteStudy.ask` gives it.

    >>> [trial] = study.ask()
    >>> list(trial.params)
    ['gain', 'offset']
    """

    id: int  # its number
    seed: int  # of the episode's randomness
    params: Plain  # by name, in the user's units; empty where the study has no names
    values: list[float | str]  # the same in order
    kind: str = "drawn"  # or mirror, repeat, mean, own
    status: str = "pending"  # ok, failed or cancelled later
    value: float | None = None  # its return, or its cost
    stderr: float | None = None  # of several episodes
    episodes: int | None = None  # of which the return is the mean
    failed: str | None = None  # why
    note: str | None = None  # what was written down
    also: Plain = field(default_factory=dict)  # numbers told beside the return
    context: Plain = field(default_factory=dict)  # numbers that were known before it
    proposal: int | None = None  # the distribution that drew it
    worker: str | None = None  # who has it
    asked_at: float | None = None  # when, in seconds since 1970
    told_at: float | None = None  # likewise
    lease_until: float | None = None  # until when it is lent, likewise
    std: np.ndarray | None = None  # of actions, where the method explores in them
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)  # parameters that are words

    @property
    def theta(self) -> np.ndarray:
        """The parameters as an array `[P]`; of a choice its place, from 0.

        >>> study.ask()[0].theta.shape
        (2,)
        """
        both = zip(self.params or range(len(self.values)), self.values, strict=True)
        numbers = [
            list(self.choices[name]).index(str(x)) if name in self.choices else x
            for name, x in ((str(name), x) for name, x in both)
        ]
        return np.array(numbers, float)


@dataclass(frozen=True)
class Receipt:
    """What the server says of a result that it has kept.

    `RemoteStudy.tell` gives it.

    >>> [trial] = study.ask()
    >>> receipt = study.tell(trial.id, 9.7)
    >>> receipt.trial.value, receipt.slip
    (9.7, None)
    """

    trial: RemoteTrial | None  # None: several were told
    until_move: int  # results until the distribution moves
    slip: str | None  # why the result looks like a slip of the keyboard, if it does
    later: bool  # whether another result of the trial came first, and this one does not count


class Answer(Plain):
    """What the server found, by key or as attributes; None is what is not known.

    >>> answer = study.predict({"offset": 1})
    >>> answer.results == answer["results"]
    True
    """

    def __getattr__(self, name: str) -> Given:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the answer has no {name!r}: {', '.join(self)}") from None

    def __str__(self) -> str:
        return str(self.get("sentence") or self.get("words") or dict(self))


def episode(given: Given) -> Given:
    """A trajectory as the server takes it, without what lies after its steps, or "before"."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping) and not hasattr(given, "_asdict"):
        raise InputError(f"a `trajectory` must be a recoup.Trajectory, got {shortly(given)}.")
    fields = dict(given if isinstance(given, Mapping) else given._asdict())
    steps = fields.pop("steps", None)
    last = None if steps is None else check_count("steps of a trajectory", _number(steps))
    rows = {str(key): _rows(x)[:last].tolist() for key, x in fields.items()}
    return rows if last is None else {**rows, "steps": last}


def _number(given: Given) -> Given:
    """A number that may lie in an array by itself; what is none as it is."""
    return given.item() if hasattr(given, "item") and np.size(given) == 1 else given


def _rows(given: Given) -> np.ndarray:
    """A field of a trajectory as an array with a row for each step."""
    with suppress(ValueError):  # rows that are not of one length
        if np.ndim(given):
            return np.asarray(given)
    raise InputError("a trajectory must be made of arrays of numbers, a row for each step.")
