"""The moves of a study over again: its own, to verify them, or another method's, at no rollout."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.engine.methods import Method, method_row
from recoup.store.file import unpacked
from recoup.study.ledger import Ledger
from recoup.study.moves import Moved, move
from recoup.study.settings import check_named_update, update_of_python
from recoup.study.study import Study

Tick = Callable[[int, int], None]  # moves done, moves in all


class Replayed(NamedTuple):
    """One move of another method over the same results."""

    move: int
    results: int
    mean: np.ndarray
    std: np.ndarray
    info: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """The move as JSON can hold it."""
        distribution = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        return {"move": self.move, "results": self.results, **distribution, **self.info}


class _Mark(NamedTuple):
    """A move as it is stored, and the distribution that it made."""

    number: int
    counted: int
    memory: list[Any]
    mean: np.ndarray
    std: np.ndarray


def replay(
    study: Study,
    method: str | None = None,
    *,
    mean: Any = None,
    std: Any = None,
    tick: Tick = lambda done, of: None,
    **settings: Any,
) -> list[Replayed]:
    """How `method` would have moved, given the same results at the same times.

    The samples are those that the study's own distributions drew, weighed accordingly; how far the
    replayed distribution has left them is what `info["ess"]` says. It starts where the study did,
    unless `mean` (in the user's units) and `std` say otherwise.
    """
    row = _row(study, method, settings)
    marks = _marks(study)
    start = marks[0]
    first = (
        start.mean if mean is None else study.latent_mean(mean),
        start.std if std is None else study.latent_std(std),
    )
    found: list[Replayed] = []
    states: list[tuple[Any, ...]] = [(*first, [])]  # updates with names begin without a memory
    for mark, moved in _moves(study, row, marks, lambda i: states[i], tick):
        states.append((moved.mean, moved.std, moved.memory))
        found.append(Replayed(mark.number, mark.counted, moved.mean, moved.std, moved.info))
    return found


def differences(study: Study, tick: Tick = lambda done, of: None) -> list[tuple[int, float]]:
    """For every move, how far what is stored lies from what its results say, relative.

    Each is made again from the distribution before it as it is stored, so that a difference is of
    that move alone.
    """
    if update_of_python(study.settings) is not None:
        raise InputError("the update rule was given in Python: its moves cannot be made again.")
    marks = _marks(study)
    stored = {mark.number: mark for mark in marks}

    def before(i: int) -> tuple[Any, ...]:
        return marks[i].mean, marks[i].std, marks[i].memory

    found = []
    for mark, moved in _moves(study, study.method, marks, before, tick):
        want = stored[mark.number]
        gap = max(
            np.max(np.abs(moved.mean - want.mean) / (np.abs(want.mean) + want.std.max())),
            np.max(np.abs(moved.std - want.std) / want.std),
        )
        found.append((mark.number, float(gap)))
    return found


def _moves(
    study: Study,
    method: Method,
    marks: list[_Mark],
    before: Callable[[int], tuple[Any, ...]],  # means, stds and memory before each move
    tick: Tick,
) -> Iterator[tuple[_Mark, Moved]]:
    """The moves of `method` at the places where the study has moved."""
    weighted = method.weighting != "none"
    whole = _ledger(study, 0, weighted)
    for i, mark in enumerate(marks[1:]):
        ledger = whole
        if method.window is not None:
            ledger = _ledger(study, marks[max(i + 1 - method.window, 0)].counted, weighted)
        new = mark.counted - marks[i].counted
        moved = move(method, study.discount, ledger, mark.counted, new, *before(i))
        ledger.own, ledger.mixture = moved.own, moved.mixture
        yield mark, moved
        tick(i + 1, len(marks) - 1)


def _ledger(study: Study, after: int, foreign: bool) -> Ledger:
    return Ledger(study.file, study.shape, study.batch, study.method.mirrored, after, foreign)


def _marks(study: Study) -> list[_Mark]:
    found = []
    for number, proposal, counted, memory, *_ in study.file.read("moves", "ORDER BY id"):
        _, _, mean, std = study.file.one("proposals", "WHERE id = ?", (proposal,))
        found.append(_Mark(number, counted, json.loads(memory), unpacked(mean), unpacked(std)))
    return found


def _row(study: Study, method: str | None, settings: dict[str, Any]) -> Method:
    """The method to replay; how the samples were drawn is the study's."""
    name = study.method.name if method is None else method
    own: dict[str, Any] = {}
    if name == study.method.name:
        check_named_update(study.settings, settings)
        own = study.method_settings()
    row = method_row(name, **{**own, **settings})
    if row.space != study.method.space:
        where = "actions" if study.method.space == "actions" else "parameters"
        raise InputError(f"this study explored in {where}: {row.name} cannot use its results.")
    if not isinstance(row.update, str):
        raise InputError("give an update that has a name: 'normalised' or 'natural'.")
    return replace(row, mirrored=study.method.mirrored)
