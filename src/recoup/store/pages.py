"""The pages of an SQLite file and of its write-ahead log, and the rows in them, without SQLite.

The format is SQLite's own (https://sqlite.org/fileformat2.html): trees of pages, records, overflow
chains, and a log of pages that were committed and not yet written to the file.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from recoup.store.codec import Record
from recoup.store.schema import LATER, TABLES, checksum

LEAF, INTERIOR = 13, 5  # the types of pages that hold the rows of a table, and where they lie
KINDS = ("table", "index", "view")  # of what the first page lists
DEFAULT_PAGE = 4096
MAGIC = b"SQLite format 3\0"
LOG_HEADER, FRAME_HEADER = 32, 24  # bytes, in a log
COLUMNS = {
    table: tuple(column.split()[1] == "REAL" for column in columns)
    for table, columns in TABLES.items()
}
COUNTS = [len(columns) + 2 for columns in COLUMNS.values()]  # of values, with id and checksum
HEADER = (min(COUNTS) + 1, 5 * max(COUNTS) + 1)  # bytes: its own length, one to five of each value
ROW_HEADER = 5 + 9  # bytes of a row's length and id, at most
ROOTS = {table: 2 + i for i, table in enumerate(t for t in TABLES if t not in LATER)}  # as made


class PageRow(NamedTuple):
    """A row found in a page."""

    table: str
    values: Record


class Child(NamedTuple):
    """A page below another: it holds the rows whose ids are at most `last`."""

    page: int
    last: int


class Pages:
    """The pages of a file as they were committed last, and older copies of them."""

    def __init__(self, file: bytes, log: bytes) -> None:
        self.size = _page_size(file)
        stored = [file[i : i + self.size] for i in range(0, len(file), self.size)]
        self._numbered: dict[int, list[bytes]] = {}  # the newest last
        committed, self.unfinished, self.torn = _committed(log, self.size)
        for number, image in (*enumerate(stored, 1), *committed):
            self._numbered.setdefault(number, []).append(image)
        self.newest = {number: images[-1] for number, images in self._numbered.items()}
        self.overflowing: set[int] = set()  # ids of the images that rows overflow into

    @property
    def images(self) -> list[bytes]:
        """All copies of all pages, the newest of each first."""
        older = [image for images in self._numbered.values() for image in images[-2::-1]]
        return [*self.newest.values(), *older]

    def roots(self) -> dict[str, int]:
        """Where the tree of each table begins, as the first page says; 0 where nobody knows.

        Where that page is not whole, as files are made. A table that is not there is left out,
        but for those that every file has: the name of one that is lacking was destroyed.
        """
        first, found, used, strange = self.newest.get(1, b""), {}, 0, False
        with suppress(IndexError, struct.error, TypeError, UnicodeDecodeError, ValueError):
            for start in cells(first, self.size):
                length, offset = _varint(first, start)
                _, offset = _varint(first, offset)
                kind, name, _, root, _ = _record(first[offset : offset + length]) or []
                used += self.extent(first, start)
                strange |= kind not in KINDS or (kind == "table" and name not in TABLES)
                if kind == "table" and name in TABLES:
                    found[name] = int(root)
            often = Counter(found.values())
            found = {table: root for table, root in found.items() if often[root] == 1}
            whole = is_kind(first, self.size, LEAF) and self.is_full(first, used)
            if whole and not strange and ROOTS.keys() <= found.keys() and len(often) == len(found):
                return found
        return {table: ROOTS.get(table, 0) for table in TABLES} | found

    def row(self, page: bytes, start: int) -> PageRow | None:
        """The row in the cell that begins at `start`, if there is one and its checksum holds."""
        with suppress(IndexError, struct.error, UnicodeDecodeError, ValueError):
            length, offset = _varint(page, start)
            number, offset = _varint(page, offset)
            if not 4 <= length <= 2**31:
                return None
            for payload, through in self._payloads(page, offset, length):
                row = _known(number, _record(payload))
                if row is not None:
                    self.overflowing.update(through)
                    return PageRow(*row)
        return None

    def extent(self, page: bytes, start: int) -> int:
        """How many bytes of a page the cell of a row takes that begins at `start`, as it says."""
        with suppress(IndexError):
            length, offset = _varint(page, start)
            _, offset = _varint(page, offset)
            local = _local(length, self.size)
            return offset - start + local + 4 * (local < length)
        return 0

    def children(self, page: bytes, last: int) -> list[Child]:
        """The pages below a page whose rows have ids up to `last`; none where it is not whole."""
        found, size = [], 0
        with suppress(IndexError, struct.error):
            for offset in cells(page, self.size, INTERIOR):
                (below,) = struct.unpack_from(">I", page, offset)
                key, end = _varint(page, offset + 4)
                found.append(Child(below, key))
                size += end - offset
            if found and self.is_full(page, size):
                (below,) = struct.unpack_from(">I", page, _head(page) + 8)
                return [*found, Child(below, last)]
        return []

    def is_full(self, page: bytes, used: int) -> bool:
        """Whether cells of `used` bytes, with what a page says is free, fill it to its end.

        Where they do, no cell was overlooked.
        """
        with suppress(struct.error):
            at, _, content, free = struct.unpack_from(">HHHB", page, _head(page) + 1)
            last = 0
            while at > last:  # in order, so that it ends
                last, (at, size) = at, struct.unpack_from(">HH", page, at)
                free += size
            return not at and (content or 65536) + used + free == self.size
        return False

    def _payloads(self, page: bytes, offset: int, length: int) -> Iterator[tuple[bytes, list[int]]]:
        """The bytes of a cell, with those that overflow; more than one where pages have copies."""
        local = _local(length, self.size)
        start = page[offset : offset + local]
        if local == length:
            if len(start) == length:
                yield start, []
            return
        (following,) = struct.unpack_from(">I", page, offset + local)
        for copy in (-1, 0):
            content, next_page = bytearray(start), following
            through: list[int] = []
            while next_page and len(content) < length:
                images = self._numbered.get(next_page)
                if images is None or len(through) > len(self._numbered):  # a circle
                    break
                image = images[copy]
                through.append(id(image))
                content += image[4 : 4 + length - len(content)]
                (next_page,) = struct.unpack_from(">I", image)
            if len(content) == length:
                yield bytes(content), through


def is_kind(page: bytes, size: int, kind: int) -> bool:
    """Whether a page is all there, and says to be of a kind."""
    return len(page) == size and page[_head(page)] == kind


def cells(page: bytes, size: int, kind: int = LEAF) -> list[int]:
    """Where the cells of a page begin, as it says itself; none where it is of another kind."""
    start = _head(page)
    if not is_kind(page, size, kind):
        return []
    (count,) = struct.unpack_from(">H", page, start + 3)
    begin = start + (8 if kind == LEAF else 12)
    if begin + 2 * count > size:
        return []
    return list(struct.unpack_from(f">{count}H", page, begin))


def places(page: bytes) -> Iterator[int]:
    """Where rows may begin in a page that does not say it.

    Few of all: after its length and its id, a row has the length of its header, which is small,
    and a zero, since SQLite keeps the id elsewhere.
    """
    content = np.frombuffer(page, np.uint8)
    lengths, zeros = content[:-1], content[1:] == 0
    headers = np.flatnonzero((lengths >= HEADER[0]) & (lengths <= HEADER[1]) & zeros)
    for header in headers.tolist():
        for start in range(max(header - ROW_HEADER, 0), header - 1):
            with suppress(IndexError):
                if _varint(page, _varint(page, start)[1])[1] == header:
                    yield start


def _page_size(file: bytes) -> int:
    if file[:16] == MAGIC:
        size = struct.unpack_from(">H", file, 16)[0] if len(file) >= 18 else 0
        size = 65536 if size == 1 else size
        if size >= 512 and size & (size - 1) == 0:
            return size
    return DEFAULT_PAGE


def _head(page: bytes) -> int:
    """Where the header of a page begins: in the first, after that of the file."""
    return 100 if page[:16] == MAGIC else 0


# -- the log --


def _committed(log: bytes, size: int) -> tuple[list[tuple[int, bytes]], bool, bool]:
    """Page numbers and images in a log, up to the last that was committed; whether others follow.

    Those are of a transaction that was given up, or cut short, and so has never happened; or of one
    whose end is damaged, as nobody can tell. Also whether one in between is lost, so that of a page
    only an older copy is left, and nobody knows of which.
    """
    if len(log) < LOG_HEADER + FRAME_HEADER + size:
        return [], False, False
    words = "<I" if log[3] == 0x82 else ">I"  # how checksums read what they are of
    whole = _log_checksum(log[:24], (0, 0), words) == struct.unpack_from(">II", log, 24)
    salts = log[16:24] if whole else log[LOG_HEADER + 8 : LOG_HEADER + 16]  # of this generation
    step = FRAME_HEADER + size
    starts = range(LOG_HEADER, len(log) - step + 1, step)
    frames = [start for start in starts if log[start + 8 : start + 16] == salts]
    ends = (i for i in reversed(range(len(frames))) if _is_commit(log, frames[i], step, words))
    count = next(ends, -1) + 1
    committed = [
        (struct.unpack_from(">I", log, start)[0], log[start + FRAME_HEADER : start + step])
        for start in frames[:count]
    ]
    torn = count > 0 and frames[count - 1] != starts[count - 1]  # one in between is not known
    return committed, count < len(frames), torn


def _is_commit(log: bytes, start: int, step: int, words: str) -> bool:
    """Whether the frame at `start` ends a transaction, and fits the one before it."""
    if log[start + 4 : start + 8] == bytes(4):
        return False
    before = 24 if start == LOG_HEADER else start - step + 16
    found = struct.unpack_from(">II", log, before)
    for content in (log[start : start + 8], log[start + FRAME_HEADER : start + step]):
        found = _log_checksum(content, found, words)
    return found == struct.unpack_from(">II", log, start + 16)


def _log_checksum(content: bytes, before: tuple[int, int], words: str) -> tuple[int, int]:
    """SQLite's running checksum of a log."""
    one, other = before
    numbers = np.frombuffer(content, words.replace("I", "u4")).tolist()
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + other) & 0xFFFFFFFF
        other = (other + odd + one) & 0xFFFFFFFF
    return one, other


