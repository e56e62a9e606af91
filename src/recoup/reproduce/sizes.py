"""How much of everything: the three sizes of a reproduction."""

from dataclasses import dataclass

import numpy as np

from recoup.checks import check_choice


@dataclass(frozen=True)
class Size:
    """Numbers of runs, trials and episodes."""

    name: str
    toy_runs: int
    car_runs: int
    reach_runs: int
    trials: int  # M, estimates of one gradient
    starts: int  # of the variance study
    paths: int  # runs of every path of Figure 3
    angles: int  # estimates of a direction of Figure 4
    reach_tests: int  # test episodes at every checkpoint
    reach_iterations: tuple[tuple[int, int], ...]  # joints, iterations

    def iterations(self, joints: int) -> int:
        """Iterations of a reaching task."""
        return dict(self.reach_iterations)[joints]


PAPER_ITERATIONS = ((2, 60), (4, 300), (9, 400))
SIZES = {
    size.name: size
    for size in (
        Size(
            "quick",
            toy_runs=200,
            car_runs=20,
            reach_runs=5,
            trials=500,
            starts=20,
            paths=50,
            angles=1_000,
            reach_tests=10,
            reach_iterations=((2, 60), (4, 60), (9, 60)),
        ),
        Size(
            "default",
            toy_runs=1_000,
            car_runs=300,
            reach_runs=30,
            trials=10_000,
            starts=20,
            paths=1_000,
            angles=10_000,
            reach_tests=20,
            reach_iterations=PAPER_ITERATIONS,
        ),
        Size(
            "paper",
            toy_runs=20,
            car_runs=10,
            reach_runs=10,
            trials=10_000,
            starts=20,
            paths=20,
            angles=20,
            reach_tests=50,
            reach_iterations=PAPER_ITERATIONS,
        ),
    )
}


def size_of(name: str) -> Size:
    """The size `name`."""
    return SIZES[check_choice("size", name, SIZES)]


def checkpoints(iterations: int, also: tuple[int, ...] = ()) -> list[int]:
    """About twenty iterations at which to test, the start and the end among them."""
    spread = np.round(np.linspace(0, iterations, min(iterations, 20) + 1)).astype(int)
    return sorted({*spread.tolist(), *(i for i in also if i <= iterations)})
