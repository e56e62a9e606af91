"""Made-up results of the jobs of a reproduction, in the shapes of real ones."""

import zlib

import numpy as np

from recoup.reproduce.figures import consistency, gradients, horizons, theorems
from recoup.reproduce.sizes import Size
from recoup.runs.lockstep import Runs
from recoup.tasks.registry import make_problem, task_row

TINY = Size(
    "quick",
    toy_runs=6,
    car_runs=6,
    reach_runs=5,
    trials=100,
    starts=5,
    paths=5,
    angles=50,
    reach_tests=2,
    reach_iterations=((2, 60), (4, 60), (9, 60)),
)


def made_up(job):
    """Arrays like those that `job` would give."""
    rng = np.random.default_rng(zlib.crc32(job.name.encode()))
    if "method" in job.settings:
        return _runs(rng, job.settings)._asdict()
    if job.name == "toy/surface":
        return {
            "mean": 9 + 3 * np.exp(-((gradients.GRID + 0.7) ** 2)),
            "stderr": 0 * gradients.GRID,
        }
    if job.name.startswith("toy/variance"):
        shape = (gradients.ITERATIONS, len(gradients.ESTIMATORS), 2)
        path = {"eta": rng.normal(size=shape[0]), "tau": rng.uniform(0.3, 1, shape[0])}
        moments = {k: rng.uniform(1, 2, shape) for k in ("mean", "variance", "variance_stderr")}
        path["max_weight"] = rng.uniform(1, 9, shape[:2])
        return {**path, **moments, "on_policy": rng.normal(size=(shape[0], 2))}
    if job.name == "toy/directions":
        return {"gradients": rng.normal(size=(50, 3, 2)), "on_policy": np.ones(2)}
    if job.name == "toy/horizons":
        shape = (len(horizons.HORIZONS), horizons.GROUPS)
        return {name: rng.uniform(1, 2, shape) for name in ("pgpe", "reinforce")}
    if job.name == "toy/consistency":
        shape = (consistency.GROUPS, consistency.EACH, 2)
        return {
            f"{case} {method} {size}": rng.normal(size=shape)
            for case in theorems.APART
            for method in consistency.METHODS
            for size in consistency.SIZES
        }
    if job.name.startswith("mountain-car/cause"):
        names = ("iw-pgpe", "iw-pgpe-ob") if job.name.endswith("variance") else ("lost", "bias")
        return {name: rng.uniform(1, 2, (job.settings["starts"], 2)) for name in names}
    assert job.name.startswith("toy/bounds")
    variances = {
        f"{name} {n}": rng.uniform(1, 2, (theorems.GROUPS, 2))
        for name in ("none", "own", "joint", "mean", "lower", "higher")
        for n in theorems.SAMPLES
    }
    scalars = {"largest": np.array(3.0), "smallest": np.array(0.1)}
    return {**variances, **scalars, "curvature": np.ones(3), "baselines": np.ones(3)}


def _runs(rng, settings):
    runs, count = settings["seeds"][1] - settings["seeds"][0], len(settings["checkpoints"])
    reach = settings["task"].startswith("reach")
    dim = 1 if settings["task"] == "toy" else 12
    if reach:
        dim = 2 * make_problem(settings["task"]).joints ** 2
    moves = (runs, settings["iterations"])
    assert task_row(settings["task"]).name == settings["task"]
    return Runs(
        checkpoints=np.array(settings["checkpoints"]),
        returns=rng.normal(size=(runs, count)),
        mean=0.3 * rng.normal(size=(runs, count, dim)),
        std=rng.uniform(0.1, 1, (runs, count, dim)),
        ess=rng.uniform(1, 9, moves),
        max_weight=rng.uniform(1, 9, moves),
        failed=np.zeros(moves),
    )
