"""Other parameters for a new study: renamed, with other bounds, added or frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_number, nearest, shortly
from recoup.core.types import Given, Settings
from recoup.study.reader.batches import may_reach
from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import parameters_given
from recoup.study.space.charts import at_bounds, moved
from recoup.study.space.frozen import Frozen
from recoup.study.space.parameters import (
    Parameter,
    check_values,
    log_slope,
    places_of,
    spread_out,
    to_latent,
    to_user,
    value_of,
)
from recoup.study.space.parameters import checked as checked_parameters
from recoup.study.space.scales import EDGE

KEYS = ("params", "rename", "freeze")
SAME_VALUE = 1e-9  # relative, of a frozen parameter's value
RECENTRED, WIDEST = 2.0, 1.0  # latent: how far from the middle a mean is put that lies outside


class Change(NamedTuple):
    """From the parameters of a study to those of its fork."""

    before: tuple[Parameter, ...]
    after: tuple[Parameter, ...]
    source: tuple[int | None, ...]  # [P] where each was before; None: it is new
    was: tuple[float, ...]  # [P] what each new one was in all results so far
    frozen: dict[int, float]  # values of those that are searched no more, by their places before
    stay: tuple[Frozen, ...]  # those and what was frozen earlier, as people read them

    @property
    def keeps_dimensions(self) -> bool:
        """Whether none was added and none frozen, so that densities stay what they are."""
        return not self.frozen and None not in self.source

    @property
    def rest(self) -> "Change":
        """What is left to change where the frozen parameters are gone already."""
        left = [i for i in self.source if i is not None]
        source = tuple(None if i is None else left.index(i) for i in self.source)
        before = tuple(self.before[i] for i in left)
        return self._replace(before=before, source=source, frozen={})

    @property
    def keeps_bounds(self) -> bool:
        """Whether names alone have changed."""
        pairs = zip(self.before, self.after, strict=False)
        return self.keeps_dimensions and all(a.range == b.range for a, b in pairs)

    @property
    def columns(self) -> list[int | None]:
        """Where each latent number was before `[D]`; None: it is new."""
        places = _columns(self.before)
        found: list[int | None] = []
        for i, p in zip(self.source, self.after, strict=True):
            found += [None] * p.slots if i is None else places[i]
        return found

    def moved(self, theta: np.ndarray, under: Sequence[Parameter]) -> tuple[np.ndarray, np.ndarray]:
        """Latent thetas `[n, D]` in the fork's space, and which have a place there `[n]`.

        They are given in the latent space of the bounds that they were drawn `under`.
        """
        pairs = [(i, p) for i, p in zip(self.source, self.after, strict=True) if i is not None]
        old = [i for i in self.columns if i is not None]
        new = [j for j, i in enumerate(self.columns) if i is not None]
        found = np.empty((len(theta), len(self.columns)))
        kept, after = [under[i] for i, _ in pairs], [p for _, p in pairs]
        found[:, new], fits = moved(kept, after, theta[:, old])
        values = to_user(under, theta)
        for i, value in self.frozen.items():
            fits &= np.isclose(values[:, i], value, rtol=SAME_VALUE, atol=0.0)
        for j, place in enumerate(places_of(self.after)):
            if self.source[j] is None:
                found[:, place] = to_latent([self.after[j]], np.array([self.was[j]]))
        return found, fits

    def start(self, mean: np.ndarray, std: np.ndarray) -> tuple[list[float], list[float]]:
        """Where the fork starts: where the study has come to, or inside the bounds nearest to it.

        Standard deviations are such that a step is as long as it was in the user's units.
        """
        found: list[tuple[float, float]] = []
        places = _columns(self.before)
        for j, p in enumerate(self.after):
            i = self.source[j]
            if i is None:
                at = to_latent([p], np.array([self.was[j]]))
                at = np.where(np.abs(at) < EDGE / 2, at, np.sign(at) * RECENTRED)  # not in a corner
                found += [(float(z), p.std or 1.0) for z in at]
            elif self.before[i].range == p.range:
                found += [(float(mean[k]), float(std[k])) for k in places[i]]
            else:
                (k,) = places[i]
                found.append(_carried(self.before[i], p, mean[k : k + 1], float(std[k])))
        means, stds = zip(*found, strict=True)
        return list(means), list(stds)


def _columns(parameters: Sequence[Parameter]) -> list[list[int]]:
    """Which latent numbers each parameter has."""
    return [[*range(place.start, place.stop)] for place in places_of(parameters)]


def _carried(old: Parameter, new: Parameter, z: np.ndarray, std: float) -> tuple[float, float]:
    """The latent mean and standard deviation of a parameter under other bounds."""
    z = at_bounds([old], z)
    there, fits = moved([old], [new], z[None])
    if fits[0] and abs(there[0, 0]) < EDGE / 2:
        slopes = log_slope([old], z[None]) - log_slope([new], there)
        return float(there[0, 0]), min(std * float(np.exp(slopes[0, 0])), max(std, WIDEST))
    value = float(spread_out([old], z[None])[0, 0])
    above = new.high is not None and value >= new.high
    return (RECENTRED if above else -RECENTRED), min(std, WIDEST)


def change_of(study: Opened, given: Settings) -> Change | None:
    """The change that `params`, `rename` and `freeze` ask for; None where they ask for none."""
    if not any(given.get(key) for key in KEYS):
        return None
    if not study.parameters:
        raise InputError("only named parameters can be changed: this study's have no names.")
    renamed = _renamed(study, given.get("rename") or {})
    frozen = _frozen(study, renamed, given.get("freeze") or {})
    earlier = {row.name: row for row in study.frozen}
    after: dict[str, tuple[Parameter, int | None, float]] = {
        p.name: (p, i, np.nan) for i, p in enumerate(renamed) if i not in frozen
    }
    named = _with_values(given.get("params") or ())
    checked_parameters([p for p, _ in named] or list(renamed))  # none twice
    for p, was in named:
        if p.name not in after:
            p = _reaching(p, study.parameters)
            again = _again(p, was, earlier, [renamed[i].name for i in frozen])
            after[p.name] = (again[0], None, _value_of(*again, list(after)))
            continue
        old, i, _ = after[p.name]
        if was is not None:
            raise InputError(f"{p.name} is there already: leave out @{was}.")
        if _kind(p) != _kind(old):
            raise InputError(
                f"{p.name} cannot become {_kind(p)}: its results were rolled out at other values "
                "than it would stand for."
            )
        if p.choices != old.choices:
            raise InputError(
                f"the choices of {p.name} cannot change while it is searched: freeze it in a fork, "
                "and give it with others in a fork of that."
            )
        after[p.name] = (_as_before(p, old), i, np.nan)
    parameters, source, was_all = zip(*after.values(), strict=True) if after else ((), (), ())
    checked_parameters(parameters)
    stay = [row for name, row in earlier.items() if name not in after]
    stay += [_at(renamed[i], value) for i, value in frozen.items()]
    found = tuple(parameters), tuple(source), tuple(was_all)
    return Change(study.parameters, *found, frozen, tuple(stay))


def _kind(p: Parameter) -> str:
    """What the values of a parameter are."""
    return "a choice" if p.choices else "whole" if p.scale == "int" else "continuous"


def _as_before(p: Parameter, old: Parameter) -> Parameter:
    """A parameter that was there before: its unit, and how far beyond its bounds, unless said."""
    beyond = old.beyond if p.beyond is None and p.low is not None else p.beyond
    return replace(p, unit=p.unit or old.unit, beyond=beyond)


def _reaching(p: Parameter, others: Sequence[Parameter]) -> Parameter:
    """A parameter that is added: as far beyond its bounds as the others, unless it says."""
    farthest = max((one.beyond or 0.0 for one in others), default=0.0) or None
    return replace(p, beyond=farthest) if may_reach(p) and p.low is not None else p


def _again(
    p: Parameter, was: Given, earlier: Mapping[str, Frozen], frozen: Sequence[str]
) -> tuple[Parameter, Given]:
    """A new parameter and what it was so far; one that was frozen earlier stood at its value."""
    if p.name in frozen:
        raise InputError(f"{p.name} cannot be frozen and searched in one fork.")
    row = earlier.get(p.name)
    if row is None:
        return p, was
    if was is not None:
        raise InputError(f"{row.text} is frozen in this study: leave out @{was}.")
    return replace(p, unit=p.unit or row.unit), row.value


def _at(p: Parameter, value: float) -> Frozen:
    """A parameter that stays at a value, which is given as arrays of the user's units hold it."""
    if p.choices is not None:
        return Frozen(p.name, p.choices[int(value)], p.unit)
    return Frozen(p.name, int(value) if p.scale == "int" else value, p.unit)


