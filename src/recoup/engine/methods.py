"""The methods as rows of a table, and what their settings may be. Needs no JAX.

A new method is a new row. Wherever a word stands, an object of the same type may stand too: a
function of yours is composed as ours are. What the words name stands in `parts`.

Longer than others: it is mostly a table, and its words.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from recoup.checks import (
    InputError,
    check_between,
    check_choice,
    check_count,
    check_flag,
    check_larger_is_better,
    check_positive,
    nearest,
)
from recoup.core.families.family import block_size, moving
from recoup.core.families.table import WORDS
from recoup.core.movers import as_mover, is_mover
from recoup.core.types import Chosen, Given, Plain, Settings
from recoup.engine.failure import AVOID, CENSORED, check_failure
from recoup.engine.parts import GIVEN, PARTS
from recoup.engine.ways import WAYS, Way, settings_in, way_of
from recoup.notebooks import facts

Value = TypeVar("Value")
NAMING = ("name", "summary")  # fields of a method that are no settings, nor say what it searches


def _of(default: Value, check: Callable[..., Value], *limits: float, **how: object) -> Value:
    """A setting with its default; `check(name, value, *limits)` gives it in its type, or raises.

    None stays None where that is the default.
    """

    def checked(name: str, value: Given) -> Value | None:
        return None if value is None and default is None else check(name, value, *limits, **how)

    return field(default=default, metadata={"check": checked, "allowed": (check.__name__, limits)})


@dataclass(frozen=True, repr=False)
class Method:
    """One row: what is kept, how it is weighed, what is subtracted, how the distribution moves.

    `recoup.METHODS` holds ours by name. One of yours stands wherever a name may; what its settings
    may be stands in the reference, under methods and their settings.

    >>> mine = recoup.Method("mine", weighting="power-mean", baseline="mean", window=3)
    >>> recoup.search(mine, dim=4, batch=10)
    Search(mine, 4 parameters, batch 10, keeps 30 samples)
    """

    name: str  # as it is called
    summary: str = ""  # what it does, in a line
    space: str = "parameters"  # or "actions": the sample is a trajectory, rho the policy
    family: Chosen = "diagonal"  # of the search distribution, for methods that search parameters
    direction: Chosen = "gradient"  # how a step is made: a word of `ways`, or a function
    window: int | None = _of(None, check_count)  # batches kept: 1 this one alone, None everything
    weighting: Chosen = "none"  # of old samples: a word of `parts`, or a function
    power: float = _of(0.1, check_between, 0.0, 1.0)  # lambda of the power-mean weighting
    flatten: float | None = _of(None, check_between, 0.0, 1.0)  # nu of w^nu; "em" chooses a None
    truncate: float | None = _of(None, check_positive)  # c of min(w, c)
    normalize: bool = _of(False, check_flag)  # divide weights by their mean
    baseline: Chosen = "none"  # subtracted from returns, likewise
    utility: Chosen = "elite"  # of "fit": how much a sample counts for what it earned
    elite: float = _of(0.25, check_between, 0.0, 1.0, open_low=True)  # share of the best samples,
    # of the utility "elite"
    temperature: float = _of(1.0, check_positive)  # of the utility "exponential", in standard
    # deviations of returns
    update: Chosen = "normalised"  # how rho moves: a word, or an `Update`
    epsilon: float = _of(0.1, check_positive)  # step length of the normalised update, or Adam's
    kl: float = _of(0.5, check_positive)  # step length of the natural update, bound of utility "kl"
    tau_floor: float = _of(0.05, check_positive)  # standard deviations stay above it
    mirrored: bool = _of(False, check_flag)  # draw in pairs eta + noise, eta - noise
    failure: Chosen = CENSORED  # what a failed rollout earns: a word of `failure`, or a number
    per_decision: bool = _of(False, check_flag)  # weigh a reward by the actions before it alone
    ridge: float = _of(1e-6, check_positive)  # of least squares, relative to the mean diagonal
    folds: int = _of(5, check_count, 2)  # of the cross-validation that chooses `flatten`

    # -- of "blend", the rule of docs/recoup.md --
    share: float | None = _of(None, check_between, 0.0, 1.0)  # the regression's of a step; None:
    # as far as it knows the slope
    prior: float = _of(1.0, check_positive)  # squared length of bumps that is expected, over D
    widens: bool = _of(True, check_flag)  # whether the regression may widen the spread
    pulled: bool = _of(False, check_flag)  # whether its bowl pulls the mean as if slopes were known
    most: float = _of(0.7, check_between, 0.0, 1.0)  # the regression's of the spread's, at most
    shrink: float = _of(0.25, check_between, 0.0, 1e3)  # of the mean step's variance, that the log
    # spread loses
    repeats: bool = _of(True, check_flag)  # whether candidates are tried twice to tell noise
    most_std: float | None = _of(None, check_positive)  # latent, up to which it widens (e^7 times)
    orthogonal: bool = _of(
        True, check_flag
    )  # whether draws come in blocks of orthogonal directions
    context: bool = _of(True, check_flag)  # whether what contexts explain is taken off of returns

    def __repr__(self) -> str:
        said = "".join(f", {key}={value}" for key, value in self.changed.items())
        return f"Method({self.name!r}{said})"

    def _repr_html_(self) -> str:
        return facts(self.name, {"what it does": self.summary or "not said", **self.changed})

    @property
    def changed(self) -> dict[str, str]:
        """Its settings that are not what they are unless said, as they are typed.

        >>> recoup.METHODS["tiw-pgpe-ob"].changed
        {'window': '5', 'weighting': "'own'", 'truncate': '2.0', 'baseline': "'optimal'"}
        """
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in NAMING}
        defaults = {f.name: f.default for f in fields(self)}
        return {key: _typed(x) for key, x in given.items() if x != defaults[key]}

    @property
    def way(self) -> Way:
        """How a step is made, and what that can do.

        >>> recoup.METHODS["recoup"].way.rule
        True
        """
        return way_of(self.direction)

    @property
    def draw(self) -> int:
        """How many adjacent samples are one draw: two where they are mirrored.

        >>> recoup.Method("pairs", mirrored=True).draw
        2
        """
        return 2 if self.mirrored else 1

    def block(self, dim: int) -> int:
        """How many draws of `dim` dimensions have orthogonal directions; 1: none.

        Raises nothing.

        >>> recoup.METHODS["recoup"].block(6), recoup.METHODS["cem"].block(6)
        (6, 1)
        """
        return block_size(dim) if self.orthogonal and self.way.rule else 1

    @property
    def values_failures(self) -> bool:
        """Whether a failed rollout is worth a number, and so one of a batch.

        The worst return that is kept is known only where others did not fail.

        >>> recoup.Method("mine", failure=-20).values_failures
        True
        """
        return self.failure == AVOID or not isinstance(self.failure, str)

    @property
    def stated(self) -> str | float:
        """What a failure earns in what is said of returns: where nobody says, it is left out.

        >>> recoup.Method("mine", failure=-20).stated
        -20
        """
        return CENSORED if self.failure == AVOID else self.failure

    @property
    def reweighs(self) -> bool:
        """Whether samples of older proposals are weighed, so that those are remembered.

        >>> recoup.METHODS["iw-pgpe"].reweighs, recoup.METHODS["niw-pgpe"].reweighs
        (True, False)
        """
        return self.weighting != "none"


def _typed(value: Given) -> str:
    """A setting as it is typed; of a part of the user's its name."""
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    return name if isinstance(name, str) else repr(value)


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
            "recoup",
            "a regression on old and new samples, and a weighted step beside it; batch from D",
            family="auto",
            direction="blend",
            weighting="own",  # for which proposals are kept; it weighs against a mixture of its own
            normalize=True,
            baseline="optimal",
            failure=AVOID,
        ),
        Method(
            "cem",
            "cross-entropy: refits the distribution to the best quarter of a batch",
            direction="fit",
            window=1,
            weighting="balance",
            utility="elite",
            update="whole",
        ),
        Method(
            "rwr",
            "reward-weighted regression: refits it to exponentially weighted samples",
            direction="fit",
            window=1,
            weighting="balance",
            utility="exponential",
            update="whole",
        ),
        Method(
            "reps",
            "relative entropy: likewise, their divergence from the batch bounded",
            direction="fit",
            window=1,
            weighting="balance",
            utility="kl",
            kl=1.0,
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


def _row_of_mover(given: Given, word: str | None = None) -> Method:
    """The row of a method that is one mover, ours by its `word`, or a user's own."""
    mover = as_mover(given)
    return Method(
        mover.name,
        mover.summary,
        direction=word or given,
        window=mover.window,
        weighting="balance",
    )


METHODS |= {word: _row_of_mover(way.mover, word) for word, way in WAYS.items() if way.mover}

DEFAULT_METHOD = "recoup"
COMPOSED = "mis-pgpe-ob"  # the best of those that are composed of parts
FIXED = ("name", "summary", "space")
SETTINGS = tuple(f.name for f in fields(Method) if f.name not in FIXED)

AUTO = "auto"  # the family: full while there are few dimensions
FULL = range(2, 51)  # dimensions in which it is


def known_method(method: "str | Method") -> Method:
    """The row of a name, or the row that was given."""
    if isinstance(method, Method):
        return method
    if is_mover(method):
        row = _row_of_mover(method)
        if row.name in METHODS:
            raise InputError(f"{row.name} is a method of ours: give your mover another name.")
        return checked(row)
    return METHODS[check_choice("method", method, METHODS)]


def settings_of(method: "str | Method") -> tuple[str, ...]:
    """The settings that a method has."""
    row = known_method(method)
    known = settings_in(row.space, row.direction)
    return tuple(key for key in SETTINGS if key in known)


def method_row(
    method: "str | Method", defaults: Settings | None = None, /, **settings: Given
) -> Method:
    """The row of a method with `settings` in place of its own, every value checked.

    A setting that would have no effect is refused; `defaults` come before the settings, and may
    have none.
    """
    row = known_method(method)
    check_larger_is_better(settings)
    if "direction" in settings and not row.way.rule:
        row = replace(row, direction=settings["direction"])
    known = settings_of(row)
    for key in settings:
        if key not in known:
            raise InputError(
                f"{key!r} is not a setting of {row.name}; its settings are {', '.join(known)}."
                f"{nearest(key, known) or _composed_by(key, row)}"
            )
    made = checked(replace(row, **{**(defaults or {}), **settings}))
    for key in settings:
        _check_effect(made, key)
    return made


def _composed_by(key: str, row: Method) -> str:
    """Which method has a setting that the rule of this one has no place for."""
    if not row.way.rule or key not in settings_in("parameters", METHODS[COMPOSED].direction):
        return ""
    return f" A method that follows a gradient has it: method={COMPOSED!r}, say."


def checked(row: Method) -> Method:
    """`row` with its numbers in their types, once every value is one it may have."""
    _check_parts(row)
    _check_fields(row)
    needs = getattr(row.weighting, "needs", ("own", "mixture"))
    mixes = row.weighting == "balance" or (callable(row.weighting) and "mixture" in needs)
    if row.per_decision and mixes:
        raise InputError(
            "per_decision weights are against the own proposal: use weighting='own', 'none' or "
            "'power-mean'."
        )
    checks = {f.name: f.metadata["check"] for f in fields(row) if "check" in f.metadata}
    numbers = {key: check(key, getattr(row, key)) for key, check in checks.items()}
    return replace(row, failure=check_failure(row.failure, row.way.avoids), **numbers)


def sized(row: Method, dim: int) -> Method:
    """The row with its family, where that is left to the number of dimensions."""
    if row.family != AUTO:
        return row
    return replace(row, family="full" if dim in FULL else "diagonal")


def family_name(row: Method) -> str:
    """The name of the family of the row's samples."""
    if row.space == "actions":
        return "policy"
    return row.family if isinstance(row.family, str) else row.family.name


def default_batch(row: Method, dim: int) -> int | None:
    """The batch that a method is made for, if it is made for one."""
    return None if row.way.batch is None else row.way.batch(dim)


def _check_fields(row: Method) -> None:
    """Raises where a row has a value for what its kind of method has not."""
    known = settings_of(row)
    for one in fields(Method):
        if one.name in (*FIXED, "direction", *known) or getattr(row, one.name) == one.default:
            continue
        if one.name in row.way.fixed:
            continue
        raise InputError(
            f"{one.name!r} is not a setting of {row.name}, which explores in {row.space}; its "
            f"settings are {', '.join(known)}."
        )


def own_parts(row: Method) -> Plain:
    """The parts of a row that are no words: functions and objects that only Python can give."""
    given = {key: getattr(row, key) for key in GIVEN}
    return {key: part for key, part in given.items() if not isinstance(part, str)}


def _check_parts(row: Method) -> None:
    """Raises unless every part is a word of its table, or an object that can stand for one."""
    for key in ("weighting", "baseline", "utility"):
        part = getattr(row, key)
        if not callable(part):
            check_choice(key, part, PARTS[key])
    if not hasattr(row.family, "log_ratio"):
        check_choice("family", row.family, (*WORDS, AUTO))
    elif row.way.moves:
        moving(row.family)
    if isinstance(row.update, str) or not (_is_rule(row.update) or _is_transformation(row.update)):
        check_choice("update", row.update, _updates(row))
    for key, part in own_parts(row).items():
        key = "a mover" if is_mover(part) else key
        try:
            hash(part)
        except TypeError:
            raise InputError(
                f"{key} must be a function, or an object that can be hashed (a frozen dataclass, "
                f"say), got {type(part).__name__}."
            ) from None


def _updates(row: Method) -> tuple[str, ...]:
    """The update rules that have a word, and a meaning for this row."""
    in_actions = row.space == "actions"
    return tuple(word for word in row.way.updates if not (in_actions and word == "natural"))


def _check_effect(row: Method, key: str) -> None:
    """Raises where a setting was given that no part of the row looks at."""
    unused = "update" if row.way.length == "utility" else "utility"
    for kind, table in PARTS.items():
        users = [word for word, part in table.items() if key in part.settings and kind != unused]
        word = getattr(row, kind)
        if not users or word in users or (key == "tau_floor" and not _is_rule(word)):
            continue
        what = f"{kind}={word!r}" if isinstance(word, str) else f"your own {kind}"
        raise InputError(
            f"{key} has no effect on {what}: it is for {kind}={' or '.join(map(repr, users))}."
        )
    if key == "baseline" and not isinstance(row.direction, str):
        raise InputError("baseline has no effect on a direction of your own, which has its own.")
    if key == "tau_floor" and getattr(row.family, "floored", True) is None:
        raise InputError("tau_floor has no effect on a family without `floored`.")


def _is_rule(update: object) -> bool:
    """Whether `update` has the two functions of our update rules."""
    return callable(getattr(update, "init", None)) and callable(getattr(update, "step", None))


def _is_transformation(update: object) -> bool:
    """Whether `update` has the two functions of an optax transformation."""
    return callable(getattr(update, "init", None)) and callable(getattr(update, "update", None))
