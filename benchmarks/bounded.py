"""What docs/benchmarks/bounded.md says of other libraries, and README's picture, of kept results.

recoup compare --task bounded --method recoup ... --runs 16 --episodes 200 --out runs/bounded
python -m benchmarks.bounded --take runs/bounded --about "date; machine; versions"
python -m benchmarks.pages
python -m benchmarks.bounded --picture docs/compared.png

`--take` puts what lies in the directories of comparisons into benchmarks/results/bounded.json.gz:
the true return of what is deployed (m) at each checkpoint of each run, in place of what it has of
the same method. `benchmarks.pages` writes the page.
"""

import argparse
import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.comparison import loaded, picture, verdict
from recoup.compare.comparison_tables import shown
from recoup.compare.entrants import PEERS
from recoup.compare.statistics import paired
from recoup.compare.summary import corrected_verdicts
from recoup.tasks.bounded.bounded_suite import BOUNDED
from recoup.tasks.suite import TEST_SEED

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "bounded.json.gz"
OURS = "recoup"
SUITE = ROOT / "benchmarks" / "results" / "comparison.json.gz"
SHOWN = ("lqr-8", "walker2d", "rastrigin-10")  # of the other suite, in README's picture
DRAWN = (OURS, "cma-es", "mpd", "optuna-tpe", "reps:batch=10,tau_floor=0.001", "iw-pgpe-ob")
COLUMNS, HALVES = (20, 50, 100, 200), ("tuning", "untouched")
FEW = 8  # runs from which a peer may be picked as the best of a cell
DIGITS = 7


def taken(folders, ours=OURS):
    """Methods with their tasks: `{method: {task: {"at": [...], "m": [[...] of each run]}}}`.

    Of two files of one run the newer one counts; what is ours there is called `ours`.
    """
    found = defaultdict(lambda: defaultdict(dict))
    paths = [one for folder in folders for one in Path(folder).glob("results/*/*.json")]
    for path in sorted(paths, key=lambda one: one.stat().st_mtime):
        kept = json.loads(path.read_text())
        task, at = kept["depends"]["task"], tuple(kept["depends"]["checkpoints"])
        if task in BOUNDED and kept["depends"]["seed"] == TEST_SEED:
            method = _label(kept["depends"], ours)
            m = [float(f"{x:.{DIGITS}g}") for x in kept["policy"]]
            found[method][task][kept["run"]] = ((0, *at), m)
    return {
        method: {task: _runs(runs) for task, runs in tasks.items()}
        for method, tasks in found.items()
    }


def _label(depends, ours):
    """A peer as it is written."""
    if depends["method"] not in PEERS:
        return ours
    settings = ",".join(f"{key}={value}" for key, value in sorted(depends["settings"].items()))
    return f"{depends['method']}:{settings}" if settings else depends["method"]


def _runs(runs):
    """Runs from the first on, as many as there are without a gap."""
    at = runs[min(runs)][0]
    whole = next((i for i in range(len(runs)) if i not in runs), len(runs))
    return {"at": list(at), "m": [runs[i][1] for i in range(whole)]}


def read(path=RESULTS):
    """What is kept."""
    return json.loads(gzip.decompress(path.read_bytes()))


def keep(methods, about, path=RESULTS):
    """Puts methods in place of those of the same name; the same content has the same bytes."""
    kept = read(path) if path.exists() else {"about": {}, "methods": {}}
    kept["methods"].update(methods)
    kept["about"].update(dict.fromkeys(methods, about))
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def cell(kept, method, task, at):
    """True returns `[R]` of what a method deploys after `at` trials, None where there are none."""
    row = kept["methods"].get(method, {}).get(task)
    if row is None or at not in row["at"] or len(row["m"]) < 2:
        return None
    return np.array(row["m"], float)[:, row["at"].index(at)]


def apart(kept, method, task, at):
    """What ours is above a method there, of the runs that both have; None where there are none."""
    pair = [cell(kept, one, task, at) for one in (OURS, method)]
    if any(one is None for one in pair):
        return None
    runs = min(map(len, pair))
    return paired(pair[0][:runs], pair[1][:runs])


def best(kept, peers, task, at):
    """The peer that is most above ours there, picked afterwards, of those with enough runs."""
    found = {peer: apart(kept, peer, task, at) for peer in peers}
    known = {peer: one.mean for peer, one in found.items() if one is not None and one.runs >= FEW}
    return min(known, key=known.get) if known else None


def counts(cells):
    """`above / level / below (corrected)` of differences."""
    words = [verdict(one.mean, one.stderr) for one in cells]
    judged = corrected_verdicts(cells)
    raw = " / ".join(str(words.count(word)) for word in ("above", "level", "below"))
    return f"{raw} ({' / '.join(str(judged.count(w)) for w in ('better', 'level', 'worse'))})"


