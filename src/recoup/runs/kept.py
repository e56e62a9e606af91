"""Policies that a run keeps beside the newest, in `policies/`: every k-th, and the best so far.

All of them follow from the study: what is missing, or holds something else, is written again, so
that a run that was killed and resumed has the files of one that never stopped.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.runs.history import HistoryRow, history_of
from recoup.runs.problem import Acting
from recoup.study.reader.opened import Opened
from recoup.study.run.beside import BEST, POLICIES, POLICY, theta_in
from recoup.tasks.measured import Measured
from recoup.tasks.policies.policy_files import is_saved, save_policy

LAST = "last"  # which policy: the newest, the best or the number of a move
KEPT_EACH = 100  # policies that lie as near to each other as was asked for


class KeptPolicy(NamedTuple):
    """The mean policy after a move, in a file of its own.

    >>> pole = recoup.train("CartPole-v1", iterations=2, seed=0, test_episodes=2, out="runs/pole")
    >>> [kept.path.name for kept in pole.policies()]
    [...]
    """

    move: int  # its number
    path: Path  # of the file


def is_kept(every: int, move: int) -> bool:
    """Whether the policy after a move is kept: every k-th, fewer the longer a run gets.

    Every k-th up to a hundred of them, every second of these up to twice as many moves, every
    fourth up to four times, and so on: fifty files each time that a run gets twice as long. It
    depends on the number alone, so that a run that is stopped or extended keeps what it has.
    """
    if not every or not move:
        return False
    return move % (every << ((move - 1) // (every * KEPT_EACH)).bit_length()) == 0


def best_of(steps: Sequence[HistoryRow]) -> HistoryRow | None:
    """The highest point of a curve, the newest of equals; None where nothing was measured.

    Of many noisy points the highest is so partly by luck: it says which, not what it is worth.
    """
    measured = [one for one in steps if one.curve_episodes > 1 and np.isfinite(one.return_curve)]
    return max(measured, key=lambda one: (one.return_curve, one.iteration), default=None)


def keep_policies(
    directory: Path,
    acting: Acting,
    opened: Opened,
    every: int,
    end: Measured | None = None,
    *,
    whole: bool = False,
) -> None:
    """Writes the policies that a run keeps, as far as it has come.

    `end` is what the newest distribution earns, where its study does not have that yet. What a run
    has written itself is known by its parameters; of other files the `whole` is looked at.
    """
    history = history_of(opened)
    steps, last = history.steps, history.steps[-1]
    if end is not None and opened.store.test(last.iteration) is None:
        last = replace(last, return_curve=end.mean, curve_episodes=end.episodes)
        steps = [*steps[:-1], last]
    files = _kept_files(directory, steps, history.mean, every)
    write_policies(unlike(files, acting if whole else None), acting)


def policy_files(directory: Path, opened: Opened, every: int) -> dict[Path, np.ndarray]:
    """The parameters `[D]` that the files of a finished run must hold, `policy.npz` among them."""
    history = history_of(opened)
    steps, means = history.steps, history.mean
    kept = _kept_files(directory, steps, means, every) if every and len(means) > 1 else {}
    return {directory / POLICY: means[-1], **kept}


def _kept_files(
    directory: Path, steps: Sequence[HistoryRow], means: np.ndarray, every: int
) -> dict[Path, np.ndarray]:
    """The parameters `[D]` that the files in `policies/` must hold, of those after each move."""
    wanted = {name_of(move): move for move in range(len(means)) if is_kept(every, move)}
    best = best_of(steps)
    if best is not None:
        wanted[BEST] = best.iteration
    return {directory / POLICIES / name: means[move] for name, move in wanted.items()}


def unlike(
    files: Mapping[Path, np.ndarray], acting: Acting | None = None
) -> dict[Path, np.ndarray]:
    """Those of some files that are missing, or hold something else than they must.

    Other parameters; where the policy that is `acting` is known, anything else too.
    """
    return {path: theta for path, theta in files.items() if not _holds(path, theta, acting)}


def write_policies(files: Mapping[Path, np.ndarray], acting: Acting) -> None:
    """Writes policies with these parameters; in `policies/` in place of anything.

    A link there too, and not what it leads to, which may be another policy.
    """
    policy, between = acting
    for path, theta in files.items():
        kept = path.parent.name == POLICIES
        if kept:
            path.parent.mkdir(exist_ok=True)
        if kept and path.is_symlink():
            path.unlink()
        save_policy(path, policy, theta, between, force=kept)


def _holds(path: Path, theta: np.ndarray, acting: Acting | None) -> bool:
    """Whether a file has what it must; one that cannot be read has not."""
    found = theta_in(path)
    if found is None or not np.array_equal(found, theta):
        return False
    return acting is None or is_saved(path, acting[0], theta, acting[1])


def name_of(move: int) -> str:
    """The name of the file of a policy, in the order of moves."""
    return f"{move:06d}.npz"


def kept_in(directory: Path | None) -> list[KeptPolicy]:
    """The policies that are kept in a run directory, by move; the best is among them or beside."""
    place = None if directory is None else directory / POLICIES
    if place is None or not place.is_dir():
        return []
    found = [path for path in place.iterdir() if re.fullmatch(r"\d{6,}\.npz", path.name)]
    return sorted(KeptPolicy(int(path.stem), path) for path in found)


def chosen_move(steps: Sequence[HistoryRow], which: str | int) -> int:
    """The move whose policy is meant by "last", "best" or its number."""
    if which == LAST:
        return steps[-1].iteration
    if which == "best":
        best = best_of(steps)
        if best is None:
            raise InputError("no policy of this run is known to be the best: none was measured.")
        return best.iteration
    whole = isinstance(which, (int, np.integer)) and not isinstance(which, bool)
    if not whole or not 0 <= int(which) <= steps[-1].iteration:
        raise InputError(
            f"which must be last, best or a move from 0 to {steps[-1].iteration}, got {which!r}."
        )
    return int(which)
