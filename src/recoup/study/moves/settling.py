"""When a study moves: after every batch of results, each time from a fixed set of them.

The life of a trial in the file is drawn in CONTRIBUTING.md.

So a move is made of all results whose place lies at or before its mark (of a window: after the
mark of an earlier move), whatever was told since; whichever process makes it finds the same. It
begins at the newest distribution that results have come from (`begin`), which is stored with it.

A result that is amended, by whichever process, replaces rows: what is remembered of results is
dropped then, and a move that was being made of them is made anew.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from recoup.store.errors import Damaged, NoRoom, damage
from recoup.store.places import fills, partner_of
from recoup.store.protocol import Storage
from recoup.store.rows import BEGUN, FOREIGN, Made, Move
from recoup.store.turns import Turn
from recoup.study.moves.again import SAME_MOVE, apart, mark_of, may_be_another, not_the_one
from recoup.study.reader.ledger import Ledger
from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import RUN

if TYPE_CHECKING:
    from recoup.study.moves.steps import StudyMove


NONE: Mapping[int, int] = {}
MOVE_WAIT = 2.0  # seconds, at most, for another process or thread that makes a move


Job = Callable[[], bool]


def at_once(job: Job) -> bool:
    """What a job gives, done by the thread that asks for it."""
    return job()


class KeptResults:
    """All results of a study, kept from one use to the next."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._store: Storage = opened.store
        self.ledger: Ledger | None = None
        self._densities = 0  # the move whose densities it has
        self._amended = 0  # the last amendment that it knows of

    def now(self) -> Ledger:
        """All results, and their densities as the last move left them; inside `reading()`."""
        amended = self._store.last_amended()
        if self.ledger is None or amended != self._amended:
            self.ledger, self._densities = self._opened.ledger(), 0
            self._amended = amended
        last = self._store.last_move().id
        if last != self._densities:
            self.ledger.own, self.ledger.mixture = self._store.densities(last)
            self._densities = last
        return self.ledger

    def moved(self, number: int, made: "StudyMove") -> None:
        """Keeps the densities of a move that was made of them."""
        assert self.ledger is not None
        self.ledger.own, self.ledger.mixture, self._densities = made.own, made.mixture, number


