"""From the words of a method's row to the functions it is made of: where strings end."""

from typing import Any

from recoup.core import baselines, weights
from recoup.core.directions import likelihood_ratio
from recoup.core.estimators.per_decision import decision_estimator
from recoup.core.estimators.reward_weighted import reward_weighted
from recoup.core.estimators.whole import Estimator, estimator
from recoup.core.families.gaussian import Family
from recoup.core.families.trajectory import discounted_score
from recoup.core.regressions import natural_gradient
from recoup.core.updates import Update, ascend, natural_step, normalised_ascent, whole_step
from recoup.engine.methods import Method


def baseline_of(row: Method) -> baselines.Baseline:
    """The baseline that the row names; a mirrored pair counts as one draw."""
    draw = 2 if row.mirrored else 1
    known: dict[str, baselines.Baseline] = {
        "none": baselines.none,
        "mean": baselines.mean,
        "optimal": baselines.optimal,
        "coordinate": baselines.coordinate,
        "leave-one-out": baselines.leave_one_out(draw),
        "split": baselines.split(draw),
    }
    return known[row.baseline]


def ratio_of(row: Method) -> weights.Ratio:
    """The ratio that the row's weighting names."""
    ratios: dict[str, weights.Ratio] = {
        "none": weights.unit_ratio,
        "own": weights.own_ratio,
        "balance": weights.mixture_ratio,
        "power-mean": weights.power_mean_ratio(row.power),
    }
    return ratios[row.weighting]


def shapers_of(row: Method) -> list[weights.Shaper]:
    """The row's shapers, in their order: flatten, truncate, self-normalise."""
    shapers = []
    if row.flatten is not None:
        shapers.append(weights.flatten(row.flatten))
    if row.truncate is not None:
        shapers.append(weights.truncate(row.truncate))
    if row.normalize:
        shapers.append(weights.self_normalise())
    return shapers


def estimator_of(row: Method, family: Family, discount: float = 1.0) -> Estimator:
    """The estimator that the row describes; `discount` is for those that look inside episodes."""
    if row.direction == "em":
        return reward_weighted(
            discount=discount,
            nu=row.flatten,
            ridge=row.ridge,
            floor=row.tau_floor,
            folds=row.folds,
        )
    weighing: dict[str, Any] = {
        "ratio": ratio_of(row),
        "shapers": shapers_of(row),
        "normalised": row.normalize,
    }
    if row.per_decision:
        return decision_estimator(discount=discount, baseline=baseline_of(row), **weighing)
    direction = (
        natural_gradient(discounted_score(discount), row.ridge)
        if row.direction == "regression"
        else likelihood_ratio(family.score, baseline_of(row))
    )
    return estimator(family, direction=direction, **weighing)


def update_of(row: Method) -> Update:
    """The update rule that the row describes."""
    if row.update == "normalised":
        return normalised_ascent(row.epsilon, row.tau_floor)
    if row.update == "whole":
        return whole_step(row.tau_floor)
    if row.update == "natural":
        return natural_step(row.kl, row.tau_floor)
    return ascend(row.update, row.tau_floor)
