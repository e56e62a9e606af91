"""What the model believes of points and distributions, beside sums, loops and drawn functions."""

import numpy as np
import pytest
from scipy.stats import norm

from recoup.core.plain import belief as model
from recoup.core.plain.belief import Hyper, believed, drawn, expected, joined, looks_at, seen, tamed
from recoup.core.surrogate import cells, points_of

HYPER = Hyper(length=1.7, bowl=0.4, about=0.8, noise=0.3, signal=1.3, share=1.0)


def kernel(a, b, hyper, middle):
    """The kernel of two points, written out."""
    dim, apart = len(a), float(np.sum((a - b) ** 2))
    heights = [(float(np.sum(x**2)) - middle) / 2 for x in (a, b)]
    radii = [(float(np.sum(x**2)) / dim) ** 0.5 for x in (a, b)]
    found = 3 + np.exp(-apart / 2 / hyper.length)
    found += (3 * float(a @ b) + hyper.bowl * heights[0] * heights[1]) / hyper.length
    return found + hyper.about * np.exp(-((radii[0] - radii[1]) ** 2) / 2)


def points(dim=2, n=9, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def test_the_kernel_of_points_is_the_one_written_out():
    one, other = points(3, 4), points(3, 5, seed=1)
    looks = [looks_at(x, np.zeros_like(x)) for x in (one, other)]
    want = [[kernel(a, b, HYPER, 1.2) for b in other] for a in one]
    np.testing.assert_allclose(model.covariance(HYPER, *looks, 1.2), want, rtol=1e-12)


def test_the_kernel_of_distributions_is_the_mean_of_that_of_their_points():
    """By Gauss and Hermite in each of two coordinates; what depends on the distance, by probes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    weights = weights / weights.sum()
    mean, std, at = np.array([0.4, -0.7]), np.array([0.6, 0.2]), np.array([0.3, 1.1])
    plain = HYPER._replace(about=0.0)
    want = sum(
        wx * wy * kernel(mean + std * [x, y], at, plain, 0.9)
        for x, wx in zip(nodes, weights, strict=True)
        for y, wy in zip(nodes, weights, strict=True)
    )
    looks = looks_at(mean[None], std[None] ** 2), looks_at(at[None], np.zeros((1, 2)))
    assert model.covariance(plain, *looks, 0.9)[0, 0] == pytest.approx(want, rel=1e-12)
    about = sum(
        wx * wy * np.exp(-((np.hypot(*(mean + std * [x, y])) - np.hypot(*at)) ** 2) / 4)
        for x, wx in zip(nodes, weights, strict=True)
        for y, wy in zip(nodes, weights, strict=True)
    )
    # of 64 probes: a few thousandths
    assert model.by_distance(looks[0].radii, looks[1].radii)[0, 0] == pytest.approx(about, abs=0.01)


def test_several_cells_at_once_are_each_as_alone():
    """Of sets of points and distributions, either first, of cells that share a length or not."""
    mean, points_only = points(3, 6), np.zeros((6, 3))
    variance = np.where(np.arange(6)[:, None] % 2, np.array([0.3, 0.0, 1.2]), 0.0)
    sets = [looks_at(mean, points_only), looks_at(mean, variance), looks_at(mean[:2], variance[:2])]
    hypers = [HYPER, HYPER._replace(bowl=2.0, about=0.0), HYPER._replace(length=0.4)]
    for one in sets:
        for other in sets:
            for hyper, k in zip(hypers, model.covariances(hypers, one, other, 1.1), strict=True):
                for (i, j), want in np.ndenumerate(k):
                    alone = model.covariance(hyper, row(one, i), row(other, j), 1.1)
                    assert alone[0, 0] == pytest.approx(want, rel=1e-11)


def row(looks, i):
    return type(looks)(*(x[i : i + 1] for x in looks))


def test_two_distributions_are_the_mean_over_both():
    rng = np.random.default_rng(3)
    means, stds = rng.normal(size=(2, 2)), np.array([[0.5, 0.3], [0.2, 0.9]])
    looks = [looks_at(m[None], s[None] ** 2) for m, s in zip(means, stds, strict=True)]
    plain = HYPER._replace(about=0.0)
    draws = [m + s * rng.normal(size=(200_000, 2)) for m, s in zip(means, stds, strict=True)]
    apart = np.sum((draws[0] - draws[1]) ** 2, axis=1)
    heights = [(np.sum(x**2, axis=1) - 0.9) / 2 for x in draws]
    values = 3 + np.exp(-apart / 2 / plain.length)
    values += (3 * np.sum(draws[0] * draws[1], axis=1) + plain.bowl * heights[0] * heights[1]) / 1.7
    error = values.std() / len(values) ** 0.5
    assert abs(model.covariance(plain, *looks, 0.9)[0, 0] - values.mean()) < 4 * error


def test_a_cell_expects_what_a_plain_loop_solves():
    z, at = points(), points(2, 3, seed=5)
    y = np.sin(z[:, 0]) + 0.3 * z[:, 1]
    k = np.array([[kernel(a, b, HYPER, 1.1) for b in z] for a in z]) + HYPER.noise * np.eye(len(z))
    rows = np.array([[kernel(a, b, HYPER, 1.1) for b in z] for a in at])
    before = np.array([[kernel(a, b, HYPER, 1.1) for b in at] for a in at])
    (cell,) = seen([HYPER], looks_at(z, np.zeros_like(z)), 1.1, y)
    mean, covariance = cell.expects(looks_at(at, np.zeros_like(at)))
    np.testing.assert_allclose(mean, rows @ np.linalg.solve(k, y), rtol=1e-6)
    want = HYPER.signal * (before - rows @ np.linalg.solve(k, rows.T))
    np.testing.assert_allclose(covariance, want, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("sizes", [(4, 4, 4), (4, 2, 4)])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_several_sets_of_looks_are_each_as_alone(sizes, spread):
    """Alike or not: those of as many points are looked at together."""
    z = points(3, 8)
    hypers = [HYPER, HYPER._replace(bowl=2.0, about=0.0)]
    found = seen(hypers, looks_at(z, np.zeros_like(z)), 1.1, z[:, 0])
    means = [points(3, n, seed=i) for i, n in enumerate(sizes)]
    sets = [looks_at(mean, np.full_like(mean, spread)) for mean in means]
    for cell, each in zip(found, model.expectations(found, sets), strict=True):
        for looks, pair in zip(sets, each, strict=True):
            for one, other in zip(pair, cell.expects(looks), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


def test_what_is_told_later_is_as_if_it_had_been_told_at_once():
    z, y = points(3, 12), np.cos(points(3, 12)[:, 0])
    looks = looks_at(z, np.zeros_like(z))
    first, rest = (looks_at(part, np.zeros_like(part)) for part in (z[:7], z[7:]))
    (at_once,), (begun,) = seen([HYPER], looks, 2.0, y), seen([HYPER], first, 2.0, y[:7])
    later = begun.told(rest, y[7:])
    there = joined(looks_at(np.zeros((1, 3)), np.ones((1, 3))), looks_at(z[:2] + 1, 0 * z[:2]))
    for one, other in zip(at_once.expects(there), later.expects(there), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_without_what_depends_on_the_distance_the_means_are_those_of_the_rest():
    z, y = points(2, 8), points(2, 8)[:, 1]
    (cell,) = seen([HYPER], looks_at(z, np.zeros_like(z)), 1.0, y)
    at, alpha = points(2, 3, seed=9), cell.inverse.T @ cell.inverse @ y
    plain = HYPER._replace(about=0.0)
    want = [sum(kernel(a, b, plain, 1.0) * w for b, w in zip(z, alpha, strict=True)) for a in at]
    np.testing.assert_allclose(cell.expects_apart(looks_at(at, 0 * at)), want, rtol=1e-9)


def test_the_cells_are_those_of_the_grid_by_their_evidence():
    """Bayes' rule over the grid with the determinant written out, the signal integrated out."""
    z = points(2, 14)
    z = z[np.argsort(np.sum(z**2, axis=1))]  # the model has the nearest first
    y = z[:, 0] ** 2 + 0.1 * np.random.default_rng(1).normal(size=14)
    y = (y - y.mean()) / y.std()
    found = believed(z, y)
    p = points_of(z * found.stretch)
    total = sum(cell.hyper.share for cell in found.cells)
    assert total == pytest.approx(1.0)
    logs = []
    for cell in found.cells:
        hyper = cell.hyper
        k = np.linalg.inv(cell.inverse.T @ cell.inverse)
        quad = float(y @ np.linalg.solve(k, y))
        signal = (quad + 2) / (14 + 2)
        assert hyper.signal == pytest.approx(signal, rel=1e-4)
        prior = [np.log(hyper.length / 2), np.log(hyper.bowl / 0.25) / 1.5]
        prior = -(sum(x**2 for x in prior) + (np.log(hyper.noise / 0.1) / 3) ** 2) / 2
        logs.append(prior - 8 * np.log(signal) - np.linalg.slogdet(k)[1] / 2)
    want = np.exp(np.array(logs) - max(logs))
    share = np.array([cell.hyper.share for cell in found.cells])
    np.testing.assert_allclose(share, want / want.sum(), rtol=1e-3)
    assert len(list(cells(p, y))) * 8 * len(model.ABOUT) >= len(found.cells)


def test_all_cells_together_are_their_mixture():
    z = points(2, 12)
    found = believed(z, z[:, 0] - z[:, 1] ** 2)
    looks = found.looks(np.array([[0.0, 0.0], [1.0, 0.5]]))
    mean, covariance = expected(found, looks)
    (draws,) = drawn(found, [looks], 40_000, np.random.default_rng(0))
    draws = found.level + found.scale * draws
    error = draws.std(axis=0) / len(draws) ** 0.5
    assert (abs(draws.mean(axis=0) - mean) < 4 * error + 2e-3 * found.scale).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.1, atol=1e-3)


