"""What the competitors in action space depend on: expected returns at 300 episodes, 100 runs.

python -m benchmarks.action_variants
"""

import jax
import numpy as np

from benchmarks.curves import RUNS, learn

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
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(0), RUNS)
            ends = np.asarray(learn(task, method, **settings)(keys))[:, -1]
        error = ends.std(ddof=1) / np.sqrt(RUNS)
        print(f"{task} {method} {settings}: {ends.mean():.2f} ± {error:.2f}", flush=True)


if __name__ == "__main__":
    main()
