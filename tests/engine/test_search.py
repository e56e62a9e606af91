import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

import recoup
from recoup.core.families.gaussian import Diagonal


def sphere(theta):
    return -jnp.sum((theta - 0.5) ** 2, axis=-1)


def run(search, moves, objective=sphere, seed=0, **start):
    key = jax.random.key(seed)
    state, info = search.init(key, **start), None
    for i in range(moves):
        ask, tell = jax.random.split(jax.random.fold_in(key, i))
        theta, state = search.ask(ask, state)
        state, info = search.tell(tell, state, theta, objective(theta))
    return state, info


def test_the_start_is_drawn_or_given():
    search = recoup.search("pgpe", dim=3, batch=4)
    drawn = np.stack([search.init(jax.random.key(i)).mean for i in range(200)])
    assert abs(drawn.mean()) < 4 / np.sqrt(600)
    assert abs(drawn.std() - 1) < 4 / np.sqrt(1200)
    given = search.init(jax.random.key(0), mean=2.0, std=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(given.mean, [2, 2, 2])
    np.testing.assert_array_equal(given.std, [1, 2, 3])


def test_one_move_of_iw_pgpe_ob_is_the_papers(x64):
    """Two batches; the second move from absolute densities, Theorem 2 and the normalised step."""
    search = recoup.search("iw-pgpe-ob", dim=2, batch=5, epsilon=0.3)
    key = jax.random.key(1)
    state = search.init(key, mean=[0.3, -0.2], std=[1.0, 0.7])
    thetas, rhos = [], []
    for i in range(2):
        theta, state = search.ask(jax.random.fold_in(key, i), state)
        thetas.append(np.asarray(theta))
        rhos.append((np.asarray(state.mean), np.asarray(state.std)))
        state, _ = search.tell(key, state, theta, sphere(theta))
    eta, tau = rhos[1]
    theta, returns = np.concatenate(thetas), np.asarray(sphere(np.concatenate(thetas)))
    logs = [stats.norm.logpdf(theta, *rho).sum(1) for rho in rhos]
    w = np.exp(logs[1] - np.where(np.arange(10) < 5, logs[0], logs[1]))
    s = np.concatenate([(theta - eta) / tau**2, ((theta - eta) ** 2 - tau**2) / tau**3], axis=1)
    b = np.sum(w**2 * (s**2).sum(1) * returns) / np.sum(w**2 * (s**2).sum(1))
    g = (w * (returns - b)) @ s / 10
    want = np.concatenate([eta, tau]) + 0.3 * g / np.linalg.norm(g)
    np.testing.assert_allclose(np.concatenate([state.mean, state.std]), want, rtol=1e-10)


def test_this_iteration_only_forgets_everything_else():
    search = recoup.search("pgpe-ob", dim=2, batch=6)
    _, info = run(search, 5)
    assert info.samples == 6
    assert info.ess == pytest.approx(6)
    assert info.dropped == 0


def test_a_window_keeps_the_last_batches_and_calls_nothing_dropped():
    search = recoup.search("tiw-pgpe-ob", dim=2, batch=6)
    _, info = run(search, 9)
    assert info.samples == 30
    assert info.max_weight <= 2
    assert info.dropped == 0


def test_a_full_archive_drops_its_oldest_batch_and_counts_it():
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4, capacity=12)
    _, info = run(search, 8)
    assert info.samples == 12
    assert info.dropped == 5


def test_windowed_balance_weights_are_those_of_the_window_alone(x64):
    """After batches were dropped, weights equal those of an estimate on the kept samples."""
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4, window=3, epsilon=0.3)
    key = jax.random.key(3)
    state, kept = search.init(key), []
    for i in range(7):
        theta, state = search.ask(jax.random.fold_in(key, i), state)
        kept.append((np.asarray(theta), np.asarray(state.mean), np.asarray(state.std)))
        target = (kept[-1][1], kept[-1][2])
        state, info = search.tell(key, state, theta, sphere(theta))
    theta, means, stds = (np.stack(x) for x in zip(*kept[-3:], strict=True))
    want = recoup.estimate(
        theta.reshape(-1, 2),
        np.asarray(sphere(theta.reshape(-1, 2))),
        proposals=(means, stds),
        proposal=np.repeat(np.arange(3), 4),
        target=target,
    )
    assert sorted(info.weights.ravel().tolist()) == pytest.approx(sorted(want.weights.tolist()))
    assert info.objective == pytest.approx(want.objective)
    assert info.max_weight <= 3


