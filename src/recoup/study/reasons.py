"""Why the method `recoup` made its last step as it did, in sentences."""

from math import expm1, isfinite
from typing import Any

PATIENT = 2.0  # standard errors above which the model's expectation is more than a guess
LITTLE = 0.1  # share of the weight below which earlier batches have next to no say
MOSTLY = 0.5  # share of the model above which a step is as long as the model makes it


def reasons(notes: dict[str, Any], ess: float) -> list[str]:
    """What the last step rests on, why it was long or short, and whether to expect more."""
    if notes["flat"]:
        return [
            "All returns of the last batch were equal, and not above the best so far: the "
            f"distribution stayed where it is and widened by {expm1(notes['spread']):.0%}."
        ]
    return [rests(notes, ess), f"{length(notes)} {spread(notes)}", expected(notes)]


def rests(notes: dict[str, Any], ess: float) -> str:
    """How much is the model's and how much the weights', and what old results are worth."""
    words = (
        f"The last step rests to {notes['share']:.0%} on a model of the newest "
        f"{notes['modelled']} results"
    )
    if notes["share"] >= 0.995:
        return words + "."
    weighed = f"and to {1 - notes['share']:.0%} on weights"
    if notes["old"] < LITTLE:
        return f"{words}, {weighed}, which give earlier batches next to no say."
    return (
        f"{words}, {weighed}, which give earlier batches {notes['old']:.0%} of the say: "
        f"all count for {ess:.0f} fresh results."
    )


def length(notes: dict[str, Any]) -> str:
    """Why the mean moved as far as it did."""
    far = f"The mean moved by {notes['length']:.2g} standard deviations"
    if notes["share"] < MOSTLY:
        return f"{far}, mostly by the weights."
    if notes["bounded"]:
        return f"{far}: as far as the model is trusted, which sees no top within reach."
    return f"{far}: the model has its top nearby."


def spread(notes: dict[str, Any]) -> str:
    """Why the spread grew or shrank."""
    grew = expm1(notes["spread"])
    if notes["widened"] and grew > 0:
        why = "returns rise on beyond it" if notes["evident"] else "nothing stands out from noise"
        return f"The spread grew by {grew:.0%}: {why}."
    if abs(grew) < 0.005:
        return "The spread stayed."
    return f"The spread {'grew' if grew > 0 else 'shrank'} by {abs(grew):.0%}."


def expected(notes: dict[str, Any]) -> str:
    """Whether to expect more."""
    gain, error = notes["gain"], notes["gain_stderr"]
    noise = f"{notes['noise']:.0%} of the variance of returns is noise, as the model has it"
    if not isfinite(gain):
        return f"What more there is has no number; {noise}."
    if not notes["evident"]:
        return f"Nothing is known yet but noise: returns do not depend on theta visibly; {noise}."
    if gain > PATIENT * error:
        return f"Expect more: the model sees {gain:.3g} ± {error:.2g} in its own step; {noise}."
    return f"What more there is cannot be told from noise yet ({gain:.3g} ± {error:.2g}); {noise}."
