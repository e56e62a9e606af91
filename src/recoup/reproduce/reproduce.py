"""`recoup reproduce`: measures, judges and draws figures, and goes on where it was stopped."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError, check_choice
from recoup.core.types import Plain
from recoup.outputs import OURS, Kind, Over, check_directory, check_output, written
from recoup.pictures import picture_files as files
from recoup.reproduce import ORDER
from recoup.reproduce.claims import HOLM, RULE, Claim, corrected
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import (
    cars,
    episode_figures,
    estimates,
    nine,
    reaching,
    strips,
    theorems,
    toy_figures,
)
from recoup.reproduce.jobs import FigureJob, JobFiles, run_jobs
from recoup.reproduce.sizes import Size, size_of
from recoup.reproduce.workers import run_in_processes
from recoup.runs.directory import versions

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for module in (theorems, estimates, toy_figures, cars, reaching, nine, episode_figures, strips)
    for figure in module.FIGURES
}
ALL = "all"
DATA, ABOUT, CLAIMS, PICTURE, FILM = "data.npz", "data.json", "claims.json", "figure", "film.mp4"
RECORDED = ("recoup", "jax", "numpy", "mujoco")
JOBS = "jobs"
KEPT = Kind((".npz",), lambda path: False)  # known by the directory alone
SAID = Kind((".json",), lambda path: "figure" in (_object(path) or {}))


class Finding(NamedTuple):
    """One figure as it was found: where its files lie, and what they say."""

    figure: Figure
    directory: Path
    claims: list[Claim]
    problem: str | None  # why there is no picture
    judged: list[Plain]  # records of the claims, corrected for all in the directory


def reproduce(
    names: Sequence[str],
    size: str = "default",
    out: str | Path | None = None,
    show: Any = None,
    workers: int = 1,
    *,
    force: bool = False,
) -> list[Finding]:
    """Measures, judges and draws the figures `names` ("all": every one) into `out`.

    What has been measured before, by this call or one that was stopped, is not measured again.
    `workers` is the number of processes that measure. Older files of ours are replaced; with
    `force` any others too.
    """
    chosen, amount = chosen_figures(names), size_of(size)
    _check_installed(chosen)
    directory = directory_of(size, out)
    store, jobs = JobFiles(directory / JOBS), jobs_of(chosen, amount)
    _check_files(chosen, directory, force)
    store.prepare()
    show = show or (lambda job, seconds: None)
    if workers > 1:
        run_in_processes(jobs, store, workers, show)
    results = run_jobs(jobs, store, show)
    findings = [
        _finding(figure, amount, results, directory / figure.name, force=force) for figure in chosen
    ]
    together = correct(directory)
    return [
        found._replace(judged=[together[claim.id] for claim in found.claims]) for found in findings
    ]


def _check_files(figures: Sequence[Figure], directory: Path, force: bool) -> None:
    """Raises where what lies there is not ours to write over, before anything is measured."""
    check_directory(directory, directory, parents=True)
    if directory.is_dir() and not (directory / JOBS).is_dir() and any(directory.iterdir()):
        raise InputError(
            f"{directory} holds something else than a reproduction: name another --out."
        )
    over = Over(force, home=True)
    kinds = {DATA: KEPT, ABOUT: SAID, CLAIMS: SAID, FILM: files.FILM}
    kinds |= {f"{PICTURE}{ending}": files.PICTURE for ending in files.PICTURE.endings}
    for figure in figures:
        for name, kind in kinds.items():
            check_output(directory / figure.name / name, kind, over, parents=True)


def _check_installed(figures: Sequence[Figure]) -> None:
    """Raises before anything is measured where MuJoCo is needed and is not there."""
    if any(figure.name.startswith("reach-") for figure in figures):
        from recoup.tasks.reach.body import import_mujoco

        import_mujoco()


def correct(directory: Path) -> dict[str, Plain]:
    """Judges the claims of all figures in `directory` together; their records by id.

    What each figure's file says is written again with Holm's verdicts beside its own.
    """
    files = {path: _read(path) for path in (directory / name / CLAIMS for name in ORDER)}
    files = {path: content for path, content in files.items() if content is not None}
    records = corrected([record for content in files.values() for record in content["claims"]])
    left = iter(records)
    for path, content in files.items():
        _write(path, {**content, "claims": [next(left) for _ in content["claims"]]})
    return {record["id"]: record for record in records}


def _read(path: Path) -> Any:
    """What a figure's file of claims holds; None if there is none, or not one of ours."""
    content = _object(path) or {}
    try:
        return content if all("p" in claim for claim in content["claims"]) else None
    except (KeyError, TypeError):
        return None


def _object(path: Path) -> Plain | None:
    """What a JSON file holds, if it is an object that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def directory_of(size: str, out: str | Path | None = None) -> Path:
    """Where a reproduction of this size is kept."""
    return Path("runs") / f"reproduce-{size_of(size).name}" if out is None else Path(out)


def work_left(names: Sequence[str], size: str, out: str | Path | None = None) -> float:
    """The seconds that what has not been measured yet is thought to take."""
    store = JobFiles(directory_of(size, out) / JOBS)
    jobs = jobs_of(chosen_figures(names), size_of(size))
    return sum(job.seconds for job in jobs if not store.path(job).exists())


def chosen_figures(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, in the order of the paper."""
    known = (*ORDER, ALL)
    for name in names:
        check_choice("figure", name, known)
    return [FIGURES[name] for name in ORDER if ALL in names or name in names]


def jobs_of(figures: Sequence[Figure], size: Size) -> list[FigureJob]:
    """The jobs of all figures, each once."""
    return list({job.name: job for figure in figures for job in figure.jobs(size)}.values())


def _finding(
    figure: Figure, size: Size, results: Any, directory: Path, *, force: bool = False
) -> Finding:
    data, over = figure.collect(size, results), Over(force, home=True)
    claims = figure.claims(data)
    kept = written(directory / DATA, KEPT, over, parents=True)
    with kept as unfinished, unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **data)
    problem = _draw(figure, data, directory, over)
    about = {**_about(figure, size, data), "problem": problem}
    _write(directory / ABOUT, about, over)
    records = [claim.as_record() for claim in claims]
    said = {"figure": figure.name, "rule": RULE, "holm": HOLM, "claims": records}
    _write(directory / CLAIMS, said, over)
    return Finding(figure, directory, claims, problem, records)


def _draw(figure: Figure, data: Any, directory: Path, over: Over) -> str | None:
    """Draws the figure and its film; where there is no OpenGL, says so instead."""
    try:
        picture = figure.draw(data)
        for ending in files.PICTURE.endings:
            path = directory / f"{PICTURE}{ending}"
            files.write_picture(picture, path, 150, over)
        if figure.film is not None:
            figure.film(data, directory / FILM, over)
    except InputError as problem:
        return str(problem)
    return None


def _about(figure: Figure, size: Size, data: Any) -> Plain:
    return {
        "figure": figure.name,
        "paper": figure.paper,
        "title": figure.title,
        "caption": figure.caption,
        "size": asdict(size),
        "date": date.today().isoformat(),
        "versions": {"python": platform.python_version(), **versions(RECORDED)},
        "machine": f"{platform.system()} {platform.machine()}",
        "arrays": {key: list(np.shape(values)) for key, values in data.items()},
    }


def _write(path: Path, content: Plain, over: Over = OURS) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    with written(path, SAID, over) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
