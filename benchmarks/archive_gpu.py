"""What reuse costs on an accelerator, beside one read of the archive measured in the same run.

python -m benchmarks.archive_gpu [PART...], the parts of `PARTS`; all unless said. Without an
accelerator it says so. `--tiny` takes small sizes wherever it runs, to see that all of it works.

The host only starts what a device computes, and may be busy: several calls are started without a
wait between them, the last is waited for, and their time is divided by their number. Tells are a
chain, each of the state that the one before has left, on thetas and returns that were made before.
"""

import sys
import time
from functools import partial
from statistics import median

import jax
import jax.numpy as jnp

import recoup
from benchmarks.ask_tell import compared
from benchmarks.many_runs import learn
from recoup.core import columns, row_sums
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian, score_terms, score_vectors
from recoup.core.mixtures import mixture_density
from recoup.core.rules.on_archive import rows_of
from recoup.core.rules.window import reach_of
from recoup.engine.composition import composed
from recoup.engine.methods import METHODS, default_batch, sized

SHAPES = ((64, 1024, 1024), (64, 1024, 16_384), (32, 128, 262_144))
SMALL = (64, 100, 1000)
EXACT_SHAPES = ((64, 1024, 1024), (16, 100, 17_353))
WAYS = (("iw-pgpe-ob", True), ("mis-pgpe-ob", False), ("mis-pgpe-ob", True))  # method, table
ROUNDS, CALLS, WARM = 3, 6, 0.2  # rounds, calls of each, seconds before them
MANY = 1000  # runs under one vmap
WIDTHS = ((1_000, 301), (100_000, 101), (10_000_000, 11))  # D and rounds of ask + tell
ESTIMATE, TELL, LAUNCHED, EXACT = 2.5, 4.0, 0.5, 1e-4  # targets: reads, reads, ms, error


def objective(theta):
    return -jnp.sum((theta - 0.1) ** 2, axis=-1)


def seconds(call, calls=CALLS):
    """Median over rounds of the seconds of a call, of several that are started without a wait."""
    awake(call)
    return median(_round(call, calls) for _ in range(ROUNDS))


