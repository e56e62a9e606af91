"""What people write down about a study: its title, notes, and trials that will not be rolled out.

All of it are events in the file, with their times; none changes what the search does, but that a
cancelled trial is no longer handed out or waited for.

A cancelled trial may be told all the same (it was on the robot already): its result counts, since
the density that drew it is known. Of a mirrored pair, which counts once both are told, both are
cancelled together; where the other was told before, its result is kept and no move is made of it.
"""

from typing import NamedTuple

from recoup.checks import InputError, check_text, printable
from recoup.store.protocol import Storage
from recoup.store.rows import CANCELLED, NOTED, PAUSED, RESUMED, TITLED, Event
from recoup.study.trials.results import in_words

LONGEST_TITLE = 200  # characters
TRIAL, TEXT, WHY = "trial", "text", "why"


class Note(NamedTuple):
    """What somebody wrote down, and when.

    >>> study.note("new gripper", trial=3)
    >>> [note] = study.notes()
    >>> note.trial, note.text
    (3, 'new gripper')
    """

    at: float  # seconds since 1970
    trial: int | None  # None: about the study
    text: str  # what was written


class Cancelled(NamedTuple):
    """Trials that will not be rolled out.

    `Study.cancel` gives it.

    >>> [trial] = study.ask()
    >>> study.cancel(trial.id).trials
    [37]
    """

    trials: list[int]  # their numbers
    words: str  # what that means


def title(store: Storage) -> str | None:
    """What a study is called, if it has a title."""
    found = store.events(TITLED)
    return (str(found[-1].content[TITLED]) or None) if found else None


def set_title(store: Storage, text: str) -> None:
    """Calls a study `text`; an empty one takes its title away. Inside `writing()`."""
    if (title(store) or "") != text:
        store.note(TITLED, {TITLED: text})


def check_title(text: str | None) -> str:
    """A title, once it is a short text on one line."""
    found = " ".join(check_text("a title", "" if text is None else text).split())
    if len(found) > LONGEST_TITLE:
        raise InputError(f"a title may have {LONGEST_TITLE} characters, got {len(found)}.")
    return found


def check_same_title(store: Storage, called: str) -> None:
    """Raises where a study is called otherwise."""
    found = title(store) or ""
    if found != called:
        raise InputError(
            f"the study in {store.where} is called {found!r}, not {called!r}: leave out the title "
            f"to go on, or change it by `recoup study title {store.where} ...`."
        )


def notes(store: Storage) -> list[Note]:
    """All notes in the order of writing."""
    return [
        Note(event.at, event.content[TRIAL], str(event.content[TEXT]))
        for event in store.events(NOTED)
    ]


def notes_by_trial(store: Storage) -> dict[int, tuple[str, ...]]:
    """The texts of notes on trials, by number."""
    found: dict[int, tuple[str, ...]] = {}
    for note in notes(store):
        if note.trial is not None:
            found[note.trial] = (*found.get(note.trial, ()), note.text)
    return found


def joined_notes(store: Storage) -> dict[int, str]:
    """All that was written down about a trial in one text, by number."""
    return {number: "; ".join(texts) for number, texts in notes_by_trial(store).items()}


def write_note(store: Storage, text: str, trial: int | None = None) -> None:
    """Writes a note on a study or on one of its trials. Inside `writing()`."""
    if not check_text("a note", text).strip():
        raise InputError("a note needs a text.")
    if trial is not None:
        check_asked(store, trial)
    store.note(NOTED, {TRIAL: trial, TEXT: text.strip()})


def paused_since(store: Storage) -> float | None:
    """Since when a study gives out no trials; None where it does. A server goes by it."""
    paused, resumed = store.events(PAUSED), store.events(RESUMED)
    if not paused or (resumed and resumed[-1].id > paused[-1].id):
        return None
    return paused[-1].at


def pause(store: Storage, paused: bool) -> None:
    """Writes that a study gives out no trials, or does again. Inside `writing()`."""
    if (paused_since(store) is not None) != paused:
        store.note(PAUSED if paused else RESUMED, {})


def copy_writing(store: Storage, new: Storage) -> None:
    """Writes the title of a study, and the notes on what came along, to its fork."""
    if called := title(store):
        set_title(new, called)
    there = {trial.id for trial in new.asked()}
    for event in store.events(NOTED):
        if event.content[TRIAL] is None or event.content[TRIAL] in there:
            new.note(NOTED, event.content, event.at)


def cancel(store: Storage, number: int, why: str | None) -> Cancelled:
    """Writes that a trial, with the other of its pair, will not be rolled out; in `writing()`."""
    check_asked(store, number)
    result = store.results([number]).get(number)
    if result is not None:
        raise InputError(
            f"trial {number} was told {in_words(result.told)}: `amend` puts a result right, or "
            "drops it."
        )
    before = store.cancelled()
    if number in before:
        return Cancelled([], f"Trial {number} was cancelled before{_because(before[number])}.")
    pair = store.together(number)
    told = store.results(pair)
    gone = [one for one in pair if one not in told and one not in before]
    for one in gone:
        store.note(CANCELLED, {TRIAL: one, WHY: why})
    store.end_leases(gone)
    return Cancelled(gone, _said(gone, sorted(told)))


def told_nevertheless(number: int, event: Event, waits_for: int | None) -> str:
    """That a cancelled trial was told, in a sentence; `waits_for`: the other of its pair."""
    then = "its result counts all the same"
    if waits_for is not None:
        then += f", once the other of its pair, {waits_for}, is told too"
    return f"Trial {number} was cancelled{_because(event)}: {then}."


def other_of_pair(store: Storage, number: int) -> int | None:
    """The other trial of a mirrored pair, while it has no result."""
    return next((n for n in store.together(number) if n != number and not store.results([n])), None)


def check_asked(store: Storage, number: int) -> None:
    """Raises unless there is a trial of that number."""
    if not store.asked([number]):
        raise InputError(f"there is no trial {number} in {store.where}.")


def _because(event: Event) -> str:
    why = event.content.get(WHY)
    return f" ({printable(str(why))})" if why else ""


def _said(gone: list[int], told: list[int]) -> str:
    if len(gone) > 1:
        which = f"Trials {gone[0]} and {gone[1]}, a mirrored pair, are"
    else:
        which = f"Trial {gone[0]} is"
    words = f"{which} cancelled: not handed out or waited for any more; a result would still count."
    if told:
        words += (
            f" No move is made of trial {told[0]}, the other of its pair, which was told: a pair "
            "counts once both are."
        )
    return words
