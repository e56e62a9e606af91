"""Names for what types have no word for: a reader sees what is meant, where mypy often sees Any."""

from collections.abc import Mapping, Sequence
from typing import Any

Array = Any  # of NumPy or of JAX, traced or not
Namespace = Any  # `numpy` or `jax.numpy`: what an equation computes with
Rho = Any  # the record of a search distribution, such as `Diagonal(eta, tau)`, or many of them
Samples = Any  # thetas `[n, D]`, or a record of trajectories
Pytree = Any  # arrays, in tuples, records or dicts: what JAX maps over
Memory = Any  # what an update rule keeps from move to move
State = Any  # of a simulated system: an array, or a record of some
Observation = Any  # of an environment, as its space has it
Action = Any  # likewise
Module = Any  # a package that may be absent, such as `torch`
Given = Any  # what a user gave, before it is checked
Chosen = Any  # a word of one of our tables, or an object of the user's that stands for one
Settings = Mapping[str, Any]  # by name
Value = float | str  # of a parameter, as a user reads and types it: a number, or a choice
Cell = float | str | None  # of a table
Table = Mapping[str, Sequence[Cell]]  # columns by name
Plain = dict[str, Any]  # what JSON can hold
