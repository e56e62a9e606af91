"""The files of a comparison: JSON, Markdown, a picture for each task, and one page."""

import json
import os
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from recoup.compare.tables import (
    MEANING,
    SCORES,
    markdown,
    overall_table,
    parameters,
    runs_in_words,
    tables_of,
)
from recoup.pictures.comparison import Method, compared
from recoup.report.html import embedded, page, write_page

DATA, TEXT, PAGE, PICTURES = "compare.json", "compare.md", "compare.html", "curves"


def write_comparison(said: dict[str, Any], out: Path) -> dict[str, Path]:
    """Writes what a comparison says into its directory; where each thing lies."""
    data, text = out / DATA, out / TEXT
    _written(data, json.dumps(said, indent=1) + "\n")
    _written(text, markdown(said))
    places = _places([task["task"] for task in said["tasks"]], out / PICTURES)
    tasks = [
        {
            **task,
            "picture": embedded(_picture(said, task, place)),
            "tables": tables_of(said, task),
            "place": f"task-{i}",
        }
        for i, (task, place) in enumerate(zip(said["tasks"], places, strict=True))
    ]
    content = page(
        "comparison.html",
        said=said,
        tasks=tasks,
        overall=overall_table(said) if len(tasks) > 1 else None,
        meaning=MEANING,
        scores=SCORES,
    )
    found = {"page": write_page(out / PAGE, content), "text": text, "data": data}
    return {**found, "pictures": out / PICTURES}


def _written(path: Path, content: str) -> None:
    """Replaces a file at once: a reader finds the old one or the new one."""
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(content, encoding="utf-8")
    unfinished.replace(path)


def _places(names: list[str], folder: Path) -> list[Path]:
    """Where the pictures of tasks lie: two names that a path cannot tell apart are numbered."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Path] = {}  # in small letters: some directories do not tell them apart
    for name in names:
        safe = "".join(c if c.isalnum() or c in "-@." else "-" for c in name)
        numbered = (safe if i == 1 else f"{safe}-{i}" for i in count(1))
        free = next(one for one in numbered if one.lower() not in found)
        found[free.lower()] = folder / f"{free}.png"
    return list(found.values())


def _picture(said: dict[str, Any], task: dict[str, Any], path: Path) -> Path:
    with warnings.catch_warnings():  # of names in a script that the font has no letters for
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure_of(said, task).savefig(path, dpi=130)
    return path


def figure_of(said: dict[str, Any], task: dict[str, Any]) -> Figure:
    """The curves of a task, from the start on."""
    runs = runs_in_words(said["runs"]) + (", ± 1 standard error" if said["runs"] > 1 else "")
    title = f"{task['task']} ({parameters(task['dim'])}; {runs})"
    methods = [
        Method(row["method"], *(_arrays(row[kind]) for kind in ("search", "policy")))
        for row in task["methods"]
    ]
    return compared(title, [0, *said["checkpoints"]], methods)


def _arrays(curve: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(curve["mean"], float), np.array(curve["stderr"], float)