@pytest.mark.slow
def test_functions_of_the_model_itself_are_held_as_often_as_it_says():
    """Functions drawn from one cell of its own grid: 95 %, three binomial errors of 300 studies."""
    rng, held, studies = np.random.default_rng(0), [], 300
    hyper = Hyper(length=2.0, bowl=0.25, about=0.0, noise=0.1, signal=1.0, share=1.0)
    for _ in range(studies):
        z = rng.normal(size=(25, 2))
        both = looks_at(np.vstack([z, np.zeros((1, 2))]), np.zeros((26, 2)))
        k = model.covariance(hyper, both, both, float(np.mean(np.sum(z**2, axis=1))))
        f = np.linalg.cholesky(k + 1e-9 * np.eye(26)) @ rng.normal(size=26)
        found = believed(z, f[:25] + 0.1**0.5 * rng.normal(size=25))
        mean, covariance = expected(found, found.looks(np.zeros((1, 2))))
        held.append(abs(mean[0] - f[25]) < norm.ppf(0.975) * covariance[0, 0] ** 0.5)
    assert np.mean(held) > 0.95 - 3 * (0.95 * 0.05 / studies) ** 0.5


def test_a_covariance_that_rounding_took_below_zero_has_a_factor():
    x = np.random.default_rng(0).normal(size=(6, 2)) * 1e7
    flat = x @ x.T  # of rank 2, to rounding errors of 0.01
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(flat + 1e-3 * np.eye(6))
    factor = model.factored(flat, 1e-3)
    np.testing.assert_allclose(factor @ factor.T, flat, rtol=1e-6, atol=1e-2 * flat.max() * 1e-6)


