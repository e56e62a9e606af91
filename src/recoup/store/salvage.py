"""Reading rows from the bytes of a damaged study file, page by page, without SQLite.

A row is taken if its checksum holds, wherever it is found: in a page that SQLite can still reach or
not, in the file or in its write-ahead log. Rows are written once, so that any copy will do. The
format is SQLite's own (table leaf cells, records, overflow chains).
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.store.place import LOG, beside
from recoup.store.records import Record, contents_of
from recoup.store.rows import CANCELLED, OWN, Contents
from recoup.store.schema import TABLES, checksum

LEAF = 13  # the type of a page that holds rows
DEFAULT_PAGE = 4096
SPARE = 60  # bytes that may lie between the rows of a page
MAGIC = b"SQLite format 3\0"
COLUMNS = {
    table: tuple(column.split()[1] == "REAL" for column in columns)
    for table, columns in TABLES.items()
}
COUNTS = [len(columns) + 2 for columns in COLUMNS.values()]  # of values, with id and checksum
HEADER = (min(COUNTS) + 1, 5 * max(COUNTS) + 1)  # bytes: its own length, one to five of each value
BEFORE = 5 + 9  # bytes of a row's length and id, at most

Tick = Callable[[int, int], None]
Rows = dict[str, dict[int, Record]]


def salvage(path: Path, tick: Tick = lambda done, of: None) -> Contents:
    """Every row that can still be read, by table and id; `tick` hears of pages read, and of all.

    What was taken out may still lie in a page: what waited in line and was asked since does not
    come back, nor the lease of what was told, or was cancelled.
    """
    found = contents_of(salvaged_records(path, tick))
    asked = {trial.theta.tobytes() for trial in found.asked.values() if trial.kind == OWN}
    queue = {n: row for n, row in found.queue.items() if row.theta.tobytes() not in asked}
    leases = {n: row for n, row in found.leases.items() if row.times > 1 or n not in found.told}
    ended = [e.content.get("trial") for e in found.events.values() if e.kind == CANCELLED]
    leases = {n: row._replace(until=None) if n in ended else row for n, row in leases.items()}
    return found._replace(queue=queue, leases=leases)


def salvaged_records(path: Path, tick: Tick = lambda done, of: None) -> Rows:
    """The same as the tables hold them, without their checksums."""
    file = path.read_bytes()
    log = beside(path, LOG)
    pages = Pages(file, log.read_bytes() if log.is_file() else b"")
    found: Rows = {table: {} for table in TABLES}
    strange, of = [], 2 * len(pages.images)
    for number, page in enumerate(pages.images, 1):
        tick(number, of)
        rows = [pages.row(page, offset) for offset in _cells(page, pages.size)]
        for row in rows:
            _take(found, row)
        if not rows or None in rows or not _covered(page, pages.size, rows):
            strange.append(page)
    for number, page in enumerate(strange, 1):  # nothing says where its rows begin: look for them
        tick(of - len(strange) + number, of)
        if id(page) not in pages.overflowing:
            for offset in _places(page):
                _take(found, pages.row(page, offset))
    return found


class Cell(NamedTuple):
    """A row found in a page."""

    table: str
    values: Record
    size: int  # bytes of it in the page


class Pages:
    """The pages of a file, and those of its log."""

    def __init__(self, file: bytes, log: bytes) -> None:
        self.size = _page_size(file)
        stored = [file[i : i + self.size] for i in range(0, len(file), self.size)]
        self._numbered: dict[int, list[bytes]] = {}
        for number, image in (*enumerate(stored, 1), *_frames(log, self.size)):
            self._numbered.setdefault(number, []).append(image)
        self.images = [image for images in self._numbered.values() for image in images]
        self.overflowing: set[int] = set()  # ids of the images that rows overflow into

    def row(self, page: bytes, start: int) -> Cell | None:
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
                    local = _local(length, self.size)
                    return Cell(*row, offset - start + local + 4 * (local < length))
        return None

    def _payloads(self, page: bytes, offset: int, length: int) -> Iterator[tuple[bytes, list[int]]]:
        """The bytes of a cell, with those that overflow; more than one where pages have copies."""
        local = _local(length, self.size)
        start = page[offset : offset + local]
        if local == length:
            if len(start) == length:
                yield start, []
            return
        (following,) = struct.unpack_from(">I", page, offset + local)
        for copy in (0, -1):
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


def _page_size(file: bytes) -> int:
    if file[:16] == MAGIC:
        size = struct.unpack_from(">H", file, 16)[0] if len(file) >= 18 else 0
        size = 65536 if size == 1 else size
        if size >= 512 and size & (size - 1) == 0:
            return size
    return DEFAULT_PAGE


def _frames(log: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """Page numbers and images in a write-ahead log, those of its present generation."""
    if len(log) < 32:
        return
    salts = log[16:24]
    for start in range(32, len(log) - size - 23, size + 24):
        if log[start + 8 : start + 16] == salts:
            yield struct.unpack_from(">I", log, start)[0], log[start + 24 : start + 24 + size]


def _cells(page: bytes, size: int) -> list[int]:
    """Where the rows of a page begin, as it says itself."""
    start = 100 if page[:16] == MAGIC else 0
    if len(page) < size or page[start] != LEAF:
        return []
    (count,) = struct.unpack_from(">H", page, start + 3)
    if start + 8 + 2 * count > size:
        return []
    return list(struct.unpack_from(f">{count}H", page, start + 8))


def _places(page: bytes) -> Iterator[int]:
    """Where rows may begin in a page that does not say it.

    Few of all: behind its length and its id, a row has the length of its header, which is small,
    and a zero, since SQLite keeps the id elsewhere.
    """
    content = np.frombuffer(page, np.uint8)
    lengths, zeros = content[:-1], content[1:] == 0
    headers = np.flatnonzero((lengths >= HEADER[0]) & (lengths <= HEADER[1]) & zeros)
    for header in headers.tolist():
        for start in range(max(header - BEFORE, 0), header - 1):
            with suppress(IndexError):
                if _varint(page, _varint(page, start)[1])[1] == header:
                    yield start


def _covered(page: bytes, size: int, rows: list[Cell | None]) -> bool:
    """Whether the rows fill the part of the page that holds rows, so that none was overlooked."""
    start = 100 if page[:16] == MAGIC else 0
    (content,) = struct.unpack_from(">H", page, start + 5)
    return size - content - sum(row.size for row in rows if row) < SPARE


def _take(found: Rows, row: Cell | None) -> None:
    """Keeps a row; of the few that are replaced, the newest."""
    if row is None:
        return
    table, values, _ = row
    kept = found[table]
    before = kept.setdefault(values[0], values)
    if table in ("told", "moves"):  # put right, and made again: the newest, by its time
        kept[values[0]] = max(before, values, key=lambda row: row[-1] or 0.0)
    elif table == "counters":
        kept[0] = max(before, values, key=lambda row: (row[2] + row[3], row[6]))
    elif table == "leases":  # handed out again: the last time
        kept[values[0]] = max(before, values, key=lambda row: row[-1] or 0)
    elif table == "mixture":
        found[table] = {max(kept): kept[max(kept)]}


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
