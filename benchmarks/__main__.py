"""`make bench`: every figure beside its target, all ratios within this one run."""

import datetime
import os
import platform

import jax

from benchmarks import (
    archive_gpu,
    ask_tell,
    engines,
    growth,
    many_runs,
    precision,
    reach,
    reuse,
    rule,
    serve,
    sizes,
    start_up,
    study,
    variance,
    workers,
)


def processor():
    """The processor's name, where the system tells it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def main():
    """Runs them all."""
    about = f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores"
    print(f"{about}, jax {jax.__version__}\n")
    for benchmark in ALL:
        benchmark.main()
        print(flush=True)


ALL = (
    *(start_up, precision, ask_tell, reuse, sizes, many_runs, variance, reach, study),
    *(growth, workers, engines, rule, serve, archive_gpu),
)

if __name__ == "__main__":  # processes that a benchmark starts import this module too
    main()
