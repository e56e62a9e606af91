"""Movers: methods that move the distribution by the samples themselves.

A mover is written over an array namespace `xp`: `jax.numpy` where a search is compiled, NumPy where
a study moves without a compiler. Needs no JAX.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_text, shortly
from recoup.core.arrays import Array
from recoup.core.types import Memory, Namespace, Plain, Pytree, Rho


class Experience(NamedTuple):
    """The samples that a move is made from, in any order, some rows of them perhaps empty.

    `Mover.step` is given it, with arrays of NumPy or JAX.

    >>> def step(xp, seen, rho, memory):
    ...     best = xp.argmax(xp.where(seen.valid, seen.returns, -xp.inf))
    ...     delta = 0.5 * rho.whitened(xp, seen.theta)[best]
    ...     return rho.stretched(xp, delta, 0 * delta, 1e-3), memory
    >>> greedy = recoup.Study.open("greedy.db", dim=2, batch=4, method=recoup.Mover("greedy", step))
    """

    theta: Array  # [n, D]
    returns: Array  # [n], larger is better; zero where not valid
    valid: Array  # [n] rows that hold a sample with a return: leave out the others
    weights: Array  # [n] by the method's weighting, for the distribution that moves; zero likewise
    order: Array  # [n] larger where the distribution that drew a sample is newer


class Mover(NamedTuple):
    """A method as functions; any object that has these attributes, or some of them, may stand.

    `step(xp, seen, rho, memory)` gives `(rho, memory)`, or `(rho, memory, notes)`, from an
    `Experience`; `xp` is NumPy or `jax.numpy`. It is given as the `method` of `recoup.search`,
    `recoup.train` and `recoup.Study.open`.

    >>> def step(xp, seen, rho, memory):
    ...     delta = 0.1 + 0 * rho.mean
    ...     return rho.stretched(xp, delta, 0 * delta, 1e-3), memory
    >>> drift = recoup.Mover("drift", step, batch=lambda dim: 6)
    >>> recoup.search(drift, dim=2, batch=6)
    Search(drift, 2 parameters, batch 6, keeps 600 samples)
    """

    name: str  # as files call it
    step: Callable[..., tuple[Pytree, ...]]  # xp, experience, rho, memory -> rho, memory
    # or rho, memory, notes: a mapping of names to numbers, which are kept with the move
    init: Callable[[Namespace, Rho], Memory] | None = (
        None  # xp, rho -> memory: nested tuples of arrays
    )
    window: int | None = None  # batches that it looks at; None: all
    batch: Callable[[int], int] | None = None  # dim -> the batch that it is made for
    wants_repeat: Callable[[Memory], Array] | None = (
        None  # memory -> whether the next batch is to try
    )
    # its first candidate twice
    summary: str = ""  # what it does, in a line
    compiled: bool = False  # whether it is written with `jax.numpy`, so that studies need JAX too


def is_mover(given: object) -> bool:
    """Whether an object has the step of a mover; one without a name may be an update rule."""
    return callable(getattr(given, "step", None)) and hasattr(given, "name")


def as_mover(given: object) -> Mover:
    """An object that can stand for a mover, as one; raises where an attribute is not one's."""
    if isinstance(given, Mover):
        found = given
    else:
        known = (key for key in Mover._fields if hasattr(given, key))
        found = Mover(**{key: getattr(given, key) for key in known})
    if not check_text("the name of a mover", found.name).isprintable():
        raise InputError(f"the name of a mover must be printable, got {shortly(found.name)}.")
    for key in ("init", "batch", "wants_repeat"):
        value = getattr(found, key)
        if value is not None and not callable(value):
            raise InputError(f"{key} of {found.name} must be a function, got {shortly(value)}.")
    return found


def first_memory(xp: Namespace, mover: Mover, rho: Rho) -> Memory:
    """What a mover remembers before its first move."""
    return () if mover.init is None else mover.init(xp, rho)


def moved(
    xp: Namespace, mover: Mover, experience: Experience, rho: Rho, memory: Memory
) -> tuple[Rho, Memory, Plain | None]:
    """Where a mover takes rho, its memory, and its notes; raises unless it gives a rho like it."""
    made = mover.step(xp, experience, rho, memory)
    if not isinstance(made, tuple) or len(made) not in (2, 3) or hasattr(made, "_fields"):
        raise InputError(f"step of {mover.name} must give (rho, memory) or (rho, memory, notes).")
    after, remembered, *notes = made
    alike = hasattr(after, "_fields") and isinstance(rho, type(after))
    if not alike or [np.shape(x) for x in after] != [np.shape(x) for x in rho]:
        raise InputError(
            f"step of {mover.name} must give a rho like the one it was given, a "
            f"{type(rho).__name__} of arrays with the same shapes: rho._replace(...), say."
        )
    return after, remembered, _checked_notes(mover, notes[0]) if notes else None


def _checked_notes(mover: Mover, notes: object) -> Plain:
    if isinstance(notes, Mapping) and all(np.shape(value) == () for value in notes.values()):
        return dict(notes)
    raise InputError(f"the notes of {mover.name} must be a mapping of names to numbers.")