# -- rows --


def _known(number: int, values: list[Any] | None) -> tuple[str, Record] | None:
    """The table that a record is of, and its row, if its checksum holds for one."""
    if values is None:
        return None
    for table, reals in COLUMNS.items():
        if len(values) == len(reals) + 2:
            body = [
                float(value) if real and isinstance(value, int) else value
                for value, real in zip(values[1:-1], reals, strict=True)
            ]
            row = (number, *body)
            if checksum(table, row) == values[-1]:
                return table, row
    return None


def _record(payload: bytes) -> list[Any] | None:
    """The values of a record."""
    header, offset = _varint(payload, 0)
    if header > len(payload):
        return None
    kinds = []
    while offset < header:
        kind, offset = _varint(payload, offset)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, offset = _value(payload, offset, kind)
        values.append(value)
    return values if offset == len(payload) else None


def _value(payload: bytes, offset: int, kind: int) -> tuple[Any, int]:
    """One value of a record, by SQLite's serial types."""
    if kind == 0:
        return None, offset
    if kind in (8, 9):
        return kind - 8, offset
    if kind == 7:
        return struct.unpack_from(">d", payload, offset)[0], offset + 8
    if kind <= 6:
        length = (0, 1, 2, 3, 4, 6, 8)[kind]
        content = payload[offset : offset + length]
        return int.from_bytes(content, "big", signed=True), offset + length
    if kind < 12:
        raise ValueError("a serial type that is not used")
    length = (kind - 12) // 2
    content = payload[offset : offset + length]
    if len(content) < length:
        raise IndexError
    return (content.decode() if kind % 2 else content), offset + length


def _varint(content: bytes, offset: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for i in range(8):
        byte = content[offset + i]
        value = value << 7 | byte & 127
        if byte < 128:
            return value, offset + i + 1
    return value << 8 | content[offset + 8], offset + 9


def _local(length: int, size: int) -> int:
    """How many bytes of a row of `length` lie in its own page, the rest overflows."""
    if length <= size - 35:
        return length
    least = (size - 12) * 32 // 255 - 23
    local = least + (length - least) % (size - 4)
    return local if local <= size - 35 else least
