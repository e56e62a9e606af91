"""All trials of a study as Python has them: records, or a table of pandas."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recoup.checks import InputError
from recoup.core.types import Module
from recoup.store.rows import CANCELLED, PENDING, Asked, Event, Result, Told
from recoup.study.exchange.tables import ALSO, columns_of, rows_of, text_columns, theta_columns
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import TrialResult, by_name
from recoup.study.trials.diary import WHY, notes_by_trial
from recoup.study.views.aside import aside

if TYPE_CHECKING:
    import pandas

WHOLE = ("episodes", "proposal")  # columns of whole numbers, some of which may be missing
SHORT = ("id", "status", "kind", "return", "stderr", "episodes")  # before the parameters
THEN = {"asked": "asked_at", "told": "told_at"}  # after them; another name where one is called so
NOTE = "note"


def trials(study: Opened, after: int = -1) -> list[TrialResult]:
    """All trials by number, or those `after` one, each with what came of it."""
    with study.store.reading():
        cancelled, written = study.store.cancelled(), notes_by_trial(study.store)
        return [
            _record(study, asked, result, cancelled.get(asked.id), written, theta)
            for asked, result, theta in study.all_trials(after)
        ]


def best(study: Opened) -> tuple[Asked, float] | None:
    """The trial with the best result, and that as it was told; None before the first.

    None that broke a limit, or that lies outside of the study's bounds.
    """
    with study.store.reading():
        broken, outside = aside(study)
        without = study.store.dropped() | broken | outside
        return study.store.best(without, study.sign < 0)


def _record(
    study: Opened,
    asked: Asked,
    result: Result | None,
    cancelled: Event | None,
    written: Mapping[int, tuple[str, ...]],
    theta: np.ndarray,
) -> TrialResult:
    waits = Told(PENDING) if cancelled is None else Told(CANCELLED, note=cancelled.content[WHY])
    told, at = (waits, None) if result is None else (result.told, result.told_at)
    return TrialResult(
        id=asked.id,
        kind=asked.kind,
        status=told.status,
        value=told.value,
        stderr=told.stderr,
        episodes=told.episodes,
        note=told.note,
        theta=theta,
        seed=asked.seed,
        proposal=asked.proposal,
        asked_at=asked.asked_at,
        told_at=at,
        names=study.names,
        whole=study.whole,
        direction=study.goal.word,
        notes=written.get(asked.id, ()),
        choices=study.choices,
        also=told.also or {},
        broken=tuple(limit.text for limit in study.limits.broken(told.also)),
    )


def dataframe(study: Opened, *, full: bool = False) -> "pandas.DataFrame":
    """The trials, a row each; whole numbers stay whole where some are missing.

    Short: what came of each, its parameters, dates in UTC, and what was written down. `full`: the
    table that `export` writes.
    """
    pandas = _pandas()
    return _full(pandas, study) if full else _short(pandas, study)


def _short(pandas: Module, study: Opened) -> "pandas.DataFrame":
    names, found = theta_columns(study), trials(study)
    times = [at if name in names else name for name, at in THEN.items()]
    numbers = sorted({name for trial in found for name in trial.also})
    rows = [_cells(names, numbers, trial) for trial in found]
    also = [f"{ALSO}_{name}" for name in numbers]
    table = pandas.DataFrame(rows, columns=[*SHORT, *also, *names, *times, NOTE])
    for name in times:
        seconds = table[name].astype("float64")
        table[name] = pandas.to_datetime(seconds, unit="s", utc=True, errors="coerce")
    kinds = {"return": "float64", "stderr": "float64", "episodes": "Int64"}
    return table.astype({"id": "int64", **kinds, **dict.fromkeys(also, "float64")})


def _cells(names: Sequence[str], numbers: Sequence[str], trial: TrialResult) -> list[object]:
    came = (trial.value, trial.stderr, trial.episodes, *map(trial.also.get, numbers))
    values = by_name(names, trial.theta, trial.whole, trial.choices).values()
    times = (trial.asked_at, trial.told_at)
    return [trial.id, trial.status, trial.kind, *came, *values, *times, trial.remark or None]


def _full(pandas: Module, study: Opened) -> "pandas.DataFrame":
    if "family" in study.missing:
        study.check_whole()
    with study.store.reading():
        names, rows = columns_of(study), list(rows_of(study))
    table = pandas.DataFrame(rows, columns=names)
    texts = text_columns(study)
    kinds = {name: "Int64" if name in WHOLE else "float64" for name in names if name not in texts}
    return table.astype({**kinds, "id": "int64", "seed": "int64"})


def _pandas() -> Module:
    try:
        import pandas
    except ImportError:
        raise InputError("`dataframe` needs pandas: pip install pandas.") from None
    return pandas
