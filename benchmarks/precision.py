"""float32 log-weights against float64 at D = 100,000, proposal and target KL 1 apart."""

import jax
import jax.numpy as jnp
import numpy as np

from recoup.core.families.family import draw
from recoup.core.families.gaussian import Diagonal, kl_divergence, log_density, log_ratio

DIM, SAMPLES = 100_000, 100


def main():
    key_eta, key_tau, key_step, key_draw = jax.random.split(jax.random.key(0), 4)
    proposal = Diagonal(
        20 + jax.random.normal(key_eta, (DIM,)),
        3 * jnp.exp(0.5 * jax.random.normal(key_tau, (DIM,))),
    )
    step = jax.random.normal(key_step, (2, DIM)) / np.sqrt(DIM)
    target = Diagonal(proposal.eta + proposal.tau * step[0], proposal.tau * (1 + 0.7 * step[1]))
    theta = draw(key_draw, proposal, SAMPLES)
    summed = jax.jit(jax.vmap(log_ratio, (None, None, 0)))(target, proposal, theta)
    density = jax.jit(jax.vmap(log_density, (None, 0)))
    subtracted = density(target, theta) - density(proposal, theta)
    with jax.enable_x64(True):
        p, q, x = jax.tree.map(lambda a: jnp.asarray(np.float64(a)), (target, proposal, theta))
        exact = np.asarray(density(p, x) - density(q, x))
        kl = float(kl_divergence(p, q))
    print(f"float32 log-weights at D = {DIM}, KL {kl:.2f}, {SAMPLES} samples, largest error:")
    print(f"  {np.abs(np.asarray(summed) - exact).max():.1e} (target: at most 1e-4); ", end="")
    print(f"two log-densities subtracted: {np.abs(np.asarray(subtracted) - exact).max():.1e}")


if __name__ == "__main__":
    main()
