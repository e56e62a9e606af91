"""Rolling out a plain function: of a theta, or of named parameters; with a seed if it takes one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np

from recoup.checks import InputError
from recoup.tasks.engines.engine import Job, Known, Rolled

NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Calls:
    """How a function is called for a trial, so many times with seeds of their own."""

    function: Callable[..., Any]
    names: tuple[str, ...] = ()

    def __call__(self) -> "FunctionRoller":
        """What calls it."""
        return FunctionRoller(self.function, self.names)


class FunctionRoller:
    """Calls a function once a trial."""

    def __init__(self, function: Callable[..., Any], names: tuple[str, ...]) -> None:
        self._function, self._names = function, names
        self._seeded, self._by_name = how_called(function, names)

    def __call__(self, job: Job) -> Rolled:
        """What the function returns: a number, or several of as many episodes."""
        seed = {"seed": job.seed} if self._seeded else {}
        if not self._names:
            found = self._function(np.array(job.theta), **seed)
        elif self._by_name:
            found = self._function(**dict(job.params or {}), **seed)
        else:
            found = self._function(dict(job.params or {}), **seed)
        found, context = with_context(found)
        values = np.atleast_1d(np.asarray(found, float)).ravel()
        return Rolled(tuple(values.tolist()), context=context)

    def close(self) -> None:
        """Nothing to free."""


def with_context(found: Any) -> tuple[Any, Known]:
    """What a function returns, and what was known before: a pair whose second is a mapping."""
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping):
        return found[0], dict(found[1])
    return found, None


def how_called(function: Callable[..., Any], names: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether a function takes a seed, and whether it takes its parameters by name."""
    try:
        takes = signature(function)
    except (TypeError, ValueError):  # of a builtin that does not say
        return False, False
    kinds = {one.kind for one in takes.parameters.values()}
    named = {name for name, one in takes.parameters.items() if one.kind in NAMED}
    seeded = "seed" in named and "seed" not in names
    by_name = bool(names) and (Parameter.VAR_KEYWORD in kinds or set(names) <= named)
    seed = {"seed": 0} if seeded else {}
    try:
        takes.bind(**dict.fromkeys(names), **seed) if by_name else takes.bind(None, **seed)
    except TypeError as wrong:
        given = f"the parameters {', '.join(names)}" if names else "theta"
        raise InputError(
            f"the function cannot be called with {given}: {wrong}; its signature is {takes}."
        ) from None
    return seeded, by_name
