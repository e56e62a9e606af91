"""Files of policies that lie beside the study of a run, and whether they hold policies of it."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import RUN

STUDY = "study.db"  # in the directory of a run
POLICY = "policy.npz"  # the newest
POLICIES, BEST = "policies", "best.npz"  # those kept beside it, and one of these
FILES_NAMED = 3  # files that are named one by one
BY_MOVE = re.compile(r"\d{6,}\.npz")


def policies_beside(study: Opened) -> dict[str, np.ndarray]:
    """The parameters in the files of policies beside a run's study, by their names there.

    What cannot be read says so itself once it is loaded.
    """
    if RUN not in study.settings or study.store.path is None or study.store.path.name != STUDY:
        return {}
    directory = study.store.path.parent
    kept = sorted((directory / POLICIES).glob("*.npz"))
    wanted = [path for path in kept if path.name == BEST or BY_MOVE.fullmatch(path.name)]
    found = {path: theta_in(path) for path in (directory / POLICY, *reversed(wanted))}
    return {str(p.relative_to(directory)): x for p, x in found.items() if x is not None}


def theta_in(path: Path) -> np.ndarray | None:
    """The parameters in the file of a policy; None where there are none."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays["theta"])
    except Exception:  # whatever a file may hold
        return None


def not_of(means: np.ndarray, beside: Mapping[str, np.ndarray], finished: bool) -> list[str]:
    """The files whose policy is none of those `[I + 1, D]` after each move of a run.

    One that is named by a move must hold that of this move, `policy.npz` of a `finished` run that
    of the last.
    """
    return [name for name, theta in beside.items() if not _is_of(means, name, theta, finished)]


def _is_of(means: np.ndarray, name: str, theta: np.ndarray, finished: bool) -> bool:
    which = Path(name)
    if which.stem.isdigit():
        means = means[int(which.stem) :][:1]
    elif which.name == POLICY and finished:
        means = means[-1:]
    return any(np.array_equal(mean, theta) for mean in means)


def is_beyond(name: str, last: int) -> bool:
    """Whether a file is named by a move that a run with so many has not made."""
    return Path(name).stem.isdigit() and int(Path(name).stem) > last


def means_of(study: Opened) -> np.ndarray:
    """The mean policies `[I + 1, D]` after each move of a run, the start first."""
    moves = study.store.moves()
    proposals = study.store.proposals({move.proposal for move in moves})
    return np.stack([study.shown(proposals[move.proposal].numbers)[0] for move in moves])


def in_words(names: Iterable[str]) -> str:
    """`policy.npz, policies/best.npz and 5 others in policies/`."""
    first, others = list(names)[:FILES_NAMED], list(names)[FILES_NAMED:]
    if others:
        return f"{', '.join(first)} and {len(others)} more in {POLICIES}/"
    *before, last = first
    return f"{', '.join(before)} and {last}" if before else last
