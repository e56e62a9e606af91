"""A study in short: in one line, and as rows of a table."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from recoup.core.types import Plain
from recoup.store.rows import AMENDED
from recoup.study.reader.batches import batch_in_words
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import Named, Trial
from recoup.study.space.choices import chances, in_words
from recoup.study.space.goals import MAXIMIZE
from recoup.study.space.parameters import labelled, places_of
from recoup.study.text.notebook import SHOWN, typed
from recoup.study.trials.leases import now, told_later
from recoup.study.views.people import further_rows, people_rows
from recoup.study.voice import sentences


class Deployed(NamedTuple):
    """A parameter of the mean policy, in the user's units, and one standard deviation around it.

    Or the chance of each of its choices.

    >>> [row.name for row in now.distribution]
    ['gain', 'offset']
    """

    name: str  # of the parameter
    value: float | str  # of the mean policy; a whole number as such
    low: float | None  # None where the search explores in actions, and of choices
    high: float | None  # likewise
    unit: str | None = None  # if it has one
    chances: dict[str, float] | None = None  # of choices, by name

    @property
    def label(self) -> str:
        """Its name, with its unit if it has one.

        >>> now.distribution[0].label
        'gain'
        """
        return labelled(self.name, self.unit)

    @property
    def varies(self) -> float | None:
        """By how much the search varies it; None where it does not.

        >>> print(f"{now.distribution[1].varies:.1f}")
        0.7
        """
        if self.low is None or self.high is None or isinstance(self.value, str):
            return None
        return min(abs(self.value - self.low), abs(self.high - self.value))

    @property
    def text(self) -> str:
        """Its value with the digits that it takes to type it.

        >>> now.distribution[1].text
        '1.08...'
        """
        return typed(self.value, self.varies)

    @property
    def around(self) -> str:
        """One standard deviation around it, or the chances of its choices.

        >>> now.distribution[1].around
        '0.3... to 1.7...'
        """
        if self.chances is not None:
            return in_words(self.chances)
        if self.low is None or self.high is None:
            return ""
        return " to ".join(sentences.apart(self.low, self.high))


def mean_policy(study: Opened) -> "np.ndarray | Named":
    """The mean of the newest distribution in the user's units, by name where there are names."""
    return mean_of(study, study.mean)


def mean_of(study: Opened, mean: np.ndarray) -> "np.ndarray | Named":
    """Latent means `[D]` in the user's units, likewise."""
    values = study.in_units(mean)
    if not study.names:
        return values
    return Named(study.params(values))


def deployed(study: Opened) -> list[Deployed]:
    """The mean policy, a row a parameter; none where only Python knows the distribution."""
    if "family" in study.missing:
        return []
    mean, std, names = study.mean, study.std, study.labels
    values = study.params(study.in_units(mean)).values()
    around: list[list[float | None]] = [[None] * len(names)] * 2
    if study.method.space == "parameters":
        around = [study.in_units(mean + sign * std).tolist() for sign in (-1, 1)]
    units = [study.units.get(name) for name in names]
    rows = [Deployed(*row) for row in zip(names, values, *around, units, strict=True)]
    found = chances_of(study) if study.choices else {}
    return [
        row._replace(low=None, high=None, chances=found[row.name]) if row.name in found else row
        for row in rows
    ]


def to_deploy(rows: Sequence[Deployed], params: Plain) -> list[Deployed]:
    """The rows of the mean policy, or of other parameters, which no spread is known around."""
    if all(params[row.name] == row.value for row in rows):
        return list(rows)
    return [row._replace(value=params[row.name], low=None, high=None, chances=None) for row in rows]


def chances_of(study: Opened) -> dict[str, dict[str, float]]:
    """How likely each choice is, of every parameter that is one of several."""
    numbers, found = study.store.newest().numbers, {}
    for p, place in zip(study.parameters, places_of(study.parameters), strict=True):
        if p.choices is not None:
            shares = chances(study.part(numbers, place))
            found[p.name] = dict(zip(p.choices, shares.tolist(), strict=True))
    return found


def in_a_line(study: Opened) -> str:
    """The file, the method and how far the search has come; a closed study says that it is."""
    parameters = f"{len(study.labels)} parameter{'' if len(study.labels) == 1 else 's'}"
    try:
        with study.store.reading():
            counters, moves = study.store.counters(), study.store.last_move().id
            results = counters.ok + counters.failed - len(study.store.dropped())
        state = f"{results} result{'' if results == 1 else 's'}"
        state += f", {moves} move{'' if moves == 1 else 's'}"
    except Exception:  # closed, or damaged: what shows an object must not fail
        state = "closed"
    better = "" if study.goal is MAXIMIZE else f", {study.goal.better}"
    return f"Study({study.where!r}, {study.method.name}, {parameters}, {state}{better})"


def summary_rows(
    study: Opened,
    found: Plain,
    best: tuple[int, float] | None,
    waiting: Sequence[int] = (),
) -> dict[str, str]:
    """The state of a study, a row each: what `diagnostics` found, the best trial, those waiting."""
    counted = found["ok"] - found.get("uncounted", 0)
    trials = f"{found['pending']} pending, {found['ok']} ok"
    if counted < found["ok"]:
        trials += f" ({found['uncounted']} of them left with the dropped one of their pair)"
    trials += f", {found['failed']} failed"
    trials += f" ({found['dropped']} of them dropped)" if found.get("dropped") else ""
    if found["imported"]:
        trials += f" ({found['imported']} of them from elsewhere)"
    rows = {
        **people_rows(study, found, now()),
        "method": f"{study.method.name}, batch {batch_in_words(study.settings)}, "
        f"{len(study.labels)} parameter{'' if len(study.labels) == 1 else 's'}",
        "results": f"{study.goal.nouns}: {study.goal.better}",
        "trials": trials,
        "moves": f"{found['moves']}; {sentences.next_move(found['until_move'])}",
        "best": _best(study, found, best, counted),
    }
    if limits := found.get("limits"):
        told = [(row["limit"], row["told"], row["broken"]) for row in limits]
        rows["limits"] = sentences.limits_told(told, found["within"])
    if righted := [event.content for event in study.store.events(AMENDED)]:
        last = righted[-1]
        why = f" ({last['why']})" if last["why"] else ""
        rows["amended"] = f"{len(righted)}; the last: trial {last['trial']}{why}"
    if later := [row for row in told_later(study.store) if not row.counts]:
        rows["told later"] = f"{len(later)}, not counted; the last: trial {later[-1].trial}"
    if waiting:
        more = f" and {len(waiting) - SHOWN} more" if len(waiting) > SHOWN else ""
        word = "trials" if len(waiting) > 1 else "trial"
        rows["waiting"] = f"{word} {', '.join(map(str, waiting[:SHOWN]))}{more}"
    rows |= further_rows(study, found)
    if found["moves"]:
        k = found["pareto_k"]
        tail = f", Pareto k-hat {k:.2f}" if k is not None and isfinite(k) else ""
        rows["reuse"] = f"{found['samples']} results that count for {found['ess']:.1f}{tail}"
    return rows


def _best(study: Opened, found: Plain, best: tuple[int, float] | None, counted: int) -> str:
    broken, outside = found.get("broken", 0), found.get("outside", 0)
    if best is None:
        return sentences.no_best(broken, outside)
    return sentences.best_trial(*best, counted, study.goal, broken, outside)


def best_trial(found: tuple[Trial, float] | None) -> tuple[int, float] | None:
    """`Study.best` as `summary_rows` takes it."""
    return None if found is None else (found[0].id, found[1])
