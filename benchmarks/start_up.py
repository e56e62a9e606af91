"""Seconds of whole processes: imports, a move of a study, short runs; the first time and again.

Wall clock, and CPU in brackets. What JAX compiles is kept in a directory that is empty at first.
With another checkout's `src` in the variable `BEFORE`, runs are made by it too, in turn.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup.study.study import Study

TIMES = 3  # processes of each kind
CARS = ["train", "mountain-car", "--iterations", "30", "--quiet"]
REACH = ["train", "reach-2", "--iterations", "60", "--quiet"]
METHODS = {  # of a study of four parameters
    "recoup": {"method": "recoup"},
    "mis-pgpe-ob": {"method": "mis-pgpe-ob"},
    "tiw-pgpe-ob": {"method": "tiw-pgpe-ob"},
    "cem": {"method": "cem"},
    "mis-pgpe-ob, full": {"method": "mis-pgpe-ob", "family": "full"},
    "mis-pgpe-ob, adam": {"method": "mis-pgpe-ob", "update": "adam"},
    "iw-reinforce-ob": {"method": "iw-reinforce-ob", "horizon": 5},
    "tiw-enac": {"method": "tiw-enac", "horizon": 5},
    "r3": {"method": "r3", "horizon": 5},
}


class Took(NamedTuple):
    """What a process took, in seconds."""

    wall: float
    cpu: float

    def __str__(self):
        return f"{self.wall:.2f} ({self.cpu:.2f}) s"


def main():
    imports()
    with tempfile.TemporaryDirectory() as folder:
        moves(Path(folder))
        by_hand(Path(folder))
        runs(Path(folder) / "cars", CARS, {}, "target, again: under 3 s")
        ways = {"tested after every iteration": ["--test-all"]}
        runs(Path(folder) / "reach", REACH, ways, "target: half of before")


def imports():
    print(f"start-up, median of {TIMES} processes:")
    words = {"import recoup": ["-c", "import recoup"], "recoup --help": ["-m", "recoup", "--help"]}
    for name, arguments in words.items():
        print(f"  {name}: {middle(took(arguments) for _ in range(TIMES))} (target: under 1.5 s)")


def took(arguments, **variables):
    """What a process of Python takes with these arguments; JAX keeps nothing that is not said."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    before, start = cpu(), time.perf_counter()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**kept, **variables})
    return Took(time.perf_counter() - start, cpu() - before)


def cpu():
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def middle(found):
    return Took(*(statistics.median(column) for column in zip(*found, strict=True)))


def moves(folder):
    """`recoup study tell` that ends a batch: nothing kept, the first that keeps, those after it."""
    print("`recoup study tell` that moves, 20 results of 4 parameters, a process each:")
    print("  nothing kept; first; again (target: under 1 s)")
    for name, how in METHODS.items():
        cache = folder / f"cache of {name}"
        without = tell(folder, how, RECOUP_NO_CACHE="1")
        first = tell(folder, how, XDG_CACHE_HOME=str(cache))
        again = middle(tell(folder, how, XDG_CACHE_HOME=str(cache)) for _ in range(TIMES))
        by = "JAX" if cache.exists() else "NumPy"
        print(f"  {name}: {without}; {first}; {again}, by {by}", flush=True)


def by_hand(folder):
    """The least CPU of commands on a large study, which is the same every time."""
    path, rng = folder / "large.db", np.random.default_rng(0)
    with Study.open(path, dim=20, batch=10, std=0.5) as study:
        for count in (*[10] * 100, 9):
            trials = study.ask(10)[:count]
            study.tell([t.id for t in trials], rng.standard_normal(count).tolist())
    copy, ways = folder / "copy.db", {"now": {}}
    if os.environ.get("BEFORE"):
        ways["before"] = {"PYTHONPATH": os.environ["BEFORE"]}
    print("`recoup study ...`, 1,009 results of 20 parameters, the least of CPU:")
    for name in ("tell FILE 1010 1.5", "evaluate FILE", "show FILE"):
        words = ["-m", "recoup", "study", *name.replace("FILE", str(copy)).split()]
        least = dict.fromkeys(ways, np.inf)
        for _ in range(2 * TIMES):
            for way, variables in ways.items():
                shutil.copy(path, copy)
                least[way] = min(least[way], took(words, **variables).cpu)
        print(f"  {name}: {beside(**least)}", flush=True)


def beside(now, before=None):
    """Seconds of now in words, beside those of another checkout where there is one."""
    return f"{now:.2f} s" + (f"; {before / now:.2f} times as much before" if before else "")


def tell(folder, how, **variables):
    """A study that is one result short of its second move is told it."""
    path, rng = folder / "study.db", np.random.default_rng(0)
    path.unlink(missing_ok=True)
    with Study.open(path, dim=4, batch=10, **how) as study:
        *trials, last = study.ask(20)
        for trial in trials:
            study.tell(trial.id, **told(rng, how))
    words = ["-m", "recoup", "study", "tell", str(path), str(last.id)]
    if "horizon" in how:
        np.savez(folder / "episode.npz", **told(rng, how)["trajectory"])
        words += ["--trajectory", str(folder / "episode.npz")]
    else:
        words += ["1.5"]
    return took(words, **variables)


def told(rng, how):
    """A result that is made up."""
    if "horizon" not in how:
        return {"value": float(rng.standard_normal())}
    steps = how["horizon"]
    shapes = {"features": (steps, 4), "actions": (steps, 1), "rewards": (steps,)}
    return {"trajectory": {key: rng.standard_normal(shape) for key, shape in shapes.items()}}


def runs(folder, words, others, target):
    """A run: nothing kept, the first that keeps, those after it, and other ways, in turn."""
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    ways = {"again": (words, cache)}
    ways |= {name: ([*words, *more], cache) for name, more in others.items()}
    if os.environ.get("BEFORE"):
        ways["before"] = (words, {"PYTHONPATH": os.environ["BEFORE"]})
    places = (str(folder / str(i)) for i in range(100))

    def once(given, variables):
        return took(["-m", "recoup", *given, "--out", next(places)], **variables)

    print(f"`recoup {' '.join(words)}` ({target}):")
    print(f"  nothing kept: {once(words, {'RECOUP_NO_CACHE': '1'})}")
    print(f"  first: {once(words, cache)}", flush=True)
    found = {name: [] for name in ways}
    for _ in range(TIMES):
        for name, way in ways.items():
            found[name].append(once(*way))
    ours = middle(found["again"])
    for name, times in found.items():
        took_it = middle(times)
        ratio = f"{took_it.wall / ours.wall:.2f} ({took_it.cpu / ours.cpu:.2f})"
        print(f"  {name}: {took_it}, {ratio} times as long", flush=True)


if __name__ == "__main__":
    main()
