"""A new study that starts from all results of another."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recoup.checks import InputError
from recoup.engine.methods import Method, known_method
from recoup.store.rows import DRAWN, FOREIGN, MIRROR, START, Asked, Memory, Proposal
from recoup.store.store import Store
from recoup.study.opened import Opened
from recoup.study.samples import IMPORTED
from recoup.study.settings import (
    STEPPING,
    family_name,
    is_part,
    method_of,
    of_the_problem,
    resolved,
)

KEPT = ("dim", "params", "horizon", "actions", "discount")  # by every fork
MOVED = ("mean", "std")


def fork(study: Opened, path: Path, changes: Mapping[str, Any]) -> tuple[Store, dict[str, Any]]:
    """The file of a new study with all results of `study`, and its parts that only Python gives.

    `changes` are settings of the new one: method, batch, seed, mean (in the user's units), std, or
    any of the method. Unless they say otherwise it starts where `study` has come to, with the
    memory of the same update rule. Trials are numbered on from there, so that no draw is repeated;
    those that wait for a result stay behind.
    """
    if path.exists():
        raise InputError(f"{path} exists already: name another file for the fork.")
    _check_kind(study, changes)
    with study.store.reading():
        settings, parts = _settings(study, changes)
    row = method_of(settings, parts)
    if row.mirrored:
        raise InputError("a study with mirrored sampling takes no samples from elsewhere.")
    if family_name(row) != study.family:
        raise InputError(
            f"a fork keeps the family of its study, {study.family}: its densities are of that "
            "family."
        )

    def copy(new: Store) -> None:
        _copy(study.store, new)
        new.set_last(study.store.counters().last)
        new.note("forked", {"of": str(study.path)})

    with study.store.reading():
        start, memory = _start(study, settings, changes)
        return Store.create(path, settings, start, memory, copy), parts


def _settings(study: Opened, changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All settings of the fork, and those of its parts that only Python can give."""
    name = changes.get("method", study.method.name)
    keys = ("dim", "batch", "seed", "params")
    given = {key: study.settings[key] for key in keys if key in study.settings}
    if study.method.space == "actions":
        given |= {key: study.settings[key] for key in ("horizon", "actions", "discount")}
    if name == study.method.name:
        if not study.missing.keys() <= changes.keys():
            study.check_whole()
        given["method"] = study.method
        given["defaults"] = study.method_settings()
    elif study.method.space == "parameters" and not isinstance(name, Method):
        given["defaults"] = of_the_problem(study.method)
    given |= changes
    found = resolved(given)
    here = {"mean": study.mean.tolist(), "std": study.std.tolist()}
    found |= {key: value for key, value in here.items() if key not in changes}
    both = {**given.get("defaults", {}), **changes}
    return found, {key: value for key, value in both.items() if is_part(key, value)}


def _check_kind(study: Opened, changes: Mapping[str, Any]) -> None:
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


def _start(
    study: Opened, settings: Mapping[str, Any], changes: Mapping[str, Any]
) -> tuple[Proposal, Memory]:
    """Where the fork starts: what the study has come to, correlations and memory included.

    A start of one's own has neither; another update rule has no use for the memory.
    """
    if any(key in changes for key in MOVED):
        numbers = study.start(settings["mean"], settings["std"])
        return Proposal(0, START, study.family, numbers), None
    same = all(settings.get(key) == study.settings.get(key) for key in STEPPING)
    same &= not is_part("update", changes.get("update"))  # of which nobody knows that it is
    memory = study.store.last_move().memory if same else None
    return Proposal(0, START, study.family, study.store.newest().numbers), memory


def _copy(old: Store, new: Store) -> None:
    """All results of a study, as samples that the new study did not draw itself."""
    first = 0
    for proposal in old.proposals().values():
        number = new.add_proposals(IMPORTED, proposal.family, [proposal.numbers])
        first = first or number - proposal.id
    told = sorted(old.results().values(), key=lambda result: (result.told_at, result.id))
    asked = {trial.id: trial for trial in old.asked(result.id for result in told)}
    trajectories = old.trajectories()
    for result in told:
        trial = asked[result.id]
        drawn = trial.kind in (DRAWN, MIRROR, FOREIGN)
        drew = None if trial.proposal is None else trial.proposal + first
        kind = FOREIGN if drawn else trial.kind
        new.add_trials([Asked(trial.id, kind, drew, trial.theta, trial.seed)])
        new.add_result(trial.id, result.told._replace(trajectory=trajectories.get(trial.id)))
