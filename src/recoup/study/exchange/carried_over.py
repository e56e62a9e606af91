"""What of its study's results a fork can use that no longer searches some parameters.

A result counts where its frozen parameters stood near the values they have from now on. What drew
it is then known exactly: the Gaussian of the other parameters, given where the frozen ones stood.
That its return is one of nearby values, and not of these, is all that is left out of account. What
else the fork changes comes after that, as it would in a fork of the fork.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.types import Plain
from recoup.store.protocol import Storage
from recoup.store.rows import Asked
from recoup.study.exchange.change import SAME_VALUE, Change
from recoup.study.reader.opened import Opened
from recoup.study.space.charts import at_bounds
from recoup.study.space.parameters import Parameter, places_of, to_latent, to_user

AWAY = 0.5  # standard deviations of the newest distribution, latent: beyond is another place


NEARBY, THAWED = "nearby", "thawed"  # in the event of a fork: trials, and how many are spoken of


class Freezing(NamedTuple):
    """Which latent numbers go and which stay, and where the parameters that go are kept."""

    parameters: tuple[Parameter, ...]  # [P] of the study
    going: list[int]  # of them
    frozen: list[int]  # latent numbers
    kept: list[int]
    values: np.ndarray  # [G] of those that go, in the user's units
    reach: np.ndarray  # [D] latent
    rest: Change  # of the parameters that stay: to other bounds, or with others beside them

    @property
    def chart(self) -> int:
        """The chart in the fork of what drew the parameters that stay: 1 under other bounds."""
        return int(self.rest.keeps_dimensions and not self.rest.keeps_bounds)

    @property
    def is_exact(self) -> bool:
        """Whether only what is the same counts as near: whole numbers and choices."""
        return all(_is_one(self.parameters[i]) for i in self.going)

    def is_near(self, theta: np.ndarray) -> bool:
        """Whether a latent theta `[D]` has the frozen parameters near their values.

        A whole number, or a choice, must be the same one: the next is another. What was drawn
        beyond a bound stood at it, however far beyond.
        """
        shown, places = to_user(self.parameters, theta), places_of(self.parameters)
        theta = at_bounds(self.parameters, theta)
        for i, value in zip(self.going, self.values, strict=True):
            p, place = self.parameters[i], places[i]
            if _is_one(p):
                near = shown[i] == value
            else:
                apart = np.abs(theta[place] - to_latent([p], np.array([value])))
                near = (apart <= self.reach[place]).all()
            if not near:
                return False
        return True

    def is_at(self, theta: np.ndarray) -> bool:
        """Whether a theta has the frozen parameters at their values."""
        shown = to_user(self.parameters, theta)[self.going]
        return bool(np.allclose(shown, self.values, rtol=SAME_VALUE, atol=0.0))

    def moved(self, theta: np.ndarray) -> tuple[np.ndarray, bool]:
        """What stays of a latent theta in the fork's space, and whether it has a place there."""
        if self.rest.keeps_bounds:
            return theta[self.kept], True
        found, fits = self.rest.moved(theta[None, self.kept], self.rest.before)
        return found[0], bool(fits[0])

    def drew(self, study: Opened, trial: Asked) -> np.ndarray:
        """The block of numbers of what drew the parameters of a trial that stay."""
        assert trial.proposal is not None
        rho = study.rho(study.store.proposal(trial.proposal).numbers)
        return np.asarray(rho.given(self.kept, self.frozen, trial.theta[self.frozen]).packed())


def _is_one(p: Parameter) -> bool:
    """Whether a parameter has no values near each other: a whole number, or a choice."""
    return p.choices is not None or p.scale == "int"


def freezing_of(study: Opened, change: Change) -> Freezing | None:
    """How results are carried over where parameters are frozen; None where it cannot be done.

    So with families of the user's.
    """
    if not change.frozen or study.has_own_family or study.method.space == "actions":
        return None
    kept = [i for i in change.columns if i is not None]
    going = sorted(change.frozen)
    return Freezing(
        parameters=study.parameters,
        going=going,
        frozen=[i for i in range(study.dim) if i not in kept],
        kept=kept,
        values=np.array([change.frozen[i] for i in going]),
        reach=AWAY * study.std,
        rest=change.rest,
    )


def nearby(study: Opened, new: Storage, change: Change | None, before: Sequence[int] = ()) -> Plain:
    """The trials of a fork that stood near a frozen value, not at it: a file keeps no more of them.

    Those of the forks `before` are among them; how many, where it is searched again.
    """
    kept = {trial.id for trial in new.asked()}
    found, freezing = kept.intersection(before), change and freezing_of(study, change)
    if freezing is not None:
        asked = study.store.asked(kept)
        found |= {trial.id for trial in asked if not freezing.is_at(study.here(trial)[0])}
    stay = study.frozen if change is None else change.stay
    again = {row.name for row in study.frozen} - {row.name for row in stay}
    return {NEARBY: sorted(found), THAWED: len(found) if again else 0}
