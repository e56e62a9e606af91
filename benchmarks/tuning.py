"""What each constant of the default method does, and each special case: `-m benchmarks.tuning`.

[STUDIES] [PROCESSES] [half|without]: studies of each task (8), at once (2); half and twice of every
constant (else), or the method without one of its special cases. Every variant searches the same
tasks with the same candidates' randomness and the same noise. What the mean policy is truly worth
after so many results is put beside that of the method as it is, in standard deviations over the
studies that either made of a task; a row has the mean of that over tasks, and its standard error.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks import known
from benchmarks.known import Known
from recoup.core.rules import recoup_rule
from recoup.core.rules.tuning import TUNED, Tuning
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

STUDIES = 8
USUAL = (
    *("robot", "ridge", "ellipse", "sphere 8", "peaked", "cusp 3", "banana", "smooth 20"),
    *("pid", "arm", "waves", "ellipsoid 10", "success 2", "held up", "correlated 7", "ackley 3"),
    *("far start", "heavy arm", "still gains", "rippled 4"),
)


def hat(theta: np.ndarray) -> np.ndarray:
    """Nothing is earned far from the top."""
    return np.maximum(0.0, 1 - np.sqrt(np.sum((theta - 1.2) ** 2, axis=-1)) / 1.2)


def rastrigin(theta: np.ndarray) -> np.ndarray:
    away = theta - 0.8
    return -np.sum(away**2 + 0.6 * (1 - np.cos(6 * away)), axis=-1)


def plateau(theta: np.ndarray) -> np.ndarray:
    return np.tanh(np.maximum(0.0, 4 - np.sum(np.abs(theta - 1.5), axis=-1)))


# What special cases were made for: starts that are far away or narrow, returns that are equal,
# successes, walls, a landscape that is rugged.
SPECIAL = {
    "very far": Known(known.sphere, {"dim": 6, "mean": [30.0] * 6}, 1.0, 0.0),
    "narrow": Known(known.sphere, {"dim": 4, "mean": [2.0] * 4, "std": 0.02}, 0.1, 0.0),
    "narrow, noisy": Known(known.ellipse, {"dim": 4, "std": 0.05}, 1.0, 0.0),
    "slope": Known(lambda x: np.sum(x, axis=-1), {"dim": 5, "std": 0.1}, 0.5, 0.0),
    "hat 2": Known(hat, {"dim": 2, "std": 0.3}, 0.0, 1.0),
    "hat 4": Known(hat, {"dim": 4}, 0.0, 1.0),
    "plateau 3": Known(plateau, {"dim": 3, "std": 0.5}, 0.0, 1.0),
    "plateau 4, noisy": Known(plateau, {"dim": 4, "std": 0.5}, 0.2, 1.0),
    "rastrigin 4": Known(rastrigin, {"dim": 4}, 0.0, 0.0),
    "rastrigin 10": Known(rastrigin, {"dim": 10}, 0.1, 0.0),
    "box 3": Known(
        lambda x: (np.sum(np.abs(x - 0.8), axis=-1) < 0.5) * 0.9,
        {"params": dict.fromkeys("abc", (0, 1))},
        "success",
        0.9,
    ),
}
OTHERS = (
    *("stairs", "still stairs", "steps 3", "success 5", "grasp", "thrown", "two humps", "edge"),
    *("uphill in a box", "saturated", "at the top", "flat", "heavy peaked", "bump 4", "valley"),
    *("weak 12", "counts", "still cusp 8", "settled", "smooth 30"),
)
KNOWN = {**known.MADE_WITH, **known.HELD_OUT, **known.FRESH, **known.STILL, **SPECIAL}
NEVER, ALWAYS = float("inf"), float("-inf")
# A special case, and the constants with which it is none; a function stands for one of the rule's.
WITHOUT: dict[str, dict[str, Any]] = {
    "widening far from the top": {"sure": NEVER},
    "widening uphill": {"uphill": NEVER},
    "widening where nothing is evident": {"evident": ALWAYS},
    "any widening by the regression": {"sure": NEVER, "uphill": NEVER, "evident": ALWAYS},
    "the regression alone where it widens": {"grows": NEVER},
    "widening where all are equal": {"wider_flat": 0.0},
    "staying where all are equal": {"is_flat": lambda xp, *_: xp.asarray(False)},
    "a faster spread where returns tie": {"eager": 0.0},
    "rank utilities, but for ties": {"ranked": 0.0},
    "memory of the gradient": {"calm": 1.0},
    "longer steps of more samples": {"reused": 0.0},
    "a bound on the weights' spread": {"turn": 100.0},
    "a bound on the bold spread": {"bold_turn": 100.0},
    "a cut of outliers": {"outlier": NEVER},
    "a bound on divergence": {"far": NEVER},
    "a bound on widening": {"widest": 100.0},
}
AS_IS = ""


def variants(way: str) -> Iterator[str]:
    """The method as it is, then half and twice of each constant, or without each special case."""
    yield AS_IS
    if way == "without":
        yield from WITHOUT
    else:
        yield from (f"{one.name} {factor}" for one in fields(Tuning) for factor in (0.5, 2.0))


def times(value: Any, factor: float) -> Any:
    """A constant times a factor; counts stay whole, and at least 1."""
    if isinstance(value, tuple):
        return tuple(factor * x for x in value)
    return max(round(factor * value), 1) if isinstance(value, int) else factor * value


def put(variant: str) -> None:
    """Makes the method of this process a variant."""
    if variant in WITHOUT:
        changed = dict(WITHOUT[variant])
    elif variant:
        name, factor = variant.split()
        changed = {name: times(getattr(TUNED, name), float(factor))}
    else:
        changed = {}
    recoup_rule.is_flat = changed.pop("is_flat", IS_FLAT)
    tuning = replace(TUNED, **changed)
    for name, module in list(sys.modules.items()):
        if name.startswith("recoup.") and hasattr(module, "TUNED"):
            module.TUNED = tuning


IS_FLAT = recoup_rule.is_flat


def worth(counts: tuple[int, ...], job: tuple[str, str, int]) -> list[float]:
    """What the mean policy of one study is worth after so many results."""
    variant, of, seed = job
    put(variant)
    task, found = KNOWN[of], []
    study = Study.create(None, resolved({**task.settings, "seed": seed}))
    rng = np.random.default_rng([seed, 78])
    for count in counts:
        while study.counts()["ok"] < count:
            trials = study.ask(study.until_move() or study.batch)
            study.tell([t.id for t in trials], [task.told(t.theta, rng) for t in trials])
        found.append(float(task.value(study.opened.in_units(study.mean))))
    return found


def differences(worths: np.ndarray, as_is: np.ndarray) -> np.ndarray:
    """`[T, S, C]` less another, in the deviations of both together; the mean of C: `[T, S]`."""
    spread = np.concatenate([worths, as_is], axis=1).std(axis=1, ddof=1, keepdims=True)
    return ((worths - as_is) / np.maximum(spread, 1e-12)).mean(axis=2)


def said(apart: np.ndarray) -> str:
    """The mean of `[T, S]`, and its standard error."""
    error = apart.std(axis=1, ddof=1) / apart.shape[1] ** 0.5
    return f"{apart.mean():+.2f} ± {np.sqrt(np.sum(error**2)) / len(apart):.2f}"


def constants(found: dict[str, np.ndarray]) -> None:
    """Prints what half and twice of each do."""
    print("| constant | value | what it is | from | half | twice |\n|---|---|---|---|---|---|")
    for one in fields(Tuning):
        value = getattr(TUNED, one.name)
        shown = value if isinstance(value, (int, tuple)) else f"{value:.3g}"
        half, twice = (said(found[f"{one.name} {factor}"]) for factor in (0.5, 2.0))
        about = f"{one.metadata['unit']} | {one.metadata['origin']}"
        print(f"| `{one.name}` | {shown} | {about} | {half} | {twice} |", flush=True)


def special_cases(found: dict[str, np.ndarray], tasks: tuple[str, ...]) -> None:
    """Prints what the method is without each, and the tasks where that makes most."""
    print("| without | all tasks | most, in one |\n|---|---|---|")
    for name in WITHOUT:
        each = found[name]
        most = sorted(range(len(tasks)), key=lambda i: -abs(each[i].mean()))[:4]
        shown = ", ".join(f"{tasks[i]} {said(each[i : i + 1])}" for i in most if each[i].any())
        print(f"| {name} | {said(each)} | {shown or 'none'} |", flush=True)


def main(studies: str = "8", processes: str = "2", way: str = "half") -> None:
    """Prints one of the tables."""
    tasks = USUAL if way == "half" else (*USUAL, *OTHERS, *SPECIAL)
    counts = (50, 100) if way == "half" else (50, 100, 200)
    each, seeds = list(variants(way)), range(int(studies))
    jobs = [(one, task, seed) for one in each for task in tasks for seed in seeds]
    with ProcessPoolExecutor(int(processes), get_context("spawn")) as pool:
        flat = np.array(list(pool.map(partial(worth, counts), jobs, chunksize=len(seeds))))
    worths = flat.reshape(len(each), len(tasks), len(seeds), len(counts))
    found = {one: differences(at, worths[0]) for one, at in zip(each, worths, strict=True)}
    print(f"{len(tasks)} tasks, {studies} studies of each, after {counts} results:\n")
    if way == "half":
        constants(found)
    else:
        special_cases(found, tasks)


if __name__ == "__main__":
    main(*sys.argv[1:])
