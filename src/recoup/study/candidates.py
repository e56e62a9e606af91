"""Means and deviations as people give them: one number, all in order, or some of them by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recoup.checks import (
    InputError,
    check_finite,
    check_number,
    check_stds,
    check_vector,
    nearest,
    shortly,
)
from recoup.study.parameters import Parameter, to_latent


def means_given(parameters: Sequence[Parameter], mean: Any, here: Any) -> np.ndarray:
    """Latent means `[D]` of those given in the user's units; what is not named stays `here [D]`."""
    found = np.array(here, float)
    if isinstance(mean, Mapping):
        for i, value in _named("mean", parameters, mean):
            found[i] = to_latent([parameters[i]], np.array([value]))[0]
        return found
    check_vector("mean", mean, len(found))
    check_finite("mean", mean)
    return to_latent(parameters, np.broadcast_to(np.asarray(mean, float), found.shape))


def stds_given(
    parameters: Sequence[Parameter], std: Any, here: Any, letter: str = "D"
) -> np.ndarray:
    """Standard deviations `[S]`, latent as they are given; what is not named stays `here [S]`."""
    found = np.array(here, float)
    if isinstance(std, Mapping):
        for i, value in _named("std", parameters, std):
            found[i] = value
        std = found
    check_vector("std", std, len(found), letter)
    check_stds("std", std)
    return np.broadcast_to(np.asarray(std, float), found.shape).copy()


def _named(
    what: str, parameters: Sequence[Parameter], given: Mapping[str, Any]
) -> Iterator[tuple[int, float]]:
    """The places of parameters that are given by name, each with its value."""
    names = [p.name for p in parameters]
    if not names:
        raise InputError(f"these parameters have no names: give all of {what} in order.")
    for name, value in given.items():
        if name not in names:
            shown = name if isinstance(name, str) else shortly(name)
            raise InputError(
                f"the parameters are {', '.join(names)}; {what} names {shown!r}."
                f"{nearest(str(name), names)}"
            )
        yield names.index(name), check_number(f"{what} of {name}", value)
