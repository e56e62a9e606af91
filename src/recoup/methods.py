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
UPDATES = ("normalised", "natural")


@dataclass(frozen=True)
class Method:
    """One row: what is kept, how it is weighed, what is subtracted, how the distribution moves."""

    name: str
    summary: str
    window: int | None = None  # batches kept: 1 this iteration only, None everything
    weighting: str = "none"
    power: float = 0.1  # lambda of the power-mean weighting
    flatten: float | None = None  # nu of w^nu
    truncate: float | None = None  # c of min(w, c)
    normalize: bool = False  # divide weights by their mean
    baseline: str = "none"
    update: Any = "normalised"  # or "natural", or an optax transformation
    epsilon: float = 0.1  # step length of the normalised update
    kl: float = 0.5  # step length of the natural update
    tau_floor: float = 0.05
    mirrored: bool = False  # draw in pairs eta + noise, eta - noise


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
            "mis-pgpe-ob",
            "reuses everything against the mixture of all proposals; bounded weights",
            weighting="balance",
            baseline="optimal",
        ),
    )
}

DEFAULT_METHOD = "mis-pgpe-ob"
SETTINGS = tuple(f.name for f in fields(Method) if f.name not in ("name", "summary"))


def method_row(name: str, **settings: Any) -> Method:
    """The row of `name` with `settings` in place of its own, every value checked."""
    row = METHODS[check_choice("method", name, METHODS)]
    for key in settings:
        if key not in SETTINGS:
            hint = nearest(key, SETTINGS)
            raise InputError(
                f"{key!r} is not a setting; the settings are {', '.join(SETTINGS)}.{hint}"
            )
    return checked(replace(row, **settings))


def checked(row: Method) -> Method:
    """`row` with its numbers in their types, once every value is one it may have."""
    check_choice("weighting", row.weighting, WEIGHTINGS)
    check_choice("baseline", row.baseline, BASELINES)
    if isinstance(row.update, str) or not _is_transformation(row.update):
        check_choice("update", row.update, UPDATES)
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
    )


def _is_transformation(update: Any) -> bool:
    """Whether `update` has the two functions of an optax transformation."""
    return callable(getattr(update, "init", None)) and callable(getattr(update, "update", None))
