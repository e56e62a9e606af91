"""What a study says, held to the truth: `python -m benchmarks.voice [STUDIES] [PROCESSES]`.

Studies of the default method with its own batch and start, on the tasks of `benchmarks.known`. When
a study has made the first move behind 15, 30, 60, 100 and 150 results, what it says is put beside
what is true: the expected return of the mean policy (`recommend`) and of a draw (`evaluate`), where
each parameter is best, what the next move gains for both, and what it advises.
"""

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks import known
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

COUNTS = (15, 30, 60, 100, 150)
STUDIES = 40
FIRST = 9000  # seed: others than those that anything was chosen with
DRAWS = 2000
SETS = ("MADE_WITH", "HELD_OUT", "FRESH", "WIDE", "STILL", "LAST", "DRAWN")
TASKS = {name: task for found in SETS for name, task in getattr(known, found).items()}


def searched(name: str, seed: int) -> Iterator[Study]:
    """A study of a task after every move."""
    task = TASKS[name]
    study = Study.create(None, resolved({**task.settings, "seed": seed}))
    rng = np.random.default_rng([seed, 77])
    while True:
        trials = study.ask(study.until_move() or study.batch)
        study.tell([t.id for t in trials], [task.told(t.theta, rng) for t in trials])
        yield study


def rows(job: tuple[str, int]) -> list[dict]:
    """What one study said, and what was true, a row at a time."""
    name, seed = job
    task, due, found, open_row = TASKS[name], list(COUNTS), [], None
    for study in searched(name, seed):
        truth = (
            float(task.value(study.opened.in_units(study.mean))),
            task.over(study),
        )
        if open_row is not None:
            open_row |= {
                "gain": truth[0] - open_row["true"],
                "gain_draw": truth[1] - open_row["true_draw"],
            }
            found.append(open_row)
            open_row = None
        results = study.counts()["ok"]
        if not due:
            break
        if results >= due[0]:
            due = [count for count in due if count > results]
            open_row = {
                "task": name,
                "seed": seed,
                "n": results,
                **said(study, task, truth, 60 <= results < 100),
            }
    return found


def said(study: Study, task: known.Known, truth: tuple[float, float], often: bool) -> dict:
    """One row, but for what the next move gains."""
    r, e = study.recommend(), study.evaluate()
    return {
        "true": truth[0],
        "true_draw": truth[1],
        "top": task.top,
        "expected": (r.expected, *r.interval),
        "evaluated": (e.mean, e.low, e.high),
        "forecast": (r.next_gain, *r.next_gain_interval),
        "forecast_draw": (r.next_draw_gain, *r.next_draw_gain_interval),
        "stderr": r.stderr,
        "spread": float(np.std([t.value for t in study.trials()])),
        "verdict": r.verdict,
        "past": (r.gain, *r.gain_interval),
        "best": best_held(study, task, r),
        "dim": study.dim,
        "others": candidates(study, task, np.random.default_rng(len(study))) if often else [],
    }


def best_held(study: Study, task: known.Known, found) -> list[tuple[bool, bool]]:
    """For each of the first parameters, whether its best value is held, and both ends are known."""
    inside, width = [], 200.0
    steps = np.sinh(np.linspace(-np.arcsinh(width), np.arcsinh(width), 4001))
    for i in range(min(study.dim, 6)):
        along = study.opened.in_units(
            study.mean + steps[:, None] * study.std * np.eye(study.dim)[i]
        )
        values = task.value(along)
        best = along[values >= np.max(values) - 1e-9 * np.ptp(values), i]
        low, high = found.low[i], found.high[i]
        slack = 0.02 * abs(study.opened.in_units(study.mean + study.std)[i] - found.theta[i])
        held = bool(np.any((best >= low - slack) & (best <= high + slack)))
        inside.append((held, bool(np.isfinite(low) and np.isfinite(high))))
    return inside


def candidates(study: Study, task: known.Known, rng: np.random.Generator) -> list[tuple]:
    """Distributions and points of no result's choice: what is said of them, and the truth.

    Shifted by up to two standard deviations in any direction, as wide as the newest or half.
    """
    found = []
    z = rng.standard_normal((DRAWS, study.dim))
    for shift in (0.5, 1.0, 2.0):
        way = rng.standard_normal(study.dim)
        mean = study.mean + shift * study.std * way / np.linalg.norm(way)
        shown = study.opened.in_units(mean)
        for narrow in (1.0, 0.5):
            e = study.evaluate(mean=shown, std=narrow * study.std)
            theta = mean + narrow * study.std * np.concatenate([z, -z])
            truth = float(np.mean(task.value(study.opened.in_units(theta))))
            found.append(("distribution", shift, narrow, e.mean, e.low, e.high, truth))
        p = study.predict(shown)
        found.append(("point", shift, 0.0, p.expected, p.low, p.high, float(task.value(shown))))
    return found


def made(names, studies: int, processes: int) -> list[dict]:
    """The rows of so many studies of each task."""
    jobs = [(name, FIRST + seed) for seed in range(studies) for name in names]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return [row for several in pool.map(rows, jobs) for row in several]


def main(studies: int = STUDIES, processes: int = 2, which: str = "", keep: str = "") -> None:
    """Prints a table for the tasks that were looked at, and one for those that were not.

    `which` is one of the sets of `benchmarks.known`, or a task; a file to `keep` the rows in.
    """
    for name in [which] if which else SETS:
        found = made([which] if which in TASKS else [*getattr(known, name)], studies, processes)
        if keep:
            Path(keep).write_bytes(pickle.dumps(found))
        print_table(name, found)


