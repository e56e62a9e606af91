"""No two LAPACK calls of a program may run at once: see `behind` in core/arrays.py."""

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
from recoup.core.arrays import behind
from recoup.core.families.full import Full, full_gaussian
from recoup.core.judgement import judged_archive

DIM, BATCH, RUNS = 4, 6, 3
GRADIENT = {"family": "full", "epsilon": 0.2}
METHODS = [  # with a full covariance; of each what another has not
    ("recoup", {"family": "full"}),
    ("recoup", {"family": "lowrank"}),
    ("cem", {"family": "full", "window": 3}),
    ("mis-pgpe-ob", {"family": "full", "update": "natural"}),
    *(
        pytest.param(name, settings, marks=pytest.mark.slow)
        for name, settings in (
            ("recoup", {"family": "diagonal"}),
            ("reps", {"family": "lowrank"}),
            ("mis-pgpe-ob", {"family": "lowrank"}),
            ("recoup", {"family": "full", "window": 2, "pulled": True, "share": 0.0}),
            ("recoup", {"family": "full", "share": 1.0}),
            ("rwr", {"family": "full"}),
            ("reps", {"family": "full"}),
            ("mis-pgpe-ob", {**GRADIENT, "table": False}),
            ("iw-pgpe", {**GRADIENT, "baseline": "coordinate"}),
            ("iw-pgpe", {**GRADIENT, "baseline": "leave-one-out", "update": "adam"}),
            ("pgpe-ob", GRADIENT),
        )
    ),
]


def asked(search, key):
    """A state, thetas that were asked of it, and what they earned."""
    theta, state = search.ask(key, search.init(key, mean=0.0))
    return state, theta, -jnp.sum((theta - 0.3) ** 2, axis=-1)


@pytest.mark.parametrize(("name", "settings"), METHODS)
@pytest.mark.parametrize("told", ["newest", "late", "many runs"])
def test_calls_of_a_move_wait_for_each_other(name, settings, told):
    search = recoup.search(name, dim=DIM, batch=BATCH, capacity=5 * BATCH, **settings)
    keys = jax.random.split(jax.random.key(0), RUNS)
    if told == "many runs":
        order = order_of(
            jax.jit(jax.vmap(search.tell)), keys, *jax.vmap(partial(asked, search))(keys)
        )
    else:
        proposal = (jnp.zeros(BATCH, jnp.int32),) if told == "late" else ()
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

    order = order_of(jax.jit(judged), jnp.ones((n, DIM)), jnp.ones(n), rho)
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

    def ordered(matrix):
        one = jnp.linalg.eigh(matrix)[0]
        return one, jnp.linalg.cholesky(behind(jnp, matrix, one))

    matrix = jnp.eye(DIM)
    assert len(order_of(jax.jit(both), matrix).unordered) == 1
    assert order_of(jax.jit(ordered), matrix) == (2, [])


def test_what_is_taken_behind_other_numbers_is_what_it_was():
    tree = {"matrix": jnp.asarray([[-0.0, jnp.nan], [jnp.inf, 1e-40]]), "vector": jnp.ones(2)}
    for earlier in (jnp.zeros(1), jnp.asarray([[jnp.nan]]), -jnp.ones(()), jnp.inf):
        after = jax.jit(partial(behind, jnp))(tree, jnp.asarray(earlier), jnp.ones(3))
        for name, array in tree.items():
            assert np.asarray(after[name]).tobytes() == np.asarray(array).tobytes()
    assert behind(np, tree, np.ones(3)) is tree


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
