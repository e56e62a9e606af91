"""The page of several studies: their curves laid over each other, what each has come to."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_path, printable
from recoup.outputs import Over
from recoup.pictures.studies_picture import Course, laid_over
from recoup.report.html import check_page, drawn, page, write_page
from recoup.study.study import Study
from recoup.study.views.plot_data import outside_of, portrait
from recoup.study.views.snapshot import Snapshot, snapshot
from recoup.study.voice.sentences import expected_drawn, expected_of_both, with_ends

PAGE = "studies-report.html"
PARAMETERS = 50  # that stand in the table, the first ones
NONE = "–"


class One(NamedTuple):
    """A study of several: what it is called here, how it went, and what one may say about it."""

    name: str
    course: Course
    now: Snapshot
    better: str  # larger or smaller


def write_studies_report(
    paths: Sequence[str | Path], out: str | Path | None = None, *, force: bool = False
) -> Path:
    """One page about several studies, into `out` (`PAGE` beside the first of them unless said).

    An older page of ours is replaced; with `force` any other file but a study.
    """
    files = [check_path("a study", path) for path in paths]
    _check_files(files)
    target = files[0].with_name(PAGE) if out is None else check_path("out", out)
    over = Over(force, study=files[0])
    check_page(target, over)
    studies = [_one(*both) for both in zip(_labels(files), files, strict=True)]
    names = list(dict.fromkeys(name for one in studies for name in one.now.params))
    courses = [one.course for one in studies if len(one.course.best)]
    content = page(
        "studies.html",
        heads=[one.name for one in studies],
        facts=_facts(studies),
        parameters=_parameters(studies, names[:PARAMETERS]),
        left=max(len(names) - PARAMETERS, 0),
        picture=drawn(laid_over(courses)) if courses else "",
        estimates=expected_drawn(),
        expected=expected_of_both(),
    )
    return write_page(target, content, over)


def _check_files(files: Sequence[Path]) -> None:
    """Raises unless all of them are files, each of them named once."""
    for path in files:
        if not path.is_file():
            raise InputError(f"there is no study in {path}.")
    real = [path.resolve() for path in files]
    for i, path in enumerate(real):
        if path in real[:i]:
            raise InputError(f"{files[i]} is named twice: name each study once.")


def _labels(files: Sequence[Path]) -> list[str]:
    """What studies are called: by their files, with as many directories as tell them apart."""
    for parts in range(1, max(len(path.resolve().parts) for path in files) + 1):
        labels = [printable("/".join(path.resolve().parts[-parts:])) for path in files]
        if len(set(labels)) == len(labels):
            break
    return labels


def _one(name: str, path: Path) -> One:
    with Study.open(path, read_only=True) as study, study.store.reading():
        goal = study.opened.goal
        return One(name, _course(name, study), snapshot(study, compiling=False), goal.better)


def _course(name: str, study: Study) -> Course:
    """How a study went, as it is drawn."""
    found = portrait(study.opened)
    aside = found.broken | outside_of(study.opened)  # as the best trial is
    within = np.where(aside, np.nan, found.sign * found.returns)
    better = np.fmax.accumulate(within) if len(within) else np.zeros(0)
    return Course(
        name,
        found.noun,
        found.sign * better,
        found.at[1:],
        found.estimate,
        found.low,
        found.high,
    )


def _facts(studies: Sequence[One]) -> list[list[str]]:
    """What is said of each study, a row each; the studies stand beside each other."""
    rows: dict[str, Callable[[One], str]] = {
        "method": lambda one: f"{one.now.method}, batch {one.now.batch}",
        "better": lambda one: one.better.split()[0],
        "parameters": lambda one: str(one.now.dim),
        "results": lambda one: str(one.now.results),
        "of them failed": lambda one: str(one.now.failures.number),
        "dropped": lambda one: str(one.now.counts.dropped),
        "moves": lambda one: str(one.now.moves),
        "best": _best,
        "expected, of the mean policy": _expected,
        "expected, of a draw": _of_a_draw,
        "what to do": lambda one: one.now.verdict or NONE,
    }
    if not any(one.now.counts.dropped for one in studies):
        del rows["dropped"]
    return [[what, *(of(one) for one in studies)] for what, of in rows.items()]


def _best(one: One) -> str:
    return NONE if one.now.best is None else f"{one.now.best[1]:.6g}, trial {one.now.best[0].id}"


def _expected(one: One) -> str:
    found = one.now.recommendation
    if found is None or not np.isfinite(found.of_mean.value):
        return "not known"
    return with_ends(found.of_mean.value, *found.of_mean.interval)


def _of_a_draw(one: One) -> str:
    found = one.now.evaluation
    if found is None or not np.isfinite(found.mean):
        return "not known"
    return with_ends(found.mean, *found.interval)


def _parameters(studies: Sequence[One], names: Sequence[str]) -> list[list[str]]:
    """The mean policy of each study, a row a parameter."""
    values = [{row.name: row.text for row in one.now.distribution} for one in studies]
    return [[name, *(found.get(name, NONE) for found in values)] for name in names]
