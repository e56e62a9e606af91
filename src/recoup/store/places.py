"""A result's place among those that moves are made of, and counters that fit a set of rows.

Places are given in the order of telling. A mirrored pair counts when both of it were told: the
place is written with the second, and the first has the place before it.
"""

from collections.abc import Mapping

from recoup.store.rows import (
    DRAWN,
    FAILED,
    FOREIGN,
    MIRROR,
    OK,
    SAMPLED,
    Asked,
    Contents,
    Counters,
)


def partner_of(number: int, kind: str) -> int:
    """The other trial of a mirrored pair."""
    return number - 1 if kind == MIRROR else number + 1


def together_in(asked: Mapping[int, Asked], number: int) -> list[int]:
    """The trials that are one draw with a trial: itself, or the two of a mirrored pair."""
    kind = asked[number].kind if number in asked else None
    behind = asked.get(number + 1)
    if kind == MIRROR:
        return [number - 1, number]
    if kind == DRAWN and behind is not None and behind.kind == MIRROR:
        return [number, number + 1]
    return [number]


def fills(status: str, valued: bool) -> bool:
    """Whether a result fills a batch: a failure does where the study gives it a value."""
    return status == OK or valued


def place_alone(counted: int, kind: str, fills: bool) -> tuple[int | None, int]:
    """The place of a result that is of no pair, and how many it makes ready for a move.

    `counted` is the last place that was given. What failed was drawn all the same, so that it has a
    place, whether it fills a batch or not.
    """
    counts = kind in (*SAMPLED, FOREIGN)
    return (counted + 1 if counts else None), int(kind in SAMPLED and fills)


def place_in_pair(counted: int, fills: bool, partner: bool | None) -> tuple[int | None, int]:
    """The same for a result of a pair; `partner`: if the other fills, None until it is told."""
    if partner is None:
        return None, 0
    return counted + 2, fills + partner


def fitting_counters(rows: Contents, last: int, valued: bool = False) -> Counters:
    """The counters that fit `rows`, where no number up to `last` is to be given out again.

    `valued` says that failures fill a batch. No place that a move was made of is given out again,
    though its result was dropped or is lost: a result there would be part of no move.
    """
    told = rows.told.values()
    mark = max((move.counted for move in rows.moves.values()), default=0)
    fresh = [result for result in told if (result.counted or 0) > mark]
    return Counters(
        trials=len(rows.asked),
        ok=sum(result.told.status == OK for result in told),
        failed=sum(result.told.status == FAILED for result in told),
        counted=max(mark, *(result.counted or 0 for result in told), 0),
        fresh=sum(_ready(rows.asked[result.id], rows, valued) for result in fresh),
        last=last,
    )


def densities_fit(rows: Contents) -> bool:
    """Whether the densities are those of the last move, none missing and none too many."""
    last = max(rows.moves, default=0)
    mark = rows.moves[last].counted if last else 0
    results = sum(0 < (result.counted or 0) <= mark for result in rows.told.values())
    paired = any(trial.kind == MIRROR for trial in rows.asked.values())
    size = results * (2 if paired else 1)
    own, mixture = rows.own, rows.mixture
    own_fits = not own or (
        sorted(own) == list(range(1, last + 1)) and sum(map(len, own.values())) == size
    )
    mixture_fits = not mixture or (list(mixture) == [last] and len(mixture[last]) == size)
    return own_fits and mixture_fits


def _ready(trial: Asked, rows: Contents, valued: bool) -> int:
    """How many results a place makes ready for a move: two for a mirrored pair."""
    drew = together_in(rows.asked, trial.id) if trial.kind in SAMPLED else []
    told = [rows.told[number].told for number in drew if number in rows.told]
    return sum(fills(result.status, valued) for result in told)
