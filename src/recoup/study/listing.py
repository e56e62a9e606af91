"""All trials of a study as Python has them: records, or a table of pandas."""

from typing import TYPE_CHECKING, Any

from recoup.checks import InputError
from recoup.store.amending import dropped
from recoup.store.rows import PENDING, Asked, Result, Told
from recoup.study.opened import Opened
from recoup.study.tables import columns_of, rows_of, text_columns
from recoup.study.trials import TrialResult

if TYPE_CHECKING:
    import pandas

WHOLE = ("episodes", "proposal")  # columns of whole numbers, some of which may be missing


def trials(study: Opened) -> list[TrialResult]:
    """All trials by number, each with what came of it."""
    with study.store.reading():
        return [_record(study, *row) for row in study.store.trials()]


def best(study: Opened) -> tuple[Asked, float] | None:
    """The trial with the best result, and that as it was told; None before the first."""
    return study.store.best(dropped(study.store), study.sign < 0)


def _record(study: Opened, asked: Asked, result: Result | None) -> TrialResult:
    told, at = (Told(PENDING), None) if result is None else (result.told, result.told_at)
    return TrialResult(
        id=asked.id,
        kind=asked.kind,
        status=told.status,
        value=told.value,
        stderr=told.stderr,
        episodes=told.episodes,
        note=told.note,
        theta=study.values(asked),
        seed=asked.seed,
        proposal=asked.proposal,
        asked_at=asked.asked_at,
        told_at=at,
        names=study.names,
        whole=study.whole,
        direction=study.goal.word,
    )


def dataframe(study: Opened) -> "pandas.DataFrame":
    """The table that `export` writes; whole numbers stay whole where some are missing."""
    pandas = _pandas()
    if "family" in study.missing:
        study.check_whole()
    with study.store.reading():
        names, rows = columns_of(study), list(rows_of(study))
    table = pandas.DataFrame(rows, columns=names)
    texts = text_columns(study)
    kinds = {name: "Int64" if name in WHOLE else "float64" for name in names if name not in texts}
    return table.astype({**kinds, "id": "int64", "seed": "int64"})


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise InputError("`dataframe` needs pandas: pip install pandas.") from None
    return pandas
