"""What reuse costs on an accelerator, beside one read of the archive measured in the same run.

python -m benchmarks.archive_gpu [PART...], the parts archive, methods, small, default, ask-tell and
car; all unless said. Without an accelerator it says so.
"""

import sys
import time
from functools import partial
from statistics import median

import jax
import jax.numpy as jnp

import recoup
from benchmarks.ask_tell import evosax_calls, recoup_calls
from benchmarks.many_runs import learn
from benchmarks.timing import in_turn
from recoup.core.rules.blend import reach_of
from recoup.core.rules.traced import rows_of
from recoup.engine.composition import composed
from recoup.engine.methods import METHODS, default_batch, sized

SHAPES = ((64, 1024, 1024), (64, 1024, 16_384), (32, 128, 262_144))
SMALL = (64, 100, 1000)
WAYS = (("iw-pgpe-ob", True), ("mis-pgpe-ob", False), ("mis-pgpe-ob", True))  # method, table
ROUNDS = 7
ESTIMATE, TELL, LAUNCHED = 2.5, 4.0, 0.5  # targets: reads, reads, milliseconds


def objective(theta):
    return -jnp.sum((theta - 0.1) ** 2, axis=-1)


def seconds(call, rounds=ROUNDS):
    """Median wall time of a call that has been compiled."""
    return in_turn({"it": call}, rounds)["it"]


def one_read(shape):
    """Seconds that the largest of so many numbers takes: every number is read once."""
    numbers = jax.random.normal(jax.random.key(0), shape)
    return seconds(partial(jax.jit(jnp.max), numbers), 3 * ROUNDS)


