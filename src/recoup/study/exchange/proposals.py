"""What drew samples from elsewhere, as blocks of numbers of a study's own family.

Tables, arrays and other study files all come through here: one rule for every door.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from recoup.checks import InputError, check_numbers, check_stds
from recoup.core.families.table import FAMILIES
from recoup.core.types import Array, Given, Settings
from recoup.study.reader.opened import Opened
from recoup.study.space.candidates import means_given, stds_given
from recoup.study.space.parameters import spread_out

Shown = tuple[np.ndarray, np.ndarray] | None  # means, in the user's units, and deviations [n, D]
SAME_MOMENTS = 1e-6  # of what a family shows of means and standard deviations, relative


def check_family(study: Opened, source: Given, family: str) -> None:
    """Raises unless a study can weigh what a family of this name drew.

    That is its own, or the one whose distributions its own starts with.
    """
    if family not in (study.family, study.starts_as):
        raise InputError(
            f"{source} draws from the family {family[:40]}, this study from {study.family}: they "
            "do not match."
        )


def of_family(study: Opened, source: Given, family: str, blocks: Array) -> np.ndarray:
    """Blocks of numbers `[..., K]` of a family, as those of the study's family.

    A row of which a number is missing stays without.
    """
    check_family(study, source, family)
    check_numbers(f"the numbers rho of {source}", blocks)
    blocks = np.asarray(blocks, float)
    widened = family != study.family
    size = _packed_start(family, study.dim).size if widened else study.block_size
    if np.shape(blocks)[-1:] != (size,):
        raise InputError(
            f"{source} has {np.shape(blocks)[-1] if np.ndim(blocks) else 1} numbers for a "
            f"distribution of the family {family}, where this study has {size}: it is another "
            "family of that name, or of another number of parameters."
        )
    found = _for_each(blocks, lambda rows: _widened(study, family, rows)) if widened else blocks
    _check_positive(study, source, found)
    return found


def of_gaussians(study: Opened, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Blocks `[n, K]` of the study's family with latent means and standard deviations `[n, D]`.

    Of a family that has correlations, without any.
    """
    dim = study.dim

    def started(rows: np.ndarray) -> np.ndarray:
        if study.has_own_family:
            found = np.stack([study.start(row[:dim], row[dim:]) for row in rows])
        else:
            found = study.start(rows[:, :dim], rows[:, dim:])
        shown = np.hstack(study.shown(found))
        if not np.allclose(shown, rows, rtol=SAME_MOMENTS, atol=SAME_MOMENTS * rows[:, dim:].min()):
            raise InputError(
                f"the family {study.family} starts with other means and standard deviations than "
                "those given: give rho, its packed numbers, of what drew the samples."
            )
        return found

    return _for_each(np.hstack([mean, std]), started)


def _packed_start(family: str, dim: int) -> np.ndarray:
    return FAMILIES[family].rho.start(np.zeros(dim), np.ones(dim)).packed()


def _widened(study: Opened, family: str, blocks: np.ndarray) -> np.ndarray:
    """Blocks of the family that the study's own starts as, as those of its own."""
    rho = FAMILIES[family].rho.unpacked(blocks, study.dim)
    return study.start(rho.mean, rho.std)


