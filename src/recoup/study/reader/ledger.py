"""The results that moves are made of, as arrays with room to grow.

Lengths depend on the number of results alone, so that whatever process makes a move computes with
the same shapes, and gets the same numbers to the last bit.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Dtype
from recoup.core.types import Given, Pytree
from recoup.store.errors import Damaged, damage
from recoup.store.layout import Layout
from recoup.store.protocol import Storage
from recoup.store.rows import MIRROR, MOVED, START, Asked
from recoup.study.space.charts import Elsewhere, chart_of
from recoup.study.space.contexts import context_of
from recoup.study.space.goals import turned
from recoup.study.space.limits import Limits

FIRST_ROOM, DOUBLED = 64, 4096  # room from the first to the second by doubling, above in quarters
FIRST = (FIRST_ROOM, 512)  # room that a study begins with, by the size of its samples
FREE_ROOM = 2**18  # numbers that cost a move nothing, empty or not
ROWS_READ = 1000  # rows read at once
ALIGNMENT = 64  # bytes


class Results(NamedTuple):
    """Results in the order of telling, and the proposals that drew them, with rows to spare."""

    samples: tuple[np.ndarray, ...]  # [n]
    returns: np.ndarray  # [n], not a number where there is none
    also: np.ndarray  # [n, A] the numbers that have limits, likewise
    context: np.ndarray  # [n, C] what was known before each trial began, likewise
    proposal: np.ndarray  # [n] rows of `blocks`
    outside: np.ndarray  # [n] those that lie outside of the study's bounds, at theta = 0
    blocks: np.ndarray  # [P, K] the proposals
    charts: np.ndarray  # [P] the bounds under which each is Gaussian; 0: those of the study
    imported: np.ndarray  # [P] those that are from elsewhere
    order: np.ndarray  # [P] larger where one is newer; those from elsewhere are the oldest
    reference: np.ndarray  # [K] the proposal that densities are relative to
    n: int  # how many results there are; the rows after them are empty


class AsTold(NamedTuple):
    """How results were told: times `sign`, larger ones are better; what has limits beside them."""

    sign: float = 1.0
    limits: Limits = Limits()


class Placed(NamedTuple):
    """What was made of the first results for any candidate, so that it is not made again."""

    n: int  # of so many results
    mixture: np.ndarray  # from these densities
    made: Pytree


class Ledger:
    """Results of a study, read from its file as far as they are needed."""

    def __init__(
        self,
        store: Storage,
        layout: Layout,
        batch: int,
        *,
        mirrored: bool = False,
        after: int = 0,
        foreign: bool = True,
        elsewhere: Sequence[Elsewhere] = (),
        told: AsTold = AsTold(),  # noqa: B008  a value
    ) -> None:
        """The results after the place `after`; with or without `foreign` ones, from elsewhere.

        `told` says how they were told; what they are worth is kept so that larger is better.

        `elsewhere` are bounds under which some of them were drawn, if not the study's own: thetas
        are kept in the latent space of what drew them.
        """
        self.charts = [there.chart for there in elsewhere]
        self._homes = [there.home for there in elsewhere]
        self._store, self._layout, self._batch = store, layout, batch
        self._mirrored, self._foreign = mirrored, foreign
        self.sign, self.limits = told
        self.counted = np.zeros(0, np.int64)  # [n] place of each result in the order of telling
        self._last = after  # the last place that was looked at
        self._slots: dict[int, int] = {}  # rows of the proposals, by their ids
        self._first = first_room(sum(x.size for x in layout.arrays(1)))
        self._samples = layout.arrays(self._first)
        self._returns = np.full(self._first, np.nan)
        self._also = np.full((self._first, len(self.limits.names)), np.nan)
        self._of_context: list[str] = []  # its names, by the first result that has any
        self._context = np.full((self._first, 0), np.nan)
        self._proposal = np.zeros(self._first, np.int32)
        self._outside = np.zeros(self._first, bool)
        self.reference = store.proposals([0])[0].numbers  # the start, whatever else is there
        self._blocks = np.zeros((0, self.reference.size))
        self._charts = np.zeros(0, np.int32)
        self._imported = np.zeros(0, bool)
        self._numbers = np.zeros(0, np.int64)  # in the order in which they were made
        self.own = np.zeros(0)  # log-densities under the own proposals, of the first results
        self.mixture = np.zeros(0)  # and under the mixture of all that drew them, likewise
        self.placed: Placed | None = None

    @property
    def dim(self) -> int:
        """How many means a proposal has."""
        return self._layout.dim

    def results(self, upto: int) -> Results:
        """The results up to the place `upto`, in room that depends on their number alone."""
        self._load(upto)
        n = int(np.searchsorted(self.counted, upto, "right"))
        space = room(n, self._first)
        self._reserve(space)
        slots = int(self._proposal[:n].max(initial=0)) + 1
        spare = max(_quarters(slots), _quarters(-(-space // self._batch)))
        self._reserve_proposals(spare)
        returns = self._returns[:space]
        if n < len(self.counted):  # those told later take no part
            returns = np.where(np.arange(space) < n, returns, np.nan)
        return Results(
            samples=tuple(x[:space] for x in self._samples),
            returns=returns,
            also=self._also[:space],
            context=self._context[:space],
            proposal=self._proposal[:space],
            outside=self._outside[:space],
            blocks=self._blocks[:spare],
            charts=self._charts[:spare],
            imported=self._imported[:spare],
            order=self._order(slots, spare),
            reference=self.reference,
            n=n,
        )

    def _order(self, slots: int, spare: int) -> np.ndarray:
        """The ranks of the first so many proposals by age, with rows to spare `[P]`."""
        found = np.zeros(spare, np.int32)
        ages = np.lexsort((self._numbers[:slots], ~self._imported[:slots]))
        found[ages] = np.arange(slots)
        return found

    def _load(self, upto: int) -> None:
        """Reads the results up to the place `upto` that have not been read yet."""
        if upto <= self._last:
            return
        places = self._store.counted(self._last, upto, self._foreign)
        if self._mirrored:
            places = [row for place in places for row in self._pair(*place)]
        have = len(self.counted)
        self._reserve(room(have + len(places), self._first))
        self.counted = np.append(self.counted, [place for _, place in places])
        for first in range(0, len(places), ROWS_READ):
            ids = [number for number, _ in places[first : first + ROWS_READ]]
            self._read(ids, have + first)
        self._last = upto

    def _pair(self, number: int, place: int) -> list[tuple[int, int]]:
        """Both trials of a mirrored pair side by side; the place is that of the one told last."""
        (trial,) = self._store.asked([number])
        first = number - 1 if trial.kind == MIRROR else number
        return [(first, place - 1), (first + 1, place)]

    def _read(self, ids: list[int], row: int) -> None:
        """Puts the results of the trials `ids` into the rows from `row` on."""
        told = self._store.results(ids)
        asked = {trial.id: trial for trial in self._store.asked(ids)}
        if len(told) < len(ids) or len(asked) < len(ids):
            raise Damaged(damage(self._store.where, "rows of trials are not there"))
        in_actions = self._layout.horizon is not None
        trajectories = self._store.trajectories(ids) if in_actions else {}
        drew = dict.fromkeys(_drawn_by(asked[number]) for number in ids)  # in the order of telling
        self._read_proposals([drawn for drawn in drew if drawn not in self._slots])
        for i, number in enumerate(ids, row):
            self._proposal[i] = self._slots[_drawn_by(asked[number])]
            value = told[number].told.value
            self._returns[i] = np.nan if value is None else turned(value, self.sign)
            if known := told[number].told.also:
                self._also[i] = [known.get(name, np.nan) for name in self.limits.names]
                self._put_context(i, context_of(known))
            if not in_actions:
                self._samples[0][i], self._outside[i] = self._home(i, asked[number].theta)
            elif number in trajectories:
                self._put_trajectory(i, trajectories[number])

    def _put_context(self, i: int, context: Mapping[str, float]) -> None:
        """Puts what was known before a trial, if it has the names that the first had."""
        if context and not self._of_context:
            self._of_context = sorted(context)
            self._context = np.full((len(self._returns), len(context)), np.nan)
        if context and sorted(context) == self._of_context:
            self._context[i] = [context[name] for name in self._of_context]

    def _home(self, i: int, theta: np.ndarray) -> tuple[np.ndarray, bool]:
        """A theta in the study's latent space, and whether it lies outside of its bounds."""
        number = self._charts[self._proposal[i]]
        if not number:
            return theta, False
        found, inside = self._homes[number - 1](theta[None])
        return found[0], not inside[0]

    def _put_trajectory(self, i: int, rows: np.ndarray) -> None:
        features, actions, rewards = self._layout.trajectory(rows)
        parts = (features, actions, turned(rewards, self.sign))
        for array, part in zip(self._samples[:3], parts, strict=True):
            array[i, : len(rows)] = part
        self._samples[3][i] = len(rows)

    def _read_proposals(self, ids: list[int]) -> None:
        rows = self._store.proposals(ids)
        space = room(len(self._slots) + len(ids))
        self._reserve_proposals(space)
        for number in ids:
            slot = self._slots.setdefault(number, len(self._slots))
            self._blocks[slot] = rows[number].numbers
            self._charts[slot] = chart_of(rows[number].family)
            self._imported[slot] = rows[number].origin not in (START, MOVED)
            self._numbers[slot] = number
            if self._charts[slot] > len(self._homes):
                raise Damaged(damage(self._store.where, "a distribution of unknown bounds"))

    def _reserve_proposals(self, space: int) -> None:
        self._blocks = _grown(self._blocks, space, self.reference)
        self._charts = _grown(self._charts, space, 0)
        self._imported = _grown(self._imported, space, False)
        self._numbers = _grown(self._numbers, space, 0)

    def _reserve(self, space: int) -> None:
        self._samples = tuple(_grown(x, space, 0) for x in self._samples)
        self._returns = _grown(self._returns, space, np.nan)
        self._also = _grown(self._also, space, np.nan)
        self._context = _grown(self._context, space, np.nan)
        self._proposal = _grown(self._proposal, space, 0)
        self._outside = _grown(self._outside, space, False)


