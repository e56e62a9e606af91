"""Whether a study is what it should be: its bytes, its rows, its counters, its draws, its moves."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_path
from recoup.store.errors import sensible
from recoup.store.rows import FAILED, OK, REPEAT, SAMPLED
from recoup.study.exchange.replay import differences
from recoup.study.moves.again import SAME_MOVE, is_whole
from recoup.study.reader.opened import Opened


class Verdict(NamedTuple):
    """One thing that was looked at."""

    sound: bool
    words: str


def check(
    path: str | Path, tick: Callable[[int, int], None] = lambda done, of: None
) -> list[Verdict]:
    """Everything that can be verified about the study in `path`; nothing is changed.

    The last step makes every move again from the results alone.
    """
    path = check_path("the study's file", path)
    if not path.exists():
        raise InputError(f"there is no study in {path}.")
    try:
        study = Opened.open(path)
    except InputError as wrong:
        return [Verdict(False, str(wrong))]
    found: list[Verdict] = []
    steps = (_pages, _rows, _counters, _draws, partial(_moves, tick=tick))
    try:
        for step in steps:
            try:
                with sensible(path), study.store.reading():
                    found.append(step(study))
            except InputError as wrong:
                found.append(Verdict(False, str(wrong)))
            if not found[-1].sound:
                break
    finally:
        study.store.close()
    return found


def _pages(study: Opened) -> Verdict:
    """What SQLite says."""
    complaint = study.store.integrity()
    if complaint is None:
        return Verdict(True, "SQLite finds its pages in order.")
    return Verdict(
        False,
        f"SQLite finds the file damaged ({complaint}): `recoup study check {study.where} --recover "
        "NEW` saves what can be read.",
    )


def _rows(study: Opened) -> Verdict:
    """Every row against its checksum."""
    rows, wrong = study.store.damaged_rows()
    if not wrong:
        return _not_finite(study) or Verdict(True, f"All {rows:,} rows carry their checksums.")
    several = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return Verdict(
        False,
        f"the row {wrong[0]}{several} of {study.where} is damaged: `recoup study check "
        f"{study.where} --recover NEW` saves the others.",
    )


def _not_finite(study: Opened) -> Verdict | None:
    """The first distribution, theta or return that is not finite: it spoils all that follows."""
    for number, proposal in study.store.proposals().items():
        if not np.isfinite(proposal.numbers).all():
            return Verdict(False, f"distribution {number} is not made of finite numbers.")
    for trial, result in study.store.trials():
        value = None if result is None else result.told.value
        if not np.isfinite(trial.theta).all() or not np.isfinite(0.0 if value is None else value):
            return Verdict(False, f"trial {trial.id} has a theta or a return that is not finite.")
    return None


def _counters(study: Opened) -> Verdict:
    """The counters against the rows."""
    counters, trials = study.store.counters(), study.store.count()
    statuses = study.store.statuses()
    ok, failed = statuses.get(OK, 0), statuses.get(FAILED, 0)
    missing = counters.ok + counters.failed - ok - failed
    if missing or trials != counters.trials:
        return Verdict(
            False,
            f"{missing} results and {counters.trials - trials} trials of {study.where} are "
            "missing: its counters are higher than its rows.",
        )
    cancelled = len(study.store.cancelled())
    pending, none = trials - ok - failed - cancelled, f", {cancelled:,} cancelled"
    return Verdict(
        True,
        f"{trials:,} trials: {pending:,} pending, {ok:,} ok, {failed:,} failed"
        f"{none if cancelled else ''}.",
    )


def _draws(study: Opened) -> Verdict:
    """Every drawn theta against the seed and the distribution that it came from."""
    if "family" in study.missing:
        return Verdict(True, "Its family was given in Python: no draw was made again.")
    proposals = study.store.proposals()
    rhos = {number: study.rho(proposal.numbers) for number, proposal in proposals.items()}
    count, firsts, whole = 0, dict[int, int](), is_whole(study)
    for trial in study.store.asked(kinds=SAMPLED):
        if trial.proposal is None:
            continue
        first = firsts.setdefault(trial.proposal, trial.id)
        alone = trial.kind == REPEAT and first == trial.id
        if alone and not whole:
            continue  # what it repeats was lost
        number = first if trial.kind == REPEAT else trial.id
        drawn = study.drawn(rhos[trial.proposal], number, trial.kind)
        if alone or not np.array_equal(drawn, trial.theta):
            return Verdict(False, f"theta of trial {trial.id} is not the one that its seed draws.")
        count += 1
    return Verdict(True, f"All {count:,} drawn thetas are those of the seed.")


def _moves(study: Opened, tick: Callable[[int, int], None]) -> Verdict:
    if study.missing:
        were = f"{' and '.join(study.missing)} {'was' if len(study.missing) == 1 else 'were'}"
        return Verdict(True, f"Its {were} given in Python: no move was made again.")
    if not is_whole(study):
        return Verdict(True, "No move was made again: what it was recovered from was not whole.")
    found = differences(study, tick)
    if not found:
        return Verdict(True, "It has not moved yet.")
    number, worst = max(found, key=lambda pair: np.nan_to_num(pair[1], nan=np.inf))
    if not worst <= SAME_MOVE:
        return Verdict(
            False,
            f"move {number} does not follow from the results: it differs by {worst:.1e}. "
            "(Another version of recoup may have made it.)",
        )
    hint = " (another machine or version?)"
    exactly = "to the last bit" if worst == 0 else f"to {worst:.0e}{hint}"
    moves = "The one move follows" if len(found) == 1 else f"All {len(found):,} moves follow"
    return Verdict(True, f"{moves} from the results, {exactly}.")
