"""Ask and tell without reuse, mirrored sampling on in both, against evosax's PGPE.

Two calls each, one after the other, as they are made when rollouts lie between them. Recoup's
checks of what it is told are included.
"""

import jax
import jax.numpy as jnp
from evosax.algorithms.distribution_based.pgpe import PGPE

import recoup
from benchmarks.timing import in_turn

POPULATION = 100


def sphere(theta):
    return -jnp.sum(theta**2, axis=1)


def recoup_calls(dim):
    search = recoup.search("pgpe-ob", dim=dim, batch=POPULATION, mirrored=True)
    state, key = search.init(jax.random.key(0), mean=0.0), jax.random.key(1)
    returns = sphere(search.ask(key, state)[0])

    def ask_and_tell():
        theta, _ = jax.block_until_ready(search.ask(key, state))
        return search.tell(key, state, theta, returns)

    return ask_and_tell


def evosax_calls(dim):
    strategy = PGPE(POPULATION, jnp.zeros(dim))
    params, key = strategy.default_params, jax.random.key(1)
    state = strategy.init(jax.random.key(0), jnp.zeros(dim), params)
    losses = -sphere(strategy.ask(key, state, params)[0])

    def ask_and_tell():
        theta, _ = jax.block_until_ready(strategy.ask(key, state, params))
        return strategy.tell(key, theta, losses, state, params)

    return ask_and_tell


def main():
    print(f"ask + tell without reuse, population {POPULATION}, mirrored, float32:")
    for dim, rounds in ((1_000, 601), (100_000, 21)):
        calls = {"recoup": recoup_calls(dim), "evosax": evosax_calls(dim)}
        times = in_turn(calls, rounds)
        ratio = times["recoup"] / times["evosax"]
        shown = ", ".join(f"{name} {t * 1e3:.2f} ms" for name, t in times.items())
        print(f"  D = {dim}: {shown}; {ratio:.2f} times evosax's time (target: at most 1)")


if __name__ == "__main__":
    main()
