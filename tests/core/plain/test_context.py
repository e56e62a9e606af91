"""What contexts explain of returns, against a Gaussian process written out."""

import numpy as np
import pytest

from recoup.core.plain.context import LEAST, NEWEST_FITTED, chosen, explained, kernel
from recoup.core.rules import model as models

HYPER = np.log([3.0, 0.4, 0.25])


def world(n=60, dim=3, numbers=2, seed=0, part=1.5, noise=0.3):
    """Thetas, contexts, and returns that both decide; and what the contexts' part of them is."""
    rng = np.random.default_rng(seed)
    z, context = rng.normal(size=(n, dim)), rng.normal(size=(n, numbers))
    owed = part * (context[:, 0] + 0.5 * (context[:, -1] ** 2 - 1))
    return z, context, -np.sum(z**2, axis=1) / 3 + owed + noise * rng.normal(size=n), owed


def of_theta(z):
    """The covariance of the model of returns without noise, a pair of points at a time."""
    length, bowl, n = np.exp(HYPER[0]), np.exp(HYPER[2]), len(z)
    centred = z - z.mean(axis=0)
    half = np.array([row @ row / 2 for row in centred])
    half -= half.mean()
    k = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            near = np.exp(-np.sum((z[a] - z[b]) ** 2) / (2 * length))
            k[a, b] = 3 + near + (3 * centred[a] @ centred[b] + bowl * half[a] * half[b]) / length
    return k


def of_context(context):
    """The kernel over contexts: three parts, each centred and of mean variance one."""
    u, n = (context - context.mean(axis=0)) / context.std(axis=0), len(context)
    flat = np.eye(n) - 1 / n
    parts = [u @ u.T, (u @ u.T) ** 2]
    away = np.array([[np.sum((a - b) ** 2) for b in u] for a in u])
    parts.append(np.exp(-away / (2 * u.shape[1])))
    scaled = [flat @ k @ flat / np.mean(np.diag(flat @ k @ flat)) for k in parts]
    return sum(scaled) / 3


def test_the_part_is_the_posterior_mean_of_the_contexts_own_kernel():
    z, context, returns, owed = world()
    every = np.ones(len(z), bool)
    found = explained(z, returns, every, every, context, HYPER)
    y = returns - returns.mean()
    scale = y.std()
    k = of_context(context)
    points = models.points_of(np, z, every)
    best = chosen(points, y / scale, HYPER, k)
    noise = best.noise * np.eye(len(z))
    whole = of_theta(z) + best.ratio * best.noise * k + noise
    want = best.ratio * best.noise * k @ np.linalg.solve(whole, y)
    np.testing.assert_allclose(found.part, want, rtol=1e-5, atol=1e-6 * scale)
    assert np.corrcoef(found.part, owed)[0, 1] > 0.97
    assert found.share == pytest.approx(min(1.0, np.var(found.part) / np.var(returns)))


def test_the_model_of_what_is_left_is_the_joint_models_of_theta():
    z, context, returns, _ = world(seed=1)
    every, y = np.ones(len(z), bool), returns - returns.mean()
    k, theta = of_context(context), of_theta(z)
    best = chosen(models.points_of(np, z, every), y / y.std(), HYPER, k)
    part, noise = best.ratio * best.noise * k, best.noise * np.eye(len(z))
    left = y - part @ np.linalg.solve(theta + part + noise, y)
    alone = theta @ np.linalg.solve(theta + noise, left)
    jointly = theta @ np.linalg.solve(theta + part + noise, y)
    np.testing.assert_allclose(alone, jointly, atol=1e-8)


def test_the_part_is_zero_on_average_over_the_contexts_it_is_fitted_to():
    z, context, returns, _ = world(seed=2)
    every = np.ones(len(z), bool)
    found = explained(z, returns, every, every, context, HYPER)
    assert abs(found.part.mean()) < 1e-9 * np.ptp(returns)
    assert 0.3 < found.share <= 1


