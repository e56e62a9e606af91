"""Every method in a study: its moves are those of the search, whatever the order of telling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recoup
from recoup.engine.methods import METHODS, settings_of
from recoup.study.study import Study

ACTION = [name for name, row in METHODS.items() if row.space == "actions"]
PARAMETER = [name for name, row in METHODS.items() if row.space == "parameters"]
T, F, A = 5, 2, 2


def value_of(theta):
    return float(-np.sum((theta - [0.5, -0.2, 1.0]) ** 2))


def episode_of(trial, failing=False):
    """A made-up episode: linear policy, two states that drift, ends early now and then."""
    rng = np.random.default_rng(trial.seed)
    steps = int(rng.integers(2, T + 1))
    features = rng.standard_normal((T, F))
    mu = trial.theta.reshape(F, A) if trial.theta.size == F * A else trial.theta
    actions = features @ mu + trial.std * rng.standard_normal((T, A))
    rewards = -np.sum(actions**2, axis=1) + features[:, 0]
    if failing:
        rewards[0] = np.nan
    return recoup.Trajectory(features, actions, rewards, steps)


class TestOnTime:
    @pytest.mark.parametrize(
        ("method", "settings"),
        [
            (name, given)
            for name in PARAMETER
            for given in ({}, {"mirrored": True}, {"normalize": True}, {"share": 1.0})
            if set(given) <= set(settings_of(name))
        ],
    )
    def test_parameter_methods(self, tmp_path, method, settings):
        told = []
        with Study.open(
            tmp_path / "s.db", dim=3, batch=4, method=method, std=0.7, seed=3, **settings
        ) as study:
            for _ in range(8):
                trials = study.ask(4)
                for trial in reversed(trials):
                    study.tell(trial.id, value_of(trial.theta))
                told.append(trials if settings.get("mirrored") else trials[::-1])
            mean, std, last = study.mean, study.std, study.history()[-1]
        with jax.enable_x64(True):
            search = recoup.search(method, dim=3, batch=4, capacity=100, **settings)
            state = search.init(jax.random.key(0), 0.0, 0.7)
            for trials in told:
                if settings.get("mirrored"):  # the pair told last comes last
                    trials = [*trials[2:], *trials[:2]]
                theta = np.stack([t.theta for t in trials])
                returns = jnp.asarray([value_of(t) for t in theta])
                state, info = search.tell(jax.random.key(0), state, theta, returns)
            np.testing.assert_allclose(mean, state.mean, rtol=1e-9)
            np.testing.assert_allclose(std, state.std, rtol=1e-9)
            per_draw = 2 if settings.get("mirrored") else 1  # the search counts pairs
            assert last["ess"] == pytest.approx(per_draw * float(info.ess), rel=1e-8)
            assert last["kl"] == pytest.approx(float(info.kl), rel=1e-6)

    @pytest.mark.parametrize("method", ACTION)
    @pytest.mark.parametrize("window", [None, 2])
    def test_action_methods(self, tmp_path, method, window):
        episode = {"horizon": T, "actions": A, "discount": 0.9}
        told = []
        with Study.open(
            tmp_path / "s.db", dim=F * A, batch=6, method=method, std=0.8, window=window, **episode
        ) as study:
            for _ in range(4):
                trials = study.ask(6)
                assert trials[0].std.shape == (A,)
                np.testing.assert_array_equal(trials[0].theta, study.mean)
                episodes = [episode_of(trial) for trial in trials]
                study.tell([t.id for t in trials], trajectory=episodes)
                told.append(episodes)
            mean, std, last = study.mean, study.std, study.history()[-1]
        with jax.enable_x64(True):
            search = recoup.search(
                method, dim=F * A, batch=6, capacity=60, window=window, **episode
            )
            state = search.init(jax.random.key(0), 0.0, 0.8)
            for episodes in told:
                stacked = recoup.Trajectory(*(np.stack(x) for x in zip(*episodes, strict=True)))
                state, info = search.tell(jax.random.key(0), state, stacked)
            np.testing.assert_allclose(mean, state.mean, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(std, state.std, rtol=1e-8)
            assert last["ess"] == pytest.approx(float(info.ess), rel=1e-8)

    def test_episodes_that_go_wrong_are_refused_or_failed(self, tmp_path):
        episode = {"horizon": T, "actions": A, "discount": 0.9}
        with Study.open(tmp_path / "s.db", dim=F * A, method="r3", **episode) as study:
            a, b = study.ask(2)
            with pytest.raises(ValueError, match="tell a `trajectory="):
                study.tell(a.id, 3.0)
            with pytest.raises(ValueError, match="rewards of a trajectory must be finite"):
                study.tell(a.id, trajectory=episode_of(a, failing=True))
            narrow = episode_of(a)._replace(features=np.zeros((T, 1)))
            with pytest.raises(ValueError, match=r"features of a trajectory must have shape"):
                study.tell(a.id, trajectory=narrow)
            with pytest.raises(ValueError, match="steps of a trajectory must be a whole number"):
                study.tell(a.id, trajectory=episode_of(a)._replace(steps=99))
            with pytest.raises(ValueError, match="this one has no rewards"):
                study.tell(a.id, trajectory={"features": [[1, 2]], "actions": [[1, 2]]})
            with pytest.raises(ValueError, match="must be made of arrays of numbers"):
                study.tell(a.id, trajectory=episode_of(a)._replace(rewards=1.0))
            study.tell(b.id, failed="fell over")
            study.tell(a.id, trajectory=episode_of(a)._asdict())
            assert study.counts() == {"pending": 0, "ok": 1, "failed": 1}
            rewards, steps = episode_of(a).rewards, episode_of(a).steps
            want = sum(0.9**t * rewards[t] for t in range(steps))
            assert study.best[1] == pytest.approx(want)

    def test_settings_of_another_space_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="give `horizon`"):
            Study.open(tmp_path / "s.db", dim=4, method="r3")
        with pytest.raises(ValueError, match="horizon is for methods that explore in action space"):
            Study.open(tmp_path / "s.db", dim=4, horizon=3)
        with Study.open(tmp_path / "s.db", dim=4) as study:
            (trial,) = study.ask()
            with pytest.raises(ValueError, match="a trajectory is for methods"):
                study.tell(trial.id, trajectory=3)


class TestOutOfOrder:
    @pytest.mark.parametrize("method", ["mis-pgpe-ob", "iw-pgpe-ob", "niw-pgpe-ob", "tiw-pgpe-ob"])
    def test_every_move_is_what_estimate_says_of_its_results(self, tmp_path, method):
        """Results of four distributions told crosswise; each move against `recoup.estimate`."""
        rng = np.random.default_rng(1)
        with Study.open(tmp_path / "s.db", dim=3, batch=5, method=method, std=0.7) as study:
            waiting, order = [], []
            while len(study.history()) < 9:
                waiting += study.ask(4)
                for _ in range(3):
                    trial = waiting.pop(int(rng.integers(len(waiting))))
                    study.tell(trial.id, value_of(trial.theta))
                    order.append(trial)
            rows, marks = study.history(), study.distributions()
            drew = dict(study.store._file.rows("SELECT id, proposal FROM asked"))
            row = study.method
        assert max(info["late"] for info in rows) >= 3
        theta, index = np.stack([t.theta for t in order]), np.array([drew[t.id] for t in order])
        returns = np.array([value_of(each) for each in theta])
        proposals = tuple(np.stack([mark[i] for mark in marks.values()]) for i in (0, 1))
        assert list(marks) == list(range(10))
        for info in rows:
            first = 0 if row.window is None else max(info["results"] - 5 * row.window, 0)
            (mean, std), (after, spread) = marks[info["move"] - 1], marks[info["move"]]
            place = np.arange(len(order))
            want = recoup.estimate(
                theta,
                returns,
                proposals=proposals,
                proposal=index,
                target=(mean, std),
                weighting=row.weighting,
                truncate=row.truncate,
                told=(first <= place) & (place < info["results"]),
            )
            assert info["ess"] == pytest.approx(float(want.ess), rel=1e-8)
            assert info["objective"] == pytest.approx(float(want.objective), rel=1e-8)
            gradient = np.concatenate([want.mean_gradient, want.std_gradient])
            step = np.concatenate([after - mean, spread - std])
            np.testing.assert_allclose(
                step, 0.1 * gradient / np.linalg.norm(gradient), rtol=1e-6, atol=1e-9
            )

    def test_a_mirrored_pair_counts_once_both_are_told(self, tmp_path):
        with Study.open(
            tmp_path / "s.db", dim=3, batch=4, method="pgpe-ob", mirrored=True, std=0.7
        ) as study:
            trials = study.ask(7)  # never half a pair
            assert len(trials) == 8
            study.enqueue([1.0, 2.0, 3.0])
            assert [trial.kind for trial in study.ask()] == ["own", "drawn", "mirror"]
            for first, second in zip(trials[::2], trials[1::2], strict=True):
                np.testing.assert_allclose(first.theta + second.theta, 2 * study.mean, atol=1e-15)
            for trial in trials[::2]:
                study.tell(trial.id, value_of(trial.theta))
            assert study.until_move() == 4
            study.tell(trials[1].id, failed="slipped")
            assert study.until_move() == 3
            study.tell(trials[3].id, failed="slipped")
            study.tell(trials[7].id, value_of(trials[7].theta))
            assert len(study.history()) == 1
            assert study.history()[0]["samples"] == 4
            assert study.until_move() == 4
            study.tell(trials[5].id, value_of(trials[5].theta))
            assert study.until_move() == 2
            assert len(study.ask()) == 2

    def test_diagnostics_say_when_weights_lose_their_bound(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=2, batch=3, method="mis-pgpe-ob") as study:
            assert "moves after 3 more results" in study.diagnostics()["advice"][0]
            trials = study.ask(6)
            study.tell([t.id for t in trials], [float(t.id) for t in trials])
            found = study.diagnostics()
            assert found["moves"] == 2
            assert found["late"] == 3
            assert any("weights have no bound" in words for words in found["advice"])
        with Study.open(tmp_path / "t.db", dim=2, batch=3, method="niw-pgpe") as study:
            trials = study.ask(7)
            study.tell([t.id for t in trials[:6]], [float(t.id) for t in trials[:6]])
            found = study.diagnostics()
            assert any("has no weights and uses them" in words for words in found["advice"])
            assert any("1 drawn trial waits for a result" in words for words in found["advice"])


class TestOnesOwnChoice:
    def test_it_is_kept_reported_and_no_part_of_the_estimate(self, tmp_path):
        """Two studies, one with such trials in between: the same draws apart, the same moves."""
        with Study.open(tmp_path / "s.db", dim=3, batch=3, seed=1) as study:
            study.enqueue([1.0, 2.0, 3.0], note="the old gains")
            mine, drawn = study.ask(2)
            (mean,) = study.ask(at="mean")
            assert (mine.kind, drawn.kind, mean.kind) == ("own", "drawn", "mean")
            np.testing.assert_array_equal(mine.theta, [1.0, 2.0, 3.0])
            np.testing.assert_array_equal(mean.theta, study.mean)
            study.tell(mine.id, 100.0)
            study.tell(mean.id, 50.0)
            assert study.until_move() == 3
            for trial in [drawn, *study.ask(2)]:
                study.tell(trial.id, value_of(trial.theta))
            assert study.history()[0]["samples"] == 3
            assert study.best[0].id == mine.id
            with pytest.raises(ValueError, match="at must be one of mean"):
                study.ask(at="median")
            with pytest.raises(ValueError, match="a theta of this study has 3 values; got"):
                study.enqueue([1.0])
            rows = study.store._file.rows("SELECT theta, proposal FROM asked WHERE kind = 'drawn'")
            want = recoup.estimate(
                np.stack([np.frombuffer(theta) for theta, _ in rows]),
                np.array([value_of(np.frombuffer(theta)) for theta, _ in rows]),
                proposals=(np.zeros((1, 3)), np.ones((1, 3))),
                proposal=np.zeros(3, int),
                target=(np.zeros(3), np.ones(3)),
            )
            assert study.history()[0]["objective"] == pytest.approx(float(want.objective))
