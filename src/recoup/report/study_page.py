"""The page of a study: what to deploy, how the search fares, and every move."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from recoup.checks import InputError, check_path
from recoup.outputs import Over
from recoup.report.html import check_page, drawn, page, write_page
from recoup.study.study import Study
from recoup.study.views.snapshot import Snapshot, snapshot
from recoup.study.views.study_summary import Deployed, best_trial, summary_rows, to_deploy
from recoup.study.voice.sentences import (
    best_at,
    best_between,
    best_choice,
    estimates_drawn,
    explains,
    of_the_move,
    share_explained,
)

MOVES_LISTED = 100  # that the table shows, the last ones
PARAMETERS = 50  # that stand in the table at the top; all of them stand below it, to be copied


class Top(NamedTuple):
    """The top of a study's page: the values to deploy."""

    words: str
    rows: list[tuple[Deployed, str]]  # with between what each is best
    explains: dict[str, str]  # by name, what share of the returns' variance; empty where not known
    spread: bool  # whether one standard deviation is known of any of them
    left: int  # parameters that are not among the rows
    plain: str  # all values as JSON


def write_study_report(
    path: str | Path, out: str | Path | None = None, *, force: bool = False
) -> Path:
    """One page about the study in `path`, into `out` (FILE-report.html beside it unless said).

    An older page of ours is replaced; with `force` any other file but a study.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no study in {path}.")
    target = path.with_name(f"{path.stem}-report.html") if out is None else check_path("out", out)
    over = Over(force, study=path)
    check_page(target, over)
    with Study.open(path, read_only=True) as study:
        name = f"{study.title} ({path.name})" if study.title else path.name
        content = page("study.html", name=name, **_content(study))
    return write_page(target, content, over)


def top(study: Study, now: Snapshot) -> Top:
    """What the page begins with: the values to deploy, in the user's units."""
    rows, found = to_deploy(now.distribution, now.params), now.recommendation
    values = now.params if study.opened.names else list(now.params.values())
    words = f"After {now.moves} move{'' if now.moves == 1 else 's'}. {now.advice[0]}"
    if not now.moves:
        words = f"The distribution has not moved yet. {now.advice[0]}"
    best = [""] * len(rows)
    if found is not None:
        best = [best_at(where) for where in found.best]
    left = max(len(rows) - PARAMETERS, 0)
    both = list(zip(rows, best, strict=True))
    alone = [row for row in (found.matters if found else ()) if len(row.names) == 1]
    return Top(
        words,
        rows=both[:PARAMETERS],
        explains={row.names[0]: explains(row.share, row.stderr) for row in alone},
        spread=any(row.low is not None for row, _ in both[:PARAMETERS]),
        left=left,
        plain=json.dumps(values, ensure_ascii=False),
    )


def _content(study: Study) -> dict[str, Any]:
    with study.store.reading():
        now, history = snapshot(study, compiling=False), study.history()
        rows = summary_rows(study.opened, now.found, best_trial(now.best), now.waiting)
        return {
            "top": top(study, now),
            "best_between": _best_between(study),
            "explains": share_explained(study.opened.goal),
            "summary": rows,
            "advice": now.advice[1:],
            "picture": drawn(study.plot()),
            "estimates": estimates_drawn(),
            "moves": [{**move, "estimate": _estimate(move)} for move in history[-MOVES_LISTED:]],
            "count": len(history),
            # how a batch grows is in words above
            "settings": {k: v for k, v in study.settings.items() if k != "batch_later"},
        }


def _best_between(study: Study) -> str:
    """What the ends of parameters, and the shares of choices, are of."""
    opened = study.opened
    said = best_between([row.text for row in opened.limits.rows], opened.goal)
    return f"{said}; {best_choice()}" if opened.choices else said


def _estimate(move: dict[str, Any]) -> str:
    return of_the_move(move["objective"], move.get("low"), move.get("high"))
