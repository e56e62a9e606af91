"""Which engine rolls a run's trials out, and how they are scheduled on it."""

import os

from recoup.checks import InputError, check_choice, check_count, check_flag, check_positive
from recoup.core.types import Given, Plain, Settings
from recoup.runs.problem import Problem
from recoup.runs.schedule import Rules
from recoup.tasks.engines.engine import Engine
from recoup.tasks.engines.serial import Serial
from recoup.tasks.task import Task

SERIAL, PROCESS, RAY = "serial", "process", "ray"
RETRIES = 1
USUAL_WORKERS = 8  # processes that share work unless said, of one to two GB each
KEYS = ("engine", "workers", "timeout", "sync", "retries", "address")
NEEDS = {  # settings that only some engines have
    "workers": (PROCESS, RAY),
    "timeout": (PROCESS, RAY),
    "sync": (PROCESS, RAY),
    "address": (RAY,),
}


def engine_settings(**given: Given) -> Plain:
    """The settings of an engine that were given, checked."""
    found = {key: value for key, value in given.items() if value is not None}
    kind = check_choice("engine", found.get("engine", SERIAL), (SERIAL, PROCESS, RAY))
    for key, kinds in NEEDS.items():
        if key in found and kind not in kinds:
            raise InputError(f"{key} is for engine={' or '.join(map(repr, kinds))}.")
    if "workers" in found:
        found["workers"] = check_count("workers", found["workers"])
    if "timeout" in found:
        found["timeout"] = check_positive("timeout", found["timeout"])
    if "sync" in found:
        found["sync"] = check_flag("sync", found["sync"])
    if "retries" in found:
        found["retries"] = check_count("retries", found["retries"], least=0)
    return found


def stored_engine(given: Given) -> Plain:
    """The settings of an engine that a file holds, as far as a file may choose them.

    No more workers than this machine has cores, and no cluster: who made the run may be a stranger.
    """
    found = engine_settings(**{key: value for key, value in dict(given).items() if key in KEYS})
    if found.get("address"):
        raise InputError(
            f"this run was made on the Ray cluster at {found['address']}: name it again, with "
            "--engine ray --address ..., or another engine."
        )
    if "workers" in found:
        found["workers"] = min(found["workers"], cores())
    return found


def check_engine(problem: Problem, settings: Settings) -> None:
    """Raises where a task has no use for an engine."""
    if settings and isinstance(problem, Task):
        raise InputError(
            f"{problem.name} is rolled out many episodes at a time in this process: engines are "
            "for environments and functions of your own."
        )


def engine_of(
    problem: Problem, settings: Settings, batch: int, trials: int, here: str | None = None
) -> tuple[Engine, Rules]:
    """What rolls a run's trials out, and by what rules; no more workers than trials.

    Workers of this machine start in the directory `here`, wherever this process has gone since.
    """
    check_engine(problem, settings)
    if isinstance(problem, Task):
        from recoup.tasks.engines.vectorised import Vectorised

        return Vectorised(problem, batch), Rules(sync=True, retries=0, gives_up=False)
    kind, retries = settings.get("engine", SERIAL), settings.get("retries", RETRIES)
    rules = Rules(settings.get("sync", False), retries)
    if kind == SERIAL:  # nothing overlaps: trials of a batch are asked for together
        return Serial(problem.build), rules._replace(sync=True)
    workers = min(settings.get("workers") or cores(), max(trials, 1))
    timeout = settings.get("timeout")
    if kind == PROCESS:
        from recoup.tasks.engines.processes import Processes

        return Processes(problem.build, workers, timeout, here), rules
    from recoup.tasks.engines.cluster import Cluster

    address = settings.get("address")
    return Cluster(problem.build, workers, timeout, address, here=here or "."), rules


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers(compiled: bool = True) -> int:
    """One process a core, within reason; one alone where they would share a GPU, if `compiled`."""
    if compiled:
        import jax

        return min(cores(), USUAL_WORKERS) if jax.default_backend() == "cpu" else 1
    return min(cores(), USUAL_WORKERS)
