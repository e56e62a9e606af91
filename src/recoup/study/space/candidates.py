"""Means and deviations as people give them: one number, all in order, or some of them by name."""

from collections.abc import Iterator, Mapping, Sequence

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
from recoup.core.types import Array, Given, Plain, Settings
from recoup.study.space.choices import leading
from recoup.study.space.parameters import Parameter, columns_of, places_of, to_latent, value_of


def means_given(parameters: Sequence[Parameter], mean: Given, here: Array) -> np.ndarray:
    """Latent means `[D]` of those given in the user's units; what is not named stays `here [D]`.

    A choice that is given changes places with the one that is ahead `here`.
    """
    found = np.array(here, float)
    if any(p.choices for p in parameters) and not isinstance(mean, Mapping):
        mean = _in_order("mean", parameters, mean)
    if isinstance(mean, Mapping):
        for p, place, value in _named("mean", parameters, mean):
            if p.choices is None:
                number = check_number(f"mean of {p.name}", value)
                found[place] = to_latent([p], np.array([number]))
            else:
                found[place] = leading(found[place], int(value_of(p, value)))
        return found
    check_vector("mean", mean, len(found))
    check_finite("mean", mean)
    return to_latent(parameters, np.broadcast_to(np.asarray(mean, float), found.shape))


def theta_given(parameters: Sequence[Parameter], theta: Given) -> Array:
    """The values of a theta in order, with the places of choices; zeros if too many."""
    values = theta.tolist() if isinstance(theta, np.ndarray) else theta
    if not isinstance(values, (list, tuple)):
        return theta
    found = [value_of(p, value) for p, value in zip(parameters, values, strict=False)]
    return found if len(values) == len(parameters) else np.zeros(len(values))


def stds_given(
    parameters: Sequence[Parameter], std: Given, here: Array, letter: str = "D"
) -> np.ndarray:
    """Standard deviations `[S]`, latent as they are given; what is not named stays `here [S]`.

    That of a parameter with choices is that of each of its latent numbers.
    """
    found = np.array(here, float)
    if np.shape(std) == (len(parameters),) != (len(columns_of(parameters)),):
        std = _in_order("std", parameters, std)
    if isinstance(std, Mapping):
        for p, place, value in _named("std", parameters, std):
            found[place] = check_number(f"std of {p.name}", value)
        std = found
    check_vector("std", std, len(found), letter)
    check_stds("std", std)
    return np.broadcast_to(np.asarray(std, float), found.shape).copy()


def _in_order(what: str, parameters: Sequence[Parameter], given: Given) -> Plain:
    """Values that are given in order, one for each parameter, by name."""
    names = [p.name for p in parameters]
    values = list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
    if len(values) != len(names):
        raise InputError(f"{what} takes a value for each of {', '.join(names)}, got {len(values)}.")
    return dict(zip(names, values, strict=True))


def _named(
    what: str, parameters: Sequence[Parameter], given: Settings
) -> Iterator[tuple[Parameter, slice, Given]]:
    """Parameters that are given by name, with where their latent numbers stand and the value."""
    names, places = [p.name for p in parameters], places_of(parameters)
    if not names:
        raise InputError(f"these parameters have no names: give all of {what} in order.")
    for name, value in given.items():
        if name not in names:
            shown = name if isinstance(name, str) else shortly(name)
            raise InputError(
                f"the parameters are {', '.join(names)}; {what} names {shown!r}."
                f"{nearest(str(name), names)}"
            )
        i = names.index(name)
        yield parameters[i], places[i], value