def filled(search, left):
    """A state of the search whose archive has room for `left` more batches."""
    tell = jax.jit(search.tell, donate_argnums=1)
    state = search.init(jax.random.key(0), mean=0.0)
    for i in range(search.capacity // search.batch - left):
        key = jax.random.key(i)
        theta, state = search.ask(key, state)
        state, _ = tell(key, state, theta, objective(theta))
    return tell, state


def tells(tell, search, state, rounds=ROUNDS):
    """Median seconds of a tell whose state is given away, and the state after the last."""
    times = []
    for i in range(rounds):
        theta, state = search.ask(jax.random.key(1000 + i), state)
        returns = objective(theta)
        jax.block_until_ready((theta, returns, state))
        start = time.perf_counter()
        state, _ = jax.block_until_ready(tell(jax.random.key(i), state, theta, returns))
        times.append(time.perf_counter() - start)
    return median(times), state


def of_method(name, shape, table=True, **settings):
    """Seconds of estimate, of tell with the state given away, and of tell with it kept."""
    batches, batch, dim = shape
    how = {"dim": dim, "batch": batch, "table": table} | settings
    search = recoup.search(name, capacity=batches * batch, **how)
    tell, state = filled(search, ROUNDS + 1)
    telling, state = tells(tell, search, state)
    theta, state = search.ask(jax.random.key(0), state)
    returns = objective(theta)
    kept = seconds(lambda: search.tell(jax.random.key(0), state, theta, returns))
    estimating = seconds(lambda: search.estimate(state.rho, state.archive))
    return estimating, telling, kept


def archive():
    """The archives of the table, by three methods."""
    for shape in SHAPES:
        read = one_read(shape)
        print(f"{_size(shape)}: one read {read * 1e3:.2f} ms ({_speed(shape, read)})", flush=True)
        for name, table in WAYS:
            _show(f"{name}{_kept(name, table)}", of_method(name, shape, table), read)


def methods():
    """The other methods in parameter space, at one shape."""
    shape = (64, 1024, 16_384)
    read = one_read(shape)
    print(f"{_size(shape)}: one read {read * 1e3:.2f} ms", flush=True)
    for name in ("niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "mis-pgpe-ob"):
        settings = {"window": 64} if name == "mis-pgpe-ob" else {}
        _show(f"{name}{' window=64' if settings else ''}", of_method(name, shape, **settings), read)
    for name in ("cem", "rwr", "reps"):
        _show(f"{name} window=64", of_method(name, shape, window=64), read)
    weighted_part(128, 262_144)


def weighted_part(batch, dim):
    """What the weights of the method recoup cost, beside one read of the window they look at."""
    search = recoup.search("recoup", dim=dim, batch=batch)
    state = search.init(jax.random.key(0), mean=0.0)
    add = jax.jit(search.tell, donate_argnums=1)
    for i in range(search.capacity // batch):
        theta, state = search.ask(jax.random.key(i), state)
        state, _ = add(jax.random.key(i), state, theta, objective(theta))
    family, reach = composed(search.settings).family, reach_of(dim, batch, None)
    weigh = jax.jit(lambda rho, held: rows_of(family, held, rho, reach).window.log_weights)
    shape = (search.capacity // batch, batch, dim)
    read, spent = one_read(shape), seconds(lambda: weigh(state.rho, state.archive))
    print(
        f"  weights of recoup, {_size(shape)}: {spent * 1e3:.2f} ms, {spent / read:.1f} reads "
        f"(target: at most {ESTIMATE}; each of the last batches' proposals looks at all of them)"
    )


def small():
    """A problem whose tell is a matter of launches, alone and many of them under vmap."""
    print(f"{_size(SMALL)}, whose tell is a matter of launches:")
    for name, table in WAYS:
        estimating, telling, kept = of_method(name, SMALL, table)
        print(
            f"  {name}{_kept(name, table)}: estimate {estimating * 1e3:.2f} ms, tell "
            f"{telling * 1e3:.2f} ms (target: at most {LAUNCHED}), {kept * 1e3:.2f} with the state "
            "kept",
            flush=True,
        )
    many = {runs: many_tells(runs) for runs in (1, 16, 64)}
    shown = ", ".join(f"{runs} in {spent * 1e3:.2f} ms" for runs, spent in many.items())
    print(f"  tells of mis-pgpe-ob under one vmap: {shown}")


def many_tells(runs):
    """Median seconds of one tell to each of so many searches by mis-pgpe-ob."""
    batches, batch, dim = SMALL
    search = recoup.search("mis-pgpe-ob", dim=dim, batch=batch, capacity=batches * batch)
    return median(tells_side_by_side(search, runs, batches, std=1.0)[-2 * ROUNDS :])


def tells_side_by_side(search, runs, moves, std):
    """Seconds of each of so many tells, to so many searches at once."""
    states = jax.vmap(lambda key: search.init(key, 0.0, std))(jax.random.split(_key(0), runs))
    ask, tell = jax.jit(jax.vmap(search.ask)), jax.jit(jax.vmap(search.tell), donate_argnums=1)
    times = []
    for i in range(moves):
        keys = jax.random.split(_key(i), runs)
        theta, states = ask(keys, states)
        returns = objective(theta)
        jax.block_until_ready((theta, returns, states))
        start = time.perf_counter()
        states, _ = jax.block_until_ready(tell(keys, states, theta, returns))
        times.append(time.perf_counter() - start)
    return times


def default():
    """A tell of the method recoup, its window full: one run, and 1,000 under vmap."""
    print("tell of the method recoup, its window full, float32:")
    for dim in (10, 100):
        times = {runs: default_tells(dim, runs) for runs in (1, 1000)}
        print(
            f"  D = {dim}, {100 + 2 * dim} samples in the regression: one run "
            f"{times[1] * 1e3:.2f} ms, 1,000 runs {times[1000] * 1e3:.1f} ms",
            flush=True,
        )


def default_tells(dim, runs):
    """Median seconds of one tell to each of so many searches by recoup."""
    batch = default_batch(sized(METHODS["recoup"], dim), dim)
    search = recoup.search("recoup", dim=dim, batch=batch)
    moves = search.capacity // batch + ROUNDS
    return median(tells_side_by_side(search, runs, moves, std=0.5)[-ROUNDS:])


def ask_tell():
    """Ask and tell without reuse, beside evosax's PGPE."""
    print("ask + tell without reuse, population 100, mirrored, float32:")
    for dim, rounds in ((1_000, 301), (100_000, 101), (10_000_000, 11)):
        times = in_turn({"recoup": recoup_calls(dim), "evosax": evosax_calls(dim)}, rounds)
        shown = ", ".join(f"{name} {t * 1e3:.2f} ms" for name, t in times.items())
        ratio = times["recoup"] / times["evosax"]
        print(f"  D = {dim}: {shown}; {ratio:.2f} times evosax's time (target: at most 1)")


def car():
    """Whole runs on the mountain car in one call, without a word from the host."""
    runs, iterations, batch = 1000, 30, 10
    keys = jax.random.split(_key(0), runs)
    start = time.perf_counter()
    run = learn("mis-pgpe-ob", "mountain-car", iterations, batch).lower(keys).compile()
    compiling = time.perf_counter() - start
    spent = seconds(lambda: run(keys), 3)
    print(
        f"{runs} runs of mis-pgpe-ob on the mountain car, {iterations} iterations x {batch} "
        f"episodes, in one call: {spent:.2f} s (compiled in {compiling:.0f} s)"
    )


def _key(i):
    return jax.random.key(i)


def _size(shape):
    held = 4 * shape[0] * shape[1] * shape[2]
    return f"{shape[0]} x {shape[1]:,} x {shape[2]:,} ({held / 1e9:.2g} GB)"


def _speed(shape, read):
    return f"{4 * shape[0] * shape[1] * shape[2] / read / 1e12:.2f} TB/s"


def _kept(name, table):
    return "" if name == "iw-pgpe-ob" else " (table)" if table else " (running)"


def _show(what, times, read):
    estimate, tell, kept = (t / read for t in times)
    print(
        f"  {what}: estimate {estimate:.1f} reads (target: at most {ESTIMATE}), tell {tell:.1f} "
        f"(target: at most {TELL:.0f}), {kept:.1f} with the state kept",
        flush=True,
    )


PARTS = {
    "archive": archive,
    "methods": methods,
    "small": small,
    "default": default,
    "ask-tell": ask_tell,
    "car": car,
}


def main(parts=()):
    device = jax.devices()[0]
    if device.platform == "cpu":
        print("the archive on an accelerator: there is none here, nothing is measured.")
        return
    print(f"the archive on {device.device_kind}, jax {jax.__version__}, float32:", flush=True)
    for part in parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
