"""A study as it is read: its settings, its units, its distributions, its results.

What forks, replays, exports, verifies or judges a study takes one of these.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import (
    InputError,
    check_choice,
    check_finite,
    check_numbers,
    check_start,
    check_whole_numbers,
    shortly,
)
from recoup.core.families.gaussian import Diagonal
from recoup.core.families.table import FAMILIES
from recoup.core.types import Array, Chosen, Given, Plain, Rho, Settings, Value
from recoup.engine.methods import family_name
from recoup.engine.parts import GIVEN
from recoup.store.errors import Damaged, damage, sensible
from recoup.store.queries import ROWS_READ
from recoup.store.rows import Asked, Memory, Result
from recoup.store.store import Store
from recoup.study.reader.batches import batch_after
from recoup.study.reader.blocks import in_double, start_block
from recoup.study.reader.draws import theta_of
from recoup.study.reader.ledger import AsTold, Ledger
from recoup.study.reader.records import Trial, by_name
from recoup.study.reader.settings import (
    RETURN_UNIT,
    RUN,
    charts_of,
    check_settings,
    layout_of,
    method_of,
    missing_parts,
    parameters_in,
    without_other_families,
)
from recoup.study.space.candidates import means_given, stds_given, theta_given
from recoup.study.space.charts import chart_of, elsewhere, moved
from recoup.study.space.frozen import frozen_in
from recoup.study.space.goals import ends_of, goal_of
from recoup.study.space.limits import limits_of
from recoup.study.space.parameters import (
    Parameter,
    check_values,
    columns_of,
    to_latent,
    to_user,
    units_of,
)

PARAMETERS_NAMED = 12  # parameters, at most, in a sentence
CLOSE = 1e-4  # of what a family shows of its first distribution, relative


class Mark(NamedTuple):
    """A move as it is stored, and the distribution that it made."""

    number: int
    counted: int
    memory: Memory
    numbers: np.ndarray
    begun: int  # the number of the move that it began from


class Opened:
    """The read side of a study; nothing here writes.

    Longer than others: what it knows is asked for from everywhere, in a few lines each.
    """

    def __init__(self, store: Store, parts: Settings | None = None) -> None:
        """`parts` are those of the method that only Python can give."""
        self.store = store
        for key in parts or {}:
            check_choice("a part of a method", key, GIVEN)
        with sensible(store.where):
            self.settings = store.settings()
            self.parts = without_other_families(self.settings, parts or {})
            self.method = method_of(self.settings, self.parts)
            check_settings(self.settings, self.method)
            self.goal = goal_of(self.settings)
            self.sign = self.goal.sign  # of what was told, where larger is better
            self.limits, self.ends = limits_of(self.settings), ends_of(self.settings)
            self.parameters = parameters_in(self.settings)
            self.layout = layout_of(self.settings, self.method)
            self.charts, self.frozen = charts_of(self.settings), frozen_in(self.settings)
            self._chart_numbers: dict[int, int] = {}
        self.remembered: dict[str, tuple[str, Any]] = {}  # what was made of which version
        self.missing = missing_parts(self.settings, self.parts)
        self.dim: int = self.settings["dim"]
        self.discount: float = self.settings.get("discount", 1.0)
        self.names = tuple(p.name for p in self.parameters)
        self.columns = columns_of(self.parameters)  # [D], of named parameters
        self.choices = tuple((p.name, p.choices) for p in self.parameters if p.choices)
        self.whole = tuple(p.name for p in self.parameters if p.scale == "int")
        self.units = units_of(self.parameters)
        self.return_unit: str = self.settings.get(RETURN_UNIT, "")
        self.family: str = self.missing.get("family") or family_name(self.method)
        if "family" not in self.missing:
            self._check_family()

    @classmethod
    def open(cls, path: Path, parts: Settings | None = None) -> "Opened":
        """The study in an existing file."""
        store = Store.open(path)
        try:
            return cls(store, parts)
        except BaseException:
            store.close()
            raise

    @property
    def where(self) -> str:
        """Where the study is kept, as sentences name it."""
        return self.store.where

    def check_whole(self) -> None:
        """Raises where a part of the method is missing, which only Python can give."""
        for key, text in self.missing.items():
            given = f"`recoup.Study.open(..., {key}=...)`"
            if RUN in self.settings:
                given = f"`recoup.resume(run, {key}=...)` or `recoup.load(run, {key}=...)`"
            raise InputError(
                f"{self.where} was made with {key}={text}, which a file cannot hold: give it "
                f"again, in Python, by {given}."
            )

    @property
    def lacks(self) -> list[str]:
        """The parts that are missing, as a sentence names them."""
        return [f"{key}={text}" for key, text in self.missing.items()]

    @property
    def batch(self) -> int:
        """How many results the next move waits for."""
        last = self.store.last_notes()
        return batch_after(self.settings, last, last.counted)

    def until_move(self) -> int:
        """How many results are missing until the distribution moves; 0 where a move is due."""
        return max(self.batch - self.store.counters().fresh, 0)

    # -- distributions --

    @cached_property
    def _unpacked(self) -> Callable[[Array, int], Rho]:
        if "family" in self.missing:
            self.check_whole()
        if self.has_own_family:
            return in_double(self.method.family.unpacked)
        return FAMILIES[self.family].rho.unpacked

    @property
    def has_own_family(self) -> bool:
        """Whether its distributions are of a family of the user's."""
        own = "family" in self.missing or not isinstance(self.method.family, str)
        return self.method.space == "parameters" and own

    @property
    def starts_as(self) -> str | None:
        """The family that means and standard deviations tell all of; None of one of the user's."""
        return None if self.has_own_family else FAMILIES[self.family].starts_as or self.family

    def rho(self, numbers: Given) -> Rho:
        """The hyper-parameter that a block of numbers `[..., K]` holds."""
        unpacked = self._unpacked
        self._check_size(numbers)
        return unpacked(numbers, self.dim)

    def _check_size(self, numbers: Given) -> None:
        if numbers.shape[-1] != self.block_size:
            words = f"a distribution of {numbers.shape[-1]} numbers, not {self.block_size}"
            raise Damaged(damage(self.where, words))

    def _check_family(self) -> None:
        """Raises where the first distribution is of another family than the settings say."""
        if self.has_own_family:
            check_own_family(self, self.method)
        else:
            self._check_size(self.store.proposal(0).numbers)

    def shown(self, numbers: Given) -> tuple[np.ndarray, np.ndarray]:
        """Means `[..., D]` and standard deviations `[..., S]` of blocks of numbers `[..., K]`."""
        look = in_double(_moments) if self.has_own_family else _moments
        return look(self.rho(numbers))

    def part(self, numbers: np.ndarray, place: slice) -> Rho:
        """What a block of numbers `[K]` draws some of the coordinates with, whatever the others.

        Of a family of the user's, with their means and standard deviations alone.
        """
        if self.has_own_family:
            mean, std = self.shown(numbers)
            return Diagonal(mean[place], std[place])
        return self.rho(numbers).given(range(self.dim)[place], [], np.zeros(0))

    def drawn(self, rho: Rho, number: int, kind: str) -> np.ndarray:
        """The latent theta `[D]` of trial `number` when `rho` draws it."""
        draw = in_double(theta_of) if self.has_own_family else theta_of
        block = self.method.block(self.dim)
        return draw(rho, self.settings["seed"], number, kind, self.dim, block)

    @cached_property
    def block_size(self) -> int:
        """How many numbers a block has."""
        return self.start(self.settings["mean"], self.settings["std"]).size

    def start(self, mean: Given, std: Given) -> np.ndarray:
        """The block of numbers `[K]` of the distribution with latent means and deviations."""
        if "family" in self.missing:
            self.check_whole()
        return start_block(self.family, self.method, mean, std)

    @property
    def mean(self) -> np.ndarray:
        """Means of the newest distribution `[D]`, latent where parameters are named."""
        return self.shown(self.store.newest().numbers)[0]

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of the newest distribution `[D]`; in action space sigma `[A]`."""
        return self.shown(self.store.newest().numbers)[1]

    def marks(self) -> list[Mark]:
        """Every move with the distribution that it made; the first is the start."""
        moves = self.store.moves()
        proposals = self.store.proposals({move.proposal for move in moves})
        return [
            Mark(move.id, move.counted, move.memory, proposals[move.proposal].numbers, move.begun)
            for move in moves
        ]

    def target(self, mean: Given = None, std: Given = None) -> np.ndarray:
        """The block of numbers of a candidate: the newest's where neither is given."""
        return self.around(self.store.newest().numbers, mean, std)

    def around(self, numbers: np.ndarray, mean: Given, std: Given) -> np.ndarray:
        """A block of numbers with other means, in the user's units, or other deviations, or both.

        What is not among those given by name stays. With other deviations it has no correlations;
        without, it keeps its own.
        """
        if mean is None and std is None:
            return numbers
        means, stds = self.shown(numbers)
        if mean is not None:
            means = means_given(self.parameters, mean, means)
            check_start(mean=means)
        if std is not None:
            stds = stds_given(self.parameters, std, stds)
            check_start(std=stds)
            return self.start(means, stds)
        found = np.concatenate([means, numbers[self.dim :]])
        if not np.allclose(self.shown(found)[0], means, rtol=CLOSE):
            raise InputError(f"the family {self.family} does not pack its means first: give std.")
        return found

    @property
    def task_version(self) -> str:
        """Of a run on a task of the user's: what makes a return of a theta, in a short text.

        Where it differs, the same theta is another policy, and its returns say nothing here.
        """
        run = self.settings.get(RUN, {})
        return run.get("version", "") if run.get("own") else ""

    # -- units --

    @cached_property
    def labels(self) -> Sequence[str]:
        """What parameters are called `[P]`: their names, or theta_0 and so on."""
        return self.names or [f"theta_{i}" for i in range(self.dim)]

    def in_units(self, latent: np.ndarray) -> np.ndarray:
        """Latent values `[..., D]` in the user's units `[..., P]`."""
        return to_user(self.parameters, latent)

    def params(self, values: np.ndarray) -> Plain:
        """Values `[P]` in the user's units by name, or by theta_0 and so on."""
        return by_name(self.labels, values, self.whole, self.choices)

    def by_name(self, theta: Settings) -> list[Value]:
        """Values by name, in the order of the parameters."""
        missing = [name for name in self.names if name not in theta]
        extra = [name for name in theta if name not in self.names]
        if missing or extra:
            raise InputError(
                f"the parameters are {', '.join(self.names) or 'not named'}; got "
                f"{', '.join(x if isinstance(x, str) else shortly(x) for x in theta)}."
            )
        return [theta[name] for name in self.names]

    def latent_theta(self, theta: Given) -> np.ndarray:
        """One theta, given in the user's units in order or by name, as a latent one `[D]`."""
        if isinstance(theta, Mapping):
            theta = self.by_name(theta)
        if self.choices:
            theta = theta_given(self.parameters, theta)
        check_numbers("theta", theta)
        if np.shape(theta) != (size := len(self.labels),):
            named = f" ({', '.join(self.names[:PARAMETERS_NAMED])})" if self.names else ""
            raise InputError(
                f"a theta of this study has {size} values{named}; got {np.size(theta)}."
            )
        check_finite("the values of theta", theta)
        check_whole_numbers("a value of theta", theta)
        values = np.asarray(theta, float)
        check_values(self.parameters, values)
        return to_latent(self.parameters, values)

    # -- trials and results --

    def trials(self, asked: Sequence[Asked]) -> list[Trial]:
        """Trials as the user sees them."""
        kinds = (self.names, self.whole, self.choices)
        return [
            Trial(one.id, user, one.seed, one.kind, self._spread(one), *kinds)
            for one, user in zip(asked, self.values(asked), strict=True)
        ]

    def _spread(self, asked: Asked) -> np.ndarray | None:
        """Of the policy's actions, for methods that explore in them."""
        if self.method.space != "actions":
            return None
        drew = asked.proposal
        found = self.store.newest() if drew is None else self.store.proposal(drew)
        return self.shown(found.numbers)[1]

    def values(self, asked: Sequence[Asked]) -> np.ndarray:
        """The thetas of trials in the user's units `[n, P]`, whatever bounds they came from."""
        found = np.empty((len(asked), len(self.labels)))
        drew = [self.parameters_of(one.proposal) for one in asked]
        for parameters in {id(one): one for one in drew}.values():
            rows = [i for i, one in enumerate(drew) if one is parameters]
            found[rows] = to_user(parameters, np.stack([asked[i].theta for i in rows]))
        return found

    def all_trials(self, after: int = -1) -> Iterator[tuple[Asked, Result | None, np.ndarray]]:
        """All trials by number, each with its result if it has one, and in the user's units."""
        pairs = self.store.trials(after)
        while some := list(islice(pairs, ROWS_READ)):
            for pair, values in zip(some, self.values([asked for asked, _ in some]), strict=True):
                yield (*pair, values)

    def here(self, asked: Asked) -> tuple[np.ndarray, bool]:
        """The latent theta of a trial in the study's space `[D]`, and whether it has a place."""
        drawn_under = self.parameters_of(asked.proposal)
        if drawn_under is self.parameters:
            return asked.theta, True
        found, inside = moved(drawn_under, self.parameters, asked.theta[None])
        return found[0], bool(inside[0])

    def parameters_of(self, proposal: int | None) -> tuple[Parameter, ...]:
        """The parameters with the bounds under which a proposal is Gaussian."""
        if proposal is None or not self.charts:
            return self.parameters
        if proposal not in self._chart_numbers:
            self._chart_numbers[proposal] = chart_of(self.store.proposal(proposal).family)
        number = self._chart_numbers[proposal]
        if number > len(self.charts):
            raise Damaged(damage(self.where, "a distribution of unknown bounds"))
        return self.charts[number - 1] if number else self.parameters

    def ledger(self, after: int = 0, foreign: bool = True) -> Ledger:
        """The results after the place `after`, none read yet; `foreign` ones too, or not."""
        return Ledger(
            self.store,
            self.layout,
            self.settings["batch"],
            mirrored=self.method.mirrored,
            after=after,
            foreign=foreign,
            elsewhere=[elsewhere(self.parameters, there) for there in self.charts],
            told=AsTold(self.sign, self.limits),
        )


def _moments(rho: Rho) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(rho.mean), np.asarray(rho.std)


def check_own_family(study: Opened, method: Chosen) -> None:
    """Raises where the family of the user's in `method` is not the one that a study was made with.

    Names can be the same, and a block of numbers be read as another distribution. The study's first
    one shows the means and deviations of its settings, or is what the family makes of them.
    """
    first, dim = study.store.proposal(0).numbers, study.settings["dim"]
    mean, std = (np.asarray(study.settings[key], float) for key in ("mean", "std"))
    made = start_block(study.family, method, mean, std)
    same = made.shape == first.shape
    if same and not np.allclose(made, first, rtol=CLOSE):

        def shown() -> bool:
            pairs = zip(_moments(method.family.unpacked(first, dim)), (mean, std), strict=True)
            return all(np.allclose(x, y, rtol=CLOSE, atol=CLOSE * std.min()) for x, y in pairs)

        same = in_double(shown)()
    if not same:
        raise InputError(
            f"{study.where} was made with a family {study.family!r}, but not with the one that was "
            "given: its first distribution is another there. Give the one that it was made with."
        )
