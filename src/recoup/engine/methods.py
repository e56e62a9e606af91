"""The methods: rows of one table. A new method is a new row, not a new class."""

from dataclasses import dataclass, fields, replace
from typing import Any

from recoup.checks import (
    InputError,
    check_between,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    nearest,
)

WEIGHTINGS = ("none", "own", "balance", "power-mean")
BASELINES = ("none", "mean", "optimal", "coordinate", "leave-one-out", "split")


@dataclass(frozen=True)
class Method:
    """One row: what is kept, how it is weighed, what is subtracted, how the distribution moves."""

    name: str
    summary: str
    space: str = "parameters"  # or "actions": the sample is a trajectory, rho the policy
    direction: str = "gradient"  # or "regression": natural, by least squares; "em": the M-step
    window: int | None = None  # batches kept: 1 this iteration only, None everything
    weighting: str = "none"
    power: float = 0.1  # lambda of the power-mean weighting
    flatten: float | None = None  # nu of w^nu; for "em", None chooses it by cross-validation
    truncate: float | None = None  # c of min(w, c)
    normalize: bool = False  # divide weights by their mean
    baseline: str = "none"
    update: Any = "normalised"  # or "natural", "whole", or an optax transformation
    epsilon: float = 0.1  # step length of the normalised update
    kl: float = 0.5  # step length of the natural update
    tau_floor: float = 0.05
    mirrored: bool = False  # draw in pairs eta + noise, eta - noise
    per_decision: bool = False  # weigh each reward by the actions before it alone
    ridge: float = 1e-6  # of least squares, relative to the mean of the diagonal
    folds: int = 5  # of the cross-validation that chooses `flatten`


METHODS = {
    row.name: row
    for row in (
        Method("pgpe", "plain PGPE, no reuse", window=1),
        Method("pgpe-ob", "PGPE with the optimal baseline, no reuse", window=1, baseline="optimal"),
        Method("niw-pgpe", "reuses everything, without weights"),
        Method(
            "niw-pgpe-ob",
            "reuses everything, without weights, optimal baseline",
            baseline="optimal",
        ),
        Method("iw-pgpe", "reuses everything, weights against the own proposal", weighting="own"),
        Method(
            "iw-pgpe-ob",
            "the paper's: own-proposal weights and the optimal baseline",
            weighting="own",
            baseline="optimal",
        ),
        Method(
            "tiw-pgpe-ob",
            "iw-pgpe-ob on the last 5 iterations, w = min(w, 2)",
            window=5,
            weighting="own",
            truncate=2.0,
            baseline="optimal",
        ),
        Method(
            "iw-reinforce-ob",
            "explores in action space: REINFORCE, own-proposal weights, optimal baseline",
            space="actions",
            weighting="own",
            baseline="optimal",
        ),
        Method(
            "tiw-enac",
            "explores in action space: episodic natural actor-critic, w = min(w, 2)",
            space="actions",
            direction="regression",
            weighting="own",
            truncate=2.0,
        ),
        Method(
            "r3",
            "explores in action space: reward-weighted regression, flattened per-decision weights",
            space="actions",
            direction="em",
            weighting="own",
            update="whole",
        ),
        Method(
            "mis-pgpe-ob",
            "reuses everything against the mixture of all proposals; bounded weights",
            weighting="balance",
            baseline="optimal",
        ),
    )
}

DEFAULT_METHOD = "mis-pgpe-ob"
FIXED = ("name", "summary", "space", "direction")
SETTINGS = tuple(f.name for f in fields(Method) if f.name not in FIXED)

_WEIGHING = ("window", "weighting", "power", "flatten", "truncate", "normalize", "tau_floor")
_STEPPING = ("update", "epsilon")
APPLICABLE = {  # by what is searched, and how the direction is found
    ("parameters", "gradient"): (*_WEIGHING, *_STEPPING, "baseline", "kl", "mirrored"),
    ("actions", "gradient"): (*_WEIGHING, *_STEPPING, "baseline", "per_decision"),
    ("actions", "regression"): (*_WEIGHING, *_STEPPING, "ridge"),
    ("actions", "em"): ("window", "flatten", "tau_floor", "ridge", "folds"),
}


def settings_of(name: str) -> tuple[str, ...]:
    """The settings that the method `name` has."""
    row = METHODS[check_choice("method", name, METHODS)]
    applicable = APPLICABLE[row.space, row.direction]
    return tuple(key for key in SETTINGS if key in applicable)


def method_row(name: str, **settings: Any) -> Method:
    """The row of `name` with `settings` in place of its own, every value checked."""
    known, row = settings_of(name), METHODS[name]
    for key in settings:
        if key not in known:
            raise InputError(
                f"{key!r} is not a setting of {name}; its settings are {', '.join(known)}."
                f"{nearest(key, known)}"
            )
    return checked(replace(row, **settings))


def checked(row: Method) -> Method:
    """`row` with its numbers in their types, once every value is one it may have."""
    check_choice("weighting", row.weighting, WEIGHTINGS)
    check_choice("baseline", row.baseline, BASELINES)
    if isinstance(row.update, str) or not _is_transformation(row.update):
        check_choice("update", row.update, _updates(row))
    if row.per_decision and row.weighting == "balance":
        raise InputError(
            "per_decision weights are against the own proposal: use weighting='own', 'none' or "
            "'power-mean'."
        )
    return replace(
        row,
        window=None if row.window is None else check_count("window", row.window),
        power=check_between("power", row.power, 0.0, 1.0),
        flatten=None if row.flatten is None else check_between("flatten", row.flatten, 0.0, 1.0),
        truncate=None if row.truncate is None else check_positive("truncate", row.truncate),
        normalize=check_flag("normalize", row.normalize),
        epsilon=check_positive("epsilon", row.epsilon),
        kl=check_positive("kl", row.kl),
        tau_floor=check_positive("tau_floor", row.tau_floor),
        mirrored=check_flag("mirrored", row.mirrored),
        per_decision=check_flag("per_decision", row.per_decision),
        ridge=check_positive("ridge", row.ridge),
        folds=check_count("folds", row.folds, least=2),
    )


def _updates(row: Method) -> tuple[str, ...]:
    """The update rules that have a word, and a meaning for this row."""
    if row.direction == "em":
        return ("whole",)
    return ("normalised", "natural") if row.space == "parameters" else ("normalised",)


def _is_transformation(update: Any) -> bool:
    """Whether `update` has the two functions of an optax transformation."""
    return callable(getattr(update, "init", None)) and callable(getattr(update, "update", None))
