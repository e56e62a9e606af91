"""A new study that starts from all results of another."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from recoup.checks import InputError, check_mapping, check_start
from recoup.core.movers import is_mover
from recoup.core.types import Plain, Settings
from recoup.engine.methods import Method, family_name, known_method, settings_of
from recoup.store.errors import Damaged, damage
from recoup.store.protocol import Storage
from recoup.store.rows import FOREIGN, OWN, SAMPLED, START, Asked, Memory, Proposal
from recoup.store.store import Store
from recoup.study.exchange.carried_over import (
    AWAY,
    NEARBY,
    THAWED,
    Freezing,
    freezing_of,
    nearby,
)
from recoup.study.exchange.change import KEYS, Change, change_of
from recoup.study.exchange.duplicates import ASKED, asked_when
from recoup.study.exchange.samples import IMPORTED
from recoup.study.moves.study_move import check_charts
from recoup.study.reader.batches import LATER, check_not_given
from recoup.study.reader.opened import Opened, check_own_family
from recoup.study.reader.settings import (
    CHARTS,
    OF_RESULTS,
    STEPPING,
    UNITS,
    as_said,
    is_part,
    method_of,
    of_the_problem,
    parameters_given,
    parts_given,
)
from recoup.study.space.candidates import means_given, stds_given
from recoup.study.space.charts import chart_of, charted
from recoup.study.space.frozen import FROZEN, in_words
from recoup.study.space.goals import goal_of, turned_row
from recoup.study.space.limits import LIMITS, WITHIN, are_none, check_no_parameters, limits_of
from recoup.study.space.parameters import Parameter, plain, units_of
from recoup.study.trials.diary import copy_writing

KEPT = ("dim", "horizon", "actions", "discount")  # by every fork
FORKED = "forked"  # the event of a fork
WAITING, IN_LINE = "waiting", "enqueued"  # in it: how many trials and thetas stayed behind
GIVEN: dict[str, Callable[..., np.ndarray]] = {"mean": means_given, "std": stds_given}
MOVED = tuple(GIVEN)


def fork(study: Opened, path: Path, changes: Settings) -> tuple[Store, Plain]:
    """The file of a new study with all results of `study`, and its parts that only Python gives.

    `changes` are settings of the new one: method, batch, seed, mean (in the user's units), std, or
    any of the method; `params`, `rename` and `freeze` change its parameters. Unless they say
    otherwise it starts where `study` has come to, with the memory of the same update rule. Trials
    are numbered on from there, so that no draw is repeated; those that wait for a result, and
    results that were dropped, stay behind. Its title and notes come along.
    """
    if path.exists():
        raise InputError(f"{path} exists already: name another file for the fork.")
    with study.store.reading():  # settings, start and results of one state of the file
        return _forked(study, path, changes)


def _forked(study: Opened, path: Path, changes: Settings) -> tuple[Store, Plain]:
    """What `fork` gives, once nothing that others write can be seen."""
    change = change_of(study, changes)
    changes = {key: value for key, value in changes.items() if key not in KEYS}
    _check_kind(study, changes)
    settings, parts = _settings(study, changes, change)
    row = method_of(settings, parts)
    if row.mirrored:
        raise InputError("a study with mirrored sampling takes no samples from elsewhere.")
    if family_name(row) != study.family:
        raise InputError(
            f"a fork keeps the family of its study, {study.family}: its densities are of that "
            "family."
        )
    if study.has_own_family:
        check_own_family(study, row)
    _check_exact(study, row, change)

    def copy(new: Store) -> None:
        found = _copy(study, new, change)
        new.set_last(study.store.counters().last)
        copy_writing(study.store, new)
        timed = asked_when(study.store).intersection(trial.id for trial in new.asked())
        behind = {WAITING: study.store.count(told=False), IN_LINE: study.store.enqueued()}
        earlier = [event.content.get(NEARBY, []) for event in study.store.events(FORKED)[-1:]]
        found |= nearby(study, new, change, *earlier)
        new.note(FORKED, {"of": study.where, **found, **behind, ASKED: sorted(timed)})

    start, memory = _start(study, settings, changes, change)
    return Store.create(path, settings, start, memory, copy), parts


def _check_exact(study: Opened, row: Method, change: Change | None) -> None:
    """Raises where the densities of old results cannot be known in the new latent space."""
    other_space = change is not None and not change.keeps_bounds
    if other_space and study.has_own_family:
        raise InputError(
            f"only Python knows the family {study.family}, and only in the space that it was drawn "
            "in: only names of its parameters can be changed. Start another study with the other "
            "parameters."
        )
    correlated = study.starts_as != study.family
    if other_space and correlated and not row.way.any_bounds:
        raise InputError(
            f"in another space (other bounds, a parameter added or frozen) the correlations of the "
            f"family {study.family} are no longer those of a Gaussian, which {row.name} needs: "
            "only names can be changed (or fork it with method='recoup', which does not)."
        )
    if _charts(study, change):
        check_charts(row, study.dim)


def _settings(study: Opened, changes: Settings, change: Change | None) -> tuple[Plain, Plain]:
    """All settings of the fork, and those of its parts that only Python can give."""
    check_not_given(changes)
    name = changes.get("method", study.method.name)
    if name == study.method.name:  # with the settings that it has, not with those of today
        changes = {key: value for key, value in changes.items() if key != "method"}
    keys = ("dim", "batch", "seed", "params", *OF_RESULTS)
    given = {key: study.settings[key] for key in keys if key in study.settings}
    if LIMITS in changes and are_none(changes[LIMITS]):
        given.pop(WITHIN, None)
    if study.method.space == "actions":
        given |= {key: study.settings[key] for key in ("horizon", "actions", "discount")}
    if name == study.method.name:
        given |= _method_as_it_is(study, changes)
    elif study.method.space == "parameters" and not isinstance(name, Method):
        given["defaults"] = of_the_problem(turned_row(study.method, study.sign))
    here = {"mean": study.mean.tolist(), "std": study.std.tolist()}
    if change is not None:
        given |= {"dim": len(change.after), "params": plain(change.after)}
        here = dict(zip(MOVED, change.start(study.mean, study.std), strict=True))
    named = {key: changes[key] for key in MOVED if isinstance(changes.get(key), Mapping)}
    given |= {key: value for key, value in changes.items() if key not in named}
    parameters = study.parameters if change is None else change.after
    units = units_of(parameters)
    given[UNITS] = {**units, **check_mapping("units", changes.get(UNITS) or {})}
    found = as_said(given, study.goal)
    _check_changed(study, changes, found)
    if charts := _charts(study, change):
        found[CHARTS] = [plain(bounds) for bounds in charts]
    if stay := study.frozen if change is None else change.stay:
        found[FROZEN] = [row._asdict() for row in stay]
    for key, how in named.items():
        found[key] = GIVEN[key](parameters, how, here[key]).tolist()
    if any(key in changes for key in MOVED):
        check_start(found["mean"], found["std"])
    found |= {key: value for key, value in here.items() if key not in changes}
    return found, parts_given({**given.get("defaults", {}), **changes})


def _method_as_it_is(study: Opened, changes: Settings) -> Plain:
    """The method that a study has, with its settings, and how its batch grows."""
    if not study.missing.keys() <= changes.keys():
        study.check_whole()
    found: Plain = {"method": study.method, "defaults": _method_settings(study)}
    if "batch" not in changes and LATER in study.settings:
        found[LATER] = study.settings[LATER]
    return found


def _check_changed(study: Opened, changes: Settings, found: Settings) -> None:
    """Raises where what was changed does not go with what was not."""
    if LIMITS in changes:
        check_no_parameters(limits_of(found), parameters_given(found.get("params")))
    goal, failure = goal_of(found), found.get("failure", "")
    if goal != study.goal and "failure" not in changes and not isinstance(failure, str):
        raise InputError(
            f"failing is worth {failure:g} in {study.where}, where {study.goal.better}: where "
            f"{goal.better}, say it anew (failure={abs(failure) * -goal.sign:g}, or avoid)."
        )


def _method_settings(study: Opened) -> Plain:
    """The settings of a study's method, those that only Python can give as they were given."""
    row = study.method
    return {
        key: getattr(row, key) if is_part(key, getattr(row, key)) else study.settings[key]
        for key in settings_of(row)
        if key in study.settings
    }


def _check_kind(study: Opened, changes: Settings) -> None:
    """Raises unless the fork can use the results of `study`."""
    for key in changes:
        if key in KEPT:
            raise InputError(f"a fork keeps the parameters of its study: leave out {key}.")
    row = known_method(changes.get("method", study.method))
    if row.space != study.method.space:
        raise InputError(
            f"{row.name} cannot use the results of {study.method.name}: one explores in "
            "parameters, the other in actions."
        )


def _charts(study: Opened, change: Change | None) -> list[tuple[Parameter, ...]]:
    """The bounds, other than the fork's own, under which its results were drawn."""
    if change is None or change.keeps_bounds:
        return study.charts
    if change.keeps_dimensions:
        return [*study.charts, study.parameters]
    freezing = freezing_of(study, change)
    return [freezing.rest.before] if freezing is not None and freezing.chart else []


def _start(
    study: Opened,
    settings: Settings,
    changes: Settings,
    change: Change | None,
) -> tuple[Proposal, Memory]:
    """Where the fork starts: what the study has come to, correlations and memory included.

    A start of one's own has neither; another update rule has no use for the memory.
    """
    given = any(key in changes for key in MOVED)
    if given or (change is not None and not change.keeps_bounds):
        numbers = study.start(settings["mean"], settings["std"])
        if change is not None and not given:
            here, newest = (np.asarray(settings[key]) for key in MOVED), study.store.newest()
            numbers = study.rho(newest.numbers).rearranged(change.columns, *here).packed()
        return Proposal(0, START, study.family, numbers), None
    same = all(settings.get(key) == study.settings.get(key) for key in STEPPING)
    same &= goal_of(settings) == study.goal
    same &= limits_of(settings) == study.limits  # by which it saw returns
    same &= not is_part("update", changes.get("update"))  # of which nobody knows that it is
    same &= _steps_alike(study, settings, changes)
    memory = study.store.last_move().memory if same else None
    return Proposal(0, START, study.family, study.store.newest().numbers), memory


def _steps_alike(study: Opened, settings: Settings, changes: Settings) -> bool:
    """Whether a rule or a mover that has a memory of its own is the one that the study has."""
    rows = study.method, known_method(changes.get("method", study.method))
    if not any(row.way.rule or row.way.mover for row in rows):
        return True
    given = changes.get("method")
    other = is_mover(given) and given is not study.parts.get("direction")  # of which nobody knows
    return settings["method"] == study.settings["method"] and not other


def _copy(study: Opened, new: Storage, change: Change | None) -> dict[str, int]:
    """All results of a study, as samples that the new study did not draw itself.

    How many of them lie outside of new bounds (they were drawn, and no candidate has any density
    there), how many have no place at all, and how many count as results but not for moves.
    """
    old = study.store
    here: dict[int, int] = {}  # the numbers of proposals in the fork, by those in the study
    if change is None or change.keeps_dimensions:
        for proposal in old.proposals().values():
            family = _family(study, proposal, change)
            here[proposal.id] = new.add_proposals(IMPORTED, family, [proposal.numbers])
    at = old.told_first()
    told = sorted(old.results().values(), key=lambda row: (at.get(row.id, row.told_at), row.id))
    asked = {trial.id: trial for trial in old.asked(result.id for result in told)}
    trajectories = old.trajectories()
    found, nothing = {"outside": 0, "left_out": 0, "unweighed": 0, "near": 0}, old.dropped()
    freezing = None if change is None else freezing_of(study, change)
    drew: dict[bytes, int] = {}
    for result in (one for one in told if one.id not in nothing):
        kept = result.told._replace(trajectory=trajectories.get(result.id))
        if freezing is None:
            placed, what = _placed(study, asked[result.id], change, here)
        else:
            placed, what = _fewer(study, asked[result.id], freezing, new, drew)
            found |= {"frozen": len(freezing.going), "exact": int(freezing.is_exact)}
        if what:
            found[what] += 1
        if placed is not None:
            new.add_trials([placed])
            new.add_result(placed.id, kept)
    return found


def forked_words(study: Opened, of: object) -> str:
    """What a fork starts from, in a sentence or two."""
    counters = study.store.counters()
    found = study.store.events(FORKED)[-1].content
    results = f"{counters.ok} result{'' if counters.ok == 1 else 's'}"
    said = [f"starts from {results} of {of} ({study.goal.better})"]
    if found["outside"]:
        one = found["outside"] == 1
        said.append(
            f"{found['outside']} of them {'lies' if one else 'lie'} outside of the new bounds: "
            f"{'it counts' if one else 'they count'} as drawn, and for nothing else"
        )
    if found.get("near"):
        near = f"stood near what is frozen (within {AWAY:g} of its standard deviation) and count as"
        where = "had what is frozen and count" if found.get("exact") else f"{near} if there"
        said.append(f"{found['near']} that were drawn {where}, with the densities that drew them")
    if found["left_out"]:
        why = "stood elsewhere"
        if not found.get("frozen"):
            why = f"{'has' if found['left_out'] == 1 else 'have'} no place among its parameters"
        said.append(f"{found['left_out']} {why} and are left out")
    if found.get(THAWED):
        said.append(
            f"{found[THAWED]} of them stood near the value that was frozen, not at it, and stand "
            "at it here: what it was in them is in the study that froze it"
        )
    if found["unweighed"]:
        said.append(
            f"{found['unweighed']} stand at one value of a parameter that is drawn from now on (or "
            "was before): they count for `recommend` and `best`, not for moves"
        )
    if study.frozen:
        stays = "stays" if len(study.frozen) == 1 else "stay"
        said.append(f"{in_words(study.frozen)} {stays} so in every trial")
    behind = _behind_words(found, of)
    return "; ".join([*said, behind] if behind else said)


def _behind_words(found: Settings, of: object) -> str:
    """That trials without a result stay in the old study; nothing where there are none."""
    waiting, in_line = found.get(WAITING, 0), found.get(IN_LINE, 0)
    wait = f"{waiting} that {'waits' if waiting == 1 else 'wait'} for a result"
    both = [text for n, text in ((waiting, wait), (in_line, f"{in_line} in line")) if n]
    verb = "stays" if waiting + in_line == 1 else "stay"
    return f"{' and '.join(both)} {verb} in {of}" if both else ""


def _family(study: Opened, proposal: Proposal, change: Change | None) -> str:
    """The name of a proposal's family in the fork: under which bounds it is Gaussian."""
    name, _, _ = proposal.family.partition(":")
    if name != study.family or chart_of(proposal.family) > len(study.charts):
        raise Damaged(damage(study.where, f"a distribution of {proposal.family[:40]!r}"))
    if change is None or change.keeps_bounds or chart_of(proposal.family):
        return proposal.family
    return charted(proposal.family, len(study.charts) + 1)


def _fewer(
    study: Opened, trial: Asked, freezing: Freezing, new: Storage, drew: dict[bytes, int]
) -> tuple[Asked | None, str]:
    """A trial in a fork of fewer parameters, if it is near it, and what became of it.

    `drew` are the distributions that the fork has already, by their numbers.
    """
    theta, inside = study.here(trial)
    if not inside or not freezing.is_near(theta):
        return None, "left_out"
    drawn, adds = trial.kind in (*SAMPLED, FOREIGN), not freezing.rest.keeps_dimensions
    there, fits = freezing.moved(theta)
    if drawn and not adds and study.parameters_of(trial.proposal) == study.parameters:
        block = freezing.drew(study, trial)
        if block.tobytes() not in drew:
            family = charted(study.family, freezing.chart)
            drew[block.tobytes()] = new.add_proposals(IMPORTED, family, [block])
        number, kept = drew[block.tobytes()], theta[freezing.kept]
        placed = trial._replace(kind=FOREIGN, theta=kept, proposal=number)
        return placed, "near" if fits else "outside"
    if not fits:
        return None, "left_out"
    # what was tried at the mean may not be at it now; what other bounds drew is no Gaussian's
    kind = trial.kind if not drawn and freezing.is_at(theta) else OWN
    placed = trial._replace(kind=kind, theta=there, proposal=None)
    return placed, "unweighed" if drawn or adds else ""


def _placed(
    study: Opened, trial: Asked, change: Change | None, here: Mapping[int, int]
) -> tuple[Asked | None, str]:
    """A trial as the fork has it, if it has a place there, and what became of it.

    What a distribution drew keeps its theta, in the latent space of that distribution. `here` has
    the numbers of proposals in the fork: those of a recovered study may lack some in between.
    """
    drawn = trial.kind in (*SAMPLED, FOREIGN)
    drew = None if trial.proposal is None else here.get(trial.proposal)
    moved = trial._replace(kind=FOREIGN if drawn else trial.kind, proposal=drew)
    if change is None:
        return moved, ""
    under = study.parameters_of(trial.proposal)
    theta, fits = change.moved(trial.theta[None], under)
    if change.keeps_dimensions and drawn:
        return moved, "" if fits[0] else "outside"
    if not fits[0]:
        return None, "left_out"
    kept = moved._replace(theta=theta[0], kind=OWN if drawn else trial.kind, proposal=None)
    return kept, "unweighed" if drawn or not change.keeps_dimensions else ""
