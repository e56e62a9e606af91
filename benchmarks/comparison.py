"""What docs/benchmarks/suite.md says of methods, and its curves: of what `recoup compare` writes.

recoup compare --task suite --method recoup --method cma-es ... --out runs/compare
python -m benchmarks.comparison runs/compare/compare.json
python -m benchmarks.comparison --picture docs/comparison.png    of what is kept

Three of its panels stand in README's picture, beside one of bounded tasks: `benchmarks.bounded`.

Several files are taken together, whatever tasks and methods each of them has. What was measured
last is kept in benchmarks/results, several such files as one. A row there without runs is of an
earlier pass: a difference from it is that of independent runs.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from recoup.compare.comparison_tables import shown
from recoup.compare.statistics import Mean, area, episodes_to
from recoup.compare.summary import corrected_verdicts, counted
from recoup.pictures.comparison_picture import COLOURS, MARKERS

RESULTS = Path(__file__).parent / "results" / "comparison.json.gz"
OURS, SLOW = "recoup", "iw-pgpe-ob"
PANELS = ("mountain-car-weak", "lqr-8", "sphere-10", "rosenbrock-10")  # of the picture
PANELS += ("hopper", "walker2d", "reach-9", "rastrigin-10")
DRAWN = ("recoup", "cma-es", "lq-cma-es", "snes", "reps:batch=10,tau_floor=0.001", "iw-pgpe-ob")
KINDS = {"search": "J", "policy": "m"}
NAMES = {  # what a method is called in the tables
    "recoup": "**recoup**",
    "recoup:repeats=False": "no repeats (`repeats=False`)",
    "recoup:window=1": "no reuse (`window=1`)",
    "recoup:share=1,pulled=True,prior=1": "regression alone (`share=1 pulled=True`)",
    "recoup:share=0": "weights alone (`share=0`)",
    "recoup:share=0.5,pulled=True,prior=1,shrink=0.25": "half of each (`share=0.5 pulled=True`)",
    "cma-es:popsize=half": "cma-es, half",
    "snes:popsize=half": "snes, half",
    "reps:tau_floor=0.001": "reps",
    "reps:batch=10,tau_floor=0.001": "reps, batch 10",
    "evosax-pgpe:lr=0.3": "evosax-pgpe, lr 0.3",
    "evosax-open-es:lr=1": "evosax-open-es, lr 1",
}


def loaded(paths):
    """The tasks of several comparisons, by name; each with its methods, by name."""
    tasks = {}
    for path in map(Path, paths):
        read = gzip.decompress if path.suffix == ".gz" else bytes
        said = json.loads(read(path.read_bytes()))
        for task in said["tasks"]:
            at = task.get("checkpoints") or said["checkpoints"]
            kept = tasks.setdefault(task["task"], {"dim": task["dim"], "at": at})
            assert kept["at"] == at, (path, task["task"])
            kept.setdefault("methods", {}).update({row["method"]: row for row in task["methods"]})
    return tasks


def runs_of(task, method, kind="search"):
    """Returns `[R, C]` at the checkpoints; None of a row that has only their means."""
    runs = task["methods"][method][kind].get("runs")
    return None if runs is None else np.array(runs, float)[:, 1:]


def summed(task, method, kind="search"):
    """Means and standard errors `[C]`."""
    row = task["methods"][method][kind]
    return [np.array(row[key][1:], float) for key in ("mean", "stderr")]


def difference(task, method, kind="search"):
    """Means and standard errors of what `recoup` is above a method: of runs that share a start."""
    ours, theirs = runs_of(task, OURS, kind), runs_of(task, method, kind)
    if theirs is None:
        (mine, my_error), (its, its_error) = summed(task, OURS, kind), summed(task, method, kind)
        return mine - its, np.hypot(my_error, its_error)
    return paired(ours, theirs)


def paired(ours, theirs):
    """Means and standard errors of differences of runs that share a start, the first ones."""
    n = min(len(ours), len(theirs))
    apart = ours[:n] - theirs[:n]
    return apart.mean(0), apart.std(0, ddof=1) / n**0.5


def runs_in(task, method, kind):
    """How many runs a difference to a method is of; of `recoup` alone where it has none."""
    known = [runs_of(task, one, kind) for one in (OURS, method)]
    return min(len(one) for one in known if one is not None)


def corrected(differences):
    """Cells above / level / below, once `(mean, error, runs)` are corrected for their number."""
    counts = counted(corrected_verdicts([Mean(*one) for one in differences]))
    return dict(zip(("above", "level", "below"), counts.values(), strict=True))


def missing(tasks, peers):
    """Peers that do not take part everywhere: the tasks that each is missing on."""
    absent = {
        peer: [n for n, task in tasks.items() if peer not in task["methods"]] for peer in peers
    }
    return {peer: names for peer, names in absent.items() if names}


def table(name, task, order):
    """Means with standard errors: J and m at every checkpoint, a row a method."""
    every = [runs_of(task, method) for method in task["methods"]]
    runs = {len(one) for one in every if one is not None}
    many = f"{min(runs)} to {max(runs)}" if len(runs) > 1 else f"{min(runs)}"
    heads = [f"{letter} @{at}" for letter in KINDS.values() for at in task["at"]]
    lines = [f"| {name}, D = {task['dim']}, {many} runs | {' | '.join(heads)} |"]
    lines.append("|---" * (1 + len(heads)) + "|")
    for method in order:
        if method not in task["methods"]:
            continue
        row = task["methods"][method]
        cells = [
            shown(*cell)
            for kind in KINDS
            for cell in zip(row[kind]["mean"][1:], row[kind]["stderr"][1:], strict=True)
        ]
        mark = "" if "runs" in row["search"] else " °"
        lines.append(f"| {NAMES.get(method, method)}{mark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(apart, error, limit=2.0):
    """Whether a difference is clear."""
    if abs(apart) <= limit * error:
        return "level"
    return "above" if apart > 0 else "below"


def best_of(task, peers, kind, column):
    """The peer with the best mean in a cell, picked after the fact, which favours the peers."""
    known = [peer for peer in peers if peer in task["methods"]]
    return max(known, key=lambda peer: task["methods"][peer][kind]["mean"][1 + column])


def overview(tasks, peers, kind):
    """`recoup` less the best peer of each cell: a row a task; and how many cells are what."""
    counts, far, lines = dict.fromkeys(("above", "level", "below"), 0), [], []
    differences = []
    columns = max((task["at"] for task in tasks.values()), key=len)
    lines.append("| task | " + " | ".join(f"@{at}" for at in columns) + " |")
    lines.append("|---" * (1 + len(columns)) + "|")
    for name, task in tasks.items():
        cells = []
        for i, at in enumerate(task["at"]):
            best = best_of(task, peers, kind, i)
            apart, error = difference(task, best, kind)
            word = verdict(apart[i], error[i])
            counts[word] += 1
            differences.append((apart[i], error[i], runs_in(task, best, kind)))
            if verdict(apart[i], error[i], 2.5) == "below":
                far.append(f"{name} @{at}")
            mark = {"above": "+", "level": "=", "below": "**-**"}[word]
            cells.append(f"{mark} {shown(apart[i], error[i])} ({NAMES.get(best, best)})")
        cells += [""] * (len(columns) - len(cells))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines), counts, corrected(differences), far


def against(tasks, method, kind):
    """Cells above, level with, below one method, raw and corrected; and those below."""
    counts, below, differences = dict.fromkeys(("above", "level", "below"), 0), [], []
    for name, task in tasks.items():
        if method not in task["methods"]:
            continue
        apart, error = difference(task, method, kind)
        words = [verdict(*cell) for cell in zip(apart, error, strict=True)]
        runs = runs_in(task, method, kind)
        differences += [(*cell, runs) for cell in zip(apart, error, strict=True)]
        below += [f"{name} @{at}" for at, w in zip(task["at"], words, strict=True) if w == "below"]
        for word in words:
            counts[word] += 1
    return counts, corrected(differences), below


def counts_table(tasks, order):
    """Cells above / level / below each method, and in parentheses corrected for their number."""
    heads = [f"{letter}: above / level / below (corrected)" for letter in KINDS.values()]
    lines = [f"| `recoup` against | tasks | {' | '.join(heads)} |", "|---|---|---|---|"]
    for method in order:
        cells = []
        for kind in KINDS:
            raw, judged, _ = against(tasks, method, kind)
            cells.append(f"{_three(raw)} ({_three(judged)})")
        known = sum(method in task["methods"] for task in tasks.values())
        lines.append(f"| {NAMES.get(method, method)} | {known} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _three(counts):
    return " / ".join(str(counts[word]) for word in ("above", "level", "below"))


def areas(tasks, peers):
    """Of each task: whether the area under J is above that of the best peer."""
    found = {}
    for name, task in tasks.items():
        known = [peer for peer in peers if peer in task["methods"]]
        under = {m: area(task["at"], summed(task, m)[0][None])[0] for m in (OURS, *known)}
        best = max(known, key=under.get)
        found[name] = f"{verdict(*_area_above(task, best))} ({best})"
    return found


def _area_above(task, peer):
    """The difference of areas and its standard error, at most that where runs are not known."""
    if runs_of(task, peer) is None:
        apart, error = difference(task, peer)
        return area(task["at"], apart[None])[0], area(task["at"], error[None])[0]
    return paired(*(area(task["at"], runs_of(task, m)) for m in (OURS, peer)))


def reached(tasks, episodes=400):
    """Of each task: episodes until the mean J is that of the paper's method after so many."""
    found = {}
    for name, task in tasks.items():
        if SLOW in task["methods"] and episodes in task["at"]:
            target = summed(task, SLOW)[0][task["at"].index(episodes)]
            curve = np.array(task["methods"][OURS]["search"]["mean"], float)
            found[name] = round(episodes_to([0, *task["at"]], curve, target), 0)
    return found


