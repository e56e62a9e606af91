"""Bounded tasks with a search that goes a little beyond the bounds, and with one that does not.

`python -m benchmarks.borders [SEED [RUNS [TASK ...]]]`: the true return of the mean policy after
20, 50, 100 and 200 trials of the default as it is, less that of the default as it was before
parameters had a `beyond`; the same tasks, draws of noise and seeds, paired.
"""

import sys

import numpy as np

from recoup.compare.arenas import EPISODES, SYSTEM, keys_of
from recoup.compare.players import StudyPlayer
from recoup.tasks.bounded.bounded_suite import BOUNDED, bounded_task

LOOKS = (20, 50, 100, 200)
BEFORE = {"std": 0.75, "most_std": 1.0}


def before(task):
    """A study's settings as they were."""
    box = task.box.parameters
    rows = {p.name: {"low": p.low, "high": p.high, "scale": p.scale, "beyond": 0} for p in box}
    return {"params": rows, **BEFORE}


def curve(task, settings, stream, key):
    """What the mean policy is truly worth after each of `LOOKS` trials."""
    player, n, found = StudyPlayer({"method": "recoup", "seed": key, **settings}, {}), 0, []
    for look in LOOKS:
        while n < look:
            asked = player.ask()
            seeds = [[*stream, EPISODES, i] for i in range(n, n + len(asked))]
            player.tell(asked, task.returns(asked, seeds))
            n += len(asked)
        found.append(task.true_return(player.mean()))
    player.close()
    return found


def both(name, seed, run, key):
    """One run of a task, as it was and as it is `[2, 4]`."""
    task, stream = bounded_task(name, [seed, run, SYSTEM]), [seed, run]
    return [curve(task, how, stream, key) for how in (before(task), {"params": task.params})]


def main(seed="502", runs="24", *tasks):
    """Prints a row for each task."""
    seed, keys, cells = int(seed), keys_of(int(seed), range(int(runs))), []
    print(f"{runs} runs, seed {seed}; in t the difference over its standard error\n")
    print("| task | half | before | now | t |\n|---|---|---|---|---|")
    for name in tasks or BOUNDED:
        found = np.array([both(name, seed, run, key) for run, key in enumerate(keys)])
        mean, error = found.mean(0), found.std(0, ddof=1) / len(found) ** 0.5
        apart = found[:, 1] - found[:, 0]
        t = apart.mean(0) / np.maximum(apart.std(0, ddof=1) / len(apart) ** 0.5, 1e-12)
        cells += t.tolist()
        columns = [
            " / ".join(f"{x:.3g} ± {e:.2g}" for x, e in zip(mean[i], error[i], strict=True))
            for i in (0, 1)
        ]
        signs = " / ".join(f"{x:+.1f}" for x in t)
        print(
            f"| {name[8:]} | {BOUNDED[name].half} | {' | '.join(columns)} | {signs} |", flush=True
        )
    above, below = sum(t > 2 for t in cells), sum(t < -2 for t in cells)
    print(f"\nabove / level / below: {above} / {len(cells) - above - below} / {below}")


if __name__ == "__main__":
    main(*sys.argv[1:])
