"""How often a result that is right is called a slip of the sign, and how often a slip is found."""

import numpy as np

from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.study.voice.slips import slips

SERIES, LENGTH, WRONG = 400, 60, 45  # of each kind; results of each; the one whose sign is turned
SEARCHES, TRIALS = 40, 40


def drawn(rng):
    """Returns `[SERIES, LENGTH]` of many kinds, by name; most cross zero."""
    shape, t = (SERIES, LENGTH), np.arange(LENGTH)
    for m in (1, 2, 3, 4, 6):
        yield f"Gaussian, median {-m} sd", rng.normal(-m, 1, shape)
    for degrees in (3, 2):
        for m in (3, 6):
            yield f"t with {degrees} degrees, median {-m}", -m + rng.standard_t(degrees, shape)
    for top in (1, 3, 6):
        yield f"skewed, top {top}", top - 2 * rng.chisquare(3, shape)
    yield "all negative, skewed", -rng.lognormal(1, 0.5, shape)
    for top in (1, 3):
        left = 10 * np.exp(-t / 15) * rng.chisquare(3, shape) / 3
        yield f"rising to {top}", top - left + rng.normal(0, 0.5, shape)
    for share in (0.02, 0.1):
        hits = np.where(rng.random(shape) < share, 10, -10)
        yield f"{share:.0%} successes, +10 among -10", hits + rng.normal(0, 1, shape)


def searched(dim, top, noise, seed):
    """Returns of a search by the default method, from below zero to `top` if that is above it."""
    study = Study.create(None, resolved({"dim": dim, "mean": 1.5, "seed": seed}))
    rng, found = np.random.default_rng(seed), []
    while len(found) < TRIALS:
        for trial in study.ask(study.batch):
            value = top - float(trial.theta @ trial.theta) + noise * rng.standard_normal()
            study.tell(trial.id, value)
            found.append(value)
    return np.array(found[:TRIALS])


def called(series):
    """Whether each result is called a slip of the sign when it is told, as the last of them."""
    return [
        any(slip.sign for slip in slips(dict(enumerate(series[: i + 1].tolist())), {i}))
        for i in range(len(series))
    ]


def found_when_turned(series, number):
    """Whether a result is called so once its sign is turned."""
    told = series[: number + 1].copy()
    told[number] *= -1
    return any(slip.sign for slip in slips(dict(enumerate(told.tolist())), {number}))


def report(name, many, number):
    """Prints both shares of many series."""
    wrong = np.mean([called(series) for series in many], axis=1)
    right = np.mean([found_when_turned(series, number) for series in many])
    error = np.std(wrong, ddof=1) / len(wrong) ** 0.5
    print(f"{name:32} {wrong.mean():8.3%} +- {error:.3%} {right:8.0%}", flush=True)


def main():
    print(f"{'':32} {'called wrongly':>18} {'found':>8}")
    for name, many in drawn(np.random.default_rng(0)):
        report(name, many, WRONG)
    for dim, top, noise in ((2, 1, 0.5), (2, 4, 1.0), (6, 4, 1.0), (2, -3, 0.3)):
        many = [searched(dim, top, noise, seed) for seed in range(SEARCHES)]
        report(f"search, {dim}-D, top {top}, noise {noise}", many, TRIALS - 5)


if __name__ == "__main__":
    main()
