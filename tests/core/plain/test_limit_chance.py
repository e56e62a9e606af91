"""The chance that a rollout breaks a limit, and what that is worth, against loops and scipy."""

import numpy as np
import pytest
from scipy.stats import norm

from recoup.core.plain import limit_chance
from recoup.core.plain.limit_chance import WIDER, Bound, LimitsToKeep
from recoup.core.prior import BOWLS, LENGTHS, LEVEL, NOISES, SLOPE

BELOW = Bound(0, 1.0, 50.0, False)


def results(n=12, dim=2, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, dim))
    return z, 45 + 6 * z[:, 0] + 2 * z[:, 1] ** 2 + rng.normal(size=n)


def by_loops(z, y, at):
    """Mean and variance of another rollout at each of `at`: every cell of the grid, one by one."""
    n, dim = z.shape
    middle = np.mean(np.sum(z**2, axis=1))

    def kernel(a, b, length, bowl):
        bumps = np.exp(-np.sum((a - b) ** 2) / (2 * length))
        bend = bowl * (a @ a - middle) / 2 * (b @ b - middle) / 2
        return LEVEL + bumps + (SLOPE * a @ b + bend) / length

    rows = []
    for scaled in LENGTHS:
        for bowl in BOWLS:
            k = np.array([[kernel(a, b, scaled * dim, bowl) for a in z] for b in z])
            across = np.array([[kernel(a, b, scaled * dim, bowl) for a in z] for b in at])
            own = np.array([kernel(a, a, scaled * dim, bowl) for a in at])
            for noise in NOISES:
                whole = k + noise * np.eye(n)
                signal = (y @ np.linalg.solve(whole, y) + 2) / (n + 2)
                evidence = -(n + 2) / 2 * np.log(signal) - np.linalg.slogdet(whole)[1] / 2
                far = np.log(scaled), np.log(bowl / 0.25) / 1.5, np.log(noise / 0.1) / 3
                mean = across @ np.linalg.solve(whole, y)
                left = own - np.sum(across * np.linalg.solve(whole, across.T).T, axis=1)
                rows.append((evidence - np.sum(np.square(far)) / 2, mean, signal * (left + noise)))
    evidence, means, variances = (np.array(x) for x in zip(*rows, strict=True))
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    mean = share @ means
    return mean, share @ (variances + (means - mean) ** 2), means[share.argmax()]


def test_the_model_of_a_number_is_that_of_plain_loops():
    z, values = results()
    y = limit_chance.scale_of(values).of(values)
    y = (y - y.mean()) / y.std()
    mean, variance, _ = by_loops(z, y, z)
    found, deviation = limit_chance._at_all(z, np.ones(len(z), bool), y)
    np.testing.assert_allclose(found, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-6)


def test_where_a_number_is_not_known_the_likeliest_model_says_it():
    z, values = results(14)
    known = np.arange(14) < 12
    y = limit_chance.scale_of(values[:12]).of(values[:12])
    y = (y - y.mean()) / y.std()
    found, _ = limit_chance._at_all(z, known, y)
    np.testing.assert_allclose(found[12:], by_loops(z[:12], y, z[12:])[2], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("within", [0.8, 0.95, 0.99])
def test_a_limit_is_exceeded_where_too_many_rollouts_would_break_it(within):
    z, values = results()
    scale = limit_chance.scale_of(values)
    y = scale.of(values)
    level, unit = y.mean(), y.std()
    mean, variance, _ = by_loops(z, (y - level) / unit, z)
    edge = (np.arcsinh((50 - scale.middle) / scale.unit) - level) / unit
    chance = norm.cdf((edge - mean) / np.sqrt(variance))
    over = limit_chance.excess(z, values, [BELOW], within)
    np.testing.assert_array_equal(over > 0, chance < within)
    np.testing.assert_allclose(
        over,
        np.maximum(mean + norm.ppf(within) * np.sqrt(variance) - edge, 0),
        rtol=1e-5,
        atol=1e-7,
    )


def test_the_chance_at_one_theta_is_the_mean_of_what_cells_say():
    z, values = results(40, 3)
    found = limit_chance.modelled(z, values)
    scale, belief = found.scale, found.belief
    edge = (np.arcsinh((50 - scale.middle) / scale.unit) - belief.level) / belief.scale
    looks = belief.looks(np.zeros((1, 3)))
    total, below = 0.0, 0.0
    said = limit_chance.chance_within(found, BELOW)
    for cell in belief.cells:
        mean, spread = (float(np.ravel(x)[0]) for x in cell.expects(looks))
        noise = cell.hyper.signal * cell.hyper.noise
        total += cell.hyper.share * norm.cdf((edge - mean) / np.sqrt(WIDER**2 * spread + noise))
        cut = edge - norm.ppf(said.low) * noise**0.5  # a mean above this has a lower chance
        below += cell.hyper.share * norm.sf((cut - mean) / (WIDER * spread**0.5))
    assert said.rate == pytest.approx(total, abs=5e-3)
    assert below == pytest.approx(0.025, abs=0.02)
    assert said.low <= said.rate <= said.high


def test_a_number_lies_between_what_is_said_of_it():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(80, 2))
    truth = lambda at: 40 + 5 * at[..., 0]  # noqa: E731
    value, low, high = limit_chance.range_of(
        limit_chance.modelled(z, truth(z) + 2 * rng.normal(size=80))
    )
    assert value == pytest.approx(40, abs=1.5)
    inside = norm.cdf(high, 40, 2) - norm.cdf(low, 40, 2)
    assert 0.9 < inside < 0.995


