"""Bias and variance that baselines bring to the gradient: `python -m benchmarks.baselines`.

On the toy, on-policy: N samples of one distribution, both blocks of the gradient, of the mean and
of the standard deviation. The truth is the mean of the same estimates with a constant baseline. For
`earlier`, five batches of the same distribution came before.
"""

import jax
import jax.numpy as jnp
import numpy as np

from recoup.engine.estimate import estimate
from recoup.tasks.registry import make_task

TRIALS, BEFORE = 20_000, 5
KINDS = ("none", "mean", "optimal", "leave-one-out", "earlier", "split")


def gradients(kind, mean, std, n):
    """Estimates `[M, 2]` of both blocks, and those of the same samples with a constant baseline."""
    task, batches = make_task("toy"), BEFORE + 1
    drawn_by = jnp.repeat(jnp.arange(batches), n)
    rho = (jnp.full((batches, 1), mean), jnp.full((batches, 1), std))
    newest = drawn_by == BEFORE

    def one(key):
        key_draw, key_roll = jax.random.split(key)
        theta = mean + std * jax.random.normal(key_draw, (batches * n, 1))
        returns = task.rollouts(jax.random.split(key_roll, batches * n), theta)
        e = estimate(
            theta,
            returns,
            proposals=rho,
            proposal=drawn_by,
            target=(rho[0][0], rho[1][0]),
            weighting="none",
            baseline=kind,
            told=None if kind == "earlier" else newest,
        )
        away = theta[:, 0] - mean
        scores = jnp.stack([away / std**2, (away**2 - std**2) / std**3], 1)
        found = jnp.where(newest[:, None], (returns - e.baseline)[:, None] * scores, 0.0).sum(0) / n
        constant = jnp.where(newest[:, None], (returns - 10.0)[:, None] * scores, 0.0).sum(0) / n
        return found, constant

    keys = jax.random.split(jax.random.key(0), TRIALS)
    return (np.asarray(x, float) for x in jax.jit(jax.vmap(one))(keys))


def main():
    """Prints a row for each baseline and case."""
    print(f"baselines on the toy, on-policy, {TRIALS:,} trials: bias (with its standard error) and")
    print("variance of the gradient with respect to the mean and to the standard deviation\n")
    print("| mean, std, N (gradient) | baseline | bias, mean | variance | bias, std | variance |")
    print("|---|---|---|---|---|---|")
    for mean, std, n in ((-0.5, 1.0, 10), (-0.5, 1.0, 50), (-0.1, 0.3, 10)):
        for kind in KINDS:
            found, constant = gradients(kind, mean, std, n)
            bias = (found - constant).mean(0)  # paired: the constant brings none
            error = (found - constant).std(0) / np.sqrt(TRIALS)
            truth = ", ".join(f"{x:.2f}" for x in constant.mean(0))
            cells = " | ".join(
                f"{b:+.3f} ± {e:.3f} | {v:.2f}"
                for b, e, v in zip(bias, error, found.var(0), strict=True)
            )
            print(f"| {mean:g}, {std:g}, {n} ({truth}) | {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
