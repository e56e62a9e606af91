"""Ask and tell without reuse, mirrored sampling on in both, against evosax's PGPE.

Two calls each, one after the other, as they are made when rollouts lie between them. Recoup's
checks of what it is told are included.
"""

from functools import partial

import jax
import jax.numpy as jnp
from evosax.algorithms.distribution_based.pgpe import PGPE

import recoup
from benchmarks.timing import in_turn

POPULATION = 100


def sphere(theta):
    return -jnp.sum(theta**2, axis=1)


def recoup_calls(dim):
    """Ask, and tell of what was asked for."""
    search = recoup.search("pgpe-ob", dim=dim, batch=POPULATION, mirrored=True)
    state, key = search.init(jax.random.key(0), mean=0.0), jax.random.key(1)
    returns = sphere(search.ask(key, state)[0])

    def ask():
        return search.ask(key, state)[0]

    return ask, lambda theta: search.tell(key, state, theta, returns)


def evosax_calls(dim):
    """Ask, and tell of what was asked for."""
    strategy = PGPE(POPULATION, jnp.zeros(dim))
    params, key = strategy.default_params, jax.random.key(1)
    state = strategy.init(jax.random.key(0), jnp.zeros(dim), params)
    losses = -sphere(strategy.ask(key, state, params)[0])

    def ask():
        return strategy.ask(key, state, params)[0]

    return ask, lambda theta: strategy.tell(key, theta, losses, state, params)


def compared(dim, rounds):
    """One line: the time of both calls, of each library."""
    calls = {"recoup": recoup_calls(dim), "evosax": evosax_calls(dim)}
    times = in_turn({name: partial(_both, *two) for name, two in calls.items()}, rounds)
    asking = in_turn({name: ask for name, (ask, _) in calls.items()}, rounds)
    shown = ", ".join(
        f"{name} {times[name] * 1e3:.2f} ms (ask {asking[name] * 1e3:.2f})" for name in times
    )
    ratio = times["recoup"] / times["evosax"]
    return f"  D = {dim}: {shown}; {ratio:.2f} times evosax's time (target: at most 1)"


def _both(ask, tell):
    return tell(jax.block_until_ready(ask()))


def main():
    print(f"ask + tell without reuse, population {POPULATION}, mirrored, float32:")
    for dim, rounds in ((1_000, 601), (100_000, 21)):
        print(compared(dim, rounds), flush=True)


if __name__ == "__main__":
    main()