def test_the_running_mixture_gives_the_same_search_as_the_table(x64):
    with_table, without = (
        recoup.search("mis-pgpe-ob", dim=3, batch=4, capacity=40, table=table)
        for table in (True, False)
    )
    a, b = run(with_table, 10)[0], run(without, 10)[0]
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-9)
    assert b.archive.table is None


def test_late_results_are_weighed_by_the_proposal_that_drew_them(x64):
    search = recoup.search("iw-pgpe", dim=2, batch=4, capacity=40)
    key = jax.random.key(0)
    state = search.init(key)
    first, state = search.ask(key, state)
    old = Diagonal(state.mean, state.std)
    for i in range(3):
        theta, state = search.ask(jax.random.fold_in(key, i), state)
        state, _ = search.tell(key, state, theta, sphere(theta))
    new = Diagonal(state.mean, state.std)
    fresh, state = search.ask(jax.random.fold_in(key, 9), state)
    mixed = jnp.concatenate([first[:2], fresh[:2]])
    state, info = search.tell(key, state, mixed, sphere(mixed), proposal=[0, 0, 3, 3])
    log_w = [stats.norm.logpdf(first[:2], *rho).sum(1) for rho in (new, old)]
    want = [*np.exp(log_w[0] - log_w[1]), 1.0, 1.0]
    np.testing.assert_allclose(info.weights[3], want, rtol=1e-9)
    assert info.stale == 0


def test_results_of_forgotten_proposals_are_masked_and_counted():
    search = recoup.search("tiw-pgpe-ob", dim=2, batch=4, window=2, late=1)
    state, _ = run(search, 6)
    theta, state = search.ask(jax.random.key(9), state)
    _, info = search.tell(jax.random.key(9), state, theta, sphere(theta), proposal=[2, 6, 5, 6])
    assert info.stale == 1
    assert info.samples == 4 + 3


def test_late_results_beyond_the_batches_kept_keep_their_proposal_without_a_table(x64):
    search = recoup.search("iw-pgpe", dim=2, batch=2, capacity=6, late=7, table=False)
    key = jax.random.key(4)
    state, asked = search.init(key), []
    for i in range(9):
        theta, state = search.ask(jax.random.fold_in(key, i), state)
        asked.append((theta, state.mean, state.std))
        lag = min(i, 7)
        mixed = jnp.stack([asked[i - lag][0][0], theta[1]])
        state, info = search.tell(key, state, mixed, sphere(mixed), proposal=[i - lag, i])
    new, old = asked[8], asked[1]
    log_w = [stats.norm.logpdf(old[0][0], *rho[1:]).sum() for rho in (new, old)]
    assert float(info.weights[2, 0]) == pytest.approx(np.exp(log_w[0] - log_w[1]), rel=1e-9)
    assert info.stale == 0


def test_numbers_of_no_proposal_are_masked_inside_traced_code():
    search = recoup.search("iw-pgpe", dim=2, batch=4)
    state = search.init(jax.random.key(0))
    theta, state = search.ask(jax.random.key(1), state)
    padded = jnp.asarray([-1, -2, 0, 7])
    _, info = jax.jit(search.tell)(jax.random.key(2), state, theta, sphere(theta), padded)
    assert (info.stale, info.samples) == (3, 1)


def test_a_theta_that_is_not_finite_inside_traced_code_is_a_failure():
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4)
    state = search.init(jax.random.key(0))
    theta, state = search.ask(jax.random.key(1), state)
    broken = theta.at[1].set(jnp.nan)
    state, info = jax.jit(search.tell)(jax.random.key(2), state, broken, sphere(theta))
    assert (info.failed, info.samples) == (1, 3)
    assert np.isfinite(state.mean).all()


def test_a_full_archive_without_a_table_refuses_more():
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4, capacity=8, table=False)
    with pytest.raises(ValueError, match="archive of 8 samples is full"):
        run(search, 3)


def test_equal_returns_move_nothing():
    for name in ("pgpe-ob", "mis-pgpe-ob", "iw-pgpe-ob"):
        search = recoup.search(name, dim=12, batch=10, epsilon=1.0)
        state, _ = run(search, 3, objective=lambda theta: jnp.full(10, -17.42975686869792))
        start = search.init(jax.random.key(0))
        np.testing.assert_array_equal(state.mean, start.mean)
        np.testing.assert_array_equal(state.std, start.std)


def test_a_state_made_in_float64_stays_so_outside_the_context():
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4)
    with jax.enable_x64(True):
        state = search.init(jax.random.key(0))
    theta, state = search.ask(jax.random.key(1), state)
    returns = np.array([0.1, 0.2, 0.3, 0.4])
    state, info = search.tell(jax.random.key(2), state, theta, returns)
    assert float(info.objective) == pytest.approx(0.25, rel=1e-14)
    assert theta.dtype == state.mean.dtype == info.objective.dtype == jnp.float64


