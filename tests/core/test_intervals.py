"""Intervals: their formulas, when they are refused, and how often they hold the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import stratified_error
from scipy import stats
from scipy.special import ndtr

from recoup.core import intervals, judgement, objective
from recoup.core import worth as host
from recoup.core.archive import Drawn, from_samples
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.surrogate import fitted
from recoup.engine.composition import composed
from recoup.engine.methods import Method
from recoup.study.voice import sentences

FAMILY = diagonal_gaussian()


@pytest.mark.parametrize("degrees", [1.0, 1.7, 4.0, 30.5, 9.9e3, 1.1e4, 1e7, np.inf])
def test_the_quantile_is_student_s(degrees):
    want = stats.t.ppf(0.975, degrees)
    assert host.quantile(degrees + 1) == pytest.approx(want, rel=1e-10)


def test_the_interval_is_students_with_the_effective_sample_size():
    low, high = host.student(3.0, 0.5, 9.0)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 8, 3.0, 0.5))


@pytest.mark.parametrize(
    ("stderr", "ess", "mean_weight"),
    [(0.5, 4.99, 1.0), (0.5, 50, 0.89), (0.5, 50, 1.11), (0.0, 50, 1.0), (np.nan, 9, 1.0)],
)
def test_there_is_none_without_samples_fair_weights_and_a_spread(stderr, ess, mean_weight):
    assert np.isnan(host.student(3.0, stderr, ess, mean_weight)).all()


def test_the_words_know_the_limit():
    assert sentences.LEAST_ESS == host.LEAST_ESS


def test_errors_are_those_of_a_plain_loop_over_strata(x64):
    """A proposal with one draw, one with none, draws that are not there."""
    rng = np.random.default_rng(0)
    residuals, strata = rng.standard_normal(12), np.array([0, 0, 0, 2, 3, 3, 3, 3, 3, 0, 0, 1])
    drew = np.arange(12) < 11
    got = objective.standard_error(jnp.asarray(residuals), drew, strata, 5)
    want = stratified_error(residuals[:11], list(strata[:11]))
    assert float(got) == pytest.approx(want, rel=1e-12)
    assert np.isnan(objective.standard_error(jnp.ones(1), np.ones(1, bool), np.zeros(1, int), 2))


def judged(theta, returns, mean, std, start=(0.0, 1.0)):
    """What studies `[S, n, D]` say of one candidate; compiled once for all of one `[n, D]`."""
    with jax.enable_x64(True):
        each = [_judged(*one, mean, std, *start) for one in zip(theta, returns, strict=True)]
    return jax.tree.map(lambda *values: np.stack(values), *jax.device_get(each))


@jax.jit
def _judged(theta, returns, mean, std, start, spread):
    n, like = returns.size, jnp.ones(theta.shape[-1])
    proposals = Diagonal(start * like[None], spread * like[None])
    target = Diagonal(mean * like, std * like)
    told, drawn_by = jnp.ones(n, bool), jnp.zeros(n, jnp.int32)
    drawn = Drawn(theta, returns, told, proposals, drawn_by, target)
    return judgement.judged_archive(FAMILY, target, from_samples(FAMILY, drawn, keep="running"))


def worths(found, dim=1):
    seen, _, unseen, _ = found
    return [
        host.worth(jax.tree.map(lambda x, i=i: x[i], seen), float(unseen[i]), dim)
        for i in range(len(unseen))
    ]


@pytest.mark.parametrize(("mean", "std", "n"), [(1.0, 0.8, 20), (2.0, 0.8, 200), (0.5, 1.2, 40)])
def test_what_is_unseen_is_a_probability_under_the_candidate(mean, std, n, x64):
    """P(w > n / 6), by a fine grid; 1,024 draws of it are within 4 standard errors."""
    x = np.linspace(-9, 9, 200_001)
    density = stats.norm(mean, std).pdf(x)
    exact = np.trapezoid(density * (density / stats.norm.pdf(x) > n / 6), x)
    _, _, unseen, _ = judged(np.zeros((1, n, 1)), np.zeros((1, n)), mean, std)
    assert abs(float(unseen[0]) - exact) < 4 * np.sqrt(exact * (1 - exact) / 1024) + 1e-3


def test_a_candidate_out_of_sight_is_refused_however_small_the_spread():
    """40 results of N(-2.5, 1), a candidate N(0, 0.8): k-hat was below 0.7 in a third of these."""
    rng = np.random.default_rng(1)
    theta = rng.normal(-2.5, 1, (60, 40, 1))
    found = worths(judged(theta, (theta + 3)[..., 0], 0.0, 0.8, start=(-2.5, 1.0)))
    assert {worth.refused for worth in found} == {host.UNSEEN_PART}
    assert np.isnan([worth.mean for worth in found]).all()


def test_equal_returns_have_a_mean_and_no_interval():
    (worth,) = worths(judged(np.zeros((1, 40, 1)), np.full((1, 40), 4.0), 0.0, 1.0))
    assert (worth.refused, worth.mean) == (host.EQUAL, pytest.approx(4.0))
    assert np.isnan(worth.interval).all()


def smooth(rng):
    best = rng.uniform(0, 2.5)
    return (lambda x: -((x - best) ** 2) / 2), lambda m, s: -((m - best) ** 2 + s**2) / 2


def plateau(rng):
    edge = rng.uniform(-1.0, 1.5)
    return (lambda x: (x > edge) * 1.0), lambda m, s: ndtr((m - edge) / s)


def rough(rng):
    pace, phase = rng.uniform(3, 6), rng.uniform(0, 6.3)
    return (
        lambda x: np.cos(pace * x + phase)
    ), lambda m, s: np.cos(pace * m + phase) * np.exp(-((pace * s) ** 2) / 2)


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize(
    ("kind", "noise"), [(smooth, 0.0), (smooth, 2.0), (plateau, 0.0), (rough, 0.0)]
)
def test_intervals_hold_the_truth_and_are_not_wide(kind, noise, shift):
    """150 studies of 40 results: at least 90 % within two binomial errors, at most 1.3 times."""
    rng = np.random.default_rng(5)
    functions = [kind(rng) for _ in range(150)]
    theta = rng.standard_normal((150, 40, 1))
    returns = np.stack([f(x[:, 0]) for (f, _), x in zip(functions, theta, strict=True)])
    found = judged(theta, returns + noise * rng.standard_normal(returns.shape), shift, 0.8)
    chosen = worths(found)
    given = [i for i, worth in enumerate(chosen) if not worth.refused]
    assert len(given) > 140
    held = [
        chosen[i].interval.low <= functions[i][1](shift, 0.8) <= chosen[i].interval.high
        for i in given
    ]
    assert np.mean(held) > 0.9 - 2 * np.sqrt(0.9 * 0.1 / len(given))
    seen = found[0]
    plain = 2 * 1.96 * (seen.weighted_stderr * seen.mean_weight)[given]
    widths = [chosen[i].interval.high - chosen[i].interval.low for i in given]
    assert np.median(widths) < 1.3 * np.median(plain)


@pytest.mark.slow
def test_a_model_that_explains_the_returns_narrows_the_interval():
    rng = np.random.default_rng(6)
    theta = rng.standard_normal((20, 200, 2))
    returns = -(theta**2).sum(-1) + 0.05 * rng.standard_normal((20, 200))
    found = judged(theta, returns, 0.3, 0.8)
    chosen = worths(found)
    truth = -2 * (0.3**2 + 0.8**2)
    halves = np.array([(w.interval.high - w.interval.low) / 2 for w in chosen])
    assert all(w.interval.low < truth < w.interval.high for w in chosen)
    assert np.median(halves) < 0.5 * 1.96 * np.median(found[0].weighted_stderr)
    assert min(w.explained for w in chosen) > 0.9


def test_where_weights_and_model_disagree_the_interval_holds_both():
    seen = host.Seen(
        weighted=np.float64(1.0),
        weighted_stderr=np.float64(0.1),
        modelled=np.float64(3.0),
        modelled_stderr=np.float64(0.01),
        model_std=np.float64(0.01),
        ess=np.float64(200.0),
        even=np.float64(0.7),
        mean_weight=np.float64(1.0),
        spread=np.float64(1.0),
        std=np.float64(2.0),
        samples=np.float64(300.0),
    )
    worth = host.worth(seen, 0.0, 1)
    assert worth.mean == 3.0
    assert worth.interval.low == pytest.approx(1.0)
    alone = host.worth(seen._replace(model_std=np.float64(np.inf)), 0.0, 1)
    assert alone.mean == 1.0
    assert alone.interval == pytest.approx(stats.t.interval(0.95, 199, 1.0, 0.1))


def test_what_is_unseen_may_lie_two_standard_deviations_away():
    """A twentieth of the candidate, and returns of spread 3: 0.3 wider on each side."""
    numbers = (1.0, 0.1, 1.0, 0.1, np.inf, 200.0, 0.7, 1.0, 9.0, 3.0, 300.0)
    seen = host.Seen(*map(np.float64, numbers))
    low, high = stats.t.interval(0.95, 199, 1.0, 0.1)
    assert host.worth(seen, 0.05, 1).interval == pytest.approx((low - 0.3, high + 0.3))
    assert host.worth(seen, np.nan, 1).interval == pytest.approx((low, high))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "dim"), [(40, 100), (200, 300)])
def test_more_dimensions_than_results_do_not_fool_the_model(n, dim):
    """Where they were drawn, of R = -|theta|^2: a bowl about their own middle held it in 60 %.

    Of 15 studies all are held by chance in 0.6^15, or 0.05 %.
    """
    theta = np.random.default_rng(5).standard_normal((15, n, dim))
    found = worths(judged(theta, -(theta**2).sum(-1), 0.0, 1.0), dim)
    assert all(worth.interval.low < -dim < worth.interval.high for worth in found)


def test_fewer_than_four_results_a_dimension_judge_only_what_drew_them():
    """R = theta along the way to the candidate, by weights alone: held in 82 % of studies."""
    rng = np.random.default_rng(5)
    theta = rng.standard_normal((1, 40, 11))
    seen, _, unseen, _ = judged(theta, theta[..., 0], 1 / np.sqrt(11), 1.0)
    first = jax.tree.map(lambda x: x[0], seen)
    assert host.worth(first, float(unseen[0]), 11).refused == host.MANY_DIMENSIONS
    assert host.worth(first, float(unseen[0]), 10).refused == ""


def test_returns_that_differ_by_rounding_are_equal():
    rng = np.random.default_rng(2)
    returns = np.where(rng.random((1, 40)) < 0.5, 0.3, 0.1 + 0.2)
    (worth,) = worths(judged(rng.standard_normal((1, 40, 1)), returns, 0.0, 1.0))
    assert worth.refused == host.EQUAL


def sigmoid(x):
    return 1 / (1 + np.exp(-2 * x))


@pytest.fixture(scope="module")
def failing():
    """120 studies of six narrow proposals, where more fail the larger theta is; R = theta."""
    rng = np.random.default_rng(3)
    means, drawn_by = np.linspace(-1.5, 1.5, 6)[:, None], np.repeat(np.arange(6), 20)
    theta = means[drawn_by] + 0.3 * rng.standard_normal((120, 120, 1))
    failed = rng.random((120, 120)) < sigmoid(theta[..., 0])
    with jax.enable_x64(True):
        proposals = Diagonal(jnp.asarray(means), jnp.full((6, 1), 0.3))
        target = Diagonal(jnp.zeros(1), jnp.full(1, 1.2))

        @jax.jit
        def judged(theta, returns):
            told = jnp.ones(120, bool)
            drawn = Drawn(theta, returns, told, proposals, jnp.asarray(drawn_by), target)
            archive = from_samples(FAMILY, drawn, keep="running")
            return judgement.judged_archive(FAMILY, target, archive)

        returns = jnp.asarray(np.where(failed, np.nan, theta[..., 0]))
        found = jax.lax.map(lambda x: judged(*x), (jnp.asarray(theta), returns))
        return jax.device_get(found)


@pytest.mark.slow
def test_failures_that_depend_on_theta_leave_the_interval_true(failing):
    """The mean return of what does not fail, by quadrature; weights alone miss it too often."""
    x = np.linspace(-9, 9, 20_001)
    success = stats.norm.pdf(x, 0, 1.2) * (1 - sigmoid(x))
    truth = np.trapezoid(x * success, x) / np.trapezoid(success, x)
    given = [worth.interval for worth in worths(failing) if not worth.refused]
    assert len(given) > 100
    held = [low <= truth <= high for low, high in given]
    assert np.mean(held) > 0.9 - 2 * np.sqrt(0.9 * 0.1 / len(held))
    by_weights = np.abs(failing[0].weighted - truth) < 1.98 * failing[0].weighted_stderr
    assert np.mean(by_weights) < 0.8


def test_what_is_unseen_counts_for_more_where_half_fails(failing):
    """At most P(unseen) / P(no failure), and half of this candidate fails."""
    x = np.linspace(-9, 9, 200_001)
    density = stats.norm.pdf(x, 0, 1.2)
    mixture = np.mean([stats.norm.pdf(x, m, 0.3) for m in np.linspace(-1.5, 1.5, 6)], axis=0)
    unseen = np.trapezoid(density * (density > 20 * mixture), x)
    assert np.median(failing[2]) == pytest.approx(unseen / 0.5, rel=0.25)


def test_the_model_sees_failures_as_they_are(x64):
    """b + E_p[(R - b) s] / P(s), b the weighted mean, from the numbers of the same model."""
    rng = np.random.default_rng(4)
    theta, failed = rng.standard_normal((50, 1)), rng.random(50) < 0.3
    weights = jnp.asarray(rng.uniform(0.5, 1.5, 50))
    ones, returns = jnp.ones(50, bool), jnp.asarray(theta[:, 0])
    data = intervals.WeighedDraws(weights, returns, ~failed, ones, jnp.zeros(50, int), 1)
    looked_at = jax.jit(lambda theta: intervals.looked_at(data, lambda rows: theta[rows]))
    seen = looked_at(jnp.asarray(theta))
    w = np.asarray(weights)
    centre = np.average(theta[~failed, 0], weights=w[~failed])
    model = jax.jit(fitted)(jnp.asarray(theta), jnp.where(failed, 0.0, returns - centre), ones)
    left = np.average(model.residuals, weights=w) - np.mean(model.pulls * model.residuals)
    success = w[~failed].sum() / w.sum()
    want = float(centre + (model.mean + left) / success)
    assert float(seen.weighted) == pytest.approx(centre, rel=1e-12)
    assert float(seen.modelled) == pytest.approx(want, rel=1e-9)
    assert float(seen.model_std) == pytest.approx(float(model.std) / success, rel=1e-9)


def test_what_the_model_cannot_look_at_leaves_it_to_the_weights(x64):
    """Of 300 results of equal weight the model would see 256: it takes no part."""
    rng = np.random.default_rng(7)
    theta = rng.standard_normal((1, 300, 1))
    seen, *_ = judged(theta, theta[..., 0] ** 2, 0.0, 1.0)
    assert np.isinf(seen.model_std[0])


def archives(seed, proposals, n, step):
    """An archive along a path of proposals in one dimension; the newest is N(0, 1)."""
    rng = np.random.default_rng(seed)
    means = (np.arange(proposals) - proposals + 1) * step
    drawn_by = np.repeat(np.arange(proposals), n)
    theta = means[drawn_by] + rng.standard_normal(len(drawn_by))
    return theta, means, drawn_by, rng


@pytest.mark.parametrize("weights", ["own", "mixture"])
@pytest.mark.parametrize(("proposals", "n", "step"), [(1, 6, 0.0), (3, 5, 0.8), (8, 4, 0.5)])
def test_the_interval_of_a_move_holds_the_truth(weights, proposals, n, step):
    """1,000 archives; weighed by NumPy. Where it is given, at least 90 % within two errors."""
    held = []
    for seed in range(1000):
        theta, means, drawn_by, rng = archives(seed, proposals, n, step)
        returns = -((theta - 1) ** 2) / 2 + 0.5 * rng.standard_normal(len(theta))
        each = stats.norm.pdf(theta[:, None], means)
        below = each.mean(1) if weights == "mixture" else each[np.arange(len(theta)), drawn_by]
        w = stats.norm.pdf(theta) / below
        mean = (w * returns).mean()
        error = stratified_error(w * returns - mean, list(drawn_by)) / len(w)
        ess = w.sum() ** 2 / (w**2).sum()
        low, high = host.student(mean, error, ess, w.mean())
        if np.isfinite(low):
            held.append(low <= -1.0 <= high)
    assert len(held) > 50
    assert np.mean(held) > 0.9 - 2 * np.sqrt(0.9 * 0.1 / len(held))


def test_a_pair_is_one_draw(x64):
    """Mirrored samples: half as many draws, and the model's choice takes whole pairs."""
    rng = np.random.default_rng(8)
    noise = rng.standard_normal((150, 1))
    theta = np.stack([noise, -noise], 1).reshape(-1, 1)
    data = intervals.WeighedDraws(
        jnp.asarray(rng.uniform(0.5, 1.5, 300)),
        jnp.asarray(theta[:, 0] ** 3),
        jnp.ones(300, bool),
        jnp.ones(300, bool),
        jnp.zeros(300, int),
        1,
        2,
    )
    heavy = np.asarray(intervals._heaviest(data))
    assert len(heavy) == 256
    assert (heavy[1::2] == heavy[::2] + 1).all()
    seen = jax.jit(lambda: intervals.looked_at(data, None))()
    assert float(seen.ess) <= 150