def _renamed(study: Opened, names: Mapping[str, str]) -> list[Parameter]:
    known = [p.name for p in study.parameters]
    for name in names:
        if name not in known:
            raise InputError(f"there is no parameter {name!r} to rename.{nearest(name, known)}")
    for row in study.frozen:
        if row.name in names.values():
            raise InputError(f"{row.text} is frozen in {study.where}: choose another name.")
    found = [replace(p, name=names.get(p.name, p.name)) for p in study.parameters]
    return checked_parameters(found)


def _frozen(
    study: Opened, parameters: Sequence[Parameter], given: Settings | Sequence[str]
) -> dict[int, float]:
    """Values of the parameters that are searched no more; where none is said, the mean policy's."""
    given = [given] if isinstance(given, str) else given
    wanted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    names = [p.name for p in parameters]
    here = study.in_units(study.mean)
    found = {}
    for name, value in wanted.items():
        if name not in names:
            raise InputError(f"there is no parameter {name!r} to freeze.{nearest(name, names)}")
        i = names.index(name)
        found[i] = float(here[i]) if value is None else _checked(study.parameters[i], name, value)
    if len(found) == len(names):
        raise InputError("at least one parameter must be left to search.")
    return found


def _checked(p: Parameter, name: str, value: Given) -> float:
    """A value that a parameter can have, as arrays of the user's units hold it."""
    found = check_number(name, value_of(p, value))
    check_values([p], np.array([found]))
    return found