def awake(call):
    """Calls until the device has been busy for a while: one that was idle has a slow clock."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    while time.perf_counter() - start < WARM:
        jax.block_until_ready(call())


def _round(call, calls):
    start = time.perf_counter()
    for _ in range(calls):
        result = call()
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / calls


def one_read(shape):
    """Seconds that the largest of so many numbers takes: every number is read once."""
    numbers = jax.random.normal(_key(0), shape)
    return seconds(partial(jax.jit(jnp.max), numbers), 2 * CALLS)


def filled(search, left):
    """A compiled tell, and a state of the search whose archive has room for `left` more batches."""
    tell = jax.jit(search.tell, donate_argnums=1)
    state = search.init(_key(0), mean=0.0)
    for i in range(search.capacity // search.batch - left):
        theta, state = search.ask(_key(i), state)
        state, _ = tell(_key(i), state, theta, objective(theta))
    return tell, state


def tells(tell, search, state):
    """Median seconds of a tell whose state is given away, and the state after the last."""
    thetas = [search.ask(_key(1000 + i), state)[0] for i in range(CALLS)]
    returns = [objective(theta) for theta in thetas]
    keys = [_key(i) for i in range(CALLS)]
    awake(partial(jax.jit(objective), thetas[0]))
    times = []
    for _ in range(ROUNDS):
        jax.block_until_ready((thetas, returns, keys, state))
        start = time.perf_counter()
        for told in zip(keys, thetas, returns, strict=True):
            state, _ = tell(told[0], state, *told[1:])
        jax.block_until_ready(state)
        times.append((time.perf_counter() - start) / CALLS)
    return median(times), state


def of_method(name, shape, table=True, **settings):
    """Seconds of estimate, and of tell with the state given away."""
    batches, batch, dim = shape
    how = {"dim": dim, "batch": batch, "table": table} | settings
    search = recoup.search(name, capacity=batches * batch, **how)
    telling, state = tells(*_filled_for(search))
    return seconds(lambda: search.estimate(state.rho, state.archive)), telling


def _filled_for(search):
    """What `tells` needs: an archive is padded to its capacity, however much of it is told."""
    tell, state = filled(search, ROUNDS * CALLS)
    return tell, search, state


def archive():
    """The archives of the table, by three methods."""
    for shape in SHAPES:
        read = one_read(shape)
        print(f"{_size(shape)}: one read {read * 1e3:.2f} ms ({_speed(shape, read)})", flush=True)
        for name, table in WAYS:
            _show(f"{name}{_kept(name, table)}", of_method(name, shape, table), read)


def sums():
    """The two sums over rows, by the kernel and by XLA, and a batch under all proposals."""
    family = diagonal_gaussian()
    for shape in SHAPES:
        read, (rho, references, samples) = one_read(shape), _problem(shape)
        print(f"{_size(shape)}: one read {read * 1e3:.2f} ms", flush=True)
        ways = {"XLA": row_sums.plain, "the kernel": row_sums.by_kernel}
        for name, way in ways.items() if row_sums.fits(family, samples) else ():
            spent = seconds(partial(jax.jit(partial(way, family)), rho, references, samples))
            print(f"  log-ratios and norms by {name}: {spent / read:.2f} reads", flush=True)
        ways = {"XLA": columns.plain, "the kernel": columns.by_kernel}
        for name, way in ways.items() if columns.fits(samples) else (("XLA", columns.plain),):
            total = jax.jit(partial(way, score_terms))
            spent = seconds(partial(total, score_vectors(rho), samples, samples[..., 0]))
            print(f"  sums of scores by {name}: {spent / read:.2f} reads", flush=True)
        twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), references)
        mixed = jax.jit(partial(mixture_density, family))
        spent = seconds(partial(mixed, twice, jnp.ones(2 * shape[0]), rho, samples[0]))
        print(f"  a batch under {2 * shape[0]} proposals: {spent / read:.2f} reads", flush=True)


def _problem(shape):
    """A rho, a reference for each block, and samples."""
    keys = jax.random.split(_key(0), 3)
    blocks, _, dim = shape
    eta, means = (0.01 * jax.random.normal(keys[i], (1 + i * blocks, dim)) for i in range(2))
    references = Diagonal(means[1:], jnp.ones((blocks, dim)))
    return Diagonal(eta[0], jnp.full(dim, 0.99)), references, jax.random.normal(keys[2], shape)


def exact():
    """What float32 gives beside float64, and whether it is the same from run to run."""
    for shape in EXACT_SHAPES:
        for name, table in (*WAYS, ("niw-pgpe-ob", True), ("cem", True)):
            same, error = exactness(name, shape, table)
            print(
                f"{_size(shape)}, {name}{_kept(name, table)}: the same bits again: {same}; from "
                f"float64 by {error:.1e} of its largest entry (target: at most {EXACT})",
                flush=True,
            )


def exactness(name, shape, table):
    """Whether two estimates have the same bits, and how far their direction is from float64's."""
    batches, batch, dim = shape
    more = {"window": batches} if name == "cem" else {}
    search = recoup.search(
        name, dim=dim, batch=batch, capacity=batches * batch, table=table, **more
    )
    _, state = filled(search, 0)
    one, two = (search.estimate(state.rho, state.archive) for _ in range(2))
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    same = all(bool(jnp.array_equal(x, y, equal_nan=True)) for x, y in pairs)
    with jax.enable_x64(True):
        wide = search.estimate(*(_doubled(x) for x in (state.rho, state.archive))).gradient
        errors = [
            float(jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(y)))
            for x, y in zip(jax.tree.leaves(one.gradient), jax.tree.leaves(wide), strict=True)
        ]
    return same, max(errors)


def _doubled(tree):
    def wide(x):
        return x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x

    return jax.tree.map(wide, tree)


def methods():
    """The other methods in parameter space, at one shape."""
    shape = SHAPES[1]
    read = one_read(shape)
    print(f"{_size(shape)}: one read {read * 1e3:.2f} ms", flush=True)
    for name in ("niw-pgpe", "niw-pgpe-ob", "iw-pgpe"):
        _show(name, of_method(name, shape), read)
    for name in ("mis-pgpe-ob", "cem", "rwr", "reps"):
        _show(f"{name} window={shape[0]}", of_method(name, shape, window=shape[0]), read)
    weighted_part(*SHAPES[2][1:])