def rows_of(kept, picked):
    """A row of counts: all cells, and both halves; `picked(task, at)` names the peer of a cell."""
    found = {half: [] for half in HALVES}
    for task, row in BOUNDED.items():
        for at in COLUMNS:
            peer = picked(task, at)
            if peer is not None and (one := apart(kept, peer, task, at)) is not None:
                found[row.half].append(one)
    every = [one for half in HALVES for one in found[half]]
    cells = [counts(one) if one else "–" for one in (every, *found.values())]
    return [str(len(every)), *cells]


def runs_in(kept, method):
    """How many runs there are of a method on each task, in words."""
    sizes = {len(row["m"]) for row in kept["methods"][method].values()}
    return f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


def counts_table(kept, peers):
    """Ours against each peer, and against the best of all."""
    heads = ["against", "runs", "cells", "all", *(f"{half} half" for half in HALVES)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for peer in peers:
        cells = rows_of(kept, lambda task, at, peer=peer: peer)
        lines.append(f"| {peer} | {runs_in(kept, peer)} | {' | '.join(cells)} |")
    cells = rows_of(kept, lambda task, at: best(kept, peers, task, at))
    lines.append(f"| the best of all in each cell, picked afterwards | | {' | '.join(cells)} |")
    return "\n".join(lines)


def below(kept, peers):
    """Cells in which ours is below the best of all, by task, each with how many standard errors."""
    found = defaultdict(list)
    for task in BOUNDED:
        for at in COLUMNS:
            peer = best(kept, peers, task, at)
            one = None if peer is None else apart(kept, peer, task, at)
            if one is not None and verdict(one.mean, one.stderr) == "below":
                found[_short(task)].append(f"at {at} ({peer}, {-one.mean / one.stderr:.1f})")
    return found


TARGETS = """\
Targets on the {} half, each with what came of it:

- Level with or above the best of all in 95 % of cells: {} of {}.
- Never below by more than 2.5 standard errors: {:.1f} at most.
- Above at 50 and 100 trials in half of the cells: {} of {}.
- Above any single peer five times as often as below: missed against {}."""


def targets(kept, peers, half):
    """What was wanted on a half, and what is so."""
    tasks = [task for task, row in BOUNDED.items() if row.half == half]

    def found(picked, columns=COLUMNS):
        pairs = [(task, at, picked(task, at)) for task in tasks for at in columns]
        cells = [apart(kept, peer, task, at) for task, at, peer in pairs if peer]
        return [one for one in cells if one is not None]

    def most(task, at):
        return best(kept, peers, task, at)

    every, middle = found(most), found(most, COLUMNS[1:3])
    words = [verdict(one.mean, one.stderr) for one in every]
    above = [verdict(one.mean, one.stderr) for one in middle].count("above")
    held = len(words) - words.count("below")
    far = max(0.0, *(-one.mean / one.stderr for one in every))
    short = []
    for peer in peers:
        single = [verdict(one.mean, one.stderr) for one in found(lambda *_, peer=peer: peer)]
        if single.count("above") < 5 * single.count("below"):
            short.append(peer)
    return TARGETS.format(
        half, held, len(words), far, above, len(middle), ", ".join(short) or "none"
    )


def missing(kept, peers):
    """Peers that are not in every cell, and where they are."""
    found = []
    for peer in peers:
        at = sorted({x for row in kept["methods"][peer].values() for x in row["at"]})
        tasks = [task for task in BOUNDED if cell(kept, peer, task, at[0]) is not None]
        most = max(len(row["m"]) for row in kept["methods"][peer].values())
        thin = f"with {most} runs, too few to be picked," if most < FEW else ""
        late = f"to {at[-1]} trials" if at[-1] < COLUMNS[-1] else ""
        few = "" if len(tasks) == len(BOUNDED) else f"on {', '.join(map(_short, tasks))} alone"
        if late or few or thin:
            found.append(f"{peer} {' '.join(filter(None, (thin, few, late))).rstrip(',')}")
    return found


def means_table(kept, methods, half):
    """Means with standard errors at every checkpoint: a row a task."""
    lines = [f"| {half} | {' | '.join(methods)} |", "|---" * (1 + len(methods)) + "|"]
    for task, row in BOUNDED.items():
        if row.half == half:
            cells = [_means(kept, method, task) for method in methods]
            lines.append(f"| {_short(task)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _means(kept, method, task):
    found = [cell(kept, method, task, at) for at in COLUMNS]
    known = [one for one in found if one is not None]
    error = [one.std(ddof=1) / len(one) ** 0.5 for one in known]
    pairs = zip(known, error, strict=True)
    return " / ".join(shown(one.mean(), far) for one, far in pairs) or "–"


def _short(task):
    return task.removeprefix("bounded-")


def peers_of(kept):
    """Peers, the ones with most cells first."""
    every = [one for one in kept["methods"] if one.partition(":")[0] != OURS]
    order = list(PEERS)
    return sorted(every, key=lambda one: (order.index(one.partition(":")[0]), one))


def ablations_of(kept):
    """Our method with other settings."""
    return sorted(one for one in kept["methods"] if one.startswith(f"{OURS}:"))


def said(kept=None):
    """What the pages say of kept results, by name: in Markdown."""
    kept = kept or read()
    peers, ablations = peers_of(kept), ablations_of(kept)
    every = [OURS, *peers]
    means = [means_table(kept, group, half) for group in _groups(every) for half in HALVES]
    return {
        "runs": runs_in(kept, OURS),
        "counts": counts_table(kept, peers),
        "below": _where(below(kept, peers)),
        "absent": _absent(kept, peers),
        "targets": targets(kept, peers, HALVES[1]),
        "ablations": _only(counts_table(kept, ablations)),
        "measured": measured(kept, [*every, *ablations]),
        "means": "\n\n".join(means),
    }


def measured(kept, methods):
    """When and where the runs of some methods were made, in words."""
    told = {method: kept["about"][method] for method in methods}
    groups = "; ".join(f"{_who(told, one)}: {one}" for one in sorted(set(told.values())))
    return f"Measured: {groups}."


def _absent(kept, peers):
    found = missing(kept, peers)
    if not found:
        return "All of them are in every cell."
    return f"Not in every cell, so that there the best is picked without them: {'; '.join(found)}."


def _only(table):
    """A table without the row of the best."""
    return table.rpartition("\n")[0]


def _who(told, words):
    mine = [method for method, about in told.items() if about == words]
    return "all" if len(mine) == len(told) else ", ".join(mine)


def _where(lost):
    if not lost:
        return "Below the best of all: nowhere."
    lines = [f"- `{task}` {', '.join(cells)}" for task, cells in lost.items()]
    head = "Below the best of all, in parentheses that peer and how many standard errors:"
    return "\n".join([head, "", *lines])


def _groups(methods, size=4):
    """Ours beside a few others at a time."""
    others = methods[1:]
    return [[methods[0], *others[i : i + size]] for i in range(0, len(others), size)]


def scores(kept, method, methods):
    """Means and standard errors `[1 + C]` of scores over all tasks; the start has none.

    Of each task 0 is the worst mean of `methods` after the fewest trials, 1 the best after most.
    """
    found = []
    for task in BOUNDED:
        first, last = (
            [cell(kept, one, task, at).mean() for one in methods]
            for at in (COLUMNS[0], COLUMNS[-1])
        )
        runs = np.array([cell(kept, method, task, at) for at in COLUMNS])
        score = (runs - min(first)) / (max(last) - min(first))
        found.append((score.mean(1), score.var(1, ddof=1) / score.shape[1]))
    means, variances = np.mean(found, 0)
    blank = [np.nan]
    return np.append(blank, means), np.append(blank, np.sqrt(variances / len(found)))


def draw(kept, path):
    """README's picture: the score on bounded tasks, then J on tasks of the other suite."""
    last = COLUMNS[-1]
    mine = [m for m in DRAWN if all(cell(kept, m, task, last) is not None for task in BOUNDED)]
    found = {method: scores(kept, method, mine) for method in mine}
    rows = {
        method: {"search": {"mean": mean, "stderr": error}}
        for method, (mean, error) in found.items()
    }
    bounded = {"dim": "2 to 20", "at": list(COLUMNS), "methods": rows}
    suite = loaded([SUITE])
    tasks = {"18 bounded tasks: score": bounded, **{name: suite[name] for name in SHOWN}}
    picture(tasks, list(tasks), DRAWN, path, rows=1)


def main():
    """Takes results, draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--take", nargs="*", help="directories of comparisons")
    parser.add_argument("--ours", default=OURS, help="what our method is called in them")
    parser.add_argument("--only", nargs="*", help="methods that are taken")
    parser.add_argument("--about", default="", help="date and machine of what is taken")
    parser.add_argument("--picture", help="where the picture is written")
    given = parser.parse_args()
    if given.take:
        found = taken(given.take, given.ours)
        only = given.only or found
        keep({method: found[method] for method in only}, given.about)
    if given.picture:
        draw(read(), given.picture)


if __name__ == "__main__":
    main()
