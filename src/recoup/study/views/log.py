"""What happened to a study when: its trials, results, moves and events, in the order of time.

Trials that were asked for together are one entry, and so are results that were told with less than
a minute between them and nothing else. A result that was put right since stands where it was told
first, as it was then.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recoup.core.types import Given, Plain
from recoup.store.events import later_of, told_in
from recoup.store.rows import (
    AMENDED,
    CANCELLED,
    CREATED,
    DRAWN,
    DROP,
    ENQUEUED,
    FAILED,
    FOREIGN,
    MIRROR,
    NOTED,
    RECOVERED,
    TITLED,
    TOLD_LATER,
    Asked,
    Event,
    Result,
    Told,
)
from recoup.store.rows import DROPPED as MARK
from recoup.study.exchange.fork import FORKED
from recoup.study.exchange.samples import IMPORTED
from recoup.study.reader.batches import batch_in_words
from recoup.study.reader.opened import Opened
from recoup.study.text.times import in_full
from recoup.study.trials.diary import TEXT, TRIAL, WHY
from recoup.study.trials.results import in_words

ASKED, TOLD, MOVED, DROPPED = "asked", "told", "moved", "dropped"
ENTRY_SECONDS = 60.0  # seconds between two results that stand in one entry, at most
REASONS, SPANS = 3, 8  # of failures, and of trials that follow each other, that are named


class Happened(NamedTuple):
    """Something that happened to a study.

    >>> study.log()[0].words
    'recoup, 2 parameters, batch 12'
    """

    at: float  # seconds since 1970
    what: str  # created, asked, told, failed, moved, amended, ...
    words: str  # the same in a sentence
    trials: tuple[int, ...] = ()  # that it is about

    def plain(self) -> Plain:
        """The entry as JSON can hold it.

        >>> list(study.log()[0].plain())
        ['at', 'what', 'words', 'trials', 'when']
        """
        return {**self._asdict(), "when": in_full(self.at), "trials": list(self.trials)}


def log(study: Opened) -> list[Happened]:
    """What happened when, the newest last."""
    with study.store.reading():
        events = study.store.events()
        rows = _own_rows(study, events)
        moves = [
            Happened(move.made, MOVED, _move_in_words(move.id, move.counted, events))
            for move in study.store.moves()
            if move.id
        ]
    first = {event.content[TRIAL]: event for event in reversed(events) if event.kind == AMENDED}
    results = [_as_told_first(row, first.get(row.id)) for _, row in rows if row is not None]
    known: list[Happened] = [said for event in events if (said := _event(event)) is not None]
    found: list[Happened | _Told] = [
        *known,
        *_asked([asked for asked, _ in rows]),
        *results,
        *moves,
    ]
    found.sort(key=lambda one: one.at)  # of the same moment: in the order of this list
    return list(_together(found))


def _own_rows(study: Opened, events: Sequence[Event]) -> list[tuple[Asked, Result | None]]:
    """Trials and results, but those from elsewhere, or of the study that this was forked from."""
    forked = max((event.at for event in events if event.kind == FORKED), default=0.0)
    return [
        (asked, result)
        for asked, result in study.store.trials()
        if asked.kind != FOREIGN and asked.asked_at > forked
    ]


def _asked(rows: Iterable[Asked]) -> Iterator[Happened]:
    """Trials, those of one `ask` together."""
    groups: list[list[Asked]] = []
    for row in rows:
        if groups and groups[-1][-1].asked_at == row.asked_at:
            groups[-1].append(row)
        else:
            groups.append([row])
    for group in groups:
        kinds = Counter(row.kind for row in group if row.kind not in (DRAWN, MIRROR))
        named = [kind if n == len(group) else f"{n} {kind}" for kind, n in sorted(kinds.items())]
        of = f" ({', '.join(named)})" if named else ""
        numbers = tuple(row.id for row in group)
        yield Happened(group[0].asked_at, ASKED, f"{_named(numbers)}{of}", numbers)


class _Told(NamedTuple):
    """A result as it was told first."""

    at: float
    trial: int
    told: Told


def _as_told_first(row: Result, amended: Event | None) -> _Told:
    if amended is None:
        return _Told(row.told_at, row.id, row.told)
    return _Told(amended.content["told_at"], row.id, told_in(amended.content, "was"))


def _together(found: Iterable[Happened | _Told]) -> Iterator[Happened]:
    """What happened, results that were told shortly one after the other as one entry."""
    group: list[_Told] = []
    for one in found:
        if group and (isinstance(one, Happened) or one.at - group[-1].at >= ENTRY_SECONDS):
            yield _as_one(group)
            group = []
        if isinstance(one, Happened):
            yield one
        else:
            group.append(one)
    if group:
        yield _as_one(group)


def _as_one(group: Sequence[_Told]) -> Happened:
    numbers = tuple(sorted(one.trial for one in group))
    failed = [one for one in group if one.told.status == FAILED]
    values = sorted(one.told.value for one in group if one.told.value is not None)
    said = [in_words(one.told) for one in group if one.told.value is not None]
    if len(values) > 1:
        said = [f"{len(values)} returns, {values[0]:.6g} to {values[-1]:.6g}"]
    if failed:
        said.append(f"{len(failed) if len(group) > 1 else ''} failed ({_reasons(failed)})".strip())
    what = FAILED if len(failed) == len(group) else TOLD
    return Happened(group[-1].at, what, f"{_named(numbers)}: {', '.join(said)}", numbers)


def _reasons(failed: Sequence[_Told]) -> str:
    """Why results failed, the most frequent first."""
    counted = Counter(str(one.told.note) for one in failed).most_common()
    named = [f"{n} x {why}" if n > 1 else why for why, n in counted[:REASONS]]
    return ", ".join([*named, *(["others"] if len(counted) > REASONS else [])])


def _move_in_words(number: int, counted: int, events: Sequence[Event]) -> str:
    amended = [event.content for event in events if event.kind == AMENDED]
    again = any(str(number) in content.get("moves", {}) for content in amended)
    return f"move {number}, of results up to the {counted}.{' (made again)' if again else ''}"


def _event(event: Event) -> Happened | None:
    """An event as an entry; None of one that says nothing to people."""
    said = _in_words(event)
    if said is None:
        return None
    what, words = said
    trial = event.content.get(TRIAL) if event.kind != CREATED else None
    return Happened(event.at, what, words, (trial,) if isinstance(trial, int) else ())


def _in_words(event: Event) -> tuple[str, str] | None:
    """What an event is called, and what it says."""
    content, kind = event.content, event.kind
    why = f" ({content[WHY]})" if content.get(WHY) else ""
    if kind == AMENDED:
        was, now = (in_words(told_in(content, key)) for key in ("was", "now"))
        if content.get(DROP):
            now = str(content["now"][4]).removeprefix(MARK)
            return DROPPED, f"trial {content[TRIAL]}, which was {was}: {now}{why}"
        return kind, f"trial {content[TRIAL]}: {was} became {now}{why}"
    if kind == TOLD_LATER:
        return "told later", f"trial {content[TRIAL]}: {in_words(later_of(event))}, not counted"
    if kind == CANCELLED:
        return kind, f"trial {content[TRIAL]}{why}"
    if kind == NOTED:
        on = "" if content[TRIAL] is None else f"trial {content[TRIAL]}: "
        return kind, f"{on}{content[TEXT]}"
    if kind == TITLED:
        return kind, content[TITLED] or "none any more"
    if kind == ENQUEUED:
        return kind, f"a theta of one's own{_behind(content.get('note'))}"
    if kind == CREATED:
        dim = content["dim"]
        size = f"{dim} parameter{'' if dim == 1 else 's'}"
        return kind, f"{content['method']}, {size}, batch {batch_in_words(content)}"
    if kind == IMPORTED:
        return kind, f"{content['samples']} samples{_behind(content.get('of'), ' from ')}"
    if kind == RECOVERED:
        return kind, f"from what was left of {content['of']}; {content['missing']} results missing"
    if kind == FORKED:
        return kind, f"from {content['of']}"
    return kind.replace("_", " "), ""


def _behind(text: Given, before: str = ": ") -> str:
    return f"{before}{text}" if text else ""


def _named(numbers: Sequence[int]) -> str:
    """Trials by number, those that follow each other as from and to."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(a) if a == b else f"{a} to {b}" for a, b in spans]
    more = f" and {len(texts) - SPANS} more" if len(texts) > SPANS else ""
    return f"trial{'' if len(numbers) == 1 else 's'} {', '.join(texts[:SPANS])}{more}"
