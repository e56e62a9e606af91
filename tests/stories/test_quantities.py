"""What claims are about, where it takes more than a difference: against sums written out."""

import figure_data
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recoup.reproduce.figures import causes, consistency, gradients, nine, paths, theorems
from recoup.reproduce.figures.cars import Car
from recoup.reproduce.learning_curves import joined
from recoup.reproduce.sizes import size_of
from recoup.reproduce.speed import after, converges_early


class TestDetours:
    SURFACE = np.exp(-((gradients.GRID + 1.0) ** 2))  # best with mean -1

    def path(self, *means):
        points = np.array([[mean, 0.5] for mean in means])
        return points[None, None]  # one start, one run

    def detour(self, path):
        best = float(gradients.expected_return(self.SURFACE, -1.0, 0.5))
        return paths._detour(self.SURFACE, best, path).item()

    def test_a_straight_path_is_as_long_as_the_straight_line(self):
        assert self.detour(self.path(0.0, -0.5, -1.0, -1.0)) == pytest.approx(1.0)

    def test_there_and_back_counts_until_the_vicinity_and_no_farther(self):
        """0.5 the wrong way, 0.5 back, 1 there; what comes after does not count."""
        there = self.path(0.0, 0.5, 0.0, -1.0, -0.2, -3.0)
        assert self.detour(there) == pytest.approx(2.0)

    def test_a_corner(self):
        corner = np.array([[0.0, 0.5], [0.0, 1.5], [-1.0, 1.5], [-1.0, 0.5]])[None, None]
        assert self.detour(corner) == pytest.approx(3.0)

    def test_a_path_that_does_not_arrive_counts_to_its_end(self):
        assert self.detour(self.path(0.0, 0.2, 0.1)) == pytest.approx(3.0)


def test_the_share_of_moves_that_go_down():
    curves = np.array([[0.0, 2.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 2.0, 1.0, 0.0]])
    car = Car("mountain-car", {"pgpe-ob": curves}, {})
    np.testing.assert_allclose(car.falling("pgpe-ob"), [0.25, 0.5, 1.0])


def test_the_test_nearest_to_a_share_of_the_iterations():
    assert after(1 / 3, range(31)) == 10
    assert after(1 / 3, [0, 15, 20, 30, 90, 105, 300]) == 5
    assert after(1 / 2, range(21)) == 10
    early = converges_early(np.array([[0.0, 0.0, 0.95, 1.0, 1.0]] * 5), range(5), "m")
    assert early.effect == pytest.approx(0.05)


def test_a_bias_is_counted_without_what_chance_adds():
    rng = np.random.default_rng(0)
    truth = np.array([3.0, 4.0])
    noise = rng.normal(size=(2_000, 50, 2))
    beside = truth + np.array([0.5, 0.0])
    found = [causes.relative_bias(beside + each, truth) for each in noise]
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(0.25 / 25, abs=4 * error)
    assert error < 0.25 / 25 / 10
    assert np.isnan(causes.relative_bias(noise[0], np.zeros(2)))


@pytest.mark.slow
def test_more_samples_mend_weighed_estimates_alone():
    """Of the far case: the mean of estimates against quadrature, within four errors."""
    surface = gradients._surface(4_000, lambda share: None)["mean"]
    target, proposal = theorems.CASES["far"]
    with jax.enable_x64(True):
        rhos = (gradients.rho_of(*target), gradients.rho_of(*proposal))
        niw, iw = consistency._mean_terms(jax.random.key(0), *rhos, 400)
    truth = gradients.true_gradient(surface, *target)
    for estimates, unbiased in ((niw, False), (iw, True)):
        each = np.asarray(estimates).reshape(-1, 2)
        error = each.std(0) / np.sqrt(len(each))
        assert (np.abs(each.mean(0) - truth) < 4 * error).all() == unbiased
    made = {"toy/surface": {"mean": surface}, "toy/consistency": {"far iw 400": np.asarray(iw)}}
    collected = consistency.collect_consistency(theorems.CASES, made)["error far iw 400"]
    squares = ((np.asarray(iw)[3] - truth) ** 2).sum() / consistency.EACH
    assert collected[3] == pytest.approx(squares / (truth**2).sum())


class TestCauses:
    def test_the_baseline_is_the_only_difference(self):
        """Means agree within four errors; with the baseline there is less variance."""
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(0), 60)
            means = jnp.stack([jnp.linspace(-1, 1, 12), jnp.linspace(-0.8, 1.1, 12)])
            none, optimal = causes._gradients(keys, means, jnp.full((2, 12), 0.8))
        none, optimal = np.asarray(none), np.asarray(optimal)
        assert none.shape == (60, 24)
        assert optimal.var(0).sum() < none.var(0).sum()

    def test_from_the_policy_itself_no_weight_is_lost(self):
        with jax.enable_x64(True):
            mu, sigma = jnp.zeros((3, 12)), jnp.ones((3, 1))
            direction, weight = causes._direction(jax.random.key(0), mu, sigma, 10)
            moved = mu.at[0].add(2.0)
            _, less = causes._direction(jax.random.key(0), moved, sigma, 10)
        assert direction.shape == (13,)
        assert float(weight) == pytest.approx(1.0)
        assert float(less) < 0.9

    @pytest.mark.slow
    def test_jobs_have_the_shape_of_the_made_up_ones(self, monkeypatch):
        monkeypatch.setattr(causes, "EARLY", 2)
        monkeypatch.setattr(causes, "LATE", 3)
        monkeypatch.setattr(causes, "REFERENCE", 20)
        for job in causes.cause_jobs(100, 2):
            found, made = job.compute(lambda share: None), figure_data.made_up(job)
            assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in made.items()}


def test_runs_that_go_on_are_kept_apart_from_those_that_do_not():
    made = {job.name: figure_data.made_up(job) for job in nine.nine_jobs(figure_data.TINY)}
    assert joined(made, "reach-9", "iw-pgpe-ob").checkpoints[-1] == 60
    assert joined(made, "reach-9", "iw-pgpe-ob", longer=90).checkpoints.tolist() == [0, 60, 90]
    assert nine.longer(size_of("default")) == 600


def test_what_is_paid_for_control_and_gained_by_being_near_make_the_return():
    from recoup.tasks.reach import rules
    from recoup.tasks.reach.reach_task import rollouts

    theta = np.random.default_rng(0).normal(size=(2, 8))
    found = nine._spent(2, theta)
    task, keys = rules.reach(2), jax.random.split(jax.random.key(0), nine.EPISODES)
    for i, policy in enumerate(theta):
        returns = rollouts(task, 100, 0.9, keys, np.tile(policy, (nine.EPISODES, 1)))
        assert found["gained"][i] - found["paid"][i] == pytest.approx(returns.mean(), rel=1e-9)
        assert found["paid"][i] > 0
        assert found["energy"][i] > 0
