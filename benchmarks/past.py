"""What is said of the past and of a policy that was tried: `python -m benchmarks.past [STUDIES]`.

Two intervals that forecast nothing. The slope of what the last distributions earned, beside that of
what they earn in truth: studies of the default method on the tasks of `benchmarks.known`, after the
first move behind 15, 30, 60, 100 and 150 results. And the mean of 5, 10 and 20 trials of the mean
policy, whose returns are drawn here.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from benchmarks import known
from benchmarks.voice import COUNTS, SETS, TASKS, searched, share
from recoup.study.study import Study
from recoup.study.voice.gained import gained
from recoup.study.voice.landscape import results_of
from recoup.study.voice.worths import AT_MEAN, of_trials

STUDIES = 8
SIMULATED = 20_000
TIMES = (AT_MEAN, 10, 20)
EARLIER = np.linspace(0, 1, 7)  # returns of a search before: more than two levels
SUCCESSES = np.array([0.0, 1.0])


def slopes(job: tuple[str, int]) -> list[tuple[str, bool, bool]]:
    """Of one study at each count: the task, whether the slope is held, whether 0 is left out."""
    name, seed = job
    due, found = list(COUNTS), []
    for study in searched(name, seed):
        if not due:
            break
        results = study.counts()["ok"]
        if results >= due[0]:
            due = [count for count in due if count > results]
            found += _slope(name, study)
    return found


def _slope(name: str, study: Study) -> list[tuple[str, bool, bool]]:
    """The slope over the last distributions, held to that of their true means; none if not said."""
    results = results_of(study.opened)
    batches, said = gained(results.known)
    if not np.isfinite(said.interval.low):
        return []
    low, high = (end * results.unit for end in said.interval)
    true = [TASKS[name].over(study, batch.proposal) for batch in batches]
    weights = np.sqrt([batch.results for batch in batches])
    slope = np.polyfit(np.arange(len(batches)), true, 1, w=weights)[0]
    slack = 1e-9 * float(np.ptp(true))
    return [(name, bool(low - slack <= slope <= high + slack), not low <= 0 <= high)]


def drawn(noise: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, float, np.ndarray]:
    """Returns of `n` trials, their true mean, and all returns that the study has seen before."""
    if noise == "normal":
        return rng.normal(size=n), 0.0, EARLIER
    if noise == "heavy":
        return rng.standard_t(3, size=n), 0.0, EARLIER
    if noise == "skewed":
        return rng.exponential(size=n), 1.0, EARLIER
    chance = float(noise.removeprefix("success "))
    return (rng.random(n) < chance) * 1.0, chance, SUCCESSES


def trials_held(noise: str, n: int) -> list[bool]:
    """Whether the interval of so many trials of the mean policy holds, where there is one."""
    rng, held = np.random.default_rng(n), []
    for _ in range(SIMULATED):
        values, true, seen = drawn(noise, n, rng)
        worth = of_trials(list(values), np.concatenate([values, seen]))
        if worth is not None:
            held.append(worth.interval.low <= true <= worth.interval.high)
    return held


def main(studies: int = STUDIES) -> None:
    """Prints a table of slopes and one of trials of the mean policy."""
    jobs = [(name, 5000 + seed) for seed in range(studies) for name in TASKS]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        rows = [row for several in pool.map(slopes, jobs) for row in several]
    print(
        "| tasks | slopes said | slope held | least of a task | 0 left out |\n|---|---|---|---|---|"
    )
    for found in SETS:
        some = [row for row in rows if row[0] in getattr(known, found)]
        each = {name: [held for task, held, _ in some if task == name] for name, *_ in some}
        least = min(each, key=lambda name: np.mean(each[name]))
        print(
            f"| {found.replace('_', ' ').lower()} | {len(some)} | {share([r[1] for r in some])} "
            f"| {share(each[least])} ({least}) | {share([r[2] for r in some])} |"
        )
    print("\n| returns |" + "".join(f" {n} trials |" for n in TIMES) + "\n|---" + "|---" * 3 + "|")
    for noise in ("normal", "heavy", "skewed", "success 0.5", "success 0.9", "success 0.99"):
        print(f"| {noise} |" + "".join(f" {share(trials_held(noise, n))} |" for n in TIMES))


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:2]))
