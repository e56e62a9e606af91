"""Seconds of whole processes: imports, a move of a study, short runs; the first time and again.

What JAX compiles is kept in a directory that is empty at first. With another checkout's `src` in
`BEFORE`, a run on reach-2 is made by it too, in turn.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TELLS = 5  # processes of each kind
RUNS = 3
METHODS = {  # by how their moves are made
    "recoup": {},
    "mis-pgpe-ob": {},
    "tiw-pgpe-ob": {},
    "cem": {},
    "mis-pgpe-ob, full": {"method": "mis-pgpe-ob", "family": "full"},
    "mis-pgpe-ob, adam": {"method": "mis-pgpe-ob", "update": "adam"},
    "iw-reinforce-ob": {"horizon": 5},
    "tiw-enac": {"horizon": 5},
    "r3": {"horizon": 5},
}


def main():
    imports()
    with tempfile.TemporaryDirectory() as folder:
        moves(Path(folder))
        cars(Path(folder))
        reaching(Path(folder))


def imports():
    print(f"start-up, median of {TELLS} processes:")
    words = {"import recoup": ["-c", "import recoup"], "recoup --help": ["-m", "recoup", "--help"]}
    for name, arguments in words.items():
        times = [seconds(arguments) for _ in range(TELLS)]
        print(f"  {name}: {statistics.median(times):.2f} s (target: under 1.5 s)")


def seconds(arguments, **variables):
    """Of a process of Python with these arguments; `variables` None are unset."""
    given = {"JAX_COMPILATION_CACHE_DIR": None, **variables}
    kept = {key: value for key, value in os.environ.items() if key not in given}
    env = {**kept, **{key: value for key, value in given.items() if value is not None}}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=env)
    return time.perf_counter() - start


def moves(folder):
    """`recoup study tell` that ends a batch: nothing kept, the first that keeps, those after it."""
    print("`recoup study tell` that moves, 20 results of 4 parameters, a process each:")
    print("  method              nothing kept   first   again (target: under 1 s)   by")
    for name, how in METHODS.items():
        cache = str(folder / f"cache-{name}")
        with_none = [tell(folder, name, how, RECOUP_NO_CACHE="1") for _ in range(2)]
        first = tell(folder, name, how, XDG_CACHE_HOME=cache)
        again = [tell(folder, name, how, XDG_CACHE_HOME=cache) for _ in range(TELLS)]
        row = f"{min(with_none):9.2f} s {first:9.2f} s {statistics.median(again):9.2f} s"
        print(f"  {name:18}{row}   {' ' * 18}{'JAX' if kept_in(Path(cache)) else 'NumPy'}")


def kept_in(cache):
    """How many programs lie in a cache."""
    return len(list(cache.rglob("*-cache")))


def tell(folder, name, how, **variables):
    """A study that is one result short of a move is told it."""
    from recoup.study.study import Study

    path = folder / "study.db"
    path.unlink(missing_ok=True)
    settings = {"method": name, "dim": 4, "batch": 10, **how}
    rng = np.random.default_rng(0)
    with Study.open(path, **settings) as study:
        for _ in range(2):  # the second batch without its last result
            trials = study.ask(10)
            for trial in trials[: 9 if study.history() else 10]:
                study.tell(trial.id, **told(rng, how))
        last = trials[-1].id
    words = ["-m", "recoup", "study", "tell", str(path), str(last)]
    if "horizon" in how:
        np.savez(folder / "episode.npz", **told(rng, how)["trajectory"])
        words += ["--trajectory", str(folder / "episode.npz")]
    else:
        words += ["1.5"]
    return seconds(words, **variables)


def told(rng, how):
    """A result that is made up."""
    if "horizon" not in how:
        return {"value": float(rng.standard_normal())}
    steps = how["horizon"]
    shapes = {"features": (steps, 4), "actions": (steps, 1), "rewards": (steps,)}
    return {"trajectory": {key: rng.standard_normal(shape) for key, shape in shapes.items()}}


def cars(folder):
    """`recoup train mountain-car --iterations 30`, nothing kept, the first that keeps, again."""
    cache = {"XDG_CACHE_HOME": str(folder / "cars")}
    places = (folder / f"car-{i}" for i in range(100))

    def run(**variables):
        words = ["-m", "recoup", "train", "mountain-car", "--iterations", "30", "--quiet"]
        return seconds([*words, "--out", str(next(places))], **variables)

    without, first = run(RECOUP_NO_CACHE="1"), run(**cache)
    again = statistics.median(run(**cache) for _ in range(TELLS))
    print("`recoup train mountain-car --iterations 30`:")
    print(f"  nothing kept {without:.2f} s; first {first:.2f} s; again {again:.2f} s (target: 3 s)")


def reaching(folder):
    """`recoup train reach-2 --iterations 60`: tested at some iterations, at all, and before."""
    words = ["-m", "recoup", "train", "reach-2", "--iterations", "60", "--json", "--quiet"]
    cache = {"XDG_CACHE_HOME": str(folder / "reach")}
    ways = {"": (words, cache), "--test-all": ([*words, "--test-all"], cache)}
    if os.environ.get("BEFORE"):
        old = {"PYTHONPATH": os.environ["BEFORE"]}
        ways["before"] = (words, old)
    times = {name: [] for name in ways}
    for i in range(RUNS + 1):
        for name, (given, variables) in ways.items():
            out = folder / f"reach-{name.strip('-')}-{i}"
            times[name].append(seconds([*given, "--out", str(out)], **variables))
    print("`recoup train reach-2 --iterations 60`, once what is compiled is kept:")
    ours = statistics.median(times[""][1:])
    for name, found in times.items():
        middle = statistics.median(found[1:])
        print(f"  {name or 'as it is'}: {middle:.2f} s, {middle / ours:.2f} times as long")


if __name__ == "__main__":
    main()