def said(paths=(RESULTS,)):
    """What the pages say of kept results, by name: tables, counts and differences in Markdown."""
    tasks = loaded(paths)
    order, peers = methods_of(tasks)
    found = {
        "counts": counts_table(tasks, order[1:]),
        "tables": "\n\n".join(table(name, task, order) for name, task in tasks.items()),
        "tasks": str(len(tasks)),
        "cells": str(sum(len(task["at"]) for task in tasks.values())),
        "areas": str(sum(word.startswith("above") for word in areas(tasks, peers).values())),
    }
    for kind, letter in KINDS.items():
        lines, counts, judged, far = overview(tasks, peers, kind)
        found |= {letter: lines, f"{letter} best": _three(counts), f"{letter} far": str(len(far))}
        found |= {f"{letter} best corrected": _three(judged)}
        found |= {f"{letter} {name}": words for name, words in _cells(lines).items()}
    return found


def _cells(lines):
    """The differences of a table of them, by task and episodes, each without sign and peer."""
    heads, _, *rows = ([one.strip() for one in line[1:-1].split("|")] for line in lines.split("\n"))
    return {
        f"{row[0]} {head}": cell.split(" ", 1)[1].partition(" (")[0]
        for row in rows
        for head, cell in zip(heads[1:], row[1:], strict=True)
        if cell
    }


