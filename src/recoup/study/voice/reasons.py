"""Why the method `recoup` made its last step as it did, in sentences."""

from math import expm1, isfinite

from recoup.core.types import Plain
from recoup.study.space.goals import MAXIMIZE, Goal
from recoup.study.voice import sentences

LITTLE_WEIGHT = 0.1  # share of the weight below which earlier batches have next to no say
MOSTLY = 0.5  # share of the model above which a step is as long as the model makes it
MOSTLY_NOISE = 0.5  # share of the variance above which nothing is seen where nothing is evident
NONE = 0.005  # share of a step below which nothing is said of it


def reasons(notes: Plain, ess: float, goal: Goal = MAXIMIZE) -> list[str]:
    """What the last step rests on, why it was long or short, and what it left unexplained.

    What a mover has noted is said as it is.
    """
    if "share" not in notes:
        return [sentences.noted(notes)]
    if notes["flat"]:
        said = [
            f"No two {goal.nouns} of the last batch differ: the distribution stayed where it is "
            f"and widened by {expm1(notes['spread']):.0%}."
        ]
    else:
        said = [rests(notes, ess), f"{length(notes, goal)} {spread(notes, goal)}"]
        said.append(unexplained(notes, goal))
    if notes.get("context") is not None:
        said.append(begun(notes["context"], goal))
    if notes["repeat"]:
        said.append(sentences.twice())
    return said


def rests(notes: Plain, ess: float) -> str:
    """How much is the model's, the weights' and the best results', and what old ones are worth."""
    words = (
        f"The last step rests to {notes['share']:.0%} on a model of the newest "
        f"{notes['modelled']} results"
    )
    if weights(notes) >= NONE:
        words += f", and to {weights(notes):.0%} on weights, {_weighing(notes['old'], ess)}"
    return f"{words}. {best(notes)}" if notes["bold"] >= NONE else f"{words}."


def begun(share: float, goal: Goal = MAXIMIZE) -> str:
    """What was known before trials explains of what they earned."""
    if share < NONE:
        return f"What was known before each trial does not surely explain any of its {goal.noun}."
    return (
        f"What was known before each trial explains {share:.0%} of the variance of {goal.nouns}, "
        "and was taken off of them for this step."
    )


def _weighing(old: float, ess: float) -> str:
    """What the weights make of earlier batches, where results count for `ess` fresh ones."""
    if ess == 0:
        return "for which no result is near enough: that part moves nothing"
    if old < LITTLE_WEIGHT:
        return "which give earlier batches next to no say"
    return f"which give earlier batches {old:.0%} of the say: all count for {ess:.0f} fresh results"


def weights(notes: Plain) -> float:
    """The share of the weights in the last step."""
    return float(1 - notes["share"] - notes["bold"])


def best(notes: Plain) -> str:
    """Why a part of the step is fitted to the best results."""
    pairs = f"{notes['pairs']:.0f} candidate{'' if notes['pairs'] == 1 else 's'}"
    return (
        f"{notes['bold']:.0%} of the step is fitted to the best results alone: of what the model "
        f"cannot explain, little is noise ({pairs} tried twice)."
    )


def length(notes: Plain, goal: Goal = MAXIMIZE) -> str:
    """Why the mean moved as far as it did."""
    far = f"The mean moved by {notes['length']:.2g} standard deviations"
    if notes["share"] < MOSTLY:
        by = "weights" if weights(notes) >= notes["bold"] else "best results"
        return f"{far}, mostly by the {by}."
    if notes["bounded"]:
        return f"{far}: as far as the model is trusted, which sees no {goal.top} within reach."
    return f"{far}: the model has its {goal.top} nearby."


def spread(notes: Plain, goal: Goal = MAXIMIZE) -> str:
    """Why the spread grew or shrank."""
    grew = expm1(notes["spread"])
    if notes["widened"] and grew > 0:
        on = "returns rise" if goal is MAXIMIZE else "costs fall"
        why = f"{on} on beyond it" if notes["evident"] else "nothing stands out from noise"
        return f"The spread grew by {grew:.0%}: {why}."
    if abs(grew) < 0.005:
        return "The spread stayed."
    return f"The spread {'grew' if grew > 0 else 'shrank'} by {abs(grew):.0%}."


def unexplained(notes: Plain, goal: Goal = MAXIMIZE) -> str:
    """What the model of the last step could not explain, of what draws earned where it moved from.

    Over all that was tried another model explains more, of which `recommend` says how much each
    parameter does; it forecasts, too, what is to come.
    """
    left = (
        f"model of that step left {notes['noise']:.0%} of the variance of {goal.nouns} "
        "unexplained, among draws of the distribution that moved"
    )
    if isfinite(notes["gain"]) and not notes["evident"]:
        if notes["noise"] < MOSTLY_NOISE:  # a model may follow chance where there are few results
            return f"It is not sure yet that {goal.nouns} depend on theta. If they do, the {left}."
        nothing = f"Nothing stood out from noise: {goal.nouns} did not depend on theta visibly"
        return f"{nothing}; the {left}."
    return f"The {left}."
