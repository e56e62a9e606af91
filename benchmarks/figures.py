"""`make figures`: every picture of the documentation, and the command that makes it again.

python -m benchmarks.figures          makes all whose data are there, and says what others wait for
python -m benchmarks.figures weights  those whose names hold the word
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Figure(NamedTuple):
    """Pictures of docs/ that one command makes, and what that command reads."""

    pictures: str  # a pattern of names below docs/
    command: str
    reads: str = ""  # of what is not in the repository
    made_by: str = ""  # the command that makes what is read


REACHING = (  # task, method, seed, moves, the directory of the run
    ("reach-2", "mis-pgpe-ob", 1, 60, "runs/reach-2-mis-pgpe-ob-1"),
    ("reach-4", "tiw-pgpe-ob", 8, 300, "runs/reach-4-tiw-pgpe-ob-8"),
)
FIGURES = (
    Figure("understand/reuse-*.png", "python -m benchmarks.reuse_picture docs/understand"),
    Figure("understand/weights-*.png", "python -m benchmarks.weights_picture docs/understand"),
    Figure("recoup.png", "python -m benchmarks.rule_picture docs/recoup.png"),
    Figure("compared.png", "python -m benchmarks.bounded --picture docs/compared.png"),
    Figure("comparison.png", "python -m benchmarks.comparison --picture docs/comparison.png"),
    Figure("study.png", "python -m benchmarks.study_picture docs/study.png"),
    Figure("serve/*.png", "python -m benchmarks.page_pictures docs/serve"),
    Figure("mountain-car.png", "python -m benchmarks.curves mountain-car"),
    Figure("mountain-car-weak.png", "python -m benchmarks.curves mountain-car-weak"),
    Figure("toy.png", "python -m benchmarks.curves toy"),
    Figure(
        "reproduction/*.png",
        "python -m benchmarks.reproduction runs/reproduce-default",
        "runs/reproduce-default",
        "recoup reproduce all --out runs/reproduce-default",
    ),
    Figure(
        "reach.gif",
        "python -m benchmarks.arm_picture runs/arm docs/reach.gif",
        "runs/arm",
        "recoup train reach-2 --episodes 200 --seed 0 --out runs/arm",
    ),
    *(
        Figure(
            f"{task}*.png",
            f"recoup render {run} --steps 0,4,8,12,20,100 --out runs/films --force && "
            f"cp runs/films/strip.png docs/{task}.png && cp runs/films/policy.mp4 docs/{task}.mp4"
            + (f" && cp runs/films/steps.png docs/{task}-steps.png" if task == "reach-2" else ""),
            run,
            f"recoup train {task} --method {method} --seed {seed} --iterations {moves}",
        )
        for task, method, seed, moves, run in REACHING
    ),
)


def make(figure):
    """Makes a figure; what it waits for where its data are not there."""
    if figure.reads and not (ROOT / figure.reads).exists():
        return f"{figure.pictures}: needs {figure.reads}; make it by `{figure.made_by}`"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(figure.command, shell=True, cwd=ROOT, env={**os.environ, "PATH": path})
    return f"{figure.pictures}: {'made' if done.returncode == 0 else 'FAILED'}"


def main(words):
    said = [make(x) for x in FIGURES if not words or any(w in x.pictures for w in words)]
    print("\n".join(said))
    return any(line.endswith("FAILED") for line in said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
