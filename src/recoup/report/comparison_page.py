"""The files of a comparison: JSON, Markdown, a picture for each task, and one page."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from recoup.compare.comparison_tables import (
    HEADING,
    MEANING,
    SCORES,
    deployed,
    markdown,
    overall_tables,
    parameters,
    runs_in_words,
    tables_of,
)
from recoup.outputs import Kind, Over, beginning_of, check_output, written
from recoup.pictures.comparison_picture import MethodCurve, compared
from recoup.pictures.picture_files import PICTURE, write_picture
from recoup.report.html import check_page, embedded, page, write_page

DATA, TEXT, PAGE, PICTURES = "compare.json", "compare.md", "compare.html", "curves"


def _is_data(path: Path) -> bool:
    """Whether a file holds what a comparison says."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(found, dict) and {"tasks", "checkpoints", "versions"} <= found.keys()


FILES = {
    DATA: Kind((".json",), _is_data),
    TEXT: Kind((".md",), lambda path: beginning_of(path).startswith(f"{HEADING}\n".encode())),
}


def check_comparison(out: Path, *, force: bool = False) -> None:
    """Raises where files lie in the directory of a comparison that are not ours to write over."""
    for name, kind in FILES.items():
        check_output(out / name, kind, Over(force), parents=True)
    check_page(out / PAGE, Over(force))


def write_comparison(said: dict[str, Any], out: Path, *, force: bool = False) -> dict[str, Path]:
    """Writes what a comparison says into its directory; where each thing lies.

    Older files of ours are replaced; with `force` any others too.
    """
    check_comparison(out, force=force)
    places = _places([task["task"] for task in said["tasks"]], out / PICTURES)
    for place in places:
        check_output(place, PICTURE, Over(force, home=True), parents=True)
    contents = {DATA: json.dumps(said, indent=1) + "\n", TEXT: markdown(said)}
    for name, content in contents.items():
        with written(out / name, FILES[name], Over(force), parents=True) as unfinished:
            unfinished.write_text(content, encoding="utf-8")
    (out / PICTURES).mkdir(parents=True, exist_ok=True)
    tasks = [
        {
            **task,
            "picture": embedded(_picture(said, task, place, force)),
            "tables": tables_of(said, task),
            "place": f"task-{i}",
        }
        for i, (task, place) in enumerate(zip(said["tasks"], places, strict=True))
    ]
    content = page(
        "comparison.html",
        said=said,
        tasks=tasks,
        overall=overall_tables(said),
        deployed=deployed(said),
        meaning=MEANING,
        scores=SCORES,
    )
    found = {"page": write_page(out / PAGE, content, Over(force))}
    return {**found, "text": out / TEXT, "data": out / DATA, "pictures": out / PICTURES}


def _places(names: list[str], folder: Path) -> list[Path]:
    """Where the pictures of tasks lie: two names that a path cannot tell apart are numbered."""
    found: dict[str, Path] = {}  # in small letters: some directories do not tell them apart
    for name in names:
        safe = "".join(c if c.isalnum() or c in "-@." else "-" for c in name)
        numbered = (safe if i == 1 else f"{safe}-{i}" for i in count(1))
        free = next(one for one in numbered if one.lower() not in found)
        found[free.lower()] = folder / f"{free}.png"
    return list(found.values())


def _picture(said: dict[str, Any], task: dict[str, Any], path: Path, force: bool) -> Path:
    write_picture(figure_of(said, task), path, 130, Over(force, home=True))
    return path


def figure_of(said: dict[str, Any], task: dict[str, Any]) -> Figure:
    """The curves of a task, from the start on."""
    runs = runs_in_words(said["runs"]) + (", ± 1 standard error" if said["runs"] > 1 else "")
    title = f"{task['task']} ({parameters(task['dim'])}; {runs})"
    methods = [
        MethodCurve(row["method"], *(_arrays(row[kind]) for kind in ("search", "policy")))
        for row in task["methods"]
    ]
    return compared(title, [0, *said["checkpoints"]], methods)


def _arrays(curve: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(curve["mean"], float), np.array(curve["stderr"], float)
