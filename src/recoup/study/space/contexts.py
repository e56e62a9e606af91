"""What is known before a trial begins: a payload, a temperature, the observation after a reset.

It is kept with the numbers told beside a return, by names that begin with `context.`, so that
whatever keeps, amends or carries those does the same with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

import numpy as np

from recoup.checks import InputError, check_number, check_text, check_whole_numbers, shortly
from recoup.core.types import Given
from recoup.store.queries import Queries
from recoup.store.rows import CONTEXT, Told
from recoup.study.space.limits import is_unknown, numbers_given

MOST_NUMBERS = 30  # numbers of a context


def context_given(given: Given, *, amends: bool = False) -> dict[str, float]:
    """A context as it is told, by the names under which it is kept; empty where there is none.

    Where it `amends` another, not a number is one that is taken back.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        named = list(given.items())
    elif isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes)):
        if np.ndim(given) != 1:
            raise InputError(f"`context` must be one row of numbers, got {shortly(given)}.")
        named = [(str(i), value) for i, value in enumerate(given, 1)]
    else:
        raise InputError(
            "`context` is what was known before the trial: numbers by name, such as "
            f"{{'payload': 2.5}}, or a list of them, got {shortly(given)}."
        )
    if not 0 < len(named) <= MOST_NUMBERS:
        raise InputError(f"`context` must hold 1 to {MOST_NUMBERS} numbers, got {len(named)}.")
    taken = {name for name, value in named if amends and is_unknown(value)}
    return {
        _kept_as(name): float("nan") if name in taken else _number(f"context {name}", value)
        for name, value in named
    }


def _kept_as(name: Given) -> str:
    """The name under which a number of a context is kept."""
    text = name if isinstance(name, str) else ""
    plain = text.replace("_", "a").replace(".", "a")
    if not (plain.isalnum() and len(text) <= 40 - len(CONTEXT)):
        raise InputError(
            f"a number of a context needs a name of at most {40 - len(CONTEXT)} letters, digits, _ "
            f"and ., got {shortly(name)}."
        )
    return f"{CONTEXT}{check_text('a name', text)}"


def _number(what: str, value: Given) -> float:
    number = check_number(what, value)
    if not isfinite(number):
        raise InputError(f"{what} must be finite, got {number}: leave context out if unknown.")
    check_whole_numbers(what, [value])
    return number + 0.0


def context_of(also: Mapping[str, float] | None) -> dict[str, float]:
    """What of the numbers beside a return was known before, by the names of those who told it."""
    known = (also or {}).items()
    return {name.removeprefix(CONTEXT): x for name, x in known if name.startswith(CONTEXT)}


def beside(also: Given, context: Given, *, amends: bool = False) -> Given:
    """Numbers beside a return, what was known before it among them."""
    if context is None:
        return also
    numbers, known = numbers_given(also), context_given(context, amends=amends)
    for name in numbers.keys() & known.keys():
        raise InputError(
            f"{name} is given twice, beside the return and as a context: leave one of them out."
        )
    return {**numbers, **known}


def check_alike(store: Queries, told: Iterable[Told], instead_of: int | None = None) -> None:
    """Raises where contexts of results hold other names than those of a study, or one another's.

    A result without a context is one too. The study's are those without the trial that a result is
    told `instead_of`.
    """
    found = [mine for mine in (sorted(context_of(one.also)) for one in told) if mine]
    names = (sorted(context_of(store.first_context(instead_of))) or found[0]) if found else []
    for mine in found:
        if mine != names:
            raise InputError(
                f"the contexts of this study hold {_listed(names)}, and this one {_listed(mine)}: "
                "tell the same names every time, or no context."
            )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
