"""What of its study's results a fork can use that no longer searches some parameters.

A result counts where its frozen parameters stood near the values they have from now on. What drew
it is then known exactly: the Gaussian of the other parameters, given where the frozen ones stood.
That its return is one of nearby values, and not of these, is all that is left out of account.
"""

from typing import NamedTuple

import numpy as np

from recoup.store.rows import Asked
from recoup.study.change import CLOSE, Change
from recoup.study.opened import Opened
from recoup.study.parameters import Parameter, to_latent, to_user

NEAR = 0.5  # standard deviations of the newest distribution, latent: from there it is another place


class Freezing(NamedTuple):
    """Which coordinates go and which stay, and where those that go are kept."""

    parameters: tuple[Parameter, ...]  # [D] of the study
    frozen: list[int]
    kept: list[int]
    values: np.ndarray  # [F] of those that are frozen, in the user's units
    latent: np.ndarray  # [F] likewise
    reach: np.ndarray  # [F] latent

    def is_near(self, theta: np.ndarray) -> bool:
        """Whether a latent theta `[D]` has the frozen parameters near their values.

        A whole number must be the same one: the next is another.
        """
        apart = np.abs(theta[self.frozen] - self.latent)
        shown = to_user(self.parameters, theta)[self.frozen]
        whole = np.array([self.parameters[i].scale == "int" for i in self.frozen])
        return bool(np.where(whole, shown == self.values, apart <= self.reach).all())

    def is_at(self, theta: np.ndarray) -> bool:
        """Whether it has them at their values."""
        shown = to_user(self.parameters, theta)[self.frozen]
        return bool(np.allclose(shown, self.values, rtol=CLOSE, atol=0.0))

    def drew(self, study: Opened, trial: Asked) -> np.ndarray:
        """The block of numbers of what drew the parameters of a trial that stay."""
        assert trial.proposal is not None
        rho = study.rho(study.store.proposal(trial.proposal).numbers)
        return np.asarray(rho.given(self.kept, self.frozen, trial.theta[self.frozen]).packed())


def freezing_of(study: Opened, change: Change) -> Freezing | None:
    """How results are carried over where parameters are frozen; None where it cannot be done.

    So with parameters or bounds that are new beside it, and with families of the user's.
    """
    if not change.only_freezes or study.has_own_family or study.method.space == "actions":
        return None
    frozen = sorted(change.frozen)
    values = np.array([change.frozen[i] for i in frozen])
    there = [study.parameters[i] for i in frozen]
    return Freezing(
        parameters=study.parameters,
        frozen=frozen,
        kept=[i for i in change.source if i is not None],
        values=values,
        latent=to_latent(there, values),
        reach=NEAR * study.std[frozen],
    )
