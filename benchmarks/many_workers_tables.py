"""What is said of the runs of `benchmarks.many_workers`: tables and the picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.simulated_cluster import (
    EPISODES,
    LARGE,
    METHOD,
    PROBLEMS,
    SETTINGS,
    SMALLEST,
    TIMES,
    TROUBLE,
    WORKERS,
    Losses,
)

ARRIVE = 0.8  # share of runs that must reach the target


GROUP = ("problem", "setting", "tie", "losses", "retries", "episodes", "workers", "batch", "sync")


Records = Sequence[Mapping[str, Any]]


def grouped(records: Records, **wanted: Any) -> dict[tuple[int, int, bool], Any]:
    """Records that differ in their seeds alone, by workers, batch and barrier."""
    wanted = {"tie": 0.0, "losses": list(TROUBLE), "retries": 5, "episodes": 0, **wanted}
    found: dict[tuple[int, int, bool], list[Any]] = {}
    for record in sorted(records, key=lambda r: (r["workers"], r["sync"], r["batch"], r["seed"])):
        if all(record[key] == value for key, value in wanted.items()):
            key = (record["workers"], record["batch"], record["sync"])
            found.setdefault(key, []).append(record)
    return found


def mean_of(rows: Records, key: str) -> tuple[float, float, int]:
    """Mean of what there is, its standard error, and of how many."""
    values = np.array([row[key] for row in rows if row[key] is not None], float)
    if not len(values):
        return float("nan"), float("nan"), 0
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return float(values.mean()), float(error), len(values)


def at_mark(rows: Records, key: str, i: int) -> tuple[float, float, int]:
    """The same of one place of a curve."""
    return mean_of([{key: row[key][i]} for row in rows], key)


def shown(found: tuple[float, float, int], digits: int = 2) -> str:
    """A mean and its standard error."""
    mean, error, n = found
    if not n:
        return "-"
    return f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) else "")


def sweep_table(records: Records, problem: str, setting: str) -> list[str]:
    """Every point of the sweep."""
    lines = [
        f"{problem}, {setting} (target {PROBLEMS[problem].target:g}):",
        "",
        "| workers | batch | barrier | busy | late, mean | late, 95 % | ESS a sample "
        "| ESS in batches | reached | episodes to it | time to it |",
        "|" + "---|" * 11,
    ]
    for (workers, batch, sync), rows in grouped(records, problem=problem, setting=setting).items():
        after, reached = mean_of(rows, "reached_after"), mean_of(rows, "reached")
        cells = [f"{workers:,}", f"{batch:,}", "yes" if sync else "no"]
        cells += [f"{mean_of(rows, 'busy')[0]:.1%}"]
        cells += [f"{mean_of(rows, key)[0]:.1f}" for key in ("late", "late95")]
        cells += [shown(mean_of(rows, "ess")), f"{mean_of(rows, 'ess_batches')[0]:.1f}"]
        cells += [f"{reached[2]} of {len(rows)}", shown(after, 0), shown(reached)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def curve_table(records: Records, problem: str, setting: str) -> list[str]:
    """What the distributions were worth after so many results, and at moments of the clock."""
    after, at = (0, 1, 2, 3, 5, 7), range(4)
    heads = [f"after {EPISODES[i]:,}" for i in after] + [f"at time {TIMES[i]:g}" for i in at]
    heads += ["at the end", "its mean policy"]
    lines = [f"{problem}, {setting}: expected return of the distribution", ""]
    lines += [f"| workers | batch | barrier | {' | '.join(heads)} |", "|" + "---|" * 15]
    for (workers, batch, sync), rows in grouped(records, problem=problem, setting=setting).items():
        cells = [f"{workers:,}", f"{batch:,}", "yes" if sync else "no"]
        cells += [shown(at_mark(rows, "by_episodes", i)) for i in after]
        cells += [shown(at_mark(rows, "by_time", i)) for i in at]
        cells += [shown(mean_of(rows, key)) for key in ("final", "final_mean")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def arrived(rows: Records) -> bool:
    """Whether so many runs reached the target that a mean of theirs says something."""
    return mean_of(rows, "reached")[2] >= ARRIVE * len(rows)


class Best(NamedTuple):
    """The batch with which the target was reached first."""

    workers: int
    batch: int
    time: tuple[float, float, int]
    speed_up: float  # over one worker
    error: float


def best(records: Records, problem: str, setting: str, sync: bool) -> list[Best]:
    """For each number of workers, among the batches with which most runs reached the target."""
    groups = grouped(records, problem=problem, setting=setting)
    whole = {
        key[:2]: mean_of(rows, "reached")
        for key, rows in groups.items()
        if key[2] == sync and arrived(rows)
    }
    one = mean_of(groups.get((1, SMALLEST, False), []), "reached")
    found = []
    for workers in sorted({w for w, _ in whole}):
        batch = min((b for w, b in whole if w == workers), key=lambda b: whole[workers, b][0])
        spent_there = whole[workers, batch]
        gain = one[0] / spent_there[0]
        relative = np.hypot(one[1] / one[0], spent_there[1] / spent_there[0])
        found.append(Best(workers, batch, spent_there, gain, gain * relative))
    return found


def best_table(records: Records, problem: str, setting: str) -> list[str]:
    """What is gained by more workers, each with its best batch."""
    lines = [
        f"{problem}, {setting}: the best of the batches that arrive:",
        "",
    ]
    lines += ["| workers | barrier | batch | time | speed-up |", "|---|---|---|---|---|"]
    for sync in (False, True):
        for row in best(records, problem, setting, sync):
            gain = shown((row.speed_up, row.error, 1), 1)
            cells = [f"{row.workers:,}", "yes" if sync else "no", f"{row.batch:,}"]
            lines.append(f"| {' | '.join([*cells, shown(row.time), gain])} |")
    return lines


def tie_table(records: Records, setting: str) -> list[str]:
    """The error of the estimated objective, and what was learned, by the law of episode times."""
    how = {"setting": setting, "problem": "toy", "losses": list(Losses()), "episodes": 500}
    learns, marks = setting != "still", range(3)
    heads = [f"error, to {high} results" for high in EPISODES[:3]]
    if learns:
        heads += [f"worth after {EPISODES[i]}" for i in marks]
        heads += [f"minus the barrier's, {EPISODES[i]}" for i in marks]
    lines = [f"toy, {setting}; times by returns:", ""]
    lines += [f"| correlation | workers | barrier | {' | '.join(heads)} |"]
    lines += ["|" + "---|" * (3 + len(heads))]
    barrier = grouped(records, tie=0.0, **how).get((SMALLEST, SMALLEST, True), [])
    rows_of = [((0.0, SMALLEST, True), barrier)] if barrier else []
    for tie in (0.0, -0.8, 0.8):
        found = grouped(records, tie=tie, **how).items()
        rows_of += [((tie, w, sync), rows) for (w, _, sync), rows in found if not sync]
    for (tie, workers, sync), rows in rows_of:
        cells = ["any" if sync else f"{tie:+g}", _in_batches(workers), "yes" if sync else "no"]
        cells += [shown(at_mark(rows, "error_by_episodes", i)) for i in marks]
        if learns:
            cells += [shown(at_mark(rows, "by_episodes", i)) for i in marks]
            cells += [shown(paired(rows, barrier, "by_episodes", i)) for i in marks]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def tie_time_table(records: Records, setting: str) -> list[str]:
    """What the distribution was worth at moments of the clock; a run that has ended stays there."""
    how = {"setting": setting, "problem": "toy", "losses": list(Losses()), "episodes": 500}
    lines = [f"toy, {setting}; times by returns, by the clock:", ""]
    heads = [f"worth at time {moment:g}" for moment in TIMES]
    lines += [f"| correlation | workers | barrier | {' | '.join(heads)} |"]
    lines += ["|" + "---|" * (3 + len(heads))]
    for tie in (0.0, -0.8, 0.8):
        for (workers, _, sync), rows in grouped(records, tie=tie, **how).items():
            cells = [f"{tie:+g}", _in_batches(workers), "yes" if sync else "no"]
            for i in range(len(TIMES)):
                there = [row["by_time"][i] for row in rows]
                ended = [row["final"] for row in rows]
                worth = [b if a is None else a for a, b in zip(there, ended, strict=True)]
                cells.append(shown(mean_of([{"worth": x} for x in worth], "worth")))
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def paired(rows: Records, others: Records, key: str, i: int) -> tuple[float, float, int]:
    """The mean difference of runs with the same seeds, at one place of a curve."""
    theirs = {row["seed"]: row[key][i] for row in others}
    both = [row for row in rows if theirs.get(row["seed"]) is not None and row[key][i] is not None]
    return mean_of([{key: row[key][i] - theirs[row["seed"]]} for row in both], key)


def _in_batches(workers: int) -> str:
    return "1 batch" if workers == SMALLEST else f"{workers // SMALLEST} batches"


def aside_tables(records: Records) -> list[str]:
    """Losses and retries; longer steps; late results without reuse."""
    lines = ["losses (toy, natural, 1,000 workers, batch 250):", ""]
    lines += ["| losses | retries | wasted | lost | failed | time |", "|---|---|---|---|---|---|"]
    for losses, retries in ((Losses(), 5), (TROUBLE, 5), (TROUBLE, 1)):
        how = {"problem": "toy", "setting": "natural", "losses": list(losses), "retries": retries}
        rows = grouped(records, **how).get((LARGE, LARGE // 4, False), [])
        cells = ["yes" if losses.trials else "no", str(retries)]
        cells += [f"{mean_of(rows, 'wasted')[0]:.1%}"]
        cells += [shown(mean_of(rows, key), 1) for key in ("lost", "failed")]
        lines.append(f"| {' | '.join([*cells, shown(mean_of(rows, 'reached'))])} |")
    lines += ["", "longer steps (quadratic, 1,000 workers):", ""]
    lines += ["| batch | kl | reached | time |", "|---|---|---|---|"]
    for setting in ("natural", "long"):
        groups = grouped(records, problem="quadratic", setting=setting)
        for batch in (LARGE // 16, LARGE // 4):
            rows = groups.get((LARGE, batch, False), [])
            reached = mean_of(rows, "reached")
            cells = [str(batch), str(SETTINGS[setting]["kl"]), f"{reached[2]} of {len(rows)}"]
            lines.append(f"| {' | '.join([*cells, shown(reached)])} |")
    return [*lines, "", *weights_table(records)]


def weights_table(records: Records) -> list[str]:
    """Late results weighed by what drew them and reused, and used once as if they were new."""
    lines = ["quadratic, batch 10, with reuse and without:", ""]
    lines += ["| workers | barrier | method | worth after 200 | after 500 | after 1,000 |"]
    lines += ["|---|---|---|---|---|---|"]
    for setting in ("natural", "unweighted"):
        how = {"problem": "quadratic", "setting": setting, "losses": list(Losses())}
        for (workers, _, sync), rows in grouped(records, episodes=1000, **how).items():
            method = SETTINGS[setting].get("method", METHOD)
            cells = [f"{workers}", "yes" if sync else "no", f"`{method}`"]
            cells += [shown(at_mark(rows, "by_episodes", i)) for i in (1, 2, 3)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def tables(records: Records) -> list[str]:
    """All tables, as Markdown."""
    lines: list[str] = []
    for problem, setting in (("toy", "natural"), ("toy", "normalised"), ("quadratic", "natural")):
        if grouped(records, problem=problem, setting=setting):
            lines += [*sweep_table(records, problem, setting), ""]
            lines += [*best_table(records, problem, setting), ""]
            lines += [*curve_table(records, problem, setting), ""]
    if grouped(records, setting="unweighted", losses=list(Losses()), episodes=1000):
        lines += [*aside_tables(records), ""]
    for setting in ("still", "normalised", "natural"):
        if any(record["setting"] == setting and record["tie"] for record in records):
            lines += [*tie_table(records, setting), ""]
            lines += [*tie_time_table(records, setting), ""] if setting != "still" else []
    costs = [record["cpu_ms"] for record in records if record["workers"] >= LARGE]
    if costs:
        lines += [f"The loop and the study cost {np.median(costs):.2f} ms of a core a result."]
    return lines


# -- the picture --


def picture(records: Records, path: Path) -> None:
    """Utilisation, lateness, effective sample size and time to a return against workers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 6.8), layout="constrained")
    panels = figure.subplots(2, 3)
    how = {"problem": "quadratic", "setting": "natural"}
    _lines(panels[0, 0], records, "busy", "workers at work", **how)
    _lines(panels[0, 1], records, "late", "moves late, mean", **how)
    _lines(panels[0, 2], records, "ess", "effective sample size a sample", **how)
    _lines(panels[1, 0], records, "reached", "time to 11.5, toy", problem="toy", setting="natural")
    _lines(panels[1, 1], records, "reached", "time to -2, quadratic", **how)
    _bias(panels[1, 2], records)
    panels[0, 0].set_ylim(0, 1.05)
    panels[0, 1].set_yscale("symlog", linthresh=1)
    panels[0, 1].set_ylim(bottom=0)
    panels[0, 2].set_ylim(bottom=0)
    for axes in panels[1, :2]:
        axes.set_yscale("log" if any(line.get_xdata().size for line in axes.lines) else "linear")
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    figure.savefig(path, dpi=110)


