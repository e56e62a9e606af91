"""Unordered choices: one of several words stands where the largest of their latent numbers stands.

A parameter with K choices is searched as K latent numbers, which are drawn, stored and weighed like
all others; the choice is a function of them, as a whole number is one of its latent value. Two
choices need one number alone: the second stands where it is above 0.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from math import erf

import numpy as np

from recoup.checks import InputError, nearest, shortly
from recoup.core.types import Given, Rho

MOST_CHOICES, CHOICE_LENGTH = 50, 40  # choices of a parameter, and characters of one
MARKS = "|,=@"  # that commands give a meaning
AHEAD = 1.0  # latent: by how much a choice that is said stands ahead of the others
CHANCE_DRAWS = 12288  # draws by which chances are known
TRIES = (64, 10000)  # draws among which one of given choices is looked for
CHOICES_NAMED = 3  # choices that a line names
UNNAMED_CHANCE = 0.005  # a chance that is not named


def slots(choices: int) -> int:
    """How many latent numbers so many choices have."""
    return 1 if choices == 2 else choices


def chosen(z: np.ndarray) -> np.ndarray:
    """Which choice stands, from 0, where its latent numbers are `z [..., S]`."""
    found = z[..., 0] > 0 if z.shape[-1] == 1 else np.argmax(z, axis=-1)
    return np.asarray(found, float)


def standing(which: Given, choices: int) -> np.ndarray:
    """Latent numbers `[..., S]` at which the choices `which [...]` stand, one for each."""
    which = np.asarray(which)
    if choices == 2:
        return np.where(which > 0, AHEAD, -AHEAD)[..., None]
    return AHEAD * _ones(which, choices)


def code(which: Given, choices: int) -> np.ndarray:
    """What models see in place of latent numbers `[..., S]`: the choice itself.

    Mean 0 and variance 1 where all are equally likely.
    """
    which = np.asarray(which)
    if choices == 2:
        return np.where(which > 0, 1.0, -1.0)[..., None]
    return (_ones(which, choices) - 1 / choices) / (1 / choices * (1 - 1 / choices)) ** 0.5


def _ones(which: np.ndarray, choices: int) -> np.ndarray:
    return (which[..., None] == np.arange(choices)).astype(float)


def chances(rho: Rho) -> np.ndarray:
    """How likely each choice is `[K]` where its latent numbers `[S]` are drawn by `rho`.

    Of two by the normal distribution; of more by counting draws that are always the same, in all
    cyclic orders, so that equal choices have equal chances.
    """
    n = len(rho.mean)
    if n == 1:
        second = (1 + erf(float(rho.mean[0]) / float(rho.std[0]) / 2**0.5)) / 2
        return np.array([1 - second, second])
    noise = np.random.default_rng(0).standard_normal((CHANCE_DRAWS // n, n))
    found = np.array([chosen(rho.theta(np.roll(noise, i, axis=1))) for i in range(n)])
    return np.bincount(found.astype(int).ravel(), minlength=n) / found.size


def leading(mean: np.ndarray, which: int) -> np.ndarray:
    """Latent means `[S]` with another choice ahead: it changes places with the one that is.

    Where none is, it is put ahead of the others.
    """
    if len(mean) == 1:
        side = 1.0 if which else -1.0
        return side * (np.abs(mean) if mean[0] else np.full(1, AHEAD))
    found, first = mean.copy(), int(chosen(mean))
    found[[first, which]] = found[[which, first]]
    if found[which] == np.max(np.delete(found, which)):
        found[which] += AHEAD
    return found


def drawn_as(
    rng: np.random.Generator, rho: Rho, places: Sequence[slice], which: Sequence[int]
) -> np.ndarray:
    """Latent numbers `[S]` drawn by `rho`, as they are where the choices `which` stand.

    `places` are those of each choice's numbers. What a distribution drew, and only the choices are
    known of, has this density and no other. Where they hardly ever stand, one draw is made to.
    """
    for tries in TRIES:
        z = np.asarray(rho.theta(rng.standard_normal((tries, len(rho.mean)))))
        stands = [chosen(z[:, place]) == k for place, k in zip(places, which, strict=True)]
        right = np.flatnonzero(np.all(stands, axis=0))
        if right.size:
            return np.asarray(z[right[0]])
    found = z[0].copy()
    for place, k in zip(places, which, strict=True):
        found[place] = leading(found[place], k)
    return found


def place_of(name: str, choices: Sequence[str], value: Given) -> float:
    """The place among its choices, from 0, of a word, or of a number that is such a place.

    What was typed is a word, though it may look like a number.
    """
    word = getattr(value, "text", value)
    if isinstance(word, str):
        if word.strip() not in choices:
            raise InputError(
                f"{name} is one of {', '.join(choices)}; got {shortly(word)}."
                f"{nearest(word.strip(), choices)}"
            )
        return float(choices.index(word.strip()))
    try:
        place = float(value)
    except (TypeError, ValueError, OverflowError):
        place = -1.0
    if place not in range(len(choices)) or isinstance(value, (bool, np.bool_)):
        raise InputError(
            f"{name} is one of {', '.join(choices)}, or its place from 0; got {shortly(value)}."
        )
    return place


def check_choices(name: str, given: Given) -> tuple[str, ...]:
    """The choices of a parameter, once they can be told apart, typed and shown."""
    if not isinstance(given, (list, tuple)) or not all(isinstance(x, str) for x in given):
        raise InputError(
            f"the choices of {name} must be a list of texts, such as ['soft', 'hard'], got "
            f"{shortly(given)}."
        )
    found = tuple(word.strip() for word in given)
    if not 2 <= len(found) <= MOST_CHOICES:
        raise InputError(f"{name} needs 2 to {MOST_CHOICES} choices, got {len(found)}.")
    alike: dict[str, str] = {}
    for word in found:
        if not word or not word.isprintable() or len(word) > CHOICE_LENGTH or {*word} & {*MARKS}:
            raise InputError(
                f"a choice of {name} must be a text on one line, of at most {CHOICE_LENGTH} "
                f"characters and without {' '.join(MARKS)}, got {shortly(word)}."
            )
        other = alike.get(unicodedata.normalize("NFKC", word))
        if other is not None:
            raise InputError(f"two choices of {name} are the same: {other!a} and {word!a}.")
        alike[unicodedata.normalize("NFKC", word)] = word
    return found


def in_words(shares: Mapping[str, float]) -> str:
    """Chances or shares of choices, the largest first: soft 93 %, hard 7 %."""
    rows = sorted(shares.items(), key=lambda row: -row[1])
    named = [row for i, row in enumerate(rows) if i < CHOICES_NAMED and row[1] >= UNNAMED_CHANCE]
    left = rows[len(named) :]
    words = [_one(word, share) for word, share in named]
    rest = sum(share for _, share in left)
    if rest >= UNNAMED_CHANCE:
        words.append(f"{len(left)} others {100 * rest:.0f} %" if len(left) > 1 else _one(*left[0]))
    return ", ".join(words)


def _one(word: str, share: float) -> str:
    """A share in per cent: of what is known by draws, or by a model, none is all."""
    return f"{word} over 99 %" if share >= 1 - UNNAMED_CHANCE else f"{word} {100 * share:.0f} %"
