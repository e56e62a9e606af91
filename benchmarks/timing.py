"""Timing within one run."""

import statistics
import time

import jax


def in_turn(calls, rounds):
    """Median wall times of several calls made in turn, so that the machine's moods hit all."""
    for call in calls.values():
        jax.block_until_ready(call())
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