RULES = (  # name, workers for each trial of a batch (None: a batch of `SMALLEST`), barrier
    ("batch 10", None, False),
    ("batch W", 1, False),
    ("batch W/4", 4, False),
    ("batch W/16", 16, False),
    ("batch W/64", 64, False),
    ("barrier, batch 10", None, True),
    ("barrier, batch W", 1, True),
)


def _lines(axes: Any, records: Records, key: str, title: str, **how: Any) -> None:
    """One line for each rule that gives the batch; no point where too few runs arrived."""
    from recoup.pictures.curves import COLOURS

    groups = grouped(records, **how)
    for (name, ratio, sync), colour in zip(RULES, COLOURS, strict=False):
        points = []
        for workers in WORKERS:
            batch = SMALLEST if ratio is None else workers // ratio
            rows = groups.get((workers, batch, sync), [])
            mean, error, n = mean_of(rows, key)
            if n and (key != "reached" or arrived(rows)):
                points.append((workers, mean, error))
        x, y, bar = np.array(points).reshape(-1, 3).T
        style = {"color": colour, "linestyle": "--" if sync else "-", "marker": "o"}
        axes.errorbar(x, y, np.nan_to_num(bar), label=name, markersize=3.5, linewidth=1.4, **style)
    axes.set_xscale("log")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("workers")


