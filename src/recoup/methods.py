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
    if row.window is not None:
        check_count("window", row.window)
    check_weighting(row.weighting, row.power, row.flatten, row.truncate, row.normalize)
    check_choice("baseline", row.baseline, BASELINES)
    check_flag("mirrored", row.mirrored)
    if isinstance(row.update, str) or not hasattr(row.update, "update"):
        check_choice("update", row.update, UPDATES)
    for name in ("epsilon", "kl", "tau_floor"):
        check_positive(name, getattr(row, name))
    return row


def check_weighting(
    weighting: str, power: Any, flatten: Any, truncate: Any, normalize: Any
) -> None:
    """Raises unless the weighting and its shapers have values they may have."""
    check_choice("weighting", weighting, WEIGHTINGS)
    check_between("power", power, 0.0, 1.0)
    if flatten is not None:
        check_between("flatten", flatten, 0.0, 1.0)
    if truncate is not None:
        check_positive("truncate", truncate)
    check_flag("normalize", normalize)
