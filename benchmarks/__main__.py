"""`make bench`: every figure beside its target, all ratios within this one run."""

import datetime
import os
import platform

import jax

from benchmarks import (
    ask_tell,
    growth,
    many_runs,
    precision,
    reach,
    reuse,
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


print(f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, jax {jax.__version__}\n")
ALL = (start_up, precision, ask_tell, reuse, sizes, many_runs, variance, reach, study, growth)
for benchmark in ALL:
    benchmark.main()
    print(flush=True)
workers.main()
