"""Which sentences a study's numbers call for."""

from recoup.core.types import Plain
from recoup.engine.methods import Method
from recoup.study.space.goals import MAXIMIZE, Goal
from recoup.study.voice import sentences
from recoup.study.voice.reasons import reasons

MANY_FAIL, FEWEST = 0.3, 3  # failures that are spoken of: more than this share, and no fewer


def advice(method: Method, batch: int, found: Plain, goal: Goal = MAXIMIZE) -> list[str]:
    """What `Study.diagnostics` found, in sentences."""
    left = found["until_move"]
    said = [] if left else [sentences.due(found["missing"])]
    if found["moves"] == 0:
        said += [sentences.first_move(left)] if left else []
    elif found.get("notes"):
        said += reasons(found["notes"], found["ess"], goal)
    elif method.window == 1:
        said.append(sentences.nothing_kept(method.name))
    else:
        said.append(sentences.health(found["samples"], found["ess"], found["pareto_k"]))
        said.append(sentences.next_batch(found["ess"], batch))
    said += _late(method, batch, found) + _failures(method, found, goal)
    if found["waiting"]:
        said.append(sentences.waiting(found["waiting"]))
    return said + ([sentences.overdue(found["overdue"])] if found["overdue"] else [])


def _late(method: Method, batch: int, found: Plain) -> list[str]:
    """What results of older distributions, and from elsewhere, mean for the method."""
    said, late = [], found.get("late") or 0
    if found["imported"] and method.weighting == "none":
        said.append(sentences.imported_left_out(method.name, found["imported"]))
    if late and method.weighting == "none":
        said.append(sentences.late_unweighted(method.name, late))
    if late >= batch and method.weighting == "balance":
        said.append(sentences.late_unbounded())
    return said


def _failures(method: Method, found: Plain, goal: Goal) -> list[str]:
    failures = found["failed"] - found.get("dropped", 0)
    share = failures / max(found["ok"] - found.get("uncounted", 0) + failures, 1)
    if method.failure != "censored" or share <= MANY_FAIL or failures < FEWEST:
        return []
    return [sentences.many_failures(share, method.way.avoids, goal)]
