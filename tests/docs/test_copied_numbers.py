"""Numbers of measurements that pages outside of the benchmarks repeat are those of the benchmarks.

A row that is measured again fails here, and names the page that has to follow.
"""

import re

import pytest
from sites import DOCS

COPIED = (  # page, what it says, the page of the measurement, what stands there
    (
        *("do/from-cma-es.md", "in 47, level in 25 and below in none; corrected for so many"),
        *("benchmarks/bounded.md", "| cma-es | 8 | 72 | 47 / 25 / 0 (30 / 42 / 0) |"),
    ),
    (
        *(
            "do/from-optuna.md",
            "in 41, level in 28 and below in 3; corrected for so many cells in 25",
        ),
        *("benchmarks/bounded.md", "| optuna-tpe | 8 | 72 | 41 / 28 / 3 (25 / 45 / 2) |"),
    ),
    (
        *("do/from-optuna.md", "above in 9 of 36, level in 22 and below in 5"),
        *("benchmarks/bounded.md", "| optuna-gp | 8 | 36 | 9 / 22 / 5 ("),
    ),
    (
        *("do/from-evotorch.md", "116 of 116 cells (29 tasks"),
        *("benchmarks/suite.md", "| evosax-pgpe | 29 | 116 / 0 / 0 ("),
    ),
    (
        *("do/from-evotorch.md", "below in 100, level in 14 and above in 2."),
        *("benchmarks/suite.md", "(116 / 0 / 0) | 100 / 14 / 2 ("),
    ),
    (
        *("do/from-evosax.md", "| SNES, half of its population | 31 | 97 / 29 / 0 | 79 / 45 / 2 |"),
        *("benchmarks/suite.md", "| snes, half | 31 | 97 / 29 / 0 (95 / 31 / 0) | 79 / 45 / 2 ("),
    ),
    (
        *("do/from-evosax.md", "| PGPE, step of 0.3 | 29 | 104 / 12 / 0 | 92 / 23 / 1 |"),
        *("benchmarks/suite.md", "lr 0.3 | 29 | 104 / 12 / 0 (104 / 12 / 0) | 92 / 23 / 1 ("),
    ),
    (
        *("do/from-evosax.md", "| OpenAI-ES, step of 1 | 29 | 112 / 4 / 0 | 86 / 25 / 5 |"),
        *("benchmarks/suite.md", "lr 1 | 29 | 112 / 4 / 0 (112 / 4 / 0) | 86 / 25 / 5 ("),
    ),
    (
        *(
            "do/from-evosax.md",
            "1.39 times as long as evosax's PGPE at 1,000 parameters. At 100,000 it",
        ),
        *(
            "benchmarks/gpu.md",
            "| 1.39, missed | | 100,000 | 0.84 ms (ask 0.16) | 0.66 ms (ask 0.17) | 1.27, ",
        ),
    ),
    (
        *("do/gpu.md", "in one call: 14 ms once compiled. One core of a processor took 5.6 s"),
        *("benchmarks/gpu.md", "in one call: 14 ms, once compiled;"),
    ),
    (
        *("understand/reuse.md", "behind in 103 of 126 cells (31 tasks,"),
        *("benchmarks/suite.md", "| no reuse (`window=1`) | 31 | 103 / 22 / 1 ("),
    ),
    (
        *("understand/reuse.md", "behind in 87, level in 37 and ahead in 2"),
        *("benchmarks/suite.md", "(98 / 28 / 0) | 87 / 37 / 2 ("),
    ),
    (
        *(
            "recoup.md",
            "above in 52, level in 55 and below in 19 (corrected for so many cells 40, 72 and",
        ),
        *("benchmarks.md", "picked afterwards | 52 / 55 / 19 (40 / 72 / 14) |"),
    ),
    (
        *("recoup.md", "above in 34, level in 69 and below in 23 (26, 86 and 14)"),
        *("benchmarks.md", "(40 / 72 / 14) | 34 / 69 / 23 (26 / 86 / 14) |"),
    ),
    (
        *("understand/baseline.md", "| none | 7.38 | 13.55 | | the mean return | 0.54 | 1.14 |"),
        *("benchmarks/paper.md", "(-0.50, -1.78) | none | +0.025 ± 0.023 | 7.38 |"),
    ),
    (
        *("understand/baseline.md", "| optimal | +0.044 ± 0.004 | +0.412 ± 0.006 |"),
        *("benchmarks/paper.md", "| optimal | +0.044 ± 0.004 | 0.25 | +0.412 ± 0.006 | 0.49 |"),
    ),
    (
        *(
            "understand/intervals.md",
            "| the expected return of the mean policy | 96 % | 82 ± 6 % | 1.9 |",
        ),
        *("benchmarks/voice.md", "| mean policy: held; the least of a task | 96 ± 1; 82 ± 6 ("),
    ),
    (
        *("understand/intervals.md", "None of the 96 holds the truth in less than 90 %"),
        *("benchmarks/coverage.md", "96 of 216 cells have intervals; none covers less than 90 %"),
    ),
    (
        *("do/deploy.md", "0.62 ± 0.09 times what was, and 0.95 ± 0.07 times for a draw"),
        *("benchmarks/voice.md", "| gain of the mean policy: said / true | 0.62 ± 0.09 ("),
    ),
    (
        *("own-tasks.md", "is at -1020 ± 30 by then (30 runs"),
        *("benchmarks/suite-tasks.md", "| -1321 ± 28 | -1126 ± 29 | -1020 ± 30 | -966 ± 34 |"),
    ),
)


def flat(name):
    """A page as one line, without the ends of links."""
    return " ".join(re.sub(r"\]\([^)]*\)", "]", (DOCS / name).read_text()).split())


@pytest.mark.parametrize("row", COPIED, ids=lambda row: f"{row[0]}: {row[1][:30]}")
def test_a_number_that_is_repeated_is_the_one_that_was_measured(row):
    page, said, source, measured = row
    assert measured in flat(source), f"measured again: change {page}, which says: {said}"
    assert said in flat(page), f"{page} does not say: {said}"
