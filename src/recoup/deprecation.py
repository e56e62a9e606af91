"""Names that go: each warns where it is used, once a place, and says what to use instead."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Out = TypeVar("Out")

KEPT = 2  # minor versions for which a deprecated name goes on working


def deprecated(since: str, instead: str) -> Callable[[Callable[Given, Out]], Callable[Given, Out]]:
    """Declares a function or class that goes `KEPT` minor versions after `since` ("0.3").

    `instead` is the code to write in its place.
    """

    def declare(function: Callable[Given, Out]) -> Callable[Given, Out]:
        @wraps(function)
        def called(*args: Given.args, **kwargs: Given.kwargs) -> Out:
            _warn(f"`{function.__qualname__}`", since, instead)
            return function(*args, **kwargs)

        return called

    return declare


def renamed(since: str, **names: str) -> Callable[[Callable[Given, Out]], Callable[Given, Out]]:
    """Declares arguments of a function that have another name: `renamed("0.3", old="new")`."""

    def declare(function: Callable[Given, Out]) -> Callable[Given, Out]:
        @wraps(function)
        def called(*args: Given.args, **kwargs: Given.kwargs) -> Out:
            for old in names.keys() & kwargs.keys():
                here = f"`{function.__qualname__}({{}}=...)`"
                if names[old] in kwargs:
                    raise TypeError(f"{here.format(names[old])} is given twice, once as {old!r}.")
                _warn(here.format(old), since, here.format(names[old])[1:-1])
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return called

    return declare


def _warn(what: str, since: str, instead: str) -> None:
    """Warns at the line that called the function; Python says it once for each."""
    major, minor, *_ = map(int, since.split("."))
    goes = f"{major}.{minor + KEPT}"
    warnings.warn(
        f"{what} is deprecated since recoup {since} and goes in {goes}: use `{instead}`.",
        DeprecationWarning,
        stacklevel=3,
    )