@pytest.mark.parametrize(("weighting", "shape"), [("power-mean", {}), ("own", {"truncate": 2.0})])
def test_weights_that_are_biased_by_design_have_no_interval(weighting, shape):
    """Whatever their mean: it is no sign that the estimate can be believed."""
    method = composed(Method("shaped", weighting=weighting, **shape))
    rng = np.random.default_rng(9)
    drawn_by = np.repeat([0, 1], 50)
    theta = rng.standard_normal((100, 1)) - 0.1 * (1 - drawn_by[:, None])
    proposals = Diagonal(jnp.asarray([[-0.1], [0.0]]), jnp.ones((2, 1)))
    target = Diagonal(jnp.zeros(1), jnp.ones(1))
    told = jnp.ones(100, bool)
    drawn = Drawn(jnp.asarray(theta), jnp.asarray(theta[:, 0]), told, proposals, drawn_by, target)
    found = jax.jit(lambda x: method.estimate(target, from_samples(FAMILY, x, keep="own")))(drawn)
    assert np.isnan(found.mean_weight)
    numbers = (found.objective, found.objective_stderr, found.ess, found.mean_weight)
    assert np.isnan(host.student(*map(float, numbers))).all()


def test_equal_returns_are_equal_however_they_round():
    rng = np.random.default_rng(2)
    (worth,) = worths(judged(rng.standard_normal((1, 40, 1)), np.full((1, 40), 0.1), 0.3, 0.8))
    assert worth.refused == host.EQUAL