def _drawn_by(trial: Asked) -> int:
    assert trial.proposal is not None  # what has a place among results was drawn by a proposal
    return trial.proposal


def room(n: int, least: int = FIRST_ROOM) -> int:
    """Room for `n` results: few sizes, so that few programs are compiled."""
    return max(least, 1 << (n - 1).bit_length()) if n <= DOUBLED else _quarters(n)


def first_room(width: int) -> int:
    """Room to begin with, for samples of so many numbers: more than few, where they are small."""
    most = 1 << max(FREE_ROOM // width, 1).bit_length() - 1
    return min(max(most, FIRST[0]), FIRST[-1])


def _quarters(n: int) -> int:
    """The next number from `n` on among 1, 1.25, 1.5 and 1.75 times a power of two."""
    quarter = max((1 << (n - 1).bit_length()) // 8, 1)
    return -(-n // quarter) * quarter


def _grown(array: np.ndarray, space: int, value: Given) -> np.ndarray:
    """`array` with room for at least `space` rows, new ones filled with `value`."""
    if len(array) >= space:
        return array
    bigger = _aligned((space, *array.shape[1:]), array.dtype)
    bigger[: len(array)], bigger[len(array) :] = array, value
    return bigger


def _aligned(shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
    """An array that JAX can use as it lies, where another would be copied."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(shape)
