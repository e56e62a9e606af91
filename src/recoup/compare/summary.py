"""What a comparison says, as plain values: JSON, tables, pictures and pages are made of it."""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import product
from math import isfinite
from typing import Any

import numpy as np

from recoup.compare.comparison import ComparisonPlan, MethodCurves
from recoup.compare.entrants import version_of
from recoup.compare.run_results import versions_of
from recoup.compare.statistics import (
    Mean,
    area,
    chance,
    discoveries,
    episodes_to_of,
    improvement,
    iqm,
    mean_of,
    paired,
)
from recoup.core.types import Plain
from recoup.tasks.bounded.bounded_suite import HALVES
from recoup.tasks.own.host import HostTask
from recoup.tasks.suite import SUITE

KINDS = ("search", "policy")  # J and m
MEAN_POLICY = "the mean policy, which recommend names"
CLEAR = 2.0  # standard errors from which a difference is called a win or a loss
FALSE = 0.05  # share of such calls that may be false, where they are corrected for their number


def summary(plan: ComparisonPlan, curves: Sequence[MethodCurves]) -> Plain:
    """Everything that is said about the curves of a comparison."""
    tasks = [_task(plan, arena.name, arena.dim, curves) for arena in plan.arenas]
    return {
        "runs": plan.runs,
        "seed": plan.seed,
        "checkpoints": list(plan.checkpoints),
        "against": plan.against,
        "target_of": plan.target_of if plan.target is None else None,
        "date": date.today().isoformat(),
        "versions": versions_in(plan),
        "tasks": tasks,
        "overall": _overall(plan, tasks, curves),
        **_bounded(plan, tasks, curves),
    }


def versions_in(plan: ComparisonPlan) -> dict[str, str]:
    """Versions of recoup, and of the packages that took part in any run.

    A function of the user's needs no Gymnasium; of other tasks of theirs nothing says that they
    need MuJoCo, and then it is not named.
    """
    found = {"recoup": version_of("recoup")}
    for arena, entrant in product(plan.arenas, plan.entrants):
        is_function = isinstance(arena.problem, HostTask) and arena.problem.env is None
        unused = {"gymnasium"} if is_function else set()
        unused |= set() if arena.task in SUITE else {"mujoco"}
        taking_part = versions_of(arena, entrant)
        found |= {name: taking_part[name] for name in taking_part.keys() - unused}
    return dict(sorted(found.items(), key=lambda one: (one[0] != "recoup", one[0])))


def _bounded(plan: ComparisonPlan, tasks: Sequence[Plain], curves: Sequence[MethodCurves]) -> Plain:
    """What is said of bounded tasks alone: what each method deploys, and both halves."""
    if not any(arena.bounded for arena in plan.arenas):
        return {}
    found = {}
    for half in HALVES:
        mine = [task for task in tasks if task["task"] in HALVES[half]]
        if 0 < len(mine) < len(tasks):
            found[half] = _overall(plan, mine, curves)
    rows = [(one.label, one.peer) for one in plan.entrants]
    deploys = {label: MEAN_POLICY if row is None else row.deploys for label, row in rows}
    return {"deploys": deploys, "halves": found}


def _of(curves: Iterable[MethodCurves], task: str, method: str) -> MethodCurves:
    return next(one for one in curves if (one.task, one.method) == (task, method))


def _task(plan: ComparisonPlan, name: str, dim: int, curves: Sequence[MethodCurves]) -> Plain:
    reference = _of(curves, name, plan.against)
    target = plan.target
    if target is None:
        target = float(_of(curves, name, plan.target_of).leading[:, -1].mean())
    mine = [_of(curves, name, one.label) for one in plan.entrants]
    return {
        "task": name,
        "dim": dim,
        "lead": reference.lead,
        "target": _number(target),
        "methods": [_method(plan, one, reference, target) for one in mine],
        "notes": [note for one in mine for note in _notes(plan, one)],
    }


def _notes(plan: ComparisonPlan, mine: MethodCurves) -> list[str]:
    """What has to be known about the numbers of a method on a task."""
    found = []
    early = [
        f"@{at}" for at, spent in zip(plan.checkpoints, mine.spent[1:], strict=True) if not spent
    ]
    if early:
        batches = f"{mine.method} has batches of {mine.batch} episodes"
        found.append(f"{batches}: its start stands under {', '.join(early)}.")
    counts = {"learning": sum(mine.failed), "test": sum(mine.failed_tests)}
    words = [
        f"{count} {kind} episode{'s' * (count > 1)}" for kind, count in counts.items() if count
    ]
    if words:
        left_out = "" if mine.lead == "policy" else "; J and m leave them out"
        found.append(f"{mine.method}: {' and '.join(words)} failed{left_out}.")
    return found


def _method(
    plan: ComparisonPlan, mine: MethodCurves, reference: MethodCurves, target: float
) -> Plain:
    at = [0, *plan.checkpoints]
    found: Plain = {
        "method": mine.method,
        "batch": mine.batch,
        "spent": mine.spent,
        "seconds": mine.seconds,
        "failed": mine.failed,
        "failed_tests": mine.failed_tests,
    }
    for kind in KINDS:
        found[kind] = _curve(getattr(mine, kind))
    areas = area(plan.checkpoints, mine.leading[:, 1:])
    found["area"] = _mean(mean_of(areas))
    found["episodes_to_target"] = _interval(episodes_to_of(at, mine.leading, target))
    if mine.method != reference.method:
        found["against"] = _against(plan, mine, reference)
    return found


