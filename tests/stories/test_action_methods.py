"""What every method that explores in action space promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recoup
from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import log_ratio
from recoup.engine.methods import METHODS
from recoup.tasks.models import Model, episode

NAMES = [row.name for row in METHODS.values() if row.space == "actions"]
CORE = [*((name, {}) for name in NAMES), ("iw-reinforce-ob", {"per_decision": True})]
VARIANTS = [
    *CORE,
    ("iw-reinforce-ob", {"weighting": "balance"}),
    ("tiw-enac", {"window": 2, "normalize": True}),
    ("r3", {"flatten": 0.5}),
    *((name, {"window": 1}) for name in NAMES),
]
F, A, T, BATCH = 2, 2, 5, 6

# Two actions push a point in the plane; the second is held to +-0.4 by the model.
MODEL = Model(
    initial=lambda xp, noise: xp.asarray([0.5, -0.3]) + 0.1 * noise,
    transition=lambda xp, s, a, noise: 0.9 * s + xp.clip(a, -5.0, 0.4) + 0.1 * noise,
    reward=lambda xp, s, a, after: xp.exp(-xp.sum(after**2)) - 0.02 * a[0] ** 2,
    basis=lambda xp, s: s,
    features=F,
    low=(-np.inf,) * 2,
    high=(np.inf,) * 2,
    actions=A,
)


def make(name, settings=None, **sizes):
    sizes = {"dim": F * A, "actions": A, "horizon": T, "batch": BATCH, "discount": 0.9} | sizes
    return recoup.search(name, capacity=4 * sizes["batch"], **sizes, **(settings or {}))


@jax.jit
def roll_out(asked):
    keys = jax.vmap(jax.random.key)(asked.seeds)
    return jax.vmap(episode(MODEL, T), (0, None))(keys, asked.policy)


def told(search, state, i):
    asked, state = search.ask(jax.random.key(i), state)
    return roll_out(asked)


def ends(state):
    return np.concatenate([state.mean, state.std])


@pytest.mark.parametrize(("name", "settings"), CORE, ids=str)
class TestEveryMethodAsAFunction:
    @pytest.mark.slow
    def test_vmap_over_runs_equals_a_loop_of_calls(self, name, settings, x64):
        search = make(name, settings)

        def move(state, key):
            asked, state = search.ask(key, state)
            return search.tell(key, state, roll_out(asked))[0], None

        def run(key):
            return jax.lax.scan(move, search.init(key), jax.random.split(key, 3))[0]

        keys = jax.random.split(jax.random.key(0), 2)
        together = jax.jit(jax.vmap(run))(keys)
        for i, key in enumerate(keys):
            state = search.init(key)
            for step in jax.random.split(key, 3):
                state, _ = move(state, step)
            np.testing.assert_allclose(together.mean[i], state.mean, rtol=1e-7)
            np.testing.assert_allclose(together.std[i], state.std, rtol=1e-7)
            assert state.mean.shape == (F * A,)
            assert state.std.shape == (A,)

    def test_float32_and_float64_agree(self, name, settings):
        rng, results = np.random.default_rng(0), []
        batches = [
            [rng.normal(size=s) for s in ((BATCH, T, F), (BATCH, T, A), (BATCH, T))]
            for _ in range(3)
        ]
        search = make(name, {**settings, "ridge": 1e-2} if name == "tiw-enac" else settings)
        for double in (False, True):
            with jax.enable_x64(double):
                state = search.init(jax.random.key(0), mean=0.1)
                for arrays in batches:
                    h = recoup.Trajectory(*map(jnp.asarray, arrays), jnp.full(BATCH, T, jnp.int32))
                    state, _ = search.tell(jax.random.key(0), state, h)
                assert state.mean.dtype == (jnp.float64 if double else jnp.float32)
                results.append(ends(state))
        np.testing.assert_allclose(results[0], results[1], atol=2e-3)

    def test_one_trace_serves_every_call(self, name, settings):
        """What a move leaves is, to JAX, what it began with."""
        search = make(name, settings)

        def move(key, state):
            asked, state = search.ask(key, state)
            return search.tell(key, state, roll_out(asked))[0]

        state = search.init(jax.random.key(0))
        after = jax.eval_shape(move, jax.random.key(0), state)
        assert jax.tree.map(jax.typeof, state) == jax.tree.map(jax.typeof, after)


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
class TestEveryActionMethod:
    def test_failed_and_padded_steps_change_nothing_whatever_they_hold(self, name, settings, x64):
        search, results = make(name, settings), []
        for junk in (0.0, 5.0, np.nan):
            state = search.init(jax.random.key(2))
            for i in range(3):
                h = told(search, state, i)
                h = h._replace(  # episode 1 broke, episode 2 ended after three steps
                    rewards=h.rewards.at[1, 2].set(jnp.inf).at[2, 3:].set(junk),
                    actions=h.actions.at[1].set(junk).at[2, 3:].set(junk),
                    features=h.features.at[2, 3:].set(junk),
                    steps=h.steps.at[2].set(3),
                )
                state, info = search.tell(jax.random.key(9), state, h)
            assert info.failed == 1
            assert np.isfinite(info.objective)
            assert info.kl > 0  # the others still teach
            results.append(ends(state))
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])

    def test_equal_returns_move_nothing(self, name, settings, x64):
        search = make(name, settings)
        state = search.init(jax.random.key(0))
        before = ends(state)
        for i in range(3):
            h = told(search, state, i)
            h = jax.tree.map(np.asarray, h._replace(rewards=jnp.full((BATCH, T), -0.7)))
            state, info = search.tell(jax.random.key(0), state, h)
        np.testing.assert_array_equal(ends(state), before)
        assert info.kl == 0

    def test_a_sigma_at_its_floor_and_long_episodes_stay_finite(self, name, settings):
        """100 steps; policies from sigma 3 to the floor, far apart: nothing overflows.

        In float32, which overflows wherever float64 does.
        """
        search = make(name, {**settings, **floor(name)}, horizon=100)
        state = search.init(jax.random.key(0), std=3.0)
        rng = np.random.default_rng(0)
        for i in range(4):
            if i == 2:  # a leap that no gradient made
                rho = Policy(state.rho.mu + 5.0, jnp.full_like(state.rho.sigma, 0.05))
                state = state._replace(rho=rho)
            shapes = ((BATCH, 100, F), (BATCH, 100, A), (BATCH, 100))
            arrays = (jnp.asarray(rng.normal(size=shape)) for shape in shapes)
            h = recoup.Trajectory(*arrays, jnp.full(BATCH, 100))
            state, info = search.tell(jax.random.key(0), state, h)
            assert state.mean.dtype == jnp.float32
            for leaf in jax.tree.leaves((state.rho, info.objective, info.weights, info.ess)):
                assert np.isfinite(leaf).all()
            assert (np.asarray(state.std) >= np.float32(0.05) - 1e-7).all()


def floor(name):
    return {} if name == "r3" else {"epsilon": 5.0}


@pytest.mark.parametrize("name", NAMES)
def test_late_results_carry_the_density_of_the_policy_that_drew_them(name, x64):
    """A batch told late with its proposal's number weighs what it would have weighed."""
    search = make(name, {"flatten": 1.0} if name == "r3" else {})
    state = search.init(jax.random.key(0))
    late = told(search, state, 0)
    on_time = told(search, state, 1)
    state, _ = search.tell(jax.random.key(0), state, on_time)
    newest = told(search, state, 2)
    mixed = jax.tree.map(lambda a, b: jnp.concatenate([a[:3], b[3:]]), late, newest)
    proposal = np.array([0, 0, 0, 1, 1, 1])
    _, info = search.tell(jax.random.key(0), state, mixed, proposal=proposal)
    weights = np.asarray(info.weights[1])
    np.testing.assert_allclose(weights[3:], 1.0)
    start = jax.tree.map(lambda x: x[0], state.archive.proposals)
    want = np.exp(jax.jit(jax.vmap(lambda h: log_ratio(state.rho, start, h)))(late))[:3]
    want = np.minimum(want, 2.0) if name == "tiw-enac" else want
    np.testing.assert_allclose(weights[:3], want, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_every_action_method_learns(name):
    """Returns of the newest 100 episodes against the first 100, 4 s.e."""
    search = make(name, batch=100)
    state, returns = search.init(jax.random.key(0), mean=0.0), []
    for i in range(20):
        h = told(search, state, i)
        returns.append(np.asarray(h.rewards.sum(1)))
        state, _ = search.tell(jax.random.key(i), state, h)
    error = np.hypot(*(returns[i].std(ddof=1) / np.sqrt(100) for i in (0, -1)))
    assert returns[-1].mean() - returns[0].mean() > 4 * error


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: recoup.search("r3", dim=4, batch=2),
            "r3 explores in action space: give `horizon`",
        ),
        (
            lambda: recoup.search("pgpe", dim=4, batch=2, horizon=3),
            "horizon is for methods that explore in action space",
        ),
        (
            lambda: recoup.search("r3", dim=5, batch=2, horizon=3, actions=2),
            "dim must be features times actions, got 5 with 2",
        ),
        (
            lambda: make("r3", {"baseline": "mean"}),
            "'baseline' is not a setting of r3; its settings",
        ),
        (lambda: make("tiw-enac", {"mirrored": True}), "'mirrored' is not a setting of tiw-enac"),
        (
            lambda: make("iw-reinforce-ob", {"update": "natural"}),
            "update must be one of normalised",
        ),
        (
            lambda: make("iw-reinforce-ob", {"per_decision": True, "weighting": "balance"}),
            "per_decision weights are against the own proposal",
        ),
        (lambda: make("r3", {"folds": 1}), "folds must be a whole number of at least 2"),
        (lambda: make("tiw-enac", {"ridge": 0.0}), "ridge must be above 0"),
        (lambda: make("r3").init(jax.random.key(0), std=[1.0] * 3), r"shape \[A\] = \[2\]"),
        (
            lambda: (s := make("r3")).tell(
                jax.random.key(0),
                s.init(jax.random.key(0)),
                jnp.zeros((BATCH, 4)),
                jnp.zeros(BATCH),
            ),
            "must be a `recoup.Trajectory` for a method that explores in action space",
        ),
        (
            lambda: recoup.EvosaxStrategy(4, jnp.zeros(2), "r3"),
            "r3 explores in action space, which evosax has no verbs for",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_trajectories_may_be_lists():
    search = make("iw-reinforce-ob")
    state = search.init(jax.random.key(0))
    h = told(search, state, 0)
    lists = recoup.Trajectory(*(np.asarray(x).tolist() for x in h))
    of_arrays = h._replace(rewards=list(np.asarray(h.rewards)))
    want = search.tell(jax.random.key(0), state, h)[0].mean
    for given in (lists, of_arrays):
        got = search.tell(jax.random.key(0), state, given)[0].mean
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_trajectory_of_the_wrong_shape_gets_one_sentence():
    search = make("r3")
    state = search.init(jax.random.key(0))
    h = told(search, state, 0)
    with pytest.raises(
        ValueError, match=r"trajectory's rewards must have shape \[N, T\] = \[6, 5\]"
    ):
        search.tell(jax.random.key(0), state, h._replace(rewards=h.rewards[:, 1:]))
    for wrong in (9, 0, 2.7, np.nan):
        with pytest.raises(ValueError, match=r"steps must be whole numbers in 1\.\.5, got"):
            search.tell(jax.random.key(0), state, h._replace(steps=[5, 5, 5, 5, 5, wrong]))
    with pytest.raises(ValueError, match="the return of a trajectory is in its rewards"):
        search.tell(jax.random.key(0), state, h, jnp.zeros(BATCH))