class MoveMaker:
    """Makes the moves that are due, and keeps what the next one starts from.

    Of several threads one makes them, and the others read meanwhile: results are kept for each of
    the two. Nobody waits for the turn to move while it reads or writes, so that none waits for one
    that waits for it.
    """

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.store: Storage = opened.store
        self._turn = Turn()
        self._moves, self._looks = KeptResults(opened), KeptResults(opened)
        self._another: int | None = None  # the move that what was given did not make; 0: none
        self._warned = False
        self.writing: Callable[[Job], bool] = at_once  # what does the part that writes a move

    def catch_up(self) -> None:
        """Makes the moves that a stop has left due, as a study is opened; never fails.

        What is in their way is said by the next `ask` or `tell`. A run makes its own: it shows and
        tests each. Where a part that was given seems to be another, they wait for those too.
        """
        with suppress(Exception):  # every one: a part of the user's may raise anything
            if RUN in self.opened.settings or self.opened.until_move() or self.store.read_only:
                return
            if not self._by_another():
                self.settle(0.0)

    def settle(self, wait: float = MOVE_WAIT) -> None:
        """Makes the moves that the results told so far allow, unless another is at it.

        None where a part of the method is missing: they are made once it is given again. What
        others tell meanwhile is left to them: no process works for all. One that finds another at
        work waits for it a little, so that results do not run ahead of moves, and then goes on.
        """
        if self.store.read_only or self.opened.missing:
            return
        for _ in range(self.store.counters().fresh // self.opened.batch):
            with self._turn.taken(wait) as mine, self._alone(mine, wait) as alone:
                if not alone:
                    return
                self._by_another()
                with self._results_stay():
                    self._move()

    def _by_another(self) -> bool:
        """Whether something else than a part that was given made the newest move; warns once.

        That is made again before the first move that is made here, and only with parts of the
        user's. What is in its way is said by the next move.
        """
        if self._another is None:
            self._another = 0
            with suppress(Exception):  # every one, likewise
                self._another = self._other_move()
        if self._another and not self._warned:
            warnings.warn(
                f"{not_the_one(self.opened, self._another)}: give that one to go on as before, or "
                "`fork` the study to go on with another method.",
                stacklevel=2,
            )
            self._warned = True
        return bool(self._another)

    def _other_move(self) -> int:
        """The newest move, where it is not what its results make with what was given; else 0."""
        if not may_be_another(self.opened):
            return 0
        with self.store.reading():
            last = self.store.last_move()
            if not last.id:
                return 0
            ledger = self._results_of(last.begun, self._moves)
            ledger.results(last.counted)  # read while all of them are of one state of the file
            pair = (self.store.last_move(last.begun), last)
            before, stored = (mark_of(self.opened, move) for move in pair)
        return 0 if apart(self.opened, ledger, before, stored) <= SAME_MOVE else last.id

    @contextmanager
    def _results_stay(self) -> Iterator[None]:
        """Says of a move for which there is no room that the results before it are kept."""
        try:
            yield
        except NoRoom as wrong:
            raise NoRoom(
                wrong.what,
                "what was told is kept, and the move that is due was not made; free some space, "
                "and the next `ask` or `tell` makes it.",
            ) from None

    @contextmanager
    def _alone(self, mine: bool, wait: float) -> Iterator[bool]:
        """Whether it is this thread's turn, and no other process makes a move meanwhile."""
        if not mine:
            yield False
            return
        with self.store.alone(wait) as alone:
            yield alone

    def all_results(self) -> Ledger:
        """All results, and their densities as the last move left them; inside `reading()`."""
        return self._looks.now()

    def next_results(self) -> Ledger:
        """What the next move will be made of, as far as it was told; inside `reading()`."""
        return self._results_of(self.store.last_move().id)

    def _move(self) -> None:
        """Makes the next move, if one is due; another process may make it too: it is the same."""
        from recoup.study.moves.steps import Before
        from recoup.study.moves.study_move import make_move

        with self.store.reading():
            if self.opened.until_move():
                return
            before = self.store.last_move()
            upto, new, late = self._next_mark(before)
            begun = begin(self.opened, before, upto)
            (drawn,) = self.store.proposals([begun.proposal]).values()
            start = Before(drawn.numbers, begun.memory)
            ledger, amended = self._results_of(begun.id, self._moves), self.store.last_amended()
            ledger.results(upto)  # read while all of them are of one state of the file
        how = (self.opened.method, self.opened.discount)
        made = make_move(*how, ledger, upto, begun.counted, start)
        made.info.update({"late": late, BEGUN: begun.id})
        if not self.writing(lambda: self._write(before, upto, new, ledger, made, amended)):
            self._move()  # of results that were amended meanwhile

    def _write(
        self, before: Move, upto: int, new: int, ledger: Ledger, made: "StudyMove", amended: int
    ) -> bool:
        """Writes a move, unless another process has; False where its results are others now."""
        number, kept = before.id + 1, ledger is self._moves.ledger  # and its densities with it
        with self.store.writing():
            if self.store.last_amended() != amended:
                return False
            if self.store.last_move().id != before.id:
                return True
            row = Made(number, upto, made.numbers, made.memory, made.info)
            self.store.add_move(self.opened.family, row, new)
            if kept:
                self.store.add_densities(number, made.own[len(ledger.own) :], made.mixture)
        if kept:
            self._moves.moved(number, made)
        return True

    def _next_mark(self, before: Move) -> tuple[int, int, int]:
        """The place up to which the next move takes results, how many are new, how many late."""
        new, late, batch = 0, 0, self.opened.batch
        for place, ready, proposal in _filling(self.opened, before.counted):
            new += ready
            late += ready if proposal != before.proposal else 0
            if new >= batch:
                return place, new, late
        raise Damaged(damage(self.store.where, "its counters are higher than its rows"))

    def _results_of(self, number: int, kept: KeptResults | None = None) -> Ledger:
        """What a move that begins from `number` is made of: all results, or the last batches'.

        A method without weights leaves out those from elsewhere.
        """
        method = self.opened.method
        if method.window is None and method.reweighs:
            return (kept or self._looks).now()
        return self.opened.ledger(window_start(self.opened, number), method.reweighs)


def begin(opened: Opened, last: Move, upto: int, coming: Mapping[int, int] = NONE) -> Move:
    """The move from whose distribution the one after `last` goes on, of results up to a place.

    The newest of which, or of those after it, half a batch of results is known, and those that are
    `coming`, by their proposals: steps are not chained that nobody has looked at. To wait for a
    whole batch would cost speed where a few trials are always on their way. Steps that are as short
    as somebody has set them go on from `last`.
    """
    if opened.method.way.chains:
        return last
    store, known = opened.store, Counter(coming)
    first = store.last_move(last.begun if last.id else 0)
    for place, ready, proposal in _filling(opened, first.counted):
        if place <= upto and proposal is not None:
            known[proposal] += ready
    drew = Counter[int]()  # by the moves that made them
    for proposal, many in known.items():
        drew[store.maker(proposal)] += many
    newer = sorted((move for move in drew if move > first.id), reverse=True)
    totals = zip(newer, accumulate(drew[move] for move in newer), strict=True)
    enough = (move for move, many in totals if 2 * many >= opened.batch)
    return store.last_move(next(enough, first.id))


def _filling(opened: Opened, after: int) -> Iterator[tuple[int, int, int | None]]:
    """Places after one, how many results of a batch each fills, and the proposal that drew them."""
    store, valued = opened.store, opened.method.values_failures
    for place, number, status, kind, proposal in store.fresh(after):
        if kind == FOREIGN:
            continue
        ready = int(fills(status, valued))
        if opened.method.mirrored:
            partner = partner_of(number, kind)
            ready += fills(store.results([partner])[partner].told.status, valued)
        yield place, ready, proposal


def late_in(opened: Opened, number: int, upto: int) -> int:
    """How many results of the batch of a move, up to a place, an older distribution has drawn."""
    before = opened.store.last_move(number - 1)
    found = _filling(opened, before.counted)
    return sum(n for place, n, drew in found if place <= upto and drew != before.proposal)


def window_start(opened: Opened, number: int) -> int:
    """The place after which the results of a move that begins from `number` lie."""
    window = opened.method.window
    first = 0 if window is None else max(number + 1 - window, 0)
    return opened.store.last_move(first).counted if first else 0