@pytest.mark.parametrize("name", ["recoup", "cem", "iw-pgpe-ob"])
def test_products_keep_all_digits_on_any_device(name):
    """A GPU's own products of float32 have three digits, of which a regression makes nothing."""
    search = recoup.search(name, dim=3, batch=4, family="full", window=3)
    state = search.init(jax.random.key(0))
    theta, state = search.ask(jax.random.key(0), state)
    told = jax.make_jaxpr(search.tell)(jax.random.key(0), state, theta, theta[:, 0])
    asked = jax.make_jaxpr(search.estimate)(state.rho, state.archive)
    text = f"{told} {asked}"
    assert text.count("dot_general") > 3
    assert text.count("dot_general") == text.count("precision=(Precision.HIGHEST")


def test_a_method_without_reuse_has_nothing_to_estimate_from():
    search = recoup.search("pgpe-ob", dim=2, batch=4)
    state, _ = run(search, 1)
    with pytest.raises(ValueError, match="keeps no samples between moves"):
        search.estimate(state.rho, state.archive)


def test_a_batch_of_failures_moves_nothing_and_is_counted():
    search = recoup.search("pgpe-ob", dim=2, batch=4)
    state = search.init(jax.random.key(0))
    theta, state = search.ask(jax.random.key(1), state)
    after, info = search.tell(jax.random.key(2), state, theta, [np.nan, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(after.mean, state.mean)
    np.testing.assert_array_equal(after.std, state.std)
    assert info.failed == 4


def test_an_optax_transformation_is_an_update():
    search = recoup.search("pgpe-ob", dim=2, batch=20, update=optax.adam(0.1))
    state, _ = run(search, 60, mean=-1.0)
    assert float(sphere(state.mean)) > -0.3


def test_the_natural_update_moves_by_the_given_divergence(x64):
    search = recoup.search("mis-pgpe-ob", dim=3, batch=10, update="natural", kl=0.2)
    _, info = run(search, 4)
    assert info.kl == pytest.approx(0.2, rel=1e-6)


def test_mirrored_batches_are_pairs_and_count_as_such():
    search = recoup.search("pgpe", dim=3, batch=8, mirrored=True)
    state = search.init(jax.random.key(0))
    theta, state = search.ask(jax.random.key(1), state)
    centre = (theta[0::2] + theta[1::2]) / 2
    np.testing.assert_allclose(centre, jnp.broadcast_to(state.mean, (4, 3)), atol=1e-6)
    _, info = search.tell(jax.random.key(2), state, theta, sphere(theta))
    assert info.ess == pytest.approx(4)


def test_the_estimate_can_be_asked_for_any_candidate(x64):
    """Expected return of a candidate at no rollout, within four of its own standard errors."""
    search = recoup.search("mis-pgpe-ob", dim=2, batch=500, capacity=2000)
    state, _ = run(search, 4, mean=0.0)
    candidate = Diagonal(state.mean + 0.1, state.std * 0.9)
    got = search.estimate(candidate, state.archive)
    truth = -float(jnp.sum((candidate.eta - 0.5) ** 2 + candidate.tau**2))
    assert abs(float(got.objective) - truth) < 4 * float(got.objective_stderr)
    assert got.objective_stderr < 0.1


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: recoup.search("iw-pgpe-bo", dim=2, batch=4), "Did you mean 'iw-pgpe-ob'"),
        (lambda: recoup.search("pgpe", dim=0, batch=4), "dim must be a whole number .* got 0"),
        (lambda: recoup.search("pgpe", dim=2, batch=-4), "batch must be a whole number .* got -4"),
        (lambda: recoup.search("pgpe", dim=2, batch=2.5), "batch must be a whole number"),
        (
            lambda: recoup.search("pgpe", dim=2, batch=4, capacity=2),
            "must hold a batch of 4, got 2",
        ),
        (lambda: recoup.search("pgpe", dim=2, batch=4, window=0), "window must be a whole number"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, late=-1), "late must be a whole number"),
        (
            lambda: recoup.search("pgpe", dim=2, batch=4, epsilon=0),
            "epsilon must be above 0 and finite, got 0",
        ),
        (lambda: recoup.search("pgpe", dim=2, batch=4, tau_floor=-1), "tau_floor must be above 0"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, epsilom=1), "Did you mean 'epsilon'"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, update="adamm"), "update must be one of"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, baseline="best"), "baseline must be one of"),
        (lambda: recoup.search("pgpe", dim=2, batch=5, mirrored=True), "must be even"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, epsilon="0.5"), "epsilon must be a number"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, update={}), "update must be one of"),
        (lambda: recoup.search("pgpe", dim=2, batch=4, foo=1), "'foo' is not a setting"),
    ],
)
def test_bad_settings_get_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ({"mean": [1.0, 2.0, 3.0]}, r"mean=...\)` must be a number or have shape \[D\] = \[2\]"),
        ({"mean": np.nan}, r"mean=...\)` must be finite"),
        ({"std": 0.0}, r"std=...\)` must be positive standard deviations, got 0.0"),
        ({"std": [1.0, -1.0]}, r"got -1.0 at \[1\]"),
        ({"mean": "a"}, r"mean=...\)` must be an array of real numbers, got 'a'"),
        ({"std": None}, r"std=...\)` must be an array of real numbers, got None"),
        ({"mean": 1e39}, r"mean=...\)` must be finite, got inf"),
        ({"std": 1e-60}, r"std=...\)` must be positive"),
        ({"key": 0}, r"key=...\)` must be a key from `jax.random.key`, got 0"),
    ],
)
def test_a_bad_start_gets_one_sentence(start, sentence):
    with pytest.raises(ValueError, match=sentence):
        recoup.search("pgpe", dim=2, batch=4).init(**{"key": jax.random.key(0), **start})


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"theta": np.zeros((3, 2))}, r"theta=...\)` must have shape \[N, D\] = \[4, 2\], got"),
        ({"returns": np.zeros(3)}, r"returns=...\)` must have shape \[N\] = \[4\], got \[3\]"),
        ({"theta": np.full((4, 2), np.nan)}, r"theta=...\)` must be finite, got nan"),
        ({"returns": ["a"] * 4}, r"returns=...\)` must be an array of real numbers"),
        ({"returns": [1.0, None, 1.0, 1.0]}, r"returns=...\)` must be an array of real numbers"),
        ({"proposal": [0, 0, 0]}, r"proposal=...\)` must have shape \[N\] = \[4\], got \[3\]"),
        ({"proposal": [0, 0, 0, 1]}, r"must lie in 0..0, the newest proposal"),
        ({"proposal": [0.0, 0, 0, 0]}, "must be whole numbers"),
    ],
)
def test_a_bad_tell_gets_one_sentence(told, sentence):
    search = recoup.search("pgpe", dim=2, batch=4)
    state = search.init(jax.random.key(0))
    told = {"theta": np.zeros((4, 2)), "returns": np.zeros(4), **told}
    with pytest.raises(ValueError, match=sentence):
        search.tell(jax.random.key(0), state, **told)


