"""The named rows of a study file: what `Store` takes and gives. No SQL here."""

from typing import Any, NamedTuple

import numpy as np

PENDING, OK, FAILED = "pending", "ok", "failed"
DRAWN, MIRROR, MEAN, OWN, FOREIGN = "drawn", "mirror", "mean", "own", "imported"  # kinds of trials
REPEAT = "repeat"  # another: the theta of the first that its proposal drew, once more
SAMPLED = (DRAWN, MIRROR, REPEAT)  # kinds that the study's own distributions have drawn
START, MOVED = "start", "move"  # origins of proposals, beside those that others are imported with
CREATED = "created"  # the event that repeats the settings
RECOVERED = "recovered"  # the event of a file made from what was left of another
CANCELLED = "cancelled"  # the event, and what becomes of a trial that will not be rolled out
AMENDED = "amended"  # the event of a result that was put right
BEGUN = "begun"  # in what a move says of itself: the move whose distribution it began from
DROP = "dropped"  # in that event: whether the result counts for nothing now
CONTEXT = "context."  # what the names of numbers begin with that were known before their trial
DROPPED = "dropped: "  # what the note of such a result begins with
PAUSED, RESUMED = "paused", "resumed"  # the events of a study that gives out no trials meanwhile
TOLD_LATER = "told_later"  # the event of a result that came after the first, which counts
NOTED, TITLED, ENQUEUED = "note", "title", "enqueued"  # other events, of what people write down


class Proposal(NamedTuple):
    """A distribution that draws trials."""

    id: int
    origin: str  # what made it: start, move, or where it was imported from
    family: str
    numbers: np.ndarray  # [K] one block, float64; the family knows what is what


class Leaf(NamedTuple):
    """One array of an update rule's memory."""

    path: str  # its place in the structure
    value: np.ndarray


Memory = tuple[Leaf, ...] | None  # None: the rule has not begun yet


class Move(NamedTuple):
    """A step of the search: the proposal that it made, and what it was made of."""

    id: int
    proposal: int
    counted: int  # the place of the last result that it was made of
    memory: Memory
    info: dict[str, Any]
    made: float = 0.0

    @property
    def begun(self) -> int:
        """The number of the move whose distribution it began from."""
        return int(self.info.get(BEGUN, self.id - 1))


class Asked(NamedTuple):
    """A trial: a latent theta, and the proposal that drew it if one did."""

    id: int
    kind: str
    proposal: int | None
    theta: np.ndarray  # [D]
    seed: int
    asked_at: float = 0.0  # 0: when it is written


class Lease(NamedTuple):
    """Until when a trial is lent to whoever asked for it."""

    id: int  # of the trial
    until: float | None  # seconds since 1970; None: it is not handed out again
    times: int = 1  # how often it was handed out


class Request(NamedTuple):
    """A request for trials, by the key of whoever may send it once more."""

    key: str
    body: str  # what was asked for
    trials: list[int]  # that it was given
    at: float = 0.0  # 0: when it is written


class Told(NamedTuple):
    """What came of a trial. Compare two with `same`: arrays have no plain equality.

    `Study.result` gives it, for `Study.tell_all`.

    >>> study.result(failed="the gripper slipped").status
    'failed'
    """

    status: str  # ok or failed
    value: float | None = None  # the return
    stderr: float | None = None  # over the episodes of one theta
    episodes: int | None = None  # of which it is the mean
    note: str | None = None  # why it failed
    trajectory: np.ndarray | None = None  # rows [t, F + A + 1], in action space
    also: dict[str, float] | None = None  # numbers beside the return, by name; None: none


class Result(NamedTuple):
    """What came of a trial, as it is kept; its trajectory is read by `Store.trajectories`."""

    id: int
    told: Told
    counted: int | None  # its place among the results that moves are made of
    told_at: float


class Counters(NamedTuple):
    """How many there are, kept beside the rows so that missing ones are noticed."""

    trials: int = 0
    ok: int = 0
    failed: int = 0
    counted: int = 0  # results that moves are made of, in the order of telling
    fresh: int = 0  # of them, those drawn by this study that no move was made of yet
    last: int = 0  # the number of the last trial


class Fresh(NamedTuple):
    """A result that no move was made of yet."""

    place: int
    id: int
    status: str
    kind: str
    proposal: int | None


class AskedColumns(NamedTuple):
    """Trials by number, a row each."""

    id: np.ndarray  # [n]
    kind: np.ndarray  # [n] words
    proposal: np.ndarray  # [n], -1 where none drew it
    theta: np.ndarray  # [n, D] latent


class ToldColumns(NamedTuple):
    """Results by trial, a row each."""

    id: np.ndarray  # [n]
    value: np.ndarray  # [n], not a number where it failed
    told_at: np.ndarray  # [n]


class Event(NamedTuple):
    """Something that happened to the study."""

    id: int
    kind: str
    content: dict[str, Any]
    at: float


class Test(NamedTuple):
    """What fresh episodes said after a move of a training run."""

    move: int
    mean: float
    stderr: float
    episodes: int
    wall_s: float


class Queued(NamedTuple):
    """A theta of the user's own choice that waits to be asked."""

    id: int
    theta: np.ndarray  # [D]
    note: str | None


class Made(NamedTuple):
    """A move that was made, or made again, before it is written with its proposal."""

    number: int
    counted: int  # the place of the last result that it was made of
    numbers: Any  # [K] one block
    memory: Memory
    info: dict[str, Any]


class KeptDensities(NamedTuple):
    """The densities that moves leave for the next."""

    own: dict[int, np.ndarray]  # by move, of its new results
    mixture: np.ndarray  # of all results, after the last


class Dates(NamedTuple):
    """When something happened to a study, in seconds since 1970; None where it never has."""

    created: float | None
    first_asked: float | None
    last_asked: float | None
    last_told: float | None
    last_moved: float | None


class Contents(NamedTuple):
    """The rows of a whole study file, by their ids: what is salvaged and restored."""

    settings: dict[str, Any] | None  # None where they cannot be read
    counters: Counters | None
    proposals: dict[int, Proposal]
    moves: dict[int, Move]
    asked: dict[int, Asked]
    told: dict[int, Result]  # without trajectories
    trajectories: dict[int, np.ndarray]
    queue: dict[int, Queued]
    events: dict[int, Event]
    own: dict[int, np.ndarray]  # densities, by move
    mixture: dict[int, np.ndarray]
    tests: dict[int, Test]
    leases: dict[int, Lease]
    requests: dict[int, Request]
    workers: dict[int, str]  # names, by trial


def same(one: Told, other: Told) -> bool:
    """Whether the same was told twice, to the last digit."""
    if one[:5] != other[:5] or (one.also or {}) != (other.also or {}):
        return False
    if one.trajectory is None or other.trajectory is None:
        return one.trajectory is other.trajectory
    return np.array_equal(one.trajectory, other.trajectory)
