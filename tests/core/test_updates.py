import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from recoup.core.estimators.whole import Estimate
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian, kl_divergence
from recoup.core.updates import adam, ascend, natural_step, normalised_ascent

pytestmark = pytest.mark.usefixtures("x64")
FAMILY = diagonal_gaussian()
START = Diagonal(np.array([1.0, -2.0]), np.array([0.5, 2.0]))
GRADIENT = Diagonal(np.array([3.0, 0.0]), np.array([-4.0, 12.0]))


def estimate_with(gradient, asked=None):
    def estimate(rho):
        if asked is not None:
            asked.append(rho)
        nothing = jnp.zeros(())
        return Estimate(gradient, nothing, nothing, nothing, nothing, nothing, nothing, nothing)

    return estimate


def step(update, gradient=GRADIENT, rho=START):
    gradient, rho = jax.tree.map(jnp.asarray, (gradient, rho))
    return update.step(estimate_with(gradient), rho, update.init(rho))[0]


def test_the_papers_step_has_length_epsilon_over_eta_and_tau_jointly():
    got = step(normalised_ascent(FAMILY, 0.13, tau_floor=0.05))
    np.testing.assert_allclose(got.eta, [1.0 + 0.13 * 3 / 13, -2.0])
    np.testing.assert_allclose(got.tau, [0.5 - 0.13 * 4 / 13, 2.0 + 0.13 * 12 / 13])


def test_tau_is_held_at_the_floor():
    assert step(normalised_ascent(FAMILY, 5.0, tau_floor=0.05)).tau[0] == 0.05


@pytest.mark.parametrize(
    "update", [normalised_ascent(FAMILY, 1.0, 0.05), natural_step(FAMILY, 0.5, 0.05)]
)
def test_a_gradient_of_zero_moves_nothing(update):
    got = step(update, Diagonal(jnp.zeros(2), jnp.zeros(2)))
    np.testing.assert_array_equal(got.eta, START.eta)
    np.testing.assert_array_equal(got.tau, START.tau)


def test_a_huge_gradient_does_not_overflow():
    huge = Diagonal(jnp.asarray([3e200, 0.0]), jnp.asarray([-4e200, 0.0]))
    got = step(normalised_ascent(FAMILY, 1.0, 0.05), huge)
    np.testing.assert_allclose(got.eta[0], 1.6)


@pytest.mark.parametrize("kl", [0.01, 0.1])
def test_the_natural_step_reaches_the_given_divergence(kl):
    assert kl_divergence(step(natural_step(FAMILY, kl, 0.001)), START) == pytest.approx(
        kl, rel=1e-9
    )


def test_the_natural_step_goes_along_the_inverse_fisher_information():
    got = step(natural_step(FAMILY, 1e-8, 0.001))
    d_eta, d_log_tau = got.eta - START.eta, np.log(got.tau / START.tau)
    tau = np.asarray(START.tau)
    want = np.concatenate([tau**2 * GRADIENT.eta, tau * np.asarray(GRADIENT.tau) / 2])
    moved = np.concatenate([d_eta, d_log_tau])
    np.testing.assert_allclose(
        moved / np.linalg.norm(moved), want / np.linalg.norm(want), atol=1e-3
    )


@pytest.mark.parametrize(("eta", "tau", "kl"), [(0.03, 1.0, 2.0), (0.01, -1.0, 0.5)])
def test_the_natural_step_reaches_the_divergence_by_the_means_where_the_cap_binds(eta, tau, kl):
    start = Diagonal(np.zeros(1), np.ones(1))
    got = step(natural_step(FAMILY, kl, 0.001), Diagonal(np.array([eta]), np.array([tau])), start)
    assert kl_divergence(got, start) == pytest.approx(kl, rel=1e-9)
    assert abs(np.log(got.tau[0])) == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "update",
    [
        normalised_ascent(FAMILY, 1.0, 0.05),
        natural_step(FAMILY, 0.5, 0.05),
        ascend(FAMILY, optax.sgd(1.0), 0.05),
    ],
)
def test_a_gradient_that_is_not_finite_moves_nothing(update, bad):
    got = step(update, Diagonal(np.array([bad, 1.0]), np.array([0.0, 1.0])))
    np.testing.assert_array_equal(got.eta, START.eta)


def test_the_natural_step_caps_the_change_of_log_tau():
    got = step(natural_step(FAMILY, 50.0, 0.001))
    assert np.abs(np.log(got.tau / START.tau)).max() <= 0.5 + 1e-12


def test_optax_transformations_ascend():
    got = step(ascend(FAMILY, optax.sgd(0.01), tau_floor=0.05))
    np.testing.assert_allclose(got.eta, START.eta + 0.01 * GRADIENT.eta)
    np.testing.assert_allclose(got.tau, START.tau + 0.01 * GRADIENT.tau)
    adam = ascend(FAMILY, optax.adam(0.1), tau_floor=0.05)
    start = jax.tree.map(jnp.asarray, START)
    rho, state, _ = adam.step(estimate_with(GRADIENT), start, adam.init(start))
    assert rho.eta[0] > START.eta[0]
    again, _, _ = adam.step(estimate_with(GRADIENT), rho, state)
    assert again.eta[0] > rho.eta[0]


def test_an_update_may_ask_for_the_estimate_at_any_rho():
    asked = []
    update = normalised_ascent(FAMILY, 0.1, 0.05)
    update.step(estimate_with(GRADIENT, asked), START, update.init(START))
    assert asked == [START]


def test_adam_is_the_formula_written_out():
    """Two steps along the same gradient, with moments, bias correction and all."""
    rule = adam(FAMILY, 0.1, tau_floor=0.05)
    gradient, rho = jax.tree.map(jnp.asarray, (GRADIENT, START))
    memory = rule.init(rho)
    m = v = np.zeros(4)
    want = np.concatenate([START.eta, START.tau])
    g = np.concatenate([GRADIENT.eta, GRADIENT.tau])
    for i in (1, 2):
        rho, memory, _ = rule.step(estimate_with(gradient), rho, memory)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        want = want + 0.1 * (m / (1 - 0.9**i)) / (np.sqrt(v / (1 - 0.999**i)) + 1e-8)
        np.testing.assert_allclose(np.concatenate([rho.eta, rho.tau]), want, rtol=1e-12)
