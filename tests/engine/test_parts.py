"""Parts of a user's own, wherever a word is accepted."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from own_families import ROUND_MOVING, Round, rounded
from sentences import NOT_STORED

import recoup
from recoup.core import baselines, weights
from recoup.core.families.full import full_gaussian
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian, log_density
from recoup.core.updates import normalised_ascent
from recoup.engine.composition import composed
from recoup.engine.methods import METHODS, Method, method_row

KEY = jax.random.key(0)
GRADIENT = {"dim": 2, "method": "mis-pgpe-ob"}  # of a study


def learned(*method, batches=4, **settings):
    """Means and deviations after some moves on a bowl, and the last info."""
    search = recoup.search(*method, dim=3, batch=8, **settings)
    state = search.init(jax.random.key(0), mean=0.3)
    for i in range(batches):
        theta, state = search.ask(jax.random.key(i), state)
        returns = 5.0 - jnp.sum((theta - jnp.arange(3)) ** 2, axis=1)
        state, info = search.tell(jax.random.key(i), state, theta, returns)
    return np.concatenate([state.mean, state.std]), info


def written_out(d):
    return d.target - d.own


@pytest.mark.parametrize(
    ("word", "own"),
    [
        ({"weighting": "own"}, {"weighting": weights.own_ratio}),
        ({"weighting": "own"}, {"weighting": written_out}),
        ({"weighting": "balance"}, {"weighting": lambda d: d.target - d.mixture}),
        ({"baseline": "optimal"}, {"baseline": baselines.optimal}),
        ({"baseline": "none"}, {"baseline": lambda earned, scores: 0.0}),
        ({"baseline": "none"}, {"baseline": lambda earned, scores: jnp.zeros(())}),
        ({"update": "normalised", "epsilon": 0.2}, {"update": "rule"}),
        ({"update": "adam", "epsilon": 0.2}, {"update": optax.adam(0.2)}),
        ({"family": "full"}, {"family": full_gaussian()}),
    ],
    ids=lambda settings: "-".join(settings),
)
def test_an_object_does_what_its_word_does(word, own):
    if own == {"update": "rule"}:
        own = {"update": normalised_ascent(diagonal_gaussian(), 0.2, 0.05)}
    base = {"weighting": "balance", "baseline": "optimal"}
    want, _ = learned("mis-pgpe-ob", **{**base, **word})
    got, _ = learned("mis-pgpe-ob", **{**base, **own})
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_a_baseline_sees_returns_as_they_were_told_and_zero_means_none():
    """Returns lie near 5; one that answered relative to the largest would be far off."""
    seen = []

    def told(earned, scores):
        jax.debug.callback(lambda x: seen.append(np.asarray(x)), earned.returns)
        return jnp.mean(earned.returns)

    _, info = learned("pgpe", batches=1, baseline=told)
    assert info.baseline == pytest.approx(seen[0].mean(), rel=1e-6)
    mean, _ = learned("pgpe", batches=1, baseline="mean")
    np.testing.assert_allclose(learned("pgpe", batches=1, baseline=told)[0], mean, rtol=1e-5)


def test_a_direction_of_ones_own_moves_the_search():
    def best_first(rho, samples, earned):
        """Towards the best sample."""
        best = samples.reshape(-1, 3)[jnp.argmax(jnp.where(earned.valid, earned.returns, -jnp.inf))]
        return Diagonal(best - rho.eta, jnp.zeros_like(rho.tau)), jnp.zeros(())

    got, _ = learned("pgpe", direction=best_first, epsilon=0.5)
    assert np.linalg.norm(got[:3] - np.arange(3)) < np.linalg.norm(0.3 - np.arange(3)) - 1
    np.testing.assert_array_equal(got[3:], 1.0)
    with pytest.raises(ValueError, match="baseline has no effect on a direction of your own"):
        learned("pgpe", direction=best_first, baseline="mean")


def test_a_row_takes_the_place_of_a_name():
    row = replace(METHODS["mis-pgpe-ob"], name="mine", truncate=1.5)
    got, info = learned(row)
    np.testing.assert_array_equal(got, learned("mis-pgpe-ob", truncate=1.5)[0])
    assert info.max_weight <= 1.5 + 1e-6
    bare, _ = learned(Method("bare"))
    np.testing.assert_array_equal(bare, learned("niw-pgpe")[0])


ROUND = recoup.family(
    "round",
    start=lambda mean, std: Round(mean, jnp.log(std[:1])),
    log_density=lambda rho, theta: log_density(Diagonal(rho.mean, rho.std), theta),
)


def test_a_family_of_ones_own_learns_and_its_scores_are_right():
    got, info = learned("mis-pgpe-ob", family=ROUND, epsilon=0.3, batches=8)
    assert np.linalg.norm(got[:3] - np.arange(3)) < np.linalg.norm(0.3 - np.arange(3)) - 0.5
    assert len(set(got[3:].tolist())) == 1
    rho, theta = Round(jnp.array([0.3, -1.0]), jnp.log(jnp.array([0.7]))), jnp.array([1.0, 0.5])
    z = (theta - rho.centre) / 0.7
    found = ROUND.score(rho, theta)
    np.testing.assert_allclose(found.centre, z / 0.7, rtol=1e-5)
    np.testing.assert_allclose(found.log_width, [np.sum(z**2 - 1)], rtol=1e-5)
    assert np.isnan(info.kl)  # which no closed form was given for
    block = ROUND.packed(rho)
    np.testing.assert_allclose(ROUND.unpacked(np.stack([block, block]), 2).log_width.shape, (2, 1))


def test_what_a_family_has_not_is_said():
    with pytest.raises(
        ValueError, match="update='natural' needs `natural` and `moved` of a family"
    ):
        learned("pgpe", family=ROUND, update="natural")


def test_estimate_takes_parts_too():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(30, 2))
    returns = -np.sum(theta**2, axis=1)
    how = {"proposals": (np.zeros((1, 2)), np.ones((1, 2))), "proposal": np.zeros(30, int)}
    target = (np.array([0.2, 0.1]), np.array([0.8, 0.9]))
    want = recoup.estimate(theta, returns, **how, target=target, weighting="own", baseline="mean")
    got = recoup.estimate(
        theta,
        returns,
        **how,
        target=target,
        weighting=lambda d: d.target - d.own,
        baseline=lambda earned, scores: (
            jnp.sum(earned.weights * earned.returns) / jnp.sum(earned.weights)
        ),
    )
    np.testing.assert_allclose(got.mean_gradient, want.mean_gradient, rtol=1e-12)
    assert got.baseline == pytest.approx(want.baseline, rel=1e-12)
    mean, width = jnp.zeros((1, 2)), jnp.zeros((1, 1))
    found = recoup.estimate(
        theta,
        returns,
        proposals=Round(mean, width),
        proposal=np.zeros(30, int),
        target=Round(jnp.asarray(target[0]), jnp.log(jnp.array([0.8]))),
        family=ROUND,
    )
    same = recoup.estimate(theta, returns, **how, target=(target[0], np.full(2, 0.8)))
    np.testing.assert_allclose(found.weights, same.weights, rtol=1e-5)


def test_estimates_of_full_covariance_agree_with_a_plain_loop():
    from scipy import stats

    rng = np.random.default_rng(1)
    means = np.array([[0.0, 0.0], [0.3, -0.2]])
    factors = np.array([[[1.0, 0.0], [0.4, 0.9]], [[0.8, 0.0], [-0.3, 1.1]]])
    index = np.repeat([0, 1], 15)
    theta = means[index] + np.einsum("nij,nj->ni", factors[index], rng.normal(size=(30, 2)))
    returns = -np.sum(theta**2, axis=1)
    mean, factor = np.array([0.1, 0.1]), np.array([[0.7, 0.0], [0.2, 0.8]])
    found = recoup.estimate(
        theta,
        returns,
        proposals=(means, factors),
        proposal=index,
        target=(mean, factor),
        family="full",
        baseline="none",
    )
    density = [
        stats.multivariate_normal(m, f @ f.T).pdf(theta)
        for m, f in zip(means, factors, strict=True)
    ]
    w = stats.multivariate_normal(mean, factor @ factor.T).pdf(theta) / np.mean(density, axis=0)
    np.testing.assert_allclose(found.weights, w, rtol=1e-9)
    gradient = np.zeros((2, 2))
    for x, weight, value in zip(theta, w, returns, strict=True):
        z = np.linalg.solve(factor, x - mean)
        gradient += weight * value * np.tril(np.linalg.solve(factor.T, np.outer(z, z) - np.eye(2)))
    np.testing.assert_allclose(found.std_gradient, gradient / 30, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="factor must be lower triangular"):
        recoup.estimate(
            theta,
            returns,
            proposals=(means, factors),
            proposal=index,
            target=(mean, factor.T),
            family="full",
        )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kl": 0.3}, "kl has no effect on update='normalised': it is for update='natural'"),
        ({"power": 0.3}, "power has no effect on weighting='balance'"),
        ({"update": "natural", "epsilon": 0.1}, "epsilon has no effect on update='natural'"),
        ({"update": optax.sgd(0.1), "epsilon": 0.1}, "epsilon has no effect on your own update"),
        ({"family": "fuul"}, "Did you mean 'full'"),
        ({"update": "adan"}, "Did you mean 'adam'"),
        ({"weighting": 3}, "weighting must be one of"),
        ({"direction": "em"}, "direction='em' is for methods that explore in action space"),
    ],
)
def test_a_setting_without_effect_or_meaning_is_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        method_row("mis-pgpe-ob", **settings)


@pytest.mark.parametrize(
    ("weighting", "own", "mixture"),
    [
        ("none", False, False),
        ("own", True, False),
        ("balance", False, True),
        ("power-mean", True, False),
    ],
)
def test_a_ratio_says_which_densities_are_kept(weighting, own, mixture):
    found = composed(method_row("mis-pgpe-ob", weighting=weighting))
    assert (found.own, found.mixture) == (own, mixture)
    assert composed(Method("mine", weighting=written_out)).mixture
    declared = recoup.needs("own")(lambda d: d.target - d.own)
    assert not composed(Method("mine", weighting=declared)).mixture


@pytest.mark.usefixtures("sketches")
@pytest.mark.parametrize("settings", [{"baseline": lambda e, s: 1.0}, {"family": ROUND}])
def test_a_run_with_parts_of_ones_own_goes_on_once_they_are_given_again(settings, tmp_path):
    class Stopped(Exception):
        pass

    def stop(step):
        if step.iteration == 2:
            raise Stopped

    calm = recoup.train("toy", "mis-pgpe-ob", iterations=4, **settings)
    with pytest.raises(Stopped):
        recoup.train(
            "toy", "mis-pgpe-ob", iterations=4, **settings, out=tmp_path / "run", progress=stop
        )
    (key,) = settings
    with pytest.raises(ValueError, match=f"was made with {key}=.*which a file cannot hold"):
        recoup.resume(tmp_path / "run")
    run = recoup.resume(tmp_path / "run", **settings)
    np.testing.assert_array_equal(run.mean, calm.mean)
    np.testing.assert_array_equal(run.std, calm.std)
    assert recoup.load(tmp_path / "run", **settings).finished
    with recoup.Study.open(tmp_path / "run" / "study.db") as study:  # what needs no move works
        assert study.counts()["ok"] == 40
        if key == "baseline":
            assert study.export(tmp_path / "trials.csv") == 40
        else:
            with pytest.raises(ValueError, match=NOT_STORED):
                study.export(tmp_path / "trials.csv")
            assert not (tmp_path / "trials.csv").exists()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: recoup.family("full", start=Round, log_density=log_density), "name of a family"),
        (
            lambda: recoup.family("mine", start=Round, log_density=log_density, draw=len),
            "draws by `theta",
        ),
        (
            lambda: recoup.family("mine", start=Round, log_density=log_density, floord=len),
            "Did you mean 'floored'",
        ),
        (lambda: recoup.needs("mixtrue"), "Did you mean 'mixture'"),
        (
            lambda: learned(Method("mine", space="actions", mirrored=True), horizon=3),
            "'mirrored' is not a setting of mine, which explores in actions",
        ),
        (lambda: learned(Method("mine", per_decision=True)), "'per_decision' is not a setting"),
        (
            lambda: learned("pgpe", family=ROUND, tau_floor=0.3),
            "tau_floor has no effect on a family",
        ),
        (
            lambda: learned("pgpe", weighting=Unhashable()),
            "weighting must be a function, or an object",
        ),
        (
            lambda: recoup.search(
                "iw-reinforce-ob",
                dim=2,
                batch=4,
                horizon=3,
                per_decision=True,
                weighting=lambda d: d.target - d.mixture,
            ),
            "per_decision weights are against the own proposal",
        ),
        (lambda: recoup.EvosaxStrategy(8, jnp.zeros(2), METHODS["r3"]), "no verbs for"),
    ],
)
def test_wrong_parts_get_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


class Unhashable:
    __hash__ = None

    def __call__(self, d):
        return d.target - d.own


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"power": 0.5}, "power has no effect on weighting='balance'"),
        ({"family": "full", "target": (np.zeros(2), 0.8)}, r"stds? must have shape \[..., D\]"),
        ({"family": ROUND}, r"`estimate\(proposals=...\)` must be rho of the family, got tuple"),
    ],
)
def test_estimate_refuses_what_it_cannot_use(change, sentence):
    problem = {
        "theta": np.zeros((4, 2)),
        "returns": np.zeros(4),
        "proposals": (np.zeros((1, 2)), np.ones((1, 2))),
        "proposal": np.zeros(4, int),
        "target": (np.zeros(2), np.ones(2)),
    }
    with pytest.raises(ValueError, match=sentence):
        recoup.estimate(**{**problem, **change})


def test_a_rule_that_fills_the_upper_triangle_leaves_a_factor():
    search = recoup.search(
        "pgpe", dim=3, batch=8, family="full", update=optax.noisy_sgd(0.05, key=KEY)
    )
    state = search.init(jax.random.key(0), mean=0.0)
    for i in range(3):
        theta, state = search.ask(jax.random.key(i), state)
        state, _ = search.tell(jax.random.key(i), state, theta, -jnp.sum(theta**2, axis=1))
    assert np.abs(np.tril(state.rho.factor, -1)).max() > 0
    np.testing.assert_array_equal(np.triu(state.rho.factor, 1), 0.0)


def to_nowhere(estimate, rho, memory):
    return jax.tree.map(lambda x: x + jnp.nan, rho), memory, estimate(rho)


class TestAStudyWithPartsOfOnesOwn:
    def fill(self, study, batches=1):
        for trial in study.ask(4 * batches):
            study.tell(trial.id, -float(np.sum(trial.theta**2)))

    def test_a_move_that_is_not_finite_is_not_written(self, tmp_path):
        rule = recoup.Update(lambda rho: (), to_nowhere)
        with recoup.Study.open(tmp_path / "s.db", **GRADIENT, batch=4, update=rule) as study:
            with pytest.raises(ValueError, match="made a distribution that is not finite: nothing"):
                self.fill(study)
            assert study.counts()["ok"] == 4
            assert study.history() == []
            study.fork(tmp_path / "new.db", update="adam").close()

    def test_a_memory_that_a_file_cannot_hold_is_refused_before_there_is_one(self, tmp_path):
        with pytest.raises(ValueError, match="holds a random key"):
            recoup.Study.open(tmp_path / "s.db", **GRADIENT, update=optax.noisy_sgd(0.1, key=KEY))
        assert not (tmp_path / "s.db").exists()

    def test_another_rule_of_python_begins_without_the_memory(self, tmp_path):
        how = {**GRADIENT, "batch": 4, "update": optax.adam(0.1)}
        with recoup.Study.open(tmp_path / "s.db", **how) as study:
            self.fill(study)
            with study.fork(tmp_path / "new.db", update=optax.sgd(0.1, momentum=0.9)) as new:
                self.fill(new)
                assert len(new.history()) == 1

    def test_a_row_is_what_it_says_however_it_is_called(self, tmp_path):
        mine = Method("mine", weighting="own", baseline="mean", epsilon=0.1)
        other = replace(mine, weighting="balance", epsilon=0.7)
        with recoup.Study.open(tmp_path / "s.db", dim=2, batch=4, method=mine) as study:
            self.fill(study)
            with study.fork(tmp_path / "new.db", method=other) as new:
                assert (new.method.weighting, new.method.epsilon) == ("balance", 0.7)
        with pytest.raises(ValueError, match="was made with weighting='own', not 'balance'"):
            recoup.Study.open(tmp_path / "s.db", method=other)
        with recoup.Study.open(tmp_path / "s.db", method=mine) as study:
            assert study.method.weighting == "own"

    def test_another_function_is_not_the_one_it_was_made_with(self, tmp_path):
        def mine(earned, scores):
            return 1.0

        def other(earned, scores):
            return 2.0

        recoup.Study.open(tmp_path / "s.db", **GRADIENT, baseline=mine).close()
        with pytest.raises(ValueError, match="was made with baseline=mine, not other"):
            recoup.Study.open(tmp_path / "s.db", baseline=other)
        recoup.Study.open(tmp_path / "s.db", baseline=mine).close()

    def test_a_family_draws_the_same_whatever_precision_jax_has(self, tmp_path):
        thetas = []
        for i, double in enumerate((False, True)):
            with (
                jax.enable_x64(double),
                recoup.Study.open(tmp_path / f"{i}.db", **GRADIENT, std=0.3, family=ROUND) as study,
            ):
                thetas.append(study.ask(2)[1].theta)
        np.testing.assert_array_equal(*thetas)


def test_a_run_says_what_has_failed(tmp_path, monkeypatch):
    from recoup.tasks.engines import vectorised

    def fails(number, found, i):
        return vectorised.Outcome(number, (float("nan") if number % 2 else 1.0,))

    monkeypatch.setattr(vectorised, "_outcome", fails)
    run = recoup.train("toy", iterations=3, batch=4, seed=0, out=tmp_path / "run")
    assert (run.episodes, run.failed, run.history[-1].iteration) == (12, 6, 3)  # they fill a batch
    assert run.summary()["episodes"] == 12
    assert recoup.load(tmp_path / "run").failed == 6


class TestAFamilyThatARuleMoves:
    """One with a single width: it takes the mean of a stretch, and finds the top."""

    @pytest.mark.parametrize("name", ["recoup", "cem"])
    def test_it_is_searched_with(self, name):
        family = rounded(**ROUND_MOVING)
        search = recoup.search(name, dim=3, batch=12, family=family)
        state = search.init(KEY, mean=1.0)
        for i in range(12):
            theta, state = search.ask(jax.random.key(i), state)
            state, _ = search.tell(jax.random.key(i), state, theta, -jnp.sum(theta**2, axis=1))
        assert np.abs(state.mean).max() < 0.2
        assert np.ptp(state.std) == 0 < state.std[0] < 0.5

    def test_a_study_is_made_with_it_and_goes_on(self, tmp_path):
        family, path = rounded(**ROUND_MOVING), tmp_path / "s.db"

        def tell(study):
            trials = study.ask(6)
            study.tell([t.id for t in trials], [float(-(t.theta**2).sum()) for t in trials])

        with recoup.Study.open(path, dim=3, batch=6, mean=1.0, family=family, seed=2) as study:
            for _ in range(3):
                tell(study)
        with recoup.Study.open(path, family=family) as study:
            for _ in range(3):
                tell(study)
            assert study.diagnostics()["moves"] == 6
            assert np.abs(study.mean).max() < 0.5

    @pytest.mark.parametrize("name", ["recoup", "reps"])
    def test_what_it_has_not_is_said(self, name):
        lacking = {**ROUND_MOVING, "stretched": None}
        with pytest.raises(ValueError, match="'round' has no stretched: give them"):
            recoup.search(name, dim=3, batch=6, family=rounded(**lacking))
        with pytest.raises(ValueError, match="has no whitened, log_spread, stretched"):
            recoup.search(name, dim=3, batch=6, family=ROUND)
        with pytest.raises(ValueError, match="shape of a family must be one of diagonal, full"):
            rounded(shape="round")

    def test_limits_are_refused(self, tmp_path):
        family = rounded(**ROUND_MOVING)
        with pytest.raises(ValueError, match="limits are kept with a family of ours"):
            recoup.Study.open(tmp_path / "s.db", dim=2, family=family, limits=["force<5"])