@pytest.mark.parametrize("seed", range(4))
def test_contexts_that_say_nothing_take_nothing_off(seed):
    z, context, returns, _ = world(seed=seed, part=0.0, noise=1.0, numbers=4)
    every = np.ones(len(z), bool)
    found = explained(z, returns, every, every, context, HYPER)
    assert found.share < 0.1  # nine in ten or more are exactly nothing: see the next test
    assert np.array_equal(found.part, np.zeros(len(z))) == (found.share == 0)


def test_evidence_by_chance_is_rare():
    """Of 40 worlds whose contexts say nothing, few are believed to: 2 nats of evidence decide."""
    every, believed = np.ones(20, bool), 0
    for seed in range(40):
        z, context, returns, _ = world(20, seed=1000 + seed, part=0.0, noise=1.0)
        believed += explained(z, returns, every, every, context, HYPER).share > 0
    assert believed <= 5


def test_a_scale_or_a_shift_of_contexts_changes_nothing():
    z, context, returns, _ = world(seed=3)
    every = np.ones(len(z), bool)
    one = explained(z, returns, every, every, context, HYPER)
    other = explained(z, returns, every, every, context * [1e3, 1e-4] + [5.0, -2.0], HYPER)
    np.testing.assert_allclose(one.part, other.part, rtol=1e-6, atol=1e-9)


def test_samples_without_a_context_are_left_as_they_are():
    z, context, returns, _ = world(seed=4)
    known = np.arange(len(z)) % 3 != 0
    context[~known] = np.nan
    found = explained(z, returns, known, np.ones(len(z), bool), context, HYPER)
    alone = explained(z[known], returns[known], known[known], known[known], context[known], HYPER)
    assert np.all(found.part[~known] == 0)
    np.testing.assert_array_equal(found.part[known], alone.part)


def test_older_samples_get_what_the_newest_say_of_their_contexts():
    z, context, returns, owed = world(200, seed=5)
    newest = np.arange(200) >= 120
    found = explained(z, returns, np.ones(200, bool), newest, context, HYPER)
    assert np.corrcoef(found.part[:120], owed[:120])[0, 1] > 0.95


def test_nothing_is_taken_off_of_few_or_equal_returns_or_by_contexts_that_never_differ():
    z, context, returns, _ = world(seed=6)
    every, few = np.ones(len(z), bool), np.arange(len(z)) < LEAST - 1
    assert explained(z, returns, few, every, context, HYPER).share == 0
    assert explained(z, np.full(len(z), 3.0), every, every, context, HYPER).share == 0
    alike = explained(z, returns, every, every, np.ones_like(context), HYPER)
    assert alike.share == 0
    assert not alike.part.any()


def test_a_number_that_never_differs_among_others_changes_nothing():
    z, context, returns, _ = world(seed=7)
    every = np.ones(len(z), bool)
    more = np.column_stack([context, np.full(len(z), 7.0)])
    one, other = (explained(z, returns, every, every, x, HYPER) for x in (context, more))
    np.testing.assert_array_equal(one.part, other.part)


def test_of_many_samples_the_newest_are_fitted():
    z, context, returns, _ = world(NEWEST_FITTED + 40, seed=8)
    returns[:40] += 1e6 * context[:40, 1]  # would rule, if they were seen
    every = np.ones(len(z), bool)
    found = explained(z, returns, every, every, context, HYPER)
    late = np.arange(len(z)) >= 40
    alone = explained(z, returns, every, late, context, HYPER)
    np.testing.assert_array_equal(found.part, alone.part)


def test_the_kernel_is_one_on_average_and_centred():
    rng = np.random.default_rng(9)
    context = rng.normal(size=(30, 3)) ** 2
    k = kernel(context, context)
    assert np.mean(np.diag(k)) == pytest.approx(1)
    np.testing.assert_allclose(k.mean(axis=0), 0, atol=1e-12)
    assert np.linalg.eigvalsh(k).min() > -1e-10
    np.testing.assert_allclose(k, of_context(context), atol=1e-10)
