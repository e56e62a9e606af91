"""The picture of a study: its rows gathered into arrays."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recoup.checks import InputError, check_path, printable
from recoup.core.types import Given
from recoup.outputs import Over, check_output
from recoup.pictures.picture_files import PICTURE, write_picture
from recoup.store.rows import Move, Result
from recoup.study.reader.opened import Opened
from recoup.study.space.choices import chances
from recoup.study.space.parameters import places_of
from recoup.study.trials.diary import title
from recoup.study.views.aside import aside
from recoup.study.voice.landscape import results_of
from recoup.study.voice.predict import matters
from recoup.study.voice.sentences import explains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recoup.pictures.study_picture import Portrait, Shown

OVER_TIME, SLICED = 6, 3  # parameters that are drawn over time, and against each other
NOTED = {  # what is drawn of each move, and what the file calls it
    "estimate": "objective",
    **{key: key for key in ("low", "high", "samples", "ess", "pareto_k")},
}


def plot(study: Opened, path: str | Path | None = None, *, force: bool = False) -> "Figure":
    """The picture of a study, written to `path` if one is given; see `check_output`."""
    over = Over(force, study=study.store.path)
    if path is not None:
        check_output(check_path("the picture", path), PICTURE, over)
    figure = _drawing()(portrait(study))
    if path is not None:
        write_picture(figure, Path(path), 130, over)
    return figure


def portrait(study: Opened) -> "Portrait":
    """A study as the arrays that are drawn."""
    from recoup.pictures.study_picture import Portrait

    with study.store.reading():
        moves, rhos = study.store.moves(), [study.rho(mark.numbers) for mark in study.marks()]
        means, stds = (
            np.stack([np.asarray(getattr(rho, key)) for rho in rhos]) for key in ("mean", "std")
        )
        sliced = _moved_most(study, means, stds)
        results, kinds, theta = _told(study, sliced)
        likely, explained = _chances(study), _explained(study)
    noted = {
        field: np.array([_number(move.info.get(key)) for move in moves if move.id])
        for field, key in NOTED.items()
    }
    spread = stds if study.method.space == "parameters" else np.full(means.shape, np.nan)
    units = _units(study, means, spread)
    returns = [_number(result.told.value) for result in results]
    return Portrait(
        title=_title(study, len(results), moves[-1].id),
        returns=np.array(returns, float),
        kinds=np.array(kinds, str),
        broken=np.array([bool(study.limits.broken(x.told.also)) for x in results], bool),
        at=_marks(results, moves),
        **noted,
        parameters=[
            _shown(study, i, units, likely=likely.get(i))._replace(
                explains=explained.get(study.labels[i], "")
            )
            for i in range(min(len(study.labels), OVER_TIME))
        ],
        sliced=[_shown(study, i, units, theta[:, j], likely.get(i)) for j, i in enumerate(sliced)],
        dim=len(study.labels),
        unit=study.return_unit,
        noun=study.goal.noun,
        sign=study.sign,
    )


def outside_of(study: Opened) -> np.ndarray:
    """Which of the results that are drawn `[n]` lie outside of the study's bounds."""
    with study.store.reading():
        outside, (results, *_) = aside(study).outside, _told(study, [])
    return np.array([result.id in outside for result in results], bool)


def _drawing() -> "Callable[[Portrait], Figure]":
    try:
        from recoup.pictures.study_picture import study_picture
    except ImportError:
        raise InputError("a picture needs matplotlib: pip install matplotlib.") from None
    return study_picture


def _title(study: Opened, results: int, moves: int) -> str:
    parts = (
        *([called] if (called := title(study.store)) else []),
        printable(Path(study.where).name),
        study.method.name,
        f"{len(study.labels)} parameter{'' if len(study.labels) == 1 else 's'}",
        f"{results} result{'' if results == 1 else 's'}",
        f"{moves} move{'' if moves == 1 else 's'}",
    )
    return " · ".join(parts)


def _chances(study: Opened) -> dict[int, np.ndarray]:
    """How likely each choice was after every move `[M + 1, K]`, by the parameter's place."""
    found, places = {}, places_of(study.parameters)
    for i, p in enumerate(study.parameters):
        if p.choices is not None:
            parts = (study.part(mark.numbers, places[i]) for mark in study.marks())
            found[i] = np.stack([chances(part) for part in parts])
    return found


def _explained(study: Opened) -> dict[str, str]:
    """How much each parameter explains, by name; empty where there are too few results to say."""
    try:
        results = results_of(study)
    except InputError:  # no return was told, or none within the bounds
        return {}
    alone = [row for row in matters(study, results) if len(row.names) == 1]
    return {row.names[0]: explains(row.share, row.stderr) for row in alone}


def _moved_most(study: Opened, means: np.ndarray, stds: np.ndarray) -> list[int]:
    """The parameters whose means have moved most, in standard deviations of the start."""
    scale = stds[0] if stds.shape == means.shape else np.ones(means.shape[1])
    moved = np.abs(means[-1] - means[0]) / scale
    if study.parameters:
        moved = np.array([np.max(moved[place]) for place in places_of(study.parameters)])
    return sorted(np.argsort(-moved, kind="stable")[:SLICED].tolist())


def _told(study: Opened, sliced: Sequence[int]) -> tuple[list[Result], list[str], np.ndarray]:
    """Results in the order of telling, their kinds, and the `sliced` parameters `[n, S]`.

    One that was put right stands where it was told first, one that counts for nothing nowhere.
    """
    nothing = study.store.dropped()
    first = study.store.told_first()
    rows = [
        (result, asked.kind, theta[list(sliced)])
        for asked, result, theta in study.all_trials()
        if result is not None and asked.id not in nothing
    ]
    rows.sort(key=lambda row: (first.get(row[0].id, row[0].told_at), row[0].id))
    theta = np.array([row[2] for row in rows], float).reshape(len(rows), len(sliced))
    return [row[0] for row in rows], [row[1] for row in rows], theta


def _marks(results: Sequence[Result], moves: Sequence[Move]) -> np.ndarray:
    """How many results had been told when each move was made `[M + 1]`."""
    places = np.array([0, *(result.counted or 0 for result in results)])
    last = [np.flatnonzero((places > 0) & (places <= move.counted)) for move in moves]
    return np.array([some[-1] if some.size else 0 for some in last])


def _units(study: Opened, means: np.ndarray, stds: np.ndarray) -> list[np.ndarray]:
    """Means, and one standard deviation below and above, in the user's units `[M + 1, P]`."""
    return [study.in_units(latent) for latent in (means, means - stds, means + stds)]


def _shown(
    study: Opened,
    i: int,
    units: Sequence[np.ndarray],
    values: np.ndarray | None = None,
    likely: np.ndarray | None = None,
) -> "Shown":
    """Parameter `i` as it is drawn."""
    from recoup.pictures.study_picture import Shown

    name, log, bounds, words = study.labels[i], False, None, None
    if study.parameters:
        p = study.parameters[i]
        log, words = p.scale == "log", p.choices
        bounds = None if p.low is None or p.high is None else (p.low, p.high)
    mean, low, high = (array[:, i] for array in units)
    tried = np.zeros(0) if values is None else values
    unit = study.units.get(name, "")
    whole = name in study.whole
    return Shown(name, log, bounds, mean, low, high, tried, unit, words or (), likely, whole=whole)


def _number(value: Given) -> float:
    return np.nan if value is None else float(value)
