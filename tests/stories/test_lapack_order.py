"""No two LAPACK calls of a program may run at once: see core/linalg.py."""

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.helpers.lapack import order_of
from waiting import LIMIT

import recoup
from recoup.core.archive import Drawn, from_samples
from recoup.core.families.full import Full, full_gaussian
from recoup.core.judgement import judged_archive
from recoup.core.linalg import in_turns

DIM, BATCH, RUNS = 4, 6, 3
GRADIENT = {"family": "full", "epsilon": 0.2}
TOLD = NEWEST, LATE, RUNS_AT_ONCE = ("newest", "late", "many runs")
# With a full covariance; of each what another has not. Every method, every family and every way to
# tell meet, and every one of the settings is there; methods of a kind step by the same lines.
METHODS = [
    ("recoup", {"family": "full"}, TOLD),
    ("recoup", {"family": "lowrank"}, (LATE, RUNS_AT_ONCE)),
    ("cem", {"family": "full", "window": 3}, TOLD),
    ("mis-pgpe-ob", {"family": "full", "update": "natural"}, TOLD),
]
MORE = [
    ("recoup", {"family": "diagonal"}, TOLD),
    ("reps", {"family": "lowrank"}, (NEWEST, RUNS_AT_ONCE)),
    ("mis-pgpe-ob", {"family": "lowrank"}, (LATE,)),
    ("recoup", {"family": "full", "window": 2, "pulled": True, "share": 0.0}, (RUNS_AT_ONCE,)),
    ("recoup", {"family": "full", "share": 1.0}, (LATE,)),
    ("rwr", {"family": "full"}, TOLD),
    ("reps", {"family": "full"}, (LATE,)),
    ("mis-pgpe-ob", {**GRADIENT, "table": False}, (LATE, RUNS_AT_ONCE)),
    ("iw-pgpe", {**GRADIENT, "baseline": "coordinate"}, (LATE, RUNS_AT_ONCE)),
    ("iw-pgpe", {**GRADIENT, "baseline": "leave-one-out", "update": "adam"}, (NEWEST,)),
    ("pgpe-ob", GRADIENT, TOLD),
]
CASES = [
    *((*row, told) for *row, ways in METHODS for told in ways),
    *(pytest.param(*row, told, marks=pytest.mark.slow) for *row, ways in MORE for told in ways),
]


def asked(search, key):
    """A state, thetas that were asked of it, and what they earned."""
    theta, state = search.ask(key, search.init(key, mean=0.0))
    return state, theta, -jnp.sum((theta - 0.3) ** 2, axis=-1)


@pytest.mark.parametrize("second", [lambda row: row[0], lambda row: row[1]["family"]])
def test_every_method_and_every_family_is_told_in_every_way(second):
    rows = METHODS + MORE
    met = {(second(row), told) for row in rows for told in row[-1]}
    assert len(met) == len({second(row) for row in rows}) * len(TOLD)


@pytest.mark.parametrize(("name", "settings", "told"), CASES)
def test_calls_of_a_move_wait_for_each_other(name, settings, told):
    search = recoup.search(name, dim=DIM, batch=BATCH, capacity=5 * BATCH, **settings)
    keys = jax.random.split(jax.random.key(0), RUNS)
    if told == RUNS_AT_ONCE:
        order = order_of(
            jax.jit(jax.vmap(search.tell)), keys, *jax.vmap(partial(asked, search))(keys)
        )
    else:
        proposal = (jnp.zeros(BATCH, jnp.int32),) if told == LATE else ()
        order = order_of(jax.jit(search.tell), keys[0], *asked(search, keys[0]), *proposal)
    assert order.calls > 1
    assert order.unordered == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recoup", "mis-pgpe-ob"])
def test_calls_of_an_estimate_wait_for_each_other(name):
    search = recoup.search(name, dim=DIM, batch=BATCH, family="full")
    state, *_ = asked(search, jax.random.key(1))
    order = order_of(jax.jit(search.estimate), state.rho, state.archive)
    assert order.calls > 1
    assert order.unordered == []


def test_calls_of_an_evaluation_wait_for_each_other():
    family, n = full_gaussian(), 20
    rho = Full(jnp.zeros(DIM), jnp.eye(DIM))
    many = jax.tree.map(lambda x: jnp.stack([x, x + 0.1]), rho)

    def judged(theta, returns, target):
        drawn = Drawn(theta, returns, returns < 9, many, jnp.arange(n) % 2, target)
        return judged_archive(family, target, from_samples(family, drawn, keep="running"))

    order = order_of(jax.jit(in_turns(judged)), jnp.ones((n, DIM)), jnp.ones(n), rho)
    assert order.calls > 1
    assert order.unordered == []


