"""The toy learning run, 10,000 runs x 20 iterations x 10 episodes, under one vmap."""

import time

import jax
import jax.numpy as jnp

import recoup
from recoup.engine.methods import METHODS
from recoup.tasks.registry import make_task

RUNS, ITERATIONS, BATCH = 10_000, 20, 10


def learn(name, task="toy", iterations=ITERATIONS, batch=BATCH):
    """Whole runs as a function of their keys: final means `[D]`, and the returns of batches."""
    task = make_task(task)
    size = {"dim": task.dim, "batch": batch, "capacity": iterations * batch}
    search = recoup.search(name, table=False, **size)

    def move(state, key):
        ask, roll, tell = jax.random.split(key, 3)
        theta, state = search.ask(ask, state)
        returns = task.rollouts(jax.random.split(roll, batch), theta)
        return search.tell(tell, state, theta, returns)[0], jnp.mean(returns)

    def run(key):
        start, loop = jax.random.split(key)
        state, curve = jax.lax.scan(move, search.init(start), jax.random.split(loop, iterations))
        return state.mean, curve

    return jax.jit(jax.vmap(run))


def main():
    print(f"{RUNS} toy runs x {ITERATIONS} iterations x {BATCH} episodes under one vmap, float32:")
    for row in (row for row in METHODS.values() if row.space == "parameters"):
        regresses = row.direction == "blend"  # a fit a move and run: a tenth of the runs will do
        keys = jax.random.split(jax.random.key(0), RUNS // 10 if regresses else RUNS)
        compiled = learn(row.name).lower(keys).compile()
        start = time.perf_counter()
        mean, _ = jax.block_until_ready(compiled(keys))
        spent = time.perf_counter() - start
        assert bool(jnp.isfinite(mean).all())
        aim = f"{RUNS // 10} runs" if regresses else "target: at most 30 s on two cores"
        print(f"  {row.name:<12} {spent:5.1f} s ({aim})", flush=True)


if __name__ == "__main__":
    main()