def test_returns_too_large_to_square_are_refused():
    rng = np.random.default_rng(2)
    theta = rng.standard_normal((1, 40, 1))
    (worth,) = worths(judged(theta, 1e200 * theta[..., 0], 0.3, 0.8))
    assert worth.refused == host.HUGE


def test_a_result_far_away_does_not_spoil_the_model():
    rng = np.random.default_rng(3)
    theta = rng.standard_normal((1, 40, 1))
    theta[0, -1] = 1e8
    found, *_ = judged(theta, -(np.minimum(theta[..., 0], 3.0) ** 2), 0.3, 0.8)
    assert abs(float(found.modelled[0] - found.weighted[0])) < 1.0


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_how_many_draws_fail_is_chance_too(share):
    """Narrow proposals side by side, returns far from 0, random failures: 300 studies hold 90 %."""
    rng = np.random.default_rng(4)
    means = np.linspace(-1.5, 1.5, 6)
    held, standard_error = [], jax.jit(objective.standard_error, static_argnums=3)
    for _ in range(300):
        drawn_by = np.repeat(np.arange(6), 20)
        theta = means[drawn_by] + 0.5 * rng.standard_normal(120)
        ok = rng.uniform(size=120) >= share
        w = stats.norm.pdf(theta, 0, 1) / stats.norm.pdf(theta[:, None], means, 0.5).mean(1)
        w = np.where(ok, w, 0.0)
        mean = (w * theta).sum() / w.sum()
        error = standard_error(w * (theta - mean), np.ones(120, bool), drawn_by, 6) / w.sum()
        held.append(abs(mean) < 1.99 * float(error))
    assert np.mean(held) > 0.9 - 2 * np.sqrt(0.9 * 0.1 / 300)
