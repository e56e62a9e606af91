"""Reaching in MJX on an accelerator: episodes a second, and agreement with the C engine.

python -m benchmarks.reach_gpu
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from recoup.tasks.reach.batch_engine import engine_of
from recoup.tasks.reach.mjx import mjx_rollouts
from recoup.tasks.reach.rules import reach

JOINTS, HORIZON, DISCOUNT = 9, 100, 0.9


def main():
    device = jax.devices()[0]
    print(f"reaching with {JOINTS} joints in MJX, {device.device_kind}, jax {jax.__version__}:")
    task = reach(JOINTS)
    rollouts = jax.jit(mjx_rollouts(task, HORIZON, DISCOUNT))
    for batch in (1024, 4096, 16384):
        rng = np.random.default_rng(0)
        theta = rng.normal(size=(batch, task.size * JOINTS))
        noise = task.noise * rng.normal(size=(batch, HORIZON, JOINTS))
        arrays = jnp.asarray(noise, jnp.float32), jnp.asarray(theta, jnp.float32)
        start = time.perf_counter()
        compiled = rollouts.lower(*arrays).compile()
        compilation = time.perf_counter() - start
        compiled(*arrays).block_until_ready()
        start = time.perf_counter()
        returns = np.asarray(compiled(*arrays))
        spent = time.perf_counter() - start
        print(
            f"  batch {batch}: {batch / spent:.0f} episodes/s (compiled in {compilation:.0f} s)",
            flush=True,
        )
        if batch == 1024:
            agreement(task, theta, noise, returns)


def agreement(task, theta, noise, returns):
    gains = theta.reshape(len(theta), task.size, task.joints)
    went = engine_of(task).run(lambda t, seen: np.einsum("nf,nfa->na", seen, gains), noise)
    error = abs(returns - went.rewards @ DISCOUNT ** np.arange(HORIZON))
    print(
        f"  against the C engine, {len(theta)} random policies: largest difference of returns "
        f"{error.max():.1e}, 99 % below {np.quantile(error, 0.99):.1e} (target: 1e-3)"
    )


if __name__ == "__main__":
    main()
