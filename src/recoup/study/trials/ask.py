"""Giving out trials: those that came back, those in line, draws from the newest distribution."""

import numpy as np

from recoup.checks import AT_ONCE, InputError
from recoup.core.rules.rugged import SMALLEST
from recoup.core.types import Plain
from recoup.store.protocol import Storage
from recoup.store.rows import (
    DRAWN,
    ENQUEUED,
    MEAN,
    MIRROR,
    OWN,
    REPEAT,
    SAMPLED,
    Asked,
    Proposal,
)
from recoup.study.moves.memory import wants_repeat
from recoup.study.reader.draws import episode_seed
from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import RUN
from recoup.study.trials.diary import write_note
from recoup.study.trials.leases import lend, returned

OF_A_RUN = "is the study of a run, which asks and tells by itself."


def ask(opened: Opened, n: int, at: str | None, lease: float | None = None) -> list[Asked]:
    """`n` trials, on disk, first those whose lease has run out; lent for `lease` seconds if said.

    Under mirrored sampling whole pairs are drawn, so one more where need be.
    """
    with opened.store.writing():
        return given(opened, n, at, lease)


def given(opened: Opened, n: int, at: str | None, lease: float | None = None) -> list[Asked]:
    """The same, as a part of what a transaction writes; inside `writing()`."""
    store: Storage = opened.store
    pairs = opened.method.mirrored and at is None
    newest, last = store.newest(), store.counters().last
    again = [] if at else returned(store, n)
    waiting = [] if at else store.dequeue(n - len(again))
    new = [
        Asked(last + i, OWN, None, queued.theta, episode_seed(_seed(opened), last + i))
        for i, queued in enumerate(waiting, 1)
    ]
    last, more = last + len(new), n - len(again) - len(new)
    more += pairs and more % 2
    kinds = [(MEAN, 0)] * more if at else _kinds(opened, newest, last, more)
    new += [_drawn(opened, newest, last + i, *kind) for i, kind in enumerate(kinds, 1)]
    store.add_trials(new)
    for trial, queued in zip(new, waiting, strict=False):
        if queued.note and queued.note.strip():
            write_note(store, queued.note, trial.id)
    lend(store, again + new, lease)
    return again + new


def given_own(opened: Opened, theta: np.ndarray, lease: float | None = None) -> Asked:
    """A trial of one's own choice at a latent theta; what waits in line stays. In `writing()`."""
    number = opened.store.counters().last + 1
    new = Asked(number, OWN, None, theta, episode_seed(_seed(opened), number))
    opened.store.add_trials([new])
    lend(opened.store, [new], lease)
    return new


def enqueue(opened: Opened, theta: np.ndarray, note: str | None) -> None:
    """Puts a latent theta in line; inside `writing()`."""
    if RUN in opened.settings:
        raise InputError(f"{opened.where} {OF_A_RUN}")
    opened.store.enqueue(theta, note)
    opened.store.note(ENQUEUED, {"note": note})


def in_line(opened: Opened) -> list[Plain]:
    """The thetas of one's own choice that wait to be asked, in the user's units, with notes."""
    with opened.store.reading():
        rows = opened.store.queue(AT_ONCE)
    found: list[Plain] = []
    for row in rows:
        theta = opened.in_units(row.theta)
        named = {"params": opened.params(theta)} if opened.names else {"theta": theta.tolist()}
        found.append({**named, "note": row.note})
    return found


def repeated(store: Storage, number: int) -> int:
    """The trial that a repeat has the theta of: the first that its distribution drew."""
    (repeat,) = store.asked([number])
    first = None if repeat.proposal is None else store.first_drawn(repeat.proposal)
    return number - 1 if first is None or first.id > number else first.id  # or it was lost


def _kinds(opened: Opened, newest: Proposal, last: int, more: int) -> list[tuple[str, int]]:
    """The kinds of `more` trials after trial `last` that the newest distribution draws.

    With each the trial that a repeat has the theta of; 0 where it is none.
    """
    if opened.method.mirrored:
        return [(MIRROR if i % 2 else DRAWN, 0) for i in range(more)]
    kinds = [(DRAWN, 0)] * more
    second = _second(opened, newest, last)
    if second and second[0] < more and _repeats(opened, newest):
        kinds[second[0]] = REPEAT, second[1]
    return kinds


def _repeats(opened: Opened, newest: Proposal) -> bool:
    """Whether the method wants a candidate of its newest distribution tried twice."""
    memory = opened.store.last_move().memory
    return wants_repeat(opened.method, opened.rho(newest.numbers), memory)


def _second(opened: Opened, newest: Proposal, last: int) -> tuple[int, int] | None:
    """Which of the next draws, from 0, is the second of the newest distribution; and its first.

    None where that is drawn already, or where the method tries no candidate twice. Trials of the
    mean and of one's own may lie between the two.
    """
    row = opened.method
    if row.way.repeats is None or not row.repeats or opened.batch < SMALLEST:
        return None
    before = opened.store.last_asked(2, SAMPLED)  # in the order of the distributions that drew them
    mine = [trial.id for trial in before if trial.proposal == newest.id]
    if not mine:
        return 1, last + 1
    return (0, mine[0]) if len(mine) == 1 else None


def _drawn(opened: Opened, newest: Proposal, number: int, kind: str, first: int) -> Asked:
    """Trial `number`: its randomness depends on that and the study's seed, and on nothing else.

    The theta of a repeat depends on the number of the `first` in its stead.
    """
    seed = _seed(opened)
    if kind == MEAN:
        return Asked(
            number, kind, None, opened.shown(newest.numbers)[0], episode_seed(seed, number)
        )
    theta = opened.drawn(opened.rho(newest.numbers), first or number, kind)
    return Asked(number, kind, newest.id, theta, episode_seed(seed, number))


def _seed(opened: Opened) -> int:
    return opened.settings["seed"]
