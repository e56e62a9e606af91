"""What a run has come to, as its study holds it, and whether that is still true of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recoup.core.types import Plain
from recoup.store.rows import AMENDED, DROP, Event, Told
from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import RUN
from recoup.study.run.beside import (
    BEST,
    BY_MOVE,
    POLICIES,
    POLICY,
    in_words,
    is_beyond,
    means_of,
    not_of,
    policies_beside,
)

FINISHED = "finished"  # the event that holds what a run has come to
EXTENDED = "extended"  # the event that holds another budget
FILES = ("curve.png", POLICY, f"{POLICIES}/{BEST}")  # that follow from it, beside those by move
PROPOSAL = "proposal"  # in the first: the distribution that was tested


def end_of(study: Opened) -> Plain | None:
    """What a run has come to: the final test of its newest distribution; None where it has none.

    So while it has rollouts to spend, also where it was extended, and once a move was made since,
    or made again of amended results.
    """
    with study.store.reading():
        end = _last_end(study)
        return end.content if end is not None and _is_of_now(study, end) else None


def was_finished(study: Opened) -> bool:
    """Whether a run came to an end that it has no longer."""
    with study.store.reading():
        end = _last_end(study)
        return end is not None and not _is_of_now(study, end)


def outdated(study: Opened) -> str | None:
    """A sentence about a final test that a run has no longer; None where there is none such.

    Or about the files that show its curve, where that alone is another now; or, before its end,
    about policies that were kept and are of before an amendment.
    """
    with study.store.reading():
        end = _last_end(study)
        if end is None:
            return _of_its_policies(study)
        if _is_of_now(study, end):
            return _of_its_curve(study, end)
        trials, move = _amended_since(study, end), study.store.last_move().id
    what = f"the amendment of trial {trials[-1]}" if trials else f"move {move}"
    if study.store.path is None:
        return f"The final test of this run is of before {what}: `recoup.resume` makes it again."
    files = _made_with_it(study.store.path.parent)
    if not files:
        return f"The final test of this run is of before {what}: {_resume(study)} makes it again."
    return (
        f"The final test of this run and the files made with it ({files}) are of "
        f"before {what}: {_resume(study)} makes them again."
    )


def _made_with_it(directory: Path) -> str:
    """The files that lie beside a run and follow from its end, in words."""
    here = [name for name in FILES if (directory / name).exists()]
    if here and any(BY_MOVE.fullmatch(path.name) for path in (directory / POLICIES).glob("*")):
        return f"{', '.join(here)} and others in {POLICIES}/"
    return in_words(here) if here else ""


def _of_its_policies(study: Opened) -> str | None:
    """A sentence about the policies beside a run that goes on, where an amendment changed them."""
    trials = _amended_since(study) if study.settings.get(RUN, {}).get("policy") else []
    beside = policies_beside(study) if trials and "family" not in study.missing else {}
    files = not_of(means_of(study), beside, finished=False) if beside else []
    if not files:
        return None
    one = len(files) == 1
    return (
        f"{in_words(files)} {'is' if one else 'are'} of before the amendment of trial "
        f"{trials[-1]}: {_resume(study)} makes {'it' if one else 'them'} again."
    )


def of_others(
    study: Opened, beside: Mapping[str, np.ndarray], means: np.ndarray, finished: bool
) -> str | None:
    """A sentence about files of policies beside a run that are none of its own; None without.

    `beside` are their parameters by name, read before the run was; `means` its own `[I + 1, D]`.
    """
    files = not_of(means, beside, finished)
    again = bool(study.settings[RUN].get("policy"))
    made = [name for name in files if again and not is_beyond(name, len(means) - 1)]
    others = [name for name in files if name not in made]
    words = []
    if made:
        one = len(made) == 1
        words.append(
            f"{in_words(made)} {'holds no policy' if one else 'hold no policies'} of this run: "
            f"{_resume(study)} makes {'it' if one else 'them'} again."
        )
    if others:
        verb = "is" if len(others) == 1 else "are"
        words.append(f"{in_words(others)} {verb} of another run: this has made no such policy.")
    return " ".join(words) or None


def _of_its_curve(study: Opened, end: Event) -> str | None:
    """A sentence about the files that show the curve of a run, where an amendment changed it."""
    trials = _of_the_curve_since(study, end)
    if not trials or study.store.path is None:
        return None
    return (
        f"{_files_of_its_curve(study)} are of before the amendment of trial {trials[-1]}: "
        f"{_resume(study)} makes them again."
    )


def _files_of_its_curve(study: Opened) -> str:
    plan = study.settings[RUN]
    kept = " and policies/best.npz" if plan.get("policy") and plan.get("keep_every") else ""
    return f"The files that follow from the curve of this run (curve.png{kept})"


def files_are_of_now(study: Opened, amended: int) -> None:
    """Writes the end of a run once more, where files of its curve were of before and are not now.

    `amended` is the last amendment that the files know of: since another they are of before.
    """
    if outdated(study) is None:
        return
    with study.store.writing():
        end = _last_end(study)
        known = study.store.last_amended() == amended
        if end is not None and known and _of_the_curve_since(study, end):
            study.store.note(FINISHED, end.content)


def _resume(study: Opened) -> str:
    """The command that makes files again; with its task, where that is code of the user's."""
    plan = study.settings[RUN]
    task = str(plan.get("task", ""))
    named = f" --task {task}" if plan.get("own") and ":" in task else ""
    return f"`recoup resume {Path(study.where).parent}{named}`"


