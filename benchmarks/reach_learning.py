"""Learning to reach: every method and seed in lock step, on the paper's settings.

python -m benchmarks.reach_learning 2 4 9
"""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from recoup.tasks import make_task, task_row
from recoup.training import measured, search_of, task_settings

METHODS = ("pgpe-ob", "niw-pgpe-ob", "iw-pgpe-ob", "tiw-pgpe-ob", "mis-pgpe-ob")
SETUPS = {2: (60, 20), 4: (300, 10), 9: (400, 10)}  # iterations, seeds
TESTS = 50


def starts(search, seeds):
    return jax.vmap(lambda seed: search.init(jax.random.key(seed)))(jnp.arange(seeds))


def keys_of(seeds, purpose):
    return jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(seed), purpose))(
        jnp.arange(seeds)
    )


def learn(joints, iterations, seeds):
    """Final rho of every method `{method: rho [S, ...]}`, and the returns of their tests."""
    name = f"reach-{joints}"
    row, task = task_row(name), make_task(name)
    searches = {
        m: search_of(task, m, row.batch, iterations, task_settings(row, m)) for m in METHODS
    }
    states = {m: starts(search, seeds) for m, search in searches.items()}
    asks = {m: jax.jit(jax.vmap(s.ask)) for m, s in searches.items()}
    tells = {m: jax.jit(jax.vmap(s.tell), donate_argnums=1) for m, s in searches.items()}
    for i in range(iterations):
        keys = keys_of(seeds, 1000 + i)
        thetas = {}
        for m in METHODS:
            thetas[m], states[m] = asks[m](keys, states[m])
        returns = roll_out(task, keys, thetas)
        for m in METHODS:
            states[m], _ = tells[m](keys, states[m], thetas[m], returns[m])
    return {m: states[m].rho for m in METHODS}, tested(task, states, seeds)


def roll_out(task, keys, thetas):
    """Returns `[S, N]` of all methods' thetas `[S, N, D]`, in one batch; noise shared by seed."""
    shapes = {m: theta.shape for m, theta in thetas.items()}
    stacked = np.concatenate([np.asarray(t).reshape(-1, task.dim) for t in thetas.values()])
    each = [
        jax.vmap(lambda k, n=s[1]: jax.random.split(k, n))(keys).ravel() for s in shapes.values()
    ]
    returns = task.rollouts(jnp.concatenate(each), stacked)
    ends = np.cumsum([s[0] * s[1] for s in shapes.values()])[:-1]
    parts = np.split(returns, ends)
    return {m: part.reshape(s[:2]) for (m, s), part in zip(shapes.items(), parts, strict=True)}


def tested(task, states, seeds):
    """Returns `[S, TESTS]` of fresh policies drawn from every final distribution."""
    keys = keys_of(seeds, 10**6)

    def draw(key, rho):
        return rho.eta + rho.tau * jax.random.normal(key, (TESTS, task.dim))

    thetas = {m: jax.vmap(draw)(keys, state.rho) for m, state in states.items()}
    return roll_out(task, keys, thetas)


def write_best(out, joints, method, mean, episodes):
    """The best seed's mean policy as a run directory that `recoup render` takes."""
    row, path = task_row(f"reach-{joints}"), out / f"reach-{joints}-{method}-best"
    path.mkdir(exist_ok=True)
    config = {"task": row.name, "method": method, "horizon": row.horizon, "discount": row.discount}
    (path / "config.json").write_text(json.dumps(config))
    result = {"mean": np.asarray(mean).tolist(), "episodes": episodes}
    (path / "result.json").write_text(json.dumps(result))


def main(joints):
    out = Path("runs/reach-learning")
    out.mkdir(parents=True, exist_ok=True)
    for j in joints:
        iterations, seeds = SETUPS[j]
        began = time.perf_counter()
        with jax.enable_x64(True):
            rhos, tests = learn(j, iterations, seeds)
        spent = time.perf_counter() - began
        print(
            f"\nreach-{j}, {iterations} iterations of 3 episodes, {seeds} seeds ({spent:.0f} s)\n"
        )
        print("| method | expected return | best seed |\n|---|---|---|")
        for m in METHODS:
            by_seed = tests[m].mean(1)
            result = measured(by_seed)
            best = int(by_seed.argmax())
            print(
                f"| `{m}` | {result.mean:.2f} ± {result.stderr:.2f} | {best}: {by_seed[best]:.2f} |"
            )
            write_best(out, j, m, rhos[m].eta[best], iterations * 3)
            np.savez(
                out / f"reach-{j}-{m}.npz", mean=rhos[m].eta, std=rhos[m].tau, returns=tests[m]
            )


if __name__ == "__main__":
    main([int(j) for j in sys.argv[1:]] or list(SETUPS))
