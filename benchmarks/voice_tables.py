"""What docs/benchmarks/voice.md says of what a study says, from kept results.

python -m benchmarks.voice 32 16 DRAWN runs/drawn.pkl
python -m benchmarks.voice_tables --take runs/drawn.pkl --about "date; machine; commit"
python -m benchmarks.pages

`--take` puts what such files hold into benchmarks/results/voice.json.gz, in place of what it has of
the same tasks. `benchmarks.pages` writes the page.
"""

import argparse
import gzip
import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import known

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "voice.json.gz"
DIGITS, WANTED = 5, 0.9
SAID = {
    "mean policy": ("expected", "true"),
    "a draw": ("evaluated", "true_draw"),
    "its gain": ("forecast", "gain"),
    "a draw's gain": ("forecast_draw", "gain_draw"),
}
REACHING = ("mean policy", "its gain", "a draw's gain")
SETS = ("DRAWN", "LAST", "FRESH", "HELD_OUT", "MADE_WITH", "WIDE", "STILL")
NOISY = [name for name in SETS if name != "STILL"]
COLUMNS = {
    "36 unseen tasks": ["DRAWN"],
    "16 by hand": ["LAST"],
    "46 earlier ones": ["FRESH", "HELD_OUT", "MADE_WITH", "WIDE"],
    "14 without noise": ["STILL"],
}


class Row(NamedTuple):
    """What one study said once: gains in standard deviations of its returns (none where 0)."""

    seed: int
    results: int
    held: str  # of each of `SAID`: "1", "0", or "-" where no interval is given
    even: str  # of each of `REACHING`: as if the interval reached as far above as below
    said: float | None
    came: float | None
    said_draw: float | None
    came_draw: float | None
    regret: float
    verdict: str


class Told(NamedTuple):
    """All that is kept of one task."""

    about: str
    rows: list[Row]
    best: list[int]  # parameters: held, with both ends, all
    others: dict[str, list[int]]  # "kind shift width": all, given, held
    wide: dict[str, list[float]]  # by what is said: mean width if even, as it is, and the error


Kept = dict[str, Told]


def told_of(about: str, rows: list[dict]) -> Told:
    """What is kept of the rows of one task."""
    best = [pair for row in rows for pair in row["best"]]
    counts = [sum(held for held, _ in best), sum(closed for _, closed in best), len(best)]
    others = _others([other for row in rows for other in row["others"]])
    wide = {name: _widths(rows, *pair) for name, pair in SAID.items()}
    return Told(about, [_row(row) for row in rows], counts, others, wide)


def _row(row: dict) -> Row:
    held = "".join(_held(*row[said], row[true]) for said, true in SAID.values())
    pairs = [SAID[name] for name in REACHING]
    even = "".join(_held(*_even(*row[said]), row[true]) for said, true in pairs)
    gains = (row["forecast"][0], row["gain"], row["forecast_draw"][0], row["gain_draw"])
    spread = row["spread"]
    parts = [_rounded(gain / spread) if spread > 0 else None for gain in gains]
    regret = _rounded(row["top"] - row["true"])
    return Row(row["seed"], row["n"], held, even, *parts, regret, row["verdict"])


def _held(value: float, low: float, high: float, truth: float) -> str:
    return str(int(low <= truth <= high)) if np.isfinite(low) else "-"


def _even(value: float, low: float, high: float) -> tuple[float, float, float]:
    return value, low, 2 * value - low


def _rounded(x: float) -> float:
    return float(f"{x:.{DIGITS}g}")


def _others(others: list[tuple]) -> dict[str, list[int]]:
    """Candidates that no result chose: how many, how many with a number, how many of these hold."""
    found: dict[str, list[int]] = {}
    for kind, shift, width, *rest in others:
        held = _held(*rest)
        tally = found.setdefault(f"{kind} {shift:g} {width:g}", [0, 0, 0])
        for i, counts in enumerate((True, held != "-", held == "1")):
            tally[i] += counts
    return found


