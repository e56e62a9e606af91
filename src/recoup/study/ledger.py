"""The results that moves are made of, as arrays with room to grow.

Lengths depend on the number of results alone, so that whatever process makes a move computes with
the same shapes, and gets the same numbers to the last bit.
"""

from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.store.file import StudyFile, damage, unpacked
from recoup.store.layout import Shape
from recoup.store.rows import FOREIGN, MIRROR

SMALL = (64, 256, 1024, 4096)  # room for so many; above, four sizes for each power of two
CHUNK = 1000  # rows read at once
ALIGNMENT = 64  # bytes


class Results(NamedTuple):
    """Results in the order of telling, and the proposals that drew them, with rows to spare."""

    samples: tuple[np.ndarray, ...]  # [n]
    returns: np.ndarray  # [n], not a number where there is none
    proposal: np.ndarray  # [n] rows of means and stds
    means: np.ndarray  # [P, D]
    stds: np.ndarray  # [P, S]
    reference: tuple[np.ndarray, np.ndarray]  # mean and std that densities are relative to
    n: int  # results; what lies behind is room


class Ledger:
    """Results of a study, read from its file as far as they are needed."""

    def __init__(
        self,
        file: StudyFile,
        shape: Shape,
        batch: int,
        mirrored: bool = False,
        after: int = 0,
        foreign: bool = True,
    ) -> None:
        """Those behind the place `after`; with or without `foreign` ones, from elsewhere."""
        self._file, self._shape, self._batch = file, shape, batch
        self._mirrored, self._foreign = mirrored, foreign
        self.counted = np.zeros(0, np.int64)  # [n] place of each result in the order of telling
        self._last = after  # the last place that was looked at
        self._slots: dict[int, int] = {}  # rows of the proposals, by their ids
        self._samples = shape.arrays(SMALL[0])
        self._returns = np.full(SMALL[0], np.nan)
        self._proposal = np.zeros(SMALL[0], np.int32)
        self._means, self._stds = np.zeros((0, shape.dim)), np.ones((0, shape.stds))
        _, _, mean, std = file.one("proposals", "WHERE id = 0")
        self.reference = unpacked(mean), unpacked(std)  # the start, whatever else is there
        self.own = np.zeros(0)  # log-densities under the own proposals, of the first results
        self.mixture = np.zeros(0)  # and under the mixture of all that drew them, likewise

    def results(self, upto: int) -> Results:
        """The results up to the place `upto`, in room that depends on their number alone."""
        self._load(upto)
        n = int(np.searchsorted(self.counted, upto, "right"))
        space = room(n)
        slots = int(self._proposal[:n].max(initial=0)) + 1
        spare = max(_quarters(slots), _quarters(-(-space // self._batch)))
        self._means, self._stds = _grown(self._means, spare, 0.0), _grown(self._stds, spare, 1.0)
        returns = self._returns[:space]
        if n < len(self.counted):  # those told later take no part
            returns = np.where(np.arange(space) < n, returns, np.nan)
        return Results(
            samples=tuple(x[:space] for x in self._samples),
            returns=returns,
            proposal=self._proposal[:space],
            means=self._means[:spare],
            stds=self._stds[:spare],
            reference=self.reference,
            n=n,
        )

    def _load(self, upto: int) -> None:
        """Reads the results up to the place `upto` that have not been read yet."""
        if upto <= self._last:
            return
        own = f"AND id IN (SELECT id FROM asked WHERE kind != '{FOREIGN}')"
        places = self._file.rows(
            f"SELECT id, counted FROM told WHERE counted BETWEEN ? AND ? "
            f"{'' if self._foreign else own} ORDER BY counted",
            (self._last + 1, upto),
        )
        if self._mirrored:
            places = [row for place in places for row in self._pair(*place)]
        have = len(self.counted)
        self._reserve(room(have + len(places)))
        self.counted = np.append(self.counted, [place for _, place in places])
        for first in range(0, len(places), CHUNK):
            ids = [number for number, _ in places[first : first + CHUNK]]
            self._read(ids, have + first)
        self._last = upto

    def _pair(self, number: int, place: int) -> list[tuple[int, int]]:
        """Both trials of a mirrored pair side by side; the place is that of the one told last."""
        ((kind,),) = self._file.rows("SELECT kind FROM asked WHERE id = ?", (number,))
        first = number - 1 if kind == MIRROR else number
        return [(first, place - 1), (first + 1, place)]

    def _read(self, ids: list[int], row: int) -> None:
        """Puts the results of the trials `ids` into the rows from `row` on."""
        inside = f"WHERE id IN ({','.join(map(str, ids))})"
        told = {r[0]: r for r in self._file.read("told", inside)}
        asked = {r[0]: r for r in self._file.read("asked", inside)}
        if len(told) < len(ids) or len(asked) < len(ids):
            raise InputError(damage(self._file.path, "rows of trials are not there"))
        trajectories = {r[0]: r[1:] for r in self._file.read("trajectories", inside)}
        drew = dict.fromkeys(asked[number][2] for number in ids)  # in the order of telling
        self._read_proposals([proposal for proposal in drew if proposal not in self._slots])
        for i, number in enumerate(ids, row):
            self._proposal[i] = self._slots[asked[number][2]]
            value = told[number][3]
            self._returns[i] = np.nan if value is None else value
            if self._shape.horizon is None:
                self._samples[0][i] = np.frombuffer(asked[number][3], "<f8")
            elif number in trajectories:
                steps, content = trajectories[number]
                for array, part in zip(
                    self._samples[:3], self._shape.trajectory(steps, content), strict=True
                ):
                    array[i, :steps] = part
                self._samples[3][i] = steps

    def _read_proposals(self, ids: list[int]) -> None:
        inside = f"WHERE id IN ({','.join(map(str, ids))})"
        rows = {row[0]: row[2:] for row in self._file.read("proposals", inside)}
        if len(rows) < len(ids):
            raise InputError(damage(self._file.path, "rows of proposals are not there"))
        space = room(len(self._slots) + len(ids))
        self._means = _grown(self._means, space, 0.0)
        self._stds = _grown(self._stds, space, 1.0)
        for number in ids:
            mean, std = rows[number]
            slot = self._slots.setdefault(number, len(self._slots))
            self._means[slot], self._stds[slot] = unpacked(mean), unpacked(std)

    def _reserve(self, space: int) -> None:
        self._samples = tuple(_grown(x, space, 0) for x in self._samples)
        self._returns = _grown(self._returns, space, np.nan)
        self._proposal = _grown(self._proposal, space, 0)


def room(n: int) -> int:
    """Room for `n` results: few sizes, so that few programs are compiled."""
    return next((size for size in SMALL if size >= n), _quarters(n))


def _quarters(n: int) -> int:
    """The next number from `n` on among 1, 1.25, 1.5 and 1.75 times a power of two."""
    quarter = max((1 << (n - 1).bit_length()) // 8, 1)
    return -(-n // quarter) * quarter


def _grown(array: np.ndarray, space: int, value: Any) -> np.ndarray:
    """`array` with room for at least `space` rows, new ones filled with `value`."""
    if len(array) >= space:
        return array
    bigger = _aligned((space, *array.shape[1:]), array.dtype)
    bigger[: len(array)], bigger[len(array) :] = array, value
    return bigger


def _aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that JAX can use as it lies, where another would be copied."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(shape)
