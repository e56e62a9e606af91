"""What a study needs of the place where it is kept, so that it can be asked, told and moved."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from recoup.store.rows import (
    Asked,
    Counters,
    Event,
    Fresh,
    Made,
    Move,
    Proposal,
    Queued,
    Result,
    Told,
)


class Storage(Protocol):
    """The place where a study is kept; `Store` is one, a file or memory.

    Whatever is written inside one `writing()` is there together, or not at all.
    """

    @property
    def where(self) -> str:
        """The place, as sentences name it."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""

    def reading(self) -> AbstractContextManager[None]:
        """All reads inside see the same state, whatever others write meanwhile."""

    def writing(self) -> AbstractContextManager[None]:
        """A transaction: what is written inside lasts once it ends, or has not happened."""

    def alone(self, wait: float = ...) -> AbstractContextManager[bool]:
        """Whether no other process makes a move meanwhile, after so many seconds at most."""

    # -- trials and results --

    def counters(self) -> Counters:
        """How many trials and results there are."""

    def asked(
        self, ids: Iterable[int] | None = ..., kinds: Sequence[str] | None = ...
    ) -> list[Asked]:
        """Trials by number, of `ids` and of `kinds` if said."""

    def last_asked(self, n: int, kinds: Sequence[str]) -> list[Asked]:
        """The last `n` trials of these kinds, the newest first."""

    def first_drawn(self, proposal: int) -> Asked | None:
        """The first trial that a proposal drew; None where there is none."""

    def together(self, number: int) -> list[int]:
        """The trials that are one draw with a trial: itself, or the two of a mirrored pair."""

    def results(self, ids: Iterable[int] | None = ...) -> dict[int, Result]:
        """Results by trial, without trajectories."""

    def trajectories(self, ids: Iterable[int] | None = ...) -> dict[int, np.ndarray]:
        """Trajectories `[t, F + A + 1]` by trial, of those that have one."""

    def dropped(self) -> set[int]:
        """The trials whose results were dropped, and the others of their pairs."""

    def counted(self, after: int, upto: int, foreign: bool = ...) -> list[tuple[int, int]]:
        """Trial and place of the results in the places (after, upto], `foreign` ones or not."""

    def fresh(self, after: int) -> list[Fresh]:
        """The results after the place `after`, in the order of places."""

    def add_trials(self, trials: Sequence[Asked]) -> None:
        """Writes new trials, without results."""

    def add_result(self, number: int, told: Told, valued: bool = ...) -> Event | None:
        """Writes the result of a trial; the event of one that came after the first."""

    def enqueue(self, theta: Any, note: str | None = ...) -> None:
        """Puts a theta in line."""

    def dequeue(self, n: int) -> list[Queued]:
        """Takes the first thetas out of the line, at most `n`."""

    # -- leases, and trials that will not be rolled out --

    def overdue(self, now: float, n: int = ...) -> list[Asked]:
        """Trials without a result whose lease has run out, at most `n` if said."""

    def lend(self, ids: Iterable[int], until: float | None) -> None:
        """Writes that trials are lent, or handed out once more, `until` then."""

    def end_leases(self, ids: Iterable[int]) -> None:
        """Writes that trials are handed out no more."""

    def cancelled(self) -> dict[int, Event]:
        """The trials that will not be rolled out, by number, and the event of each."""

    # -- proposals and moves --

    def newest(self) -> Proposal:
        """The proposal that the last move made."""

    def proposals(self, ids: Iterable[int] | None = ...) -> dict[int, Proposal]:
        """Proposals by number; number 0 is the start."""

    def last_move(self, upto: int = ...) -> Move:
        """The last move of a number up to `upto`; number 0 is the start."""

    def maker(self, proposal: int | None) -> int:
        """The move that made a proposal, or was made again in place of the one that did; else 0."""

    def last_notes(self) -> Move:
        """The last move without its memory."""

    def densities(self, move: int) -> tuple[np.ndarray, np.ndarray]:
        """Densities of results under their own proposals and under the mixture, as of a move."""

    def add_proposals(self, origin: str, family: str, blocks: Iterable[Any]) -> int:
        """Writes proposals, one for each block of numbers `[K]`; the number of the first."""

    def add_move(self, family: str, made: Made, used: int = ...) -> int:
        """Writes a move, `used` of whose results were fresh; the number of its proposal."""

    def add_densities(self, move: int, new_own: np.ndarray, mixture: np.ndarray) -> None:
        """Writes the densities that the next move starts from."""

    # -- what happened to the study --

    def events(self, kind: str | None = ...) -> list[Event]:
        """What happened to the study, in order; of one kind, if said."""

    def last_amended(self) -> int:
        """The number of the last event that put a result right; 0 where there is none."""

    def note(self, kind: str, content: dict[str, Any], at: float | None = ...) -> None:
        """Writes that something happened to the study, now unless it was `at` another time."""