@pytest.mark.parametrize("barrier", [False, True])
def test_without_order_two_calls_may_run_at_once(barrier):
    """What the tests above can see, and that the barrier of JAX would not have been enough."""

    def both(matrix):
        one = jnp.linalg.eigh(matrix)[0]
        if barrier:
            matrix, one = jax.lax.optimization_barrier((matrix, one))
        return one, jnp.linalg.cholesky(matrix)

    matrix = jnp.eye(DIM)
    assert len(order_of(jax.jit(both), matrix).unordered) == 1
    assert order_of(jax.jit(in_turns(both)), matrix) == (2, [])


def nested(matrix, key):
    """Two calls that do not need each other before, within and after loops and branches."""

    def both(at):
        matrix, key = at
        values = jnp.linalg.eigh(matrix)[0]
        drawn = jax.random.normal(key, values.shape, values.dtype)
        return matrix + jnp.diag(values + drawn**2) @ jnp.linalg.cholesky(matrix @ matrix.T), key

    once = jnp.linalg.cholesky(matrix)
    looped = jax.lax.fori_loop(0, 3, lambda _, at: both(at), (matrix, key))[0]
    until = jax.lax.while_loop(lambda at: at[0].sum() < 50, both, (matrix, key))[0]
    mapped = jax.lax.map(lambda shift: both((matrix + shift, key))[0], jnp.arange(3.0))
    chosen = jax.lax.cond(matrix[0, 0] > 0, both, lambda at: at, (matrix, key))[0]
    some = jax.lax.map(lambda shift: jnp.all(jnp.linalg.qr(matrix + shift)[1] > 0), jnp.ones(2))
    batch = jax.vmap(jnp.linalg.inv)(jnp.stack([matrix, matrix + 1]))
    return once, looped, until, mapped, chosen, some, batch


def test_turns_reach_into_loops_and_branches_and_change_no_number():
    given = jnp.eye(DIM) + 0.1, jax.random.key(2)
    want, got = jax.jit(nested)(*given), jax.jit(in_turns(nested))(*given)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)
    assert order_of(jax.jit(nested), *given).unordered
    assert order_of(jax.jit(in_turns(nested)), *given).unordered == []


def masked(matrix, keep, keys):
    """Called where arrays go in that are no numbers, and where complex ones come out."""

    def inner(matrix, keep, keys):
        drawn = jax.random.normal(keys[0, 0], (len(matrix),), matrix.dtype)
        return jnp.linalg.cholesky(jnp.where(keep, matrix, 0.0) + jnp.diag(drawn**2))

    axes = jnp.abs(jnp.linalg.eig(matrix)[1])
    return axes, jax.checkpoint(inner)(matrix, keep, keys)


@pytest.mark.filterwarnings("error")
def test_arrays_that_are_no_numbers_pass_turns_as_they_are():
    keys = jax.random.split(jax.random.key(1), (2, 2))
    given = jnp.eye(DIM) + 0.1, jnp.eye(DIM, dtype=bool), keys
    for one, other in zip(jax.jit(in_turns(masked))(*given), jax.jit(masked)(*given), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("version", ["0.9.2", "0.11.0", "0.12.0.dev20270101"])
def test_a_jaxlib_that_needs_no_turns_takes_none(monkeypatch, version):
    monkeypatch.setattr("jaxlib.version.__version__", version)
    assert in_turns(nested) is nested


PROGRAM = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import jax, jax.numpy as jnp, recoup
dim, runs = int(sys.argv[1]), int(sys.argv[2])
search = recoup.search("recoup", dim=dim, batch=8)
init, ask, tell = (lambda key: search.init(key, mean=0.0)), search.ask, search.tell
keys = jax.random.split(jax.random.key(0), 13)
if runs:
    keys = jax.vmap(lambda key: jax.random.split(key, runs))(keys)
    init, ask, tell = jax.vmap(init), jax.vmap(ask), jax.vmap(tell)
tell, state = jax.jit(tell, donate_argnums=1), init(keys[0])
for key in keys[1:]:
    theta, state = ask(key, state)
    state, _ = tell(key, state, theta, -jnp.sum((theta - 0.1) ** 2, axis=-1))
jax.block_until_ready(state)
threads = [open(f"/proc/self/task/{one}/comm").read() for one in os.listdir("/proc/self/task")]
print(sum("XLAEigen" in name for name in threads))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
@pytest.mark.parametrize(("dim", "runs"), [(31, 0), (32, 0), (53, 0), (32, 8)])
def test_moves_end_where_xla_has_two_threads(dim, runs):
    """As a user runs it: with the compiler's own settings and the threads of OpenBLAS."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    settings = ("XLA_FLAGS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    env = {name: value for name, value in os.environ.items() if name not in settings}
    command = [sys.executable, "-c", PROGRAM, str(dim), str(runs)]
    done = subprocess.run(
        command, env=env | {"JAX_PLATFORMS": "cpu"}, timeout=LIMIT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2"  # threads in its pool