def _bias(axes: Any, records: Records) -> None:
    """The error of the objective of a distribution that stands still."""
    from recoup.pictures.curves import COLOURS, STYLES

    how = {"setting": "still", "problem": "toy", "losses": list(Losses()), "episodes": 500}
    for tie, style in ((0.0, STYLES[2]), (-0.8, STYLES[1]), (0.8, STYLES[0])):
        for (workers, batch, sync), rows in grouped(records, tie=tie, **how).items():
            if not (sync or tie):
                continue
            colour = COLOURS[6] if sync else COLOURS[(1, 4, 16).index(workers // batch)]
            errors = [at_mark(rows, "error_by_episodes", i) for i in range(3)]
            label = "barrier" if sync else f"W = {workers}" if tie > 0 else None
            mean, error, _ = zip(*errors, strict=True)
            look = {"color": colour, "linestyle": style, "marker": "o", "markersize": 3.5}
            axes.errorbar(EPISODES[:3], mean, error, label=label, **look)
    axes.set_xscale("log")
    axes.set_xticks(EPISODES[:3], [str(mark) for mark in EPISODES[:3]])
    axes.minorticks_off()
    axes.axhline(0, color="#222222", linewidth=0.6)
    title = "error of the estimate, batch 10: times grow\nwith returns (full), or fall (dashed)"
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("results")
    axes.legend(frameon=False, fontsize=8)
