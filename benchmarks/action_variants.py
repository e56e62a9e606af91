"""What the competitors in action space depend on: expected returns at 300 episodes, 100 runs.

python -m benchmarks.action_variants
"""

import numpy as np

from benchmarks.curves import RUNS, returns_of

VARIANTS = (
    ("mountain-car", "tiw-enac", {"ridge": 1e-9}),
    ("mountain-car", "tiw-enac", {"ridge": 1e-6}),
    ("mountain-car", "tiw-enac", {"ridge": 1e-3}),
    ("mountain-car", "r3", {"flatten": 0.0}),
    ("mountain-car", "r3", {"flatten": 1.0}),
    ("mountain-car", "iw-reinforce-ob", {"per_decision": True}),
    ("mountain-car-weak", "iw-reinforce-ob", {"per_decision": True}),
)


def main():
    for task, method, settings in VARIANTS:
        ends = returns_of(task, method, **settings)[:, -1]
        error = ends.std(ddof=1) / np.sqrt(RUNS)
        print(f"{task} {method} {settings}: {ends.mean():.2f} ± {error:.2f}", flush=True)


if __name__ == "__main__":
    main()
