"""The coordinates in which models see a study's thetas: a distribution is N(0, I) in them. No JAX.

Numbers are whitened. A choice is seen as what it is, not by the latent numbers that made it stand:
whether those were far ahead of the others or hardly says nothing of the return.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.plain.belief import tamed
from recoup.core.types import Rho
from recoup.study.space.choices import chances, chosen, code
from recoup.study.space.parameters import Parameter, places_of


class StandardCoordinates(NamedTuple):
    """Coordinates in which a distribution `centre` is N(0, I), of parameters named or not."""

    parameters: Sequence[Parameter]
    centre: Rho

    @property
    def numbers(self) -> list[int]:
        """Which of the latent numbers are none of a choice."""
        pairs = zip(self.parameters, places_of(self.parameters), strict=True)
        return [place.start for p, place in pairs if p.choices is None]

    @property
    def has_choices(self) -> bool:
        """Whether some parameter is one of several choices."""
        return any(p.choices for p in self.parameters)

    def at(self, theta: np.ndarray) -> np.ndarray:
        """Of latent thetas `[n, D]`; those that lie far away as `tamed` has them."""
        return tamed(self.straight(theta))

    def straight(self, theta: np.ndarray) -> np.ndarray:
        """Thetas in these coordinates, however far they lie."""
        if not self.has_choices:
            return np.asarray(self.centre.whitened(np, theta))
        mean, numbers = np.asarray(self.centre.mean), self.numbers
        found = seen_from(self.parameters, theta, mean, np.ones_like(mean))
        if numbers:
            found[:, numbers] = _among(self.centre, numbers).whitened(np, theta[:, numbers])
        return found

    def of(self, rho: Rho) -> tuple[np.ndarray, np.ndarray]:
        """Means `[1, D]` and standard deviations `[D]` of what `rho` draws."""
        mean = self.at(np.asarray(rho.mean)[None])
        if not self.has_choices:
            return mean, np.exp(rho.log_spread(np) - self.centre.log_spread(np))
        spread, numbers = np.zeros(mean.shape[1]), self.numbers
        if numbers:
            logs = [_among(x, numbers).log_spread(np) for x in (rho, self.centre)]
            spread[numbers] = np.exp(logs[0] - logs[1])
        for p, place in zip(self.parameters, places_of(self.parameters), strict=True):
            if p.choices is not None:
                codes = code(np.arange(len(p.choices)), len(p.choices))
                here = codes[int(chosen(np.asarray(self.centre.mean)[place]))]
                share = chances(_among(rho, range(len(spread))[place]))
                mean[0, place] = share @ codes - here
                spread[place] = np.sqrt(np.maximum(share @ codes**2 - (share @ codes) ** 2, 0.0))
        return mean, spread


def seen_from(
    parameters: Sequence[Parameter], latent: np.ndarray, centre: np.ndarray, std: np.ndarray
) -> np.ndarray:
    """Latent values `[..., D]` as models see them: less a `centre [D]`, over `std [D]`.

    Choices by what they are: of two thetas of the same one neither is nearer to another.
    """
    found = (latent - centre) / std
    for p, place in zip(parameters, places_of(parameters), strict=True):
        if p.choices is not None:
            n = len(p.choices)
            there, here = (chosen(z[..., place]) for z in (latent, centre))
            found[..., place] = code(there, n) - code(here, n)
    return found


def _among(rho: Rho, which: Sequence[int]) -> Rho:
    """What `rho` draws some of the coordinates with, whatever the others are."""
    return rho.given(which, [], np.zeros(0))