def weighted_part(batch, dim):
    """What the weights of the method recoup cost, beside one read of the window they look at."""
    search = recoup.search("recoup", dim=dim, batch=batch)
    state = search.init(_key(0), mean=0.0)
    add = jax.jit(search.tell, donate_argnums=1)
    for i in range(search.capacity // batch):
        theta, state = search.ask(_key(i), state)
        state, _ = add(_key(i), state, theta, objective(theta))
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
        estimating, telling = of_method(name, SMALL, table)
        print(
            f"  {name}{_kept(name, table)}: estimate {estimating * 1e3:.2f} ms, tell "
            f"{telling * 1e3:.2f} ms (target: at most {LAUNCHED})",
            flush=True,
        )
    many = {runs: many_tells(runs) for runs in (1, 16, 64)}
    shown = ", ".join(f"{runs} in {spent * 1e3:.2f} ms" for runs, spent in many.items())
    print(f"  tells of mis-pgpe-ob under one vmap: {shown}")


def many_tells(runs):
    """Median seconds of one tell to each of so many searches by mis-pgpe-ob."""
    batches, batch, dim = SMALL
    search = recoup.search("mis-pgpe-ob", dim=dim, batch=batch, capacity=batches * batch)
    return side_by_side(search, runs, batches - ROUNDS * CALLS, std=1.0)


def side_by_side(search, runs, before, std):
    """Median seconds of one tell to each of so many searches, so many tells after the start."""
    states = jax.vmap(lambda key: search.init(key, 0.0, std))(jax.random.split(_key(0), runs))
    ask, tell = jax.jit(jax.vmap(search.ask)), jax.jit(jax.vmap(search.tell), donate_argnums=1)
    together = search._replace(ask=lambda key, states: ask(jax.random.split(key, runs), states))
    for i in range(before):
        theta, states = together.ask(_key(i), states)
        states, _ = tell(jax.random.split(_key(i), runs), states, theta, objective(theta))
    telling = lambda key, *told: tell(jax.random.split(key, runs), *told)  # noqa: E731
    return tells(telling, together, states)[0]


def default():
    """A tell of the method recoup, its window full: one run, and 1,000 under vmap."""
    print("tell of the method recoup, its window full, float32:")
    for dim in (10, 100):
        times = [default_tells(dim, runs) for runs in (1, MANY)]
        print(
            f"  D = {dim}, {100 + 2 * dim} samples in the regression: one run "
            f"{times[0] * 1e3:.2f} ms, {MANY} runs {times[1] * 1e3:.1f} ms",
            flush=True,
        )


def default_tells(dim, runs):
    """Median seconds of one tell to each of so many searches by recoup."""
    batch = default_batch(sized(METHODS["recoup"], dim), dim)
    search = recoup.search("recoup", dim=dim, batch=batch)
    return side_by_side(search, runs, search.capacity // batch, std=0.5)


def ask_tell():
    """Ask and tell without reuse, beside evosax's PGPE."""
    print("ask + tell without reuse, population 100, mirrored, float32:")
    for dim, rounds in WIDTHS:
        print(compared(dim, rounds), flush=True)


def car():
    """Whole runs on the mountain car in one call, without a word from the host."""
    iterations, batch = 30, 10
    keys = jax.random.split(_key(0), MANY)
    start = time.perf_counter()
    run = learn("mis-pgpe-ob", "mountain-car", iterations, batch).lower(keys).compile()
    compiling = time.perf_counter() - start
    spent, (_, curves) = seconds(lambda: run(keys), 1), run(keys)
    first, last = (float(jnp.mean(curves[:, i])) for i in (0, -1))
    print(
        f"{MANY} runs of mis-pgpe-ob on the mountain car, {iterations} iterations x {batch} "
        f"episodes, in one call: {spent * 1e3:.1f} ms (compiled in {compiling:.0f} s); mean return "
        f"of a batch {first:.3f} at first, {last:.3f} at last"
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
    estimate, tell = (t / read for t in times)
    print(
        f"  {what}: estimate {estimate:.2f} reads (target: at most {ESTIMATE}), tell {tell:.2f} "
        f"(target: at most {TELL:.0f})",
        flush=True,
    )


TINY = {
    "SHAPES": ((4, 8, 32), (4, 8, 64), (4, 4, 128)),
    "SMALL": (4, 8, 16),
    "EXACT_SHAPES": ((4, 8, 32),),
    "WIDTHS": ((100, 3), (1000, 3)),
    "MANY": 3,
    "ROUNDS": 2,
    "CALLS": 1,
    "WARM": 0.0,
}
PARTS = {
    "sums": sums,
    "archive": archive,
    "exact": exact,
    "methods": methods,
    "small": small,
    "default": default,
    "ask-tell": ask_tell,
    "car": car,
}


def main(words=()):
    device = jax.devices()[0]
    if "--tiny" in words:
        globals().update(TINY)
    elif device.platform == "cpu":
        print("the archive on an accelerator: there is none here, nothing is measured.")
        return
    print(f"the archive on {device.device_kind}, jax {jax.__version__}, float32:", flush=True)
    for part in [word for word in words if word != "--tiny"] or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
