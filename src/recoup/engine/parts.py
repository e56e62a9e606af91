"""The parts that the words of a method's row name. Needs no JAX.

A new weighting, baseline, utility or update is its function in `core`, and a row here; families
are rows of `core.families.table`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from recoup.core.types import Chosen


class Part(NamedTuple):
    """What a word names: a function of `core`, and the settings of the row that it is made with."""

    home: str  # module:function, below recoup.core
    settings: tuple[str, ...] = ()
    made: bool = False  # whether the function makes the part, or is it
    compiled: bool = False  # whether it needs JAX, even where there is little to compute


WEIGHTINGS = {
    "none": Part("weights:unit_ratio"),
    "own": Part("weights:own_ratio"),
    "balance": Part("weights:mixture_ratio"),
    "power-mean": Part("weights:power_mean_ratio", ("power",), made=True),
}
BASELINES = {
    "none": Part("baselines:none"),
    "mean": Part("baselines:mean"),
    "optimal": Part("baselines:optimal"),
    "coordinate": Part("baselines:coordinate"),
    "leave-one-out": Part("baselines:leave_one_out", ("draw",), made=True),
    "earlier": Part("baselines:earlier", ("draw",), made=True),
    "split": Part("baselines:split", ("draw",), made=True),
}
UTILITIES = {
    "elite": Part("rules.classics:elite", ("elite",), made=True),
    "exponential": Part("rules.classics:exponential", ("temperature",), made=True),
    "kl": Part("rules.classics:bounded", ("kl",), made=True),
}
UPDATES = {  # made with the family first
    "normalised": Part("updates:normalised_ascent", ("epsilon", "tau_floor"), made=True),
    "natural": Part("updates:natural_step", ("kl", "tau_floor"), made=True),
    "adam": Part("updates:adam", ("epsilon", "tau_floor"), made=True, compiled=True),
    "whole": Part("updates:whole_step", ("tau_floor",), made=True),
}
PARTS: dict[str, Mapping[str, Part]] = {
    "weighting": WEIGHTINGS,
    "baseline": BASELINES,
    "utility": UTILITIES,
    "update": UPDATES,
}
GIVEN = (*PARTS, "family", "direction")  # that a user may give an object for


def part_of(table: Mapping[str, Part], word: Chosen, row: object, *first: object) -> Chosen:
    """What a word of the table names, made for the row; an object is what it is."""
    if not isinstance(word, str):
        return word
    module, name = table[word].home.split(":")
    found = getattr(import_module(f"recoup.core.{module}"), name)
    if not table[word].made:
        return found
    return found(*first, *(getattr(row, key) for key in table[word].settings))