def share(held: list[bool]) -> str:
    """A share in per cent, with its binomial standard error."""
    p = float(np.mean(held)) if held else np.nan
    return f"{100 * p:.0f} ± {100 * (p * (1 - p) / max(len(held), 1)) ** 0.5:.0f}"


def held_by(found: list[dict], said: str, true: str) -> list[bool]:
    """Whether intervals hold what is true, of those that were given."""
    ends = [(*row[said], row[true]) for row in found]
    return [low <= truth <= high for _, low, high, truth in ends if np.isfinite(low)]


def ratio(found: list[dict], said: str, true: str) -> str:
    """What was said to be gained over what was, where at least a hundredth of the spread was said.

    The sum of one over that of the other, in units of the returns' spread, with its standard error
    over studies.
    """
    rows = [r for r in found if r["spread"] > 0 and r[said][0] > 0.01 * r["spread"]]
    if len(rows) < 10:
        return "-"
    pairs = np.array([(r[said][0] / r["spread"], r[true] / r["spread"]) for r in rows])
    seeds = np.array([r["seed"] for r in rows])
    total = pairs.sum(0)
    if total[1] <= 0:
        return f"{pairs[:, 0].mean():.3f} / {pairs[:, 1].mean():.3f} of the spread"
    left = np.array([(total - pairs[seeds == seed].sum(0)) for seed in np.unique(seeds)])
    each = left[:, 0] / left[:, 1]
    n = len(each)
    error = ((n - 1) / n * np.sum((each - each.mean()) ** 2)) ** 0.5
    return f"{total[0] / total[1]:.2f} ± {error:.2f} ({len(rows)})"


def regret(found: list[dict], verdict: str) -> str:
    """How far below the best the mean policy was when a verdict was given."""
    below = [r["top"] - r["true"] for r in found if r["verdict"] == verdict]
    if len(below) < 3:
        return "-"
    return f"{np.mean(below):.2g} ± {np.std(below) / len(below) ** 0.5:.1g} ({len(below)})"


HEADS = (
    "task",
    "mean policy held",
    "a draw held",
    "best held",
    "closed",
    "gain held",
    "said / true",
)
HEADS += ("draw's gain held", "said / true", "regret at stop", "try", "go on")


def print_table(name: str, found: list[dict]) -> None:
    """One set of tasks, a row each, and all together."""
    print(f"\n{name.replace('_', ' ').lower()}, shares in per cent with binomial errors:\n")
    print("| " + " | ".join(HEADS) + " |")
    print("|---" * len(HEADS) + "|")
    tasks = list(dict.fromkeys(row["task"] for row in found))
    for task in [*tasks, ""]:
        rows = [row for row in found if task in ("", row["task"])]
        best = [pair for row in rows for pair in row["best"]]
        cells = [
            share(held_by(rows, "expected", "true")),
            share(held_by(rows, "evaluated", "true_draw")),
            share([held for held, _ in best]),
            f"{100 * np.mean([closed for _, closed in best]):.0f}",
            share(held_by(rows, "forecast", "gain")),
            ratio(rows, "forecast", "gain"),
            share(held_by(rows, "forecast_draw", "gain_draw")),
            ratio(rows, "forecast_draw", "gain_draw"),
            *(regret(rows, word) if task else "" for word in ("stop", "try the mean", "go on")),
        ]
        print(f"| {task or '**all**'} | " + " | ".join(cells) + " |")
    print_reach(found)
    print_others([other for row in found for other in row["others"]])


REACHING = {
    "mean policy": ("expected", "true"),
    "its gain": ("forecast", "gain"),
    "a draw's gain": ("forecast_draw", "gain_draw"),
}


def print_reach(found: list[dict]) -> None:
    """What it brings that intervals reach farther on the better side, and by how much.

    How often they hold, and how wide they are on average in the returns' spread: as if they reached
    as far on that side as on the other, and as they are.
    """
    print("\n| task | " + " | ".join(f"{x} held | wide" for x in REACHING) + " |")
    print("|---" * (2 * len(REACHING) + 1) + "|")
    for task in [*dict.fromkeys(row["task"] for row in found), ""]:
        rows = [row for row in found if task in ("", row["task"]) and row["spread"] > 0]
        cells = [cell for pair in REACHING.values() for cell in reach(rows, *pair)]
        print(f"| {task or '**all**'} | " + " | ".join(cells) + " |")


def reach(rows: list[dict], said: str, true: str) -> tuple[str, str]:
    """Held and mean width of intervals that are even, and of those that are given."""
    ends = np.array([(*row[said], row[true], row["spread"]) for row in rows])
    value, low, high, truth, spread = ends[np.isfinite(ends[:, 1])].T
    even = 2 * value - low
    held = [share(list((low <= truth) & (truth <= end))) for end in (even, high)]
    wide = [float(np.mean((end - low) / spread)) for end in (even, high)]
    return " → ".join(held), " → ".join(f"{x:.2g}" for x in wide)


def print_others(others: list[tuple]) -> None:
    """Candidates that no result chose: how many get a number, and how many of those hold."""
    print("\n| candidate | shifted by | times as wide | given | held |\n|---|---|---|---|---|")
    for key in sorted({other[:3] for other in others}):
        rows = [other[3:] for other in others if other[:3] == key]
        given = [low <= truth <= high for _, low, high, truth in rows if np.isfinite(low)]
        kind, shift, wide = key
        print(f"| {kind} | {shift:g} | {wide:g} | {len(given) / len(rows):.0%} | {share(given)} |")


if __name__ == "__main__":
    numbers = [int(x) for x in sys.argv[1:3]]
    main(*numbers, *sys.argv[3:])
