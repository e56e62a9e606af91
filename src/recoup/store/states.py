"""What the rows of a study file say together: its version, its dates, what counts for nothing."""

import hashlib
from collections.abc import Iterable

from recoup.store import codec
from recoup.store.errors import sensible
from recoup.store.places import together_in
from recoup.store.queries import ROWS_READ, Queries
from recoup.store.rows import AMENDED, CREATED, DROP, AskedColumns, Dates, ToldColumns
from recoup.store.schema import TABLES, is_sound

DERIVED = ("own", "mixture")  # follow from the others
LARGE = ("asked", "trajectories", "proposals", "moves")  # grow by rows alone, which may be long;
# where one of theirs is replaced, an event says so


class States(Queries):
    """The reads of a `Store` that take several rows together."""

    def version(self) -> str:
        """A short text that is another as soon as anything in the file is; inside `reading()`.

        The same in every process that sees the same state. Counters hold how many trials there are,
        so that of tables that only grow the last row is enough.
        """
        known = []
        for table in filter(self._file.has, TABLES):
            if table in DERIVED:
                continue
            query = f"SELECT COUNT(*), MAX(id), SUM(crc) FROM {table}"
            if table in LARGE:
                query = f"SELECT id, crc FROM {table} ORDER BY id DESC LIMIT 1"
            rows = self._file.rows(query)
            if table in LARGE or rows[0][0]:
                known += [(table, *row) for row in rows]
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]

    def dates(self) -> Dates:
        """When a study was made, asked, told and moved."""
        query = (
            "SELECT (SELECT MIN(asked_at) FROM asked), (SELECT MAX(asked_at) FROM asked), "
            "(SELECT MAX(told_at) FROM told)"
        )
        rows = self._file.rows(query)[0]
        first, again, told = (x if isinstance(x, float) else None for x in rows)
        created = [event.at for event in self.events(CREATED)]
        last = self.last_move()
        made = last.made if last.id else None
        return Dates(min(created, default=None), first, again, told, made)

    # -- columns --

    def asked_columns(self, ids: Iterable[int]) -> AskedColumns:
        """Trials of `ids` by number, as arrays; those that are not there are left out."""
        return codec.asked_columns(self._by_id("asked", tuple, ids))

    def told_columns(self, since: float | None = None) -> ToldColumns:
        """All results by trial, as arrays, or those that were told since a time; no checksums.

        To find what is to be shown, which is then read by `told_values`.
        """
        query = 'SELECT id, "return", told_at FROM told WHERE told_at >= ? OR ? IS NULL ORDER BY id'
        with sensible(self.where):
            return codec.told_columns(self._file.rows(query, (since, since)))

    def told_values(self, ids: Iterable[int]) -> ToldColumns:
        """Results of `ids` by trial, as arrays, once their checksums are known to hold."""
        return codec.told_columns(self._by_id("told", codec.value_of, ids))

    # -- results that were put right --

    def dropped(self) -> set[int]:
        """The trials whose results count for nothing: those dropped, and the others of their pairs.

        Whoever reads results asks here. An event says so, the last that amends a trial.
        """
        amended = {event.content["trial"]: event.content for event in self.events(AMENDED)}
        return {
            one
            for number, content in amended.items()
            if content[DROP]
            for one in self.together(number)
        }

    def together(self, number: int) -> list[int]:
        """The trials that are one draw with a trial: itself, or the two of a mirrored pair."""
        near = self.asked([number - 1, number, number + 1])
        return together_in({trial.id: trial for trial in near}, number)

    def place_of(self, number: int) -> int | None:
        """The place of a result among those that moves are made of: of its pair, if it has one."""
        rows = self.results(self.together(number)).values()
        return max((row.counted for row in rows if row.counted is not None), default=None)

    def told_first(self) -> dict[int, float]:
        """When results that were put right were told first, by trial: there they stand in order."""
        events = reversed(self.events(AMENDED))
        return {event.content["trial"]: event.content["told_at"] for event in events}

    def maker(self, proposal: int | None) -> int:
        """The move that made a proposal, or was made again in place of the one that did; else 0."""
        rows = self._file.rows("SELECT id FROM moves WHERE proposal = ?", (proposal,))
        if rows:
            return int(rows[0][0])
        again = (event.content["moves"].items() for event in self.events(AMENDED))
        return max((int(n) for moves in again for n, old in moves if old == proposal), default=0)

    def last_amended(self) -> int:
        """The number of the last event that put a result right; 0 where there is none.

        Where it is another than before, results and moves may be others: what a process remembers
        of them is of before.
        """
        query = "SELECT COALESCE(MAX(id), 0) FROM events WHERE kind = ?"
        return int(self._file.rows(query, (AMENDED,))[0][0])

    # -- whether the file is sound --

    def integrity(self) -> str | None:
        """What SQLite finds wrong with the pages of the file; None where they are in order."""
        ((answer,), *more) = self._file.rows("PRAGMA integrity_check")
        if answer == "ok":
            return None
        return f"{str(answer).splitlines()[-1]}{', and more' if more else ''}"

    def damaged_rows(self, chunk: int = ROWS_READ) -> tuple[int, list[str]]:
        """How many rows there are, and "table id" of each whose checksum does not hold."""
        count, wrong = 0, []
        for table in filter(self._file.has, TABLES):
            last = -1
            query = f"SELECT * FROM {table} WHERE id > ? ORDER BY id LIMIT {int(chunk)}"
            while some := self._file.rows(query, (last,)):
                count, last = count + len(some), some[-1][0]
                wrong += [f"{table} {r[0]}" for r in some if not is_sound(table, r)]
        return count, wrong