def _curve(by_run: np.ndarray) -> Plain:
    """Mean, standard error and inter-quartile mean at each point, and the runs themselves."""
    columns = by_run.T
    means = [mean_of(column) for column in columns]
    return {
        "mean": [_number(one.mean) for one in means],
        "stderr": [_number(one.stderr) for one in means],
        "iqm": [_interval(iqm(column)) for column in columns],
        "runs": [[_number(x) for x in run] for run in by_run],
    }


def _against(plan: ComparisonPlan, mine: MethodCurves, reference: MethodCurves) -> Plain:
    """Differences to the reference, run by run from the same start, positive where it is better."""
    found: Plain = {}
    for kind in KINDS:
        ours, theirs = getattr(mine, kind)[:, 1:], getattr(reference, kind)[:, 1:]
        pairs = zip(ours.T, theirs.T, strict=True)
        found[kind] = [_mean(paired(*pair)) for pair in pairs]
        found[f"improvement_{kind}"] = _interval(improvement(ours[:, -1], theirs[:, -1]))
    areas = [area(plan.checkpoints, one.leading[:, 1:]) for one in (mine, reference)]
    found["area"] = _mean(paired(*areas))
    return found


def _overall(
    plan: ComparisonPlan, tasks: Sequence[Plain], curves: Sequence[MethodCurves]
) -> list[Plain]:
    """Each method over all tasks: scores, and how often it is clearly better than the reference.

    A score is 0 at the start and 1 at the best mean of any method at the end of that task.
    """
    rows = []
    for entrant in plan.entrants:
        mine = [_of(curves, task["task"], entrant.label) for task in tasks]
        scores = [found for one in mine if (found := _scores(one, curves)) is not None]
        row: Plain = {"method": entrant.label, "tasks": len(scores)}
        if scores and all(np.isfinite(score).all() for score in scores):
            row["score_end"] = _interval(iqm([score[:, -1] for score in scores]))
            areas = [area(plan.checkpoints, score) for score in scores]
            row["score_area"] = _interval(iqm(areas))
        if entrant.label != plan.against:
            row["verdicts"] = {
                kind: _verdicts(tasks, entrant.label, kind, plan.runs) for kind in KINDS
            }
        rows.append(row)
    return rows


def _scores(mine: MethodCurves, curves: Sequence[MethodCurves]) -> np.ndarray | None:
    """Scores `[R, C]` of a method on a task, None where nobody has learned anything."""
    others = [one.leading for one in curves if one.task == mine.task]
    first = next((x[:, 0].mean() for x in others if np.isfinite(x[:, 0]).all()), np.nan)
    best = max((x[:, -1].mean() for x in others if np.isfinite(x[:, -1]).all()), default=np.nan)
    if not best > first:
        return None
    return (mine.leading[:, 1:] - first) / (best - first)


def _verdicts(tasks: Sequence[Plain], label: str, kind: str, runs: int) -> Plain:
    """Cells (task x checkpoint) in which it is better, level or worse: raw, and corrected."""
    rows = (next(r for r in task["methods"] if r["method"] == label) for task in tasks)
    cells = [cell for row in rows for cell in row["against"][kind] if verdict(cell) is not None]
    corrected = corrected_verdicts([Mean(cell["mean"], cell["stderr"], runs) for cell in cells])
    return {
        **counted(verdict(cell) for cell in cells),
        "corrected": counted(corrected),
        "unknown": sum(len(task["methods"][0][kind]["mean"]) - 1 for task in tasks) - len(cells),
    }


def counted(words: Iterable[str | None]) -> dict[str, int]:
    """How many cells are what."""
    found = list(words)
    return {word: found.count(word) for word in ("better", "level", "worse")}


def corrected_verdicts(differences: Sequence[Mean]) -> list[str]:
    """What paired differences say once they are corrected for their number."""
    shares = discoveries([chance(one) for one in differences])
    pairs = zip(differences, shares, strict=True)
    return ["level" if q > FALSE else "better" if d.mean > 0 else "worse" for d, q in pairs]


def verdict(cell: Plain) -> str | None:
    """What a paired difference says, None where it says nothing."""
    mean, error = cell["mean"], cell["stderr"]
    if mean is None or error is None:
        return None
    if abs(mean) <= CLEAR * error:
        return "level"
    return "better" if mean > 0 else "worse"


def _number(value: float) -> float | None:
    """A number as JSON can hold it."""
    return float(value) if isfinite(value) else None


def _mean(found: Mean) -> Plain:
    return {"mean": _number(found.mean), "stderr": _number(found.stderr)}


def _interval(found: Any) -> dict[str, float | None]:
    """An interval; None is not a number, or infinite: a target that was not reached."""
    return {key: _number(value) for key, value in found._asdict().items()}
