"""R runs of one method: what each of them asks for, is told and would deploy."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from recoup.compare.checked import check_same_batch
from recoup.core.types import Array, Plain
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.tasks.bounded.box import Box


class Players(Protocol):
    """R runs of one method."""

    batch: int

    def ask(self, move: int) -> Any:
        """Parameters `[R, N, D]`."""

    def tell(self, move: int, theta: Array, returns: Array) -> None:
        """Their returns `[R, N]`."""

    def mean(self) -> Any:
        """The policies to deploy `[R, D]`."""

    def draw(self, noise: np.ndarray) -> Any:
        """What would be tried now `[R, n, D]`."""

    def close(self) -> None:
        """Ends what is still running."""


class StudyPlayer:
    """One run of a method of ours, moved as `recoup train` moves it: by a study in memory."""

    failures = True

    def __init__(self, settings: Plain, parts: Plain) -> None:
        """The settings of a study, and the parts of its method that only Python can give.

        Where a batch grows it does so by whole ones: it is asked in those of the first size.
        """
        self._study = Study.create(None, resolved(settings), parts)
        self.batch: int = self._study.settings["batch"]
        self._asked = list[int]()

    def ask(self) -> np.ndarray:
        """Parameters of the next batch."""
        trials = self._study.ask(self.batch)
        self._asked = [trial.id for trial in trials]
        return np.stack([trial.theta for trial in trials])

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """Their returns; one that is not a number is a failure."""
        told = [
            self._study.result(float(x)) if np.isfinite(x) else self._study.result(failed="none")
            for x in returns
        ]
        self._study.tell_all(list(zip(self._asked, told, strict=True)))

    def mean(self) -> np.ndarray:
        """The mean of the distribution, in units: the policy that `recommend` names."""
        return self._study.opened.in_units(self._study.mean)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What the noise becomes."""
        opened = self._study.opened
        return opened.in_units(np.asarray(opened.rho(opened.store.newest().numbers).theta(noise)))

    def close(self) -> None:
        """Forgets the study."""
        self._study.close()


class HostPlayers:
    """R runs, each an object of its own."""

    def __init__(self, name: str, peers: Sequence[Any]) -> None:
        self._peers, self.batch = peers, peers[0].batch
        check_same_batch(name, [peer.batch for peer in peers])
        self._worst = Worst(len(peers))

    def ask(self, move: int) -> np.ndarray:
        """Parameters of the next batch."""
        return np.stack([peer.ask() for peer in self._peers])

    def tell(self, move: int, theta: Array, returns: Array) -> None:
        """Tells each its own; one without any return so far is asked again."""
        filled = self._worst.filled(returns)
        for peer, asked, came, told in zip(self._peers, theta, returns, filled, strict=True):
            if getattr(peer, "failures", False):
                peer.tell(asked, np.where(np.isfinite(came), came, np.nan))
            elif np.isfinite(told).all():
                peer.tell(asked, told)

    def mean(self) -> np.ndarray:
        """What each would deploy."""
        return np.stack([peer.mean() for peer in self._peers])

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What each would try."""
        pairs = zip(self._peers, noise, strict=True)
        return np.stack([peer.draw(one) for peer, one in pairs])

    def close(self) -> None:
        """Ends those that run in threads of their own."""
        for peer in self._peers:
            if hasattr(peer, "close"):
                peer.close()


class Boxed:
    """One run of another library's method, which searches the unit box of a bounded task."""

    def __init__(self, box: Box, peer: Any) -> None:
        self._box, self._peer, self._asked = box, peer, np.empty(0)
        self.batch, self.failures = peer.batch, getattr(peer, "failures", False)

    def ask(self) -> np.ndarray:
        """Candidates of the next batch, in units."""
        self._asked = np.clip(self._peer.ask(), 0.0, 1.0)
        return self._box.units(self._asked)

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """Their returns."""
        self._peer.tell(self._asked, returns)

    def mean(self) -> np.ndarray:
        """What it would deploy, in units."""
        return self._box.units(self._peer.mean())

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it would try, in units."""
        return self._box.units(self._peer.draw(noise))

    def close(self) -> None:
        """Ends it, where it can be ended."""
        if hasattr(self._peer, "close"):
            self._peer.close()


class Worst:
    """The worst return of each run so far: what a failed episode counts as for other libraries.

    Before the first return of a run there is none.
    """

    def __init__(self, runs: int) -> None:
        self._worst = np.full(runs, np.inf)

    def filled(self, returns: Array) -> np.ndarray:
        """Returns `[R, N]`, every one of them a number, or NaN all through a run without any."""
        returns = np.array(returns, float)
        held = np.isfinite(returns)
        lowest = np.where(held, returns, np.inf).min(1)
        self._worst = np.minimum(self._worst, lowest)
        worst = np.where(np.isfinite(self._worst), self._worst, np.nan)
        return np.where(held, returns, worst[:, None])