def _widths(rows: list[dict], said: str, true: str) -> list[float]:
    ends = [(*row[said], row[true], row["spread"]) for row in rows if row["spread"] > 0]
    known = [end for end in ends if np.isfinite(end[1])]
    if not known:
        return []
    value, low, high, truth, spread = np.transpose(known)
    wide = [float(np.mean(width / spread)) for width in (2 * (value - low), high - low)]
    return [_rounded(x) for x in (*wide, np.mean(((value - truth) / spread) ** 2) ** 0.5)]


def read(path: Path = RESULTS) -> Kept:
    """What is kept, by task."""
    found = json.loads(gzip.decompress(path.read_bytes()))
    return {
        task: Told(about, [Row(*row) for row in rows], *rest)
        for task, (about, rows, *rest) in found.items()
    }


def keep(rows: list[dict], about: str, path: Path = RESULTS) -> None:
    """Puts tasks in place of those of the same name; the same content has the same bytes."""
    kept: dict[str, Any] = dict(read(path)) if path.exists() else {}
    for task in dict.fromkeys(row["task"] for row in rows):
        kept[task] = told_of(about, [row for row in rows if row["task"] == task])
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def share(held: int, n: int) -> str:
    """A share in per cent, with its binomial standard error."""
    if not n:
        return "–"
    p = held / n
    return f"{100 * p:.0f} ± {100 * (p * (1 - p) / n) ** 0.5:.0f}"


def held(rows: list[Row], name: str) -> tuple[int, int]:
    """How many intervals hold what is true, of how many that were given."""
    flags = [row.held[list(SAID).index(name)] for row in rows]
    return flags.count("1"), len(flags) - flags.count("-")


def even(rows: list[Row], name: str) -> tuple[int, int]:
    """The same, had they reached as far above as below."""
    flags = [row.even[REACHING.index(name)] for row in rows]
    return flags.count("1"), len(flags) - flags.count("-")


def ratio(rows: list[Row], draw: bool = False) -> str:
    """What was said to be gained over what came, where at least a hundredth of the spread was said.

    The sum of one over that of the other, with the jackknife's standard error over studies; means
    of both where that error is greater than the ratio.
    """
    gains = [(r.said_draw, r.came_draw) if draw else (r.said, r.came) for r in rows]
    known = [i for i, (said, _) in enumerate(gains) if said is not None and said > 0.01]
    if len(known) < 10:
        return "–"
    pairs = np.array([gains[i] for i in known], float)
    seeds = np.array([rows[i].seed for i in known])
    total = pairs.sum(0)
    means = f"{pairs[:, 0].mean():.3f} / {pairs[:, 1].mean():.3f} of the spread ({len(known)})"
    left = np.array([total - pairs[seeds == seed].sum(0) for seed in np.unique(seeds)])
    if total[1] <= 0 or np.any(left[:, 1] == 0):
        return means
    each = left[:, 0] / left[:, 1]
    value, error = total[0] / total[1], ((len(each) - 1) * np.var(each)) ** 0.5
    return means if error > value else f"{value:.2f} ± {error:.2f} ({len(known)})"


def regret(rows: list[Row], verdict: str) -> str:
    """How far below the best the mean policy was when a verdict was given."""
    below = [row.regret for row in rows if row.verdict == verdict]
    if len(below) < 3:
        return "–"
    return f"{np.mean(below):.2g} ± {np.std(below) / len(below) ** 0.5:.1g} ({len(below)})"


