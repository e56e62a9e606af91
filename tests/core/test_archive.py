"""The incremental archive against one made at once, and what an addition costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from passes import PASSES, Counted, take
from scipy import stats
from scipy.special import logsumexp

from recoup.core import archive as archives
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian

pytestmark = pytest.mark.usefixtures("x64")
DIM, BATCH = 3, 4
FAMILY = diagonal_gaussian()


def proposal(i):
    rng = np.random.default_rng(100 + i)
    return Diagonal(
        jnp.asarray(0.3 * rng.normal(size=DIM)), jnp.asarray(np.exp(0.2 * rng.normal(size=DIM)))
    )


def told(i):
    """Batch i: samples, returns, which failed, and how many proposals behind the newest each is."""
    rng = np.random.default_rng(i)
    valid = rng.random(BATCH) > 0.2
    return jnp.asarray(rng.normal(size=(BATCH, DIM))), rng.normal(size=BATCH), valid


def fill(batches, *, blocks, proposals, keep, lags=None):
    """An archive to which batches 0..n-1 were added, batch i while proposal i was the newest."""
    archive = archives.empty(
        proposal(0), proposal(0).eta, blocks=blocks, batch=BATCH, proposals=proposals, keep=keep
    )
    add = jax.jit(lambda *args: archives.add_batch(FAMILY, *args))
    for i in range(batches):
        samples, returns, valid = told(i)
        drawn_by = None if lags is None else jnp.asarray((i - lags[i]) % proposals, jnp.int32)
        archive = add(
            archive,
            jnp.int32(i % blocks),
            jnp.int32(i % proposals),
            samples,
            jnp.asarray(returns),
            jnp.asarray(valid),
            drawn_by,
        )
        archive = archives.add_proposal(archive, jnp.int32((i + 1) % proposals), proposal(i + 1))
    return archive


def mixture_by_scipy(batches, kept, lags):
    """log of sum_l (n_l / n) q_l at every kept sample, from absolute log-densities."""
    drew = np.array([np.arange(batches)[:, None] - lags]).reshape(batches, BATCH)
    valid = np.array([told(i)[2] for i in range(batches)])
    kept_valid = valid & np.isin(np.arange(batches), kept)[:, None]
    numbers, counts = np.unique(drew[kept_valid], return_counts=True)
    rows = []
    for i in kept:
        x = np.asarray(told(i)[0])
        logs = [stats.norm.logpdf(x, *map(np.asarray, proposal(k))).sum(1) for k in numbers]
        rows.append(logsumexp(logs, axis=0, b=(counts / counts.sum())[:, None]))
    return np.array(rows), drew, valid


LATE = np.array(
    [[0, 0, 0, 0], [1, 0, 1, 0], [2, 0, 1, 0], [0, 0, 3, 0], [2, 2, 0, 1], [0, 1, 3, 2]]
)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("keep", "blocks"), [("table", 6), ("table", 3), ("running", 6)])
def test_incremental_densities_are_those_computed_at_once(keep, blocks, late, name, monkeypatch):
    take(monkeypatch, name, chunk=40, room=40)
    batches = 6
    lags = LATE if late else np.zeros_like(LATE)
    archive = fill(
        batches, blocks=blocks, proposals=blocks + 4, keep=keep, lags=LATE if late else None
    )
    target = proposal(42)
    d = archives.log_densities(FAMILY, target, archive)
    kept = list(range(batches - blocks, batches))
    mixture, drew, valid = mixture_by_scipy(batches, kept, lags)
    for row, i in enumerate(kept):
        x, block = np.asarray(told(i)[0]), i % blocks
        log_target = stats.norm.logpdf(x, *map(np.asarray, target)).sum(1)
        own = [
            stats.norm.logpdf(x[n], *map(np.asarray, proposal(drew[i, n]))).sum() for n in range(4)
        ]
        shown = valid[i]
        got_own = (d.target - d.own)[block]
        got_mixture = (d.target - d.mixture)[block]
        np.testing.assert_allclose(
            got_own[shown], (log_target - own)[shown], rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(
            got_mixture[shown], (log_target - mixture[row])[shown], rtol=1e-10, atol=1e-12
        )


def test_counts_are_ragged_and_hold_valid_samples_only():
    archive = fill(6, blocks=6, proposals=10, keep="table", lags=LATE)
    drew = np.arange(6)[:, None] - LATE
    valid = np.array([told(i)[2] for i in range(6)])
    want = np.bincount(drew[valid], minlength=10)
    np.testing.assert_array_equal(archive.counts, want)
    assert len(set(want[:6].tolist())) > 2  # ragged indeed


def test_returns_that_failed_never_enter_the_archive():
    archive = fill(6, blocks=6, proposals=10, keep="own")
    assert np.isfinite(archive.batches.returns).all()
    assert (np.asarray(archive.batches.returns)[~np.asarray(archive.batches.valid)] == 0).all()


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("keep", ["table", "running"])
@pytest.mark.parametrize("distinct", [1, 3])
def test_an_addition_costs_rows_and_columns_never_the_whole_table(
    keep, distinct, name, monkeypatch
):
    """O(N' + N L) densities for a batch of one proposal, O(K N' + N L) for K, of N' L in all.

    Here a processor takes proposals one by one, an accelerator all of the 25 slots at once.
    """
    take(monkeypatch, name, chunk=BATCH * DIM)
    blocks, batches = 12, 10
    archive = fill(batches, blocks=blocks, proposals=2 * blocks + 1, keep=keep)
    newest = jnp.int32(batches)
    drawn_by = None if distinct == 1 else newest - jnp.asarray([0, 1, 2, 2], jnp.int32)
    counter = Counted()
    samples, returns, _ = told(50)
    added = archives.add_batch(
        counter.family,
        archive,
        newest,
        newest,
        samples,
        jnp.asarray(returns),
        jnp.ones(BATCH, bool),
        drawn_by,
    )
    jax.effects_barrier()
    rows = distinct * blocks * BATCH
    columns = (batches + 1 if name == "processor" else 2 * blocks + 1) * BATCH
    own = 0 if drawn_by is None else BATCH
    assert counter.seen == rows + columns + own
    assert counter.seen < blocks * BATCH * (batches + 1)
    archives.log_densities(counter.family, proposal(batches), added)
    jax.effects_barrier()
    assert counter.seen == rows + columns + own  # the newest proposal's are known


def test_the_target_that_is_known_is_that_of_the_newest_proposal():
    samples, returns, valid = told(50)
    for lag in (0, 1):  # the newest proposal need not have drawn any sample of the batch
        archive = archives.add_batch(
            FAMILY,
            fill(3, blocks=5, proposals=6, keep="running"),
            jnp.int32(3),
            jnp.int32(3),
            samples,
            jnp.asarray(returns),
            jnp.asarray(valid),
            jnp.full(BATCH, 3 - lag, jnp.int32),
        )
        want = archives.relative_log_density(FAMILY, proposal(3), archive)
        np.testing.assert_allclose(archive.target[0], want[0], rtol=1e-12)
        assert archives.add_proposal(archive, jnp.int32(4), proposal(4)).target is None


def test_growth_does_not_recompile():
    traces = []

    @jax.jit
    def add(archive, i, samples, returns, valid):
        traces.append(1)
        archive = archives.add_batch(FAMILY, archive, i, i, samples, returns, valid)
        return archives.add_proposal(archive, i + 1, proposal(1))

    archive = archives.empty(
        proposal(0), proposal(0).eta, blocks=5, batch=BATCH, proposals=6, keep="table"
    )
    for i in range(5):
        samples, returns, valid = told(i)
        archive = add(archive, jnp.int32(i), samples, jnp.asarray(returns), jnp.asarray(valid))
    assert len(traces) == 1