def test_results_far_apart_without_noise_are_believed():
    """As after a long search without noise: the first results lie a million deviations away."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(60, 5)) * np.geomspace(1e6, 1, 60)[:, None]
    found = believed(z, -np.sum(z**2, axis=1))
    mean, covariance = expected(found, found.looks(np.zeros((1, 5))))
    assert np.isfinite(mean).all()
    assert np.isfinite(covariance).all()
    told = found.cells[0].told(found.looks(z[:3] + 0.1), np.zeros(3))
    assert np.isfinite(told.half).all()


@pytest.mark.parametrize("dim", [1, 4])
def test_far_results_that_make_noise_of_shape_take_no_part(dim):
    rng = np.random.default_rng(dim)
    z, far = rng.normal(size=(40, dim)), 9 * (1 + rng.random((12, dim)))
    y, wild = -np.sum(z**2, axis=1), 1e3 * rng.normal(size=12)
    near = believed(z, y, within=8.0)
    both = believed(np.vstack([far, z]), np.append(wild, y), within=8.0)
    looks = near.looks(np.zeros((1, dim)))
    for one, other in zip(expected(near, looks), expected(both, looks), strict=True):
        np.testing.assert_array_equal(one, other)
    assert both.results == 40


def test_where_few_are_near_the_nearest_take_part():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(60, 2)) * 100
    z = z[np.argsort(np.sum(z**2, axis=1))]
    y = np.append(z[:15, 0], 100 * rng.normal(size=45))
    found = believed(z, y, within=0.01)
    assert found.results == 15  # three for each coefficient of a parabola
    np.testing.assert_array_equal(found.cells[0].at.mean, z[:15] * found.stretch)


def test_far_results_take_part_where_noise_is_the_same_everywhere():
    rng = np.random.default_rng(3)
    z = np.concatenate([rng.normal(size=(30, 2)), 6 * rng.normal(size=(40, 2))])
    found = believed(z, -np.sum(z**2, axis=1) / 10 + rng.normal(size=70), within=3.0)
    assert found.results == 70


def test_near_results_that_are_all_equal_are_not_taken_for_certain():
    """Ten successes in a row, of tasks that have more than two returns."""
    rng = np.random.default_rng(4)
    z = np.concatenate([rng.normal(size=(20, 2)) / 3, 7 + rng.normal(size=(40, 2))])
    returns = np.where(np.arange(60) < 20, 5.0, rng.integers(0, 5, 60))
    found = believed(z, returns, within=3.0)
    assert found.results == 60
    assert expected(found, found.looks(np.zeros((1, 2))))[1][0, 0] > 0.01


def test_far_coordinates_are_brought_nearer_in_their_order():
    z = np.concatenate([-np.geomspace(1e300, 1e-3, 50), np.geomspace(1e-3, 1e300, 50)])
    found = tamed(z)
    assert np.all(np.diff(found) > 0)
    assert np.max(np.abs(found)) < 1e4
    np.testing.assert_array_equal(found[np.abs(z) < 10], z[np.abs(z) < 10])
    np.testing.assert_allclose(tamed(np.array([10 * np.e])), [20.0], rtol=1e-15)
