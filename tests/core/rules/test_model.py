"""The model of the returns beside quadrature, finite differences and scipy; the parts of a step."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_t

from recoup.core import arrays
from recoup.core.families.shapes import DIAGONAL, FULL
from recoup.core.prior import LEVEL, SLOPE
from recoup.core.rules import model as models
from recoup.core.rules.newton import clipped, trusted
from recoup.core.rules.weighted import standardised, utilities

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(9, 2)) * 1.4 + [0.5, -0.3]
VALID = np.arange(9) != 4
Y = np.where(VALID, np.sin(Z[:, 0]) + Z[:, 1] ** 2 - 0.7, 0.0)
HYPER, OTHER = np.log([1.7, 0.05, 0.6]), np.log([2.3, 0.04, 0.7])
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
GRID = np.stack(np.meshgrid(NODES, NODES), -1).reshape(-1, 2)
MASS = np.outer(WEIGHTS, WEIGHTS).ravel() / (2 * np.pi)


def kernel(a, b):
    """k of two sets of points, from its formula."""
    length, _, bowl = np.exp(HYPER)
    centre = Z[VALID].mean(0)
    level = np.mean(((Z[VALID] - centre) ** 2).sum(1)) / 2
    bumps = np.exp(-((a[:, None] - b) ** 2).sum(-1) / (2 * length))
    bent = [(((x - centre) ** 2).sum(1) / 2 - level) for x in (a, b)]
    linear = (a - centre) @ (b - centre).T
    return LEVEL + bumps + (SLOPE * linear + bowl * np.outer(*bent)) / length


def expected(shift):
    """E k(z + shift, point) under N(0, I), by quadrature, at the valid points."""
    return MASS @ kernel(GRID + shift, Z[VALID])


def derivatives(function, h=1e-3):
    """Gradient and Hessian of a function of two numbers, by central differences."""
    eye = np.eye(2) * h
    first = np.array([(function(e) - function(-e)) / (2 * h) for e in eye])
    second = np.array(
        [
            [function(a + b) - function(a - b) - function(b - a) + function(-a - b) for b in eye]
            for a in eye
        ]
    ) / (4 * h * h)
    return first, second


@pytest.fixture
def points():
    return models.points_of(np, Z, VALID)


def test_the_kernel_is_its_formula_and_knows_nothing_of_invalid_points(points):
    k = models.covariance(np, points, HYPER)
    noise = np.eye(8) * (np.exp(HYPER[1]) + 1e-9)
    kept = np.ix_(VALID, VALID)
    np.testing.assert_allclose(k[kept], kernel(Z[VALID], Z[VALID]) + noise, rtol=1e-12)
    assert k[4].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_the_evidence_is_that_of_a_students_t(points):
    """An inverse-gamma(1, 1) variance makes y multivariate t with 2 degrees of freedom."""
    k = kernel(Z[VALID], Z[VALID]) + np.eye(8) * (np.exp(HYPER[1]) + 1e-9)
    found = models.fit(np, points, Y, HYPER).evidence
    other = models.fit(np, points, Y, OTHER).evidence

    def exact(hyper):
        made = models.points_of(np, Z, VALID)
        k = models.covariance(np, made, hyper)[np.ix_(VALID, VALID)]
        return multivariate_t.logpdf(Y[VALID], shape=k, df=2)

    want = multivariate_t.logpdf(Y[VALID], shape=k, df=2) - exact(OTHER)
    assert found - other == pytest.approx(want, rel=1e-6)


def test_slope_and_curvature_are_the_derivatives_of_the_expected_model(points):
    fit = models.fit(np, points, Y, HYPER)
    local = models.local(np, points, HYPER, fit, FULL)
    slope, hessian = derivatives(lambda shift: expected(shift) @ fit.alpha[VALID])
    np.testing.assert_allclose(local.axes.unturned(local.slope), slope, rtol=1e-5)
    turned = local.axes.log(local.axes.values)
    np.testing.assert_allclose(turned, hessian, rtol=1e-4, atol=1e-6)
    diagonal = models.local(np, points, HYPER, fit, DIAGONAL)
    np.testing.assert_allclose(diagonal.slope, slope, rtol=1e-5)
    np.testing.assert_allclose(diagonal.axes.values, np.diag(hessian), rtol=1e-4, atol=1e-6)


def test_their_doubt_is_what_the_points_have_left_of_the_prior(points):
    fit = models.fit(np, points, Y, HYPER)
    local = models.local(np, points, HYPER, fit, FULL)
    inverse = np.linalg.inv(models.covariance(np, points, HYPER)[np.ix_(VALID, VALID)])
    slopes, bends = derivatives(expected)
    trace = bends[0, 0] + bends[1, 1]
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    grid = np.stack(np.meshgrid(nodes, nodes), -1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() / (2 * np.pi)

    def both(shift, other):
        return mass @ kernel(grid + shift, grid + other) @ mass

    h = 1e-2
    prior = np.zeros((2, 2))
    for i, a in enumerate(np.eye(2) * h):
        for j, b in enumerate(np.eye(2) * h):
            prior[i, j] = (both(a, b) - both(a, -b) - both(-a, b) + both(-a, -b)) / (4 * h * h)
    covariance = fit.signal * (prior - slopes @ inverse @ slopes.T)
    axes = local.axes.turned(np.eye(len(covariance)))
    along = np.diag(axes.T @ covariance @ axes)
    np.testing.assert_allclose(local.variance, along, rtol=2e-3)
    stencil = [*np.eye(2) * h, *-np.eye(2) * h, np.zeros(2)]
    c = np.array([1, 1, 1, 1, -4]) / h**2
    total = c @ np.array([[both(a, b) for b in stencil] for a in stencil]) @ c
    doubt = np.sqrt(fit.signal * (total - trace @ inverse @ trace)) / 2
    assert local.doubt == pytest.approx(doubt, rel=2e-2)


def test_the_rise_of_a_step_is_that_of_the_expected_model_and_its_doubt_what_is_left(points):
    fit = models.fit(np, points, Y, HYPER)
    deltas = np.array([[0.7, -0.4], [-1.9, 0.3], [0.1, 0.05]])
    mean, variance = models.rise(np, points, HYPER, fit, deltas)
    more = np.stack([expected(delta) - expected(np.zeros(2)) for delta in deltas])
    np.testing.assert_allclose(mean, more @ fit.alpha[VALID], rtol=1e-9)
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    grid = np.stack(np.meshgrid(nodes, nodes), -1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() / (2 * np.pi)

    def both(shift, other):
        return mass @ kernel(grid + shift, grid + other) @ mass

    zero = np.zeros(2)
    prior = [both(d, d) - 2 * both(d, zero) + both(zero, zero) for d in deltas]
    inverse = np.linalg.inv(models.covariance(np, points, HYPER)[np.ix_(VALID, VALID)])
    left = np.array(prior) - np.einsum("ri,ij,rj->r", more, inverse, more)
    np.testing.assert_allclose(variance, fit.signal * left, rtol=1e-4)


@pytest.mark.parametrize(
    ("values", "slope"),
    [([-2.0, -0.5, -1.0], [0.1, 0.2, -0.1]), ([-2.0, 0.7, 0.1], [1.0, 0.3, -2.0])],
)
def test_a_trusted_step_is_the_best_within_its_radius(values, slope):
    values, slope = np.array(values), np.array(slope)
    steps, bounds = trusted(np, values, slope, np.array([0.3, 0.8]))
    step, bounded = steps[1], bounds[1]

    def loss(delta):
        return -(slope @ delta + values @ delta**2 / 2)

    found = minimize(
        loss,
        np.full(3, 0.1),
        constraints={"type": "ineq", "fun": lambda x: 0.64 - x @ x},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert bounded == (np.linalg.norm(found.x) > 0.8 - 1e-6)
    np.testing.assert_allclose(step, found.x, atol=1e-5)


def test_a_step_without_slope_is_none():
    steps, _ = trusted(np, np.array([0.0, 0.0]), np.zeros(2), np.ones(1))
    np.testing.assert_array_equal(steps, 0.0)


def test_far_outliers_below_are_clipped_and_none_above():
    returns = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1e6, 1e3])
    valid = np.arange(12) != 11
    y, _ = clipped(np, returns, valid)
    q = np.quantile(returns[:11], [0.5, 0.9])
    want = np.maximum(returns[:11], q[0] - 6 * (q[1] - q[0]))
    np.testing.assert_allclose(y[:11], (want - want.mean()) / want.std())
    assert y[11] == 0


@pytest.mark.parametrize("n", [1, 2, 7])
def test_quantiles_under_a_mask_are_numpys(n):
    x = np.random.default_rng(n).normal(size=10)
    valid = np.isin(np.arange(10), [8, 3, 5, 0, 9, 1, 2][:n])
    found = arrays.quantiles(np, x, valid, (0.1, 0.5, 0.9))
    np.testing.assert_allclose(found, np.quantile(x[valid], [0.1, 0.5, 0.9]))


def test_utilities_are_ranks_by_weight_and_ties_share_theirs():
    omega = np.array([0.1, 0.3, 0.2, 0.25, 0.15, 0.0])
    returns = np.array([1.0, 2.0, 2.0, 3.0, -1.0, 9.0])
    ranked, ties = utilities(np, omega, returns, 3.0)
    above = [0.75 + 0.05, 0.25 + 0.25, 0.25 + 0.25, 0.125, 0.85 + 0.075]
    worth = np.maximum(0, -np.log(2 * np.array([*above, 1.0])))
    np.testing.assert_allclose(ranked, omega * worth / (omega @ worth) - omega)
    assert ties == pytest.approx(0.5)
    assert utilities(np, omega, returns, 2.0)[1] == 0


@pytest.mark.parametrize("value", [-1.0, 0.1, 1e200])
def test_equal_returns_have_no_standardised_ones(value):
    omega = np.random.default_rng(0).dirichlet(np.ones(7))
    np.testing.assert_array_equal(standardised(np, omega, np.full(7, value)), 0.0)


def test_a_covariance_without_a_factor_leaves_a_model_that_expects_nothing(points):
    broken = models.fit(np, points._replace(slope=-1e9 * np.ones((9, 9))), Y, HYPER)
    found, model = models.sound(np, broken)
    assert not found
    np.testing.assert_array_equal(model.alpha, 0.0)
    assert np.isfinite(models.local(np, points, HYPER, model, FULL).slope).all()
    kept, same = models.sound(np, models.fit(np, points, Y, HYPER))
    assert kept
    assert np.isfinite(same.evidence)