def _table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    rows = [heads, ["---"] * len(heads), *map(list, lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


HEADS = ("task", "mean policy held", "a draw held", "best held", "closed", "gain held")
HEADS += ("said / true", "draw's gain held", "said / true", "regret at stop", "try", "go on")
VERDICTS = ("stop", "try the mean", "go on")


def tasks_table(kept: Kept) -> str:
    """A row a task, and all together."""
    lines = [[task, *_cells([told]), *_regrets(told.rows)] for task, told in kept.items()]
    return _table(HEADS, [*lines, ["**all**", *_cells(list(kept.values())), "", "", ""]])


def _cells(found: list[Told]) -> list[str]:
    rows = [row for told in found for row in told.rows]
    inside, closed, every = np.sum([told.best for told in found], axis=0)
    return [
        share(*held(rows, "mean policy")),
        share(*held(rows, "a draw")),
        share(inside, every),
        f"{100 * closed / every:.0f}",
        share(*held(rows, "its gain")),
        ratio(rows),
        share(*held(rows, "a draw's gain")),
        ratio(rows, draw=True),
    ]


def _regrets(rows: list[Row]) -> list[str]:
    return [regret(rows, verdict) for verdict in VERDICTS]


def summary(columns: dict[str, Kept]) -> str:
    """What all tasks of several sets say together: a column each."""
    rows = {
        name: [r for told in kept.values() for r in told.rows] for name, kept in columns.items()
    }
    lines = []
    for name in SAID:
        told = (
            f"{share(*held(rows[c], name))}; {least(kept, name)}" for c, kept in columns.items()
        )
        lines.append([f"{name}: held; the least of a task", *told])
        wide = (_ratios(kept, name) for kept in columns.values())
        lines.append([f"{name}: half of its width over the error; of most tasks", *wide])
    lines.append(["best between: held; the least of a task", *map(_best, columns.values())])
    for draw, name in enumerate(("mean policy", "a draw")):
        told = (ratio(found, bool(draw)) for found in rows.values())
        lines.append([f"gain of the {name.removeprefix('a ')}: said / true", *told])
    wins = (f"{low} of {n} tasks" for low, n in map(stops_lower, columns.values()))
    lines.append(["regret after *stop* below that after *go on*", *wins])
    for kind in ("distribution", "point"):
        told = (_given(kept, kind) for kept in columns.values())
        lines.append([f"{kind}s of no result's choice: given a number; of these held", *told])
    return _table(["", *columns], lines)


def _ratios(kept: Kept, name: str) -> str:
    """Half of the mean width over the root of the mean square error: the median, and 80 of 100."""
    wide = [told.wide.get(name, ()) for told in kept.values()]
    found = [x[1] / x[2] / 2 for x in wide if len(x) == 3 and x[2] > 0]
    return "{:.1f}; {:.1f} to {:.1f}".format(*np.quantile(found, (0.5, 0.1, 0.9))) if found else "–"


def least(kept: Kept, name: str) -> str:
    """The task of a set in which the fewest intervals hold."""
    found = {task: held(told.rows, name) for task, told in kept.items()}
    task = min((t for t in found if found[t][1]), key=lambda t: found[t][0] / found[t][1])
    return f"{share(*found[task])} ({task})"


def _best(kept: Kept) -> str:
    counts = {task: (told.best[0], told.best[2]) for task, told in kept.items()}
    task = min(counts, key=lambda t: counts[t][0] / counts[t][1])
    every = np.sum(list(counts.values()), axis=0)
    return f"{share(*every)}; {share(*counts[task])} ({task})"


def stops_lower(kept: Kept) -> tuple[int, int]:
    """In how many tasks of those with three of both regret is lower at *stop* than at *go on*."""
    found = []
    for told in kept.values():
        each = [[r.regret for r in told.rows if r.verdict == word] for word in ("stop", "go on")]
        if min(map(len, each)) >= 3:
            found.append(np.mean(each[0]) < np.mean(each[1]))
    return sum(found), len(found)


def _given(kept: Kept, kind: str) -> str:
    counts = [x for told in kept.values() for key, x in told.others.items() if key.startswith(kind)]
    every, given, inside = np.sum(counts, axis=0)
    return f"{given / every:.0%}; {share(inside, given)}"


def below(kept: Kept) -> str:
    """Tasks in which fewer intervals hold than are wanted, in words."""
    parts = []
    for name in SAID:
        counts = {task: held(told.rows, name) for task, told in kept.items()}
        few = [f"{task} {share(*c)}" for task, c in counts.items() if c[0] < WANTED * c[1]]
        parts.append(f"{name}: {', '.join(few) if few else 'none'}")
    few = [
        f"{task} {share(told.best[0], told.best[2])}"
        for task, told in kept.items()
        if told.best[0] < WANTED * told.best[2]
    ]
    parts.append(f"best between: {', '.join(few) if few else 'none'}")
    return f"Tasks of all {len(kept)} in which less than 90 % hold. {_sentence('; '.join(parts))}"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def reach_table(kept: Kept) -> str:
    """What it brings that intervals reach farther on the better side, and what it costs."""
    heads = ["task"] + [head for name in REACHING for head in (f"{name} held", "wide")]
    lines = []
    for task, told in kept.items():
        cells = []
        for name in REACHING:
            pair = share(*even(told.rows, name)), share(*held(told.rows, name))
            if pair[0] != "–":
                cells += [" → ".join(pair), " → ".join(f"{x:.2g}" for x in told.wide[name][:2])]
        lines.append([task, *cells])
    return _table(heads, [line for line in lines if len(line) == len(heads)])


def moved(kept: Kept) -> Kept:
    """The tasks in which an even interval would hold less than is wanted."""
    return {
        task: told
        for task, told in kept.items()
        if any(
            inside < WANTED * n for inside, n in (even(told.rows, name) for name in REACHING) if n
        )
    }


def others_table(kept: Kept) -> str:
    """Candidates that no result chose: how many get a number, and how many of those hold."""
    lines = []
    for key in sorted({key for told in kept.values() for key in told.others}):
        counts = [told.others[key] for told in kept.values() if key in told.others]
        every, given, inside = np.sum(counts, axis=0)
        kind, shift, width = key.split()
        wide = "" if kind == "point" else width
        lines.append([kind, shift, wide, f"{given / every:.0%}", share(inside, given)])
    return _table(["candidate", "shifted by", "times as wide", "given", "held"], lines)


def of_sets(kept: Kept, names: Iterable[str]) -> Kept:
    """The tasks of these sets that are kept, in the order of `benchmarks.known`."""
    return {task: kept[task] for name in names for task in getattr(known, name) if task in kept}


def said(kept: Kept | None = None) -> dict[str, str]:
    """What the pages say of kept results, by name: in Markdown."""
    kept = kept or read()
    columns = {name: of_sets(kept, sets) for name, sets in COLUMNS.items()}
    every, noisy = of_sets(kept, SETS), of_sets(kept, NOISY)
    return {
        "tasks": str(len(every)),
        "summary": summary(columns),
        "below": below(every),
        "measured": measured(every),
        **{name: tasks_table(of_sets(kept, [name])) for name in SETS},
        "candidates": others_table(noisy),
        "reach": reach_table(moved(every)),
    }


def measured(kept: Kept) -> str:
    """When and where, in words: the rarer cases named."""
    abouts = [told.about for told in kept.values()]
    usual = max(dict.fromkeys(abouts), key=abouts.count)
    rest = [
        f"{', '.join(task for task, told in kept.items() if told.about == about)}: {about}"
        for about in dict.fromkeys(abouts)
        if about != usual
    ]
    return f"Measured: {'; '.join([usual, *rest])}."


def main() -> None:
    """Takes results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--take", nargs="+", required=True, help="that benchmarks.voice has kept")
    parser.add_argument("--about", default="", help="date and machine of what is taken")
    given = parser.parse_args()
    for path in given.take:
        keep(pickle.loads(Path(path).read_bytes()), given.about)


if __name__ == "__main__":
    main()