def of_its_run(
    study: Opened, trial: int, moves: Sequence[int], told: Told, *, drop: bool, dry: bool
) -> str:
    """What an amendment of a trial means for the run of a study, if it has one.

    `moves` are those that were made again, and `told` is the result now; or would be, where it is
    `dry`.
    """
    if not dry:
        return outdated(study) or ""
    if end_of(study) is not None and moves:
        return "The final test of the run would be of before it."
    if end_of(study) is not None and _would_change_the_curve(study, trial, told, drop):
        return f"{_files_of_its_curve(study)} would be of before it."
    said = outdated(study)
    kept = moves and study.settings.get(RUN, {}).get("policy") and policies_beside(study)
    return said or ("Policies kept beside the run would be of before it." if kept else "")


def _would_change_the_curve(study: Opened, number: int, told: Told, drop: bool) -> bool:
    changes = drop or study.store.results([number])[number].told.value != told.value
    return changes and study.store.path is not None and bool(_of_the_curve(study, [number]))


def _last_end(study: Opened) -> Event | None:
    """The last end that a run has come to, unless it was extended since."""
    if RUN not in study.settings:
        return None
    events = study.store.events()
    ends = [event for event in events if event.kind == FINISHED]
    extended = max((event.id for event in events if event.kind == EXTENDED), default=-1)
    return ends[-1] if ends and ends[-1].id > extended else None


def _is_of_now(study: Opened, end: Event) -> bool:
    """Whether the newest distribution is the one that was tested."""
    return bool(end.content[PROPOSAL] == study.store.last_move().proposal)


def _amended_since(study: Opened, end: Event | None = None) -> list[int]:
    """The trials that were amended since an end, or ever, of which moves were made."""
    first = -1 if end is None else end.id
    since = (event.content for event in study.store.events(AMENDED) if event.id > first)
    return [content["trial"] for content in since if content["moves"]]


def _of_the_curve_since(study: Opened, end: Event) -> list[int]:
    """The trials that were amended since, of which points of the curve are made."""
    since = [event.content for event in study.store.events(AMENDED) if event.id > end.id]
    others = [x["trial"] for x in since if x[DROP] or x["was"][1] != x["now"][1]]
    return _of_the_curve(study, others) if others else []


def _of_the_curve(study: Opened, trials: list[int]) -> list[int]:
    """The trials, of some, of which points of the curve are made.

    On a task of the user's a point is made of the trials that a distribution has drawn, unless that
    was tested: so is the last.
    """
    if study.settings[RUN].get("tested", True):
        return []
    tested = {test.move for test in study.store.tests()}
    points = {move.proposal for move in study.store.moves() if move.id not in tested}
    drew = {trial.id: trial.proposal for trial in study.store.asked(trials)}
    return [number for number in trials if drew.get(number) in points]
