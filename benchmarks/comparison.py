"""The overview of docs/benchmarks.md and README's picture, from what `recoup compare` has written.

recoup compare --task suite --method recoup --method cma-es ... --out runs/compare
python -m benchmarks.comparison runs/compare/compare.json --picture docs/comparison.png
"""

import argparse
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from recoup.compare.tables import shown
from recoup.pictures.comparison import COLOURS, MARKERS

OURS = "recoup"


def loaded(paths):
    """The tasks of several comparisons, by name."""
    said = [json.loads(Path(path).read_text()) for path in paths]
    return {
        task["task"]: {**task, "at": one["checkpoints"]} for one in said for task in one["tasks"]
    }


def row_of(task, method):
    return next((row for row in task["methods"] if row["method"] == method), None)


def difference(task, method, kind, column):
    """`recoup` minus a method at a checkpoint: mean and standard error over pairs of runs."""
    mine, other = row_of(task, OURS), row_of(task, method)
    runs = [np.array(row[kind]["runs"], float)[:, 1 + column] for row in (mine, other)]
    n = min(len(x) for x in runs)
    apart = runs[0][:n] - runs[1][:n]
    return apart.mean(), apart.std(ddof=1) / n**0.5


def table(tasks, methods, kind):
    """Means with standard errors: a row for each method and task."""
    lines = []
    for task in tasks.values():
        heads = " | ".join(f"@{at}" for at in task["at"])
        lines += [f"\n| {task['task']} (D = {task['dim']}) | {heads} |"]
        lines += ["|---" * (1 + len(task["at"])) + "|"]
        for method in methods:
            row = row_of(task, method)
            if row is None:
                continue
            cells = zip(row[kind]["mean"][1:], row[kind]["stderr"][1:], strict=True)
            lines.append(f"| {method} | " + " | ".join(shown(*cell) for cell in cells) + " |")
    return "\n".join(lines)


def verdicts(tasks, peers, kind, limit=2.0):
    """Cells in which `recoup` is above, level with, below the best of the peers, and those below.

    The best is picked anew in every cell, after the fact, which favours the peers.
    """
    counts, losses = {"above": 0, "level": 0, "below": 0}, []
    for task in tasks.values():
        known = [peer for peer in peers if row_of(task, peer) is not None]
        for i, at in enumerate(task["at"]):
            best = max(known, key=lambda peer, i=i: row_of(task, peer)[kind]["mean"][1 + i])
            apart, error = difference(task, best, kind, i)
            word = "below" if apart < -limit * error else "level"
            word = "above" if apart > limit * error else word
            counts[word] += 1
            if word == "below":
                losses.append(f"{task['task']} @{at} ({best} by {-apart:.3g} ± {error:.2g})")
    return counts, losses


def picture(tasks, names, methods, path):
    """J over episodes, a panel a task."""
    columns = -(-len(names) // 2)
    figure = Figure(figsize=(3.1 * columns, 5.6), layout="constrained")
    panels = figure.subplots(2, columns).ravel()
    for axes, name in zip(panels, names, strict=False):
        task = tasks[name]
        for i, method in enumerate(methods):
            row = row_of(task, method)
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
        rows = [row_of(task, method) for method in methods if row_of(task, method)]
        values = np.concatenate([np.array(row["search"]["mean"][1:], float) for row in rows])
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
    figure.supylabel("expected return of the search distribution, over episodes", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(methods), frameon=False)
    figure.savefig(path, dpi=150)


def main():
    """Prints tables and verdicts; draws the picture where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--picture")
    parser.add_argument("--show", nargs="*", help="tasks of the picture")
    parser.add_argument("--methods", nargs="*", help="methods of the picture and the tables")
    given = parser.parse_args()
    tasks = loaded(given.files)
    every = list(dict.fromkeys(row["method"] for task in tasks.values() for row in task["methods"]))
    methods = given.methods or every
    peers = [method for method in every if method.partition(":")[0] != OURS]
    for kind, letter in (("search", "J"), ("policy", "m")):
        print(f"\n**{letter}**\n{table(tasks, methods, kind)}")
        counts, losses = verdicts(tasks, peers, kind)
        print(f"\n{letter}, recoup against the best peer of each cell: {counts}; below: {losses}")
        for ablation in (m for m in every if m not in peers and m != OURS):
            counts, losses = verdicts(tasks, [ablation], kind)
            print(f"  against {ablation}: {counts}; below: {losses}")
    if given.picture:
        picture(tasks, given.show or list(tasks)[:8], methods, given.picture)


if __name__ == "__main__":
    main()