@pytest.mark.parametrize("fails", [False, True], ids=["all", "one fails"])
@pytest.mark.parametrize("family", ["diagonal", "full", "lowrank"])
@pytest.mark.parametrize("method", ["recoup", "mis-pgpe-ob", "iw-pgpe-ob"])
def test_an_estimate_at_the_distribution_that_moved_is_what_the_move_said(method, family, fails):
    drew, theta, returns = [], [], []
    with jax.enable_x64(True):
        search = recoup.search(method, dim=3, batch=8, family=family)
        state = search.init(jax.random.key(0), mean=0.2)
        for i in range(3):
            asked, state = search.ask(jax.random.key(i), state)
            earned = -jnp.sum((asked - 1) ** 2, axis=1)
            earned = earned.at[2].set(jnp.nan) if fails and i == 1 else earned
            drew, theta, returns = [*drew, state.rho], [*theta, asked], [*returns, earned]
            before, (state, info) = state, search.tell(jax.random.key(i), state, asked, earned)
        found = search.estimate(before.rho, state.archive)
        for key in ("objective", "objective_stderr", "ess", "mean_weight", "max_weight"):
            assert getattr(found, key) == pytest.approx(float(getattr(info, key)), rel=1e-9), key
        if method != "recoup" or family != "diagonal":
            return
        stacked = (np.stack([rho.mean for rho in drew]), np.stack([rho.std for rho in drew]))
        other = recoup.estimate(
            np.concatenate(theta),
            np.concatenate(returns),
            proposals=stacked,
            proposal=np.repeat(np.arange(3), 8),
            target=(drew[-1].mean, drew[-1].std),
            weighting="balance",
            normalize=True,
            baseline="optimal",
        )
    np.testing.assert_allclose(found.gradient.eta, other.mean_gradient, rtol=1e-9)
    np.testing.assert_allclose(found.gradient.tau, other.std_gradient, rtol=1e-9)