def test_far_values_do_not_hide_where_the_limit_is():
    """A force of thousands in contact, of tens without: the edge between them is found."""
    rng = np.random.default_rng(2)
    z = rng.uniform(-2, 2, size=(60, 2))
    values = np.where(z[:, 0] > 1, 5000.0, 30 + 5 * z[:, 0]) + rng.normal(size=60)
    over = limit_chance.excess(z, values, [BELOW], 0.95)
    assert (over[z[:, 0] < 0.4] == 0).all()
    assert (over[z[:, 0] > 1.1] > 0).all()


@pytest.mark.parametrize(
    ("values", "bound", "edge"),
    [
        ([0, 0, 1, 2], Bound(0, 1.0, 0.0, True), 0.5),
        ([0, 0, 1, 2], Bound(0, 1.0, 1.0, False), 0.5),
        ([0, 0, -2], Bound(0, 1.0, 0.0, True), 1.0),
        ([0, 0.2, 3], Bound(0, -1.0, 0.0, False), 0.1),
        ([1, 2, 3], Bound(0, 1.0, 2.5, True), 2.5),
    ],
)
def test_counts_break_a_limit_halfway_to_the_next(values, bound, edge):
    assert limit_chance.edge_of(np.array(values, float), bound) == pytest.approx(edge)


def test_a_scale_is_undone_and_keeps_the_order():
    values = np.array([-1e6, -3.0, 0.0, 0.1, 2.0, 5.0, 1e9])
    scale = limit_chance.scale_of(values)
    assert (np.diff(scale.of(values)) > 0).all()
    np.testing.assert_allclose(scale.back(scale.of(values)), values, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("level", [-1000.0, 0.0, 1000.0])
@pytest.mark.parametrize("seed", range(5))
def test_what_breaks_a_limit_never_looks_better_than_a_bad_return(level, seed):
    rng = np.random.default_rng(seed)
    n = 40
    returns, valid = level + rng.normal(size=n), rng.uniform(size=n) < 0.9
    over = np.maximum(rng.normal(size=n), 0)
    seen = limit_chance.worth_within(returns, valid, over, np.ones(n, bool))
    inside, out = valid & (over == 0), valid & (over >= limit_chance.SOFT)
    np.testing.assert_array_equal(seen[~valid | inside], returns[~valid | inside])
    assert seen[out].max() < np.quantile(returns[inside], limit_chance.BAD)
    deeper = limit_chance.worth_within(returns, valid, np.where(over > 0, over + 0.1, 0), valid)
    assert (deeper[out] < seen[out]).all()


def test_without_anything_beyond_returns_stay_as_they_are():
    returns = np.arange(5.0)
    seen = limit_chance.worth_within(returns, np.ones(5, bool), np.zeros(5), np.ones(5, bool))
    assert seen is returns
    z, _ = results()
    for told in (np.full(12, np.nan), np.full(12, 41.0), np.where(np.arange(12) < 3, 99.0, np.nan)):
        kept = LimitsToKeep((BELOW,), 0.95)
        np.testing.assert_array_equal(limit_chance.beyond(z, told[:, None], kept), 0)