def _with_values(given: Given) -> list[tuple[Parameter, Given]]:
    """Parameters as they were given, each with what it was so far, if that is said."""
    if not isinstance(given, (Mapping, list, tuple)):
        raise InputError(f"params must be a mapping of names to bounds, got {shortly(given)}.")
    items = given.items() if isinstance(given, Mapping) else [(None, how) for how in given]
    found = []
    for name, how in items:
        was: Given = None
        if isinstance(how, str) and "@" in how:
            how, _, was = how.rpartition("@")
            was = was if "|" in how else _typed(was)
        if isinstance(how, Mapping) and "was" in how:
            was, how = how["was"], {key: value for key, value in how.items() if key != "was"}
        (parameter,) = parameters_given([how] if name is None else {name: how})
        found.append((parameter, was))
    return found


def _typed(text: str) -> float:
    """The number that stands after @."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"after @ stands a value, got {shortly(text)}.") from None


def _value_of(p: Parameter, was: Given, known: Sequence[str]) -> float:
    if was is None:
        typed, python = "0:1@0.3", "{'low': 0, 'high': 1, 'was': 0.3}"
        if p.choices:
            typed = f"{'|'.join(p.choices)}@{p.choices[0]}"
            python = f"{{'choices': {list(p.choices)}, 'was': {p.choices[0]!r}}}"
        raise InputError(
            f"{p.name} is new: say what it was in all results so far, as in {p.name}={typed}, in "
            f"Python {python}.{nearest(p.name, known)}"
        )
    return _checked(p, "was", was)