def _for_each(rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of rows `[..., J]`, computed once for all that are the same."""
    found, index = np.unique(rows.reshape(-1, rows.shape[-1]), axis=0, return_inverse=True)
    made = function(found)[index.ravel()]
    return made.reshape(*rows.shape[:-1], made.shape[-1])


def _check_positive(study: Opened, source: Given, blocks: np.ndarray) -> None:
    """Raises where numbers are not those of any distribution of the study's family."""
    known = np.unique(blocks[np.isfinite(blocks).all(axis=-1)], axis=0)
    if not len(known):
        return
    spread = study.shown(known)[1] if study.has_own_family else study.rho(known).positive
    check_stds(f"the numbers rho of {source}", spread)


def moments_given(study: Opened, given: Settings) -> Settings:
    """The mean and std, or one of them, of what drew samples: given in order or by name, all.

    A choice of the mean is a word, as `evaluate` takes it, or the latent numbers that drew it.
    """
    found: dict[str, Given] = {
        key: study.by_name(x) if isinstance(x, dict) else x for key, x in given.items()
    }
    mean, std = study.shown(study.store.newest().numbers)
    if "mean" in found:
        found["mean"] = _mean_given(study, found["mean"], mean)
    if "std" in found:
        found["std"] = stds_given(study.parameters, found["std"], std)
    return found


def _mean_given(study: Opened, given: Given, here: np.ndarray) -> np.ndarray:
    values = given if isinstance(given, list) else [given]
    pairs = zip(study.parameters, values, strict=False)
    chosen = any(p.choices and getattr(x, "text", x) in p.choices for p, x in pairs)
    if chosen or any(isinstance(x, str) for x in values):
        return spread_out(study.parameters, means_given(study.parameters, given, here))
    return np.asarray(given, float)


def of_rows(
    study: Opened, path: Path, families: Sequence[str], numbers: np.ndarray, shown: Shown
) -> np.ndarray:
    """Blocks `[n, K]` of the study's family, of what drew each row of a table.

    A row that nothing drew has no numbers, and no means either.
    """
    drawn = np.isfinite(numbers).all(axis=1)
    said = np.hstack([numbers, *(shown or ())])  # infinite is wrong, and not empty
    half = ~drawn & ~np.isnan(said).all(axis=1)
    if half.any():
        raise InputError(
            f"line {_line(half)} of {path}: rho_0 to rho_{numbers.shape[1] - 1}, of what drew it, "
            "must all be finite numbers; or all are empty, and its mean_ and std_ too."
        )
    if not drawn.any():
        return np.full((len(drawn), study.block_size), np.nan)
    found = of_family(study, path, _one_family(path, families, drawn), numbers)
    if shown is not None:
        _check_shown(study, path, found, shown)
    return found


def check_told(study: Opened, source: Given, families: Iterable[str]) -> None:
    """Raises unless means and standard deviations tell all of what these families drew."""
    for family in {name for name in families if name}:
        check_family(study, source, family)
        if family != study.starts_as:
            raise InputError(
                f"{source} says that the family {family} drew its samples, of which mean and std "
                "do not tell all, and does not have its numbers rho: export the study again (or "
                "leave out family, to take them as uncorrelated)."
            )


def _one_family(path: Path, families: Sequence[str], drawn: np.ndarray) -> str:
    """The name of the family that drew the rows of a table which are `drawn`."""
    first = families[int(np.argmax(drawn))]
    wrong = drawn & np.array([name != first or not name for name in families])
    if wrong.any():
        name = families[int(np.argmax(wrong))][:40] or "empty"
        said = f", where line {_line(drawn)} has {first[:40]}" if first else ""
        raise InputError(
            f"line {_line(wrong)} of {path}: the family is {name}{said}: a table says for every "
            "row the one family that drew them."
        )
    return first


def _check_shown(study: Opened, path: Path, blocks: np.ndarray, shown: Shown) -> None:
    """Raises where the columns mean_ and std_ are not those of the numbers beside them."""
    known = np.isfinite(blocks).all(axis=1)
    moments = _for_each(blocks[known], lambda rows: np.hstack(study.shown(rows)))
    mean, std = np.hsplit(moments, [study.dim])
    found = (spread_out(study.parameters, mean) if study.names else mean, std)
    names = [p.name for p in study.columns] or range(study.dim)
    for which, said, of in zip(("mean", "std"), shown or (), found, strict=True):
        said = said[known]
        near = 1e-9 if which == "mean" else 0.0  # where it is zero but for rounding
        apart = ~np.isnan(said) & ~np.isclose(of, said, rtol=SAME_MOMENTS, atol=near)
        if apart.any():
            row, column = np.argwhere(apart)[0]
            raise InputError(
                f"line {np.flatnonzero(known)[row] + 2} of {path}: {which}_{names[column]} is "
                f"{said[row, column]:g}, but {of[row, column]:g} by the columns rho_, which say "
                "what drew it: put it back, or leave out the columns that begin with mean_ and "
                "std_ (or, to use those, family and the ones that begin with rho_)."
            )


def _line(rows: np.ndarray) -> int:
    """The line of a table that the first of some rows stands in, below the names."""
    return int(np.argmax(rows)) + 2