def methods_of(tasks):
    """All methods in the order of the tables, and the peers among them."""
    every = list(dict.fromkeys(m for task in tasks.values() for m in task["methods"]))
    order = [m for m in NAMES if m in every] + [m for m in every if m not in NAMES]
    return order, [method for method in order if method.partition(":")[0] != OURS]


def picture(tasks, names, methods, path, rows=2):
    """J over episodes, a panel a task."""
    columns, height = -(-len(names) // rows), 5.6 if rows > 1 else 2.6
    figure = Figure(figsize=(3.1 * columns, height), layout="constrained")
    panels = figure.subplots(rows, columns).ravel()
    for axes, name in zip(panels, names, strict=False):
        task = tasks[name]
        for i, method in enumerate(methods):
            row = task["methods"].get(method)
            if row is None:
                continue
            mean, error = (np.array(row["search"][key][1:], float) for key in ("mean", "stderr"))
            wide = 2.4 if method == OURS else 1.4
            axes.fill_between(task["at"], mean - error, mean + error, color=COLOURS[i], alpha=0.18)
            axes.plot(
                task["at"],
                mean,
                color=COLOURS[i],
                marker=MARKERS[i],
                markersize=4,
                linewidth=wide,
                label=method.partition(":")[0],
            )
        known = [task["methods"][method] for method in methods if method in task["methods"]]
        values = np.concatenate([np.array(row["search"]["mean"][1:], float) for row in known])
        if values.max() < 0 and values.min() < 30 * values.max():
            axes.set_yscale("symlog", linthresh=-values.max(), linscale=0.2)
        axes.set_xscale("log")
        axes.set_xticks(task["at"], [str(at) for at in task["at"]])
        axes.minorticks_off()
        axes.set_title(f"{name} (D = {task['dim']})", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.tick_params(labelsize=8)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    of = " of the search distribution" if rows > 1 else ""
    figure.supylabel(f"expected return{of}, over episodes", fontsize=9)
    known = {}
    for axes in panels:
        known.update(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    labels = [name for m in methods if (name := m.partition(":")[0]) in known]
    figure.legend(
        [known[name] for name in labels],
        labels,
        loc="outside lower center",
        ncols=len(methods),
        frameon=False,
    )
    figure.savefig(path, dpi=150)


def main():
    """Prints tables and verdicts; draws the picture where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=[RESULTS], help="what is kept, unless named")
    parser.add_argument("--picture")
    parser.add_argument("--show", nargs="*", default=PANELS, help="tasks of the picture")
    parser.add_argument("--methods", nargs="*", default=DRAWN, help="methods of the picture")
    parser.add_argument("--rows", type=int, default=2, help="rows of the picture")
    given = parser.parse_args()
    tasks = loaded(given.files)
    order, peers = methods_of(tasks)
    for kind, letter in KINDS.items():
        lines, counts, judged, far = overview(tasks, peers, kind)
        print(f"\n**{letter}**: {counts}, corrected {judged}; 2.5 standard errors below: {far}")
        print(f"\n{lines}")
        for method in order[1:]:
            print(f"  {letter}, against {method}: {against(tasks, method, kind)}")
    print(f"\n{counts_table(tasks, order[1:])}")
    print(f"\nmissing: {missing(tasks, peers)}")
    print(f"\narea under J: {areas(tasks, peers)}\nepisodes to what {SLOW} has: {reached(tasks)}")
    for name, task in tasks.items():
        print(f"\n{table(name, task, order)}")
    if given.picture:
        names = [name for name in given.show if name in tasks]
        picture(tasks, names, given.methods, given.picture, given.rows)


if __name__ == "__main__":
    main()
