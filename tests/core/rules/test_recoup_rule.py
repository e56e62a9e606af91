"""The rule of the method `recoup`, beside itself written out, and by JAX beside NumPy."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from plain_rules import Plain

import recoup
from recoup.core.families.full import Full, full_gaussian
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.families.shapes import DIAGONAL, FULL
from recoup.core.families.table import FAMILIES
from recoup.core.plain import rule as plain
from recoup.core.rules.window import Rule, reach_of
from recoup.engine import plain as moves
from recoup.engine.methods import METHODS, sized

FAMILY = {False: diagonal_gaussian, True: full_gaussian}


def bowl(theta):
    return -((theta - 1) ** 2 * np.arange(1, theta.shape[1] + 1)).sum(1)


def bumpy(theta):
    return np.cos(5 * theta).sum(1) - np.abs(theta - 0.3).sum(1)


def craggy(theta):
    """Far too rugged for any model."""
    return 5 * np.sin(40 * theta).sum(1) - np.abs(theta).sum(1)


def stairs(theta):
    """Ties, plateaus and flat batches."""
    return np.floor(-np.abs(theta - 2).max(1))


def distant(theta):
    """A top that lies two hundred standard deviations away."""
    return -((theta - 100) ** 2).sum(1)


CASES = [
    (1, bowl, 1.0),
    (2, stairs, 0.0),
    (6, bowl, 1.0),
    (5, bumpy, 0.3),
    (4, craggy, 0.1),
    (3, distant, 0.3),
]


def told(theta, returns, drawn_by, proposals, new):
    """Results, the last `new` of them fresh."""
    valid, n = np.isfinite(returns), len(returns)
    stacked = type(proposals[0])(*(np.stack(x) for x in zip(*proposals, strict=True)))
    zero = np.where(valid, returns, 0.0)
    fresh, foreign, no_numbers = np.arange(n) >= n - new, np.zeros(n, bool), np.zeros((n, 0))
    return plain.ToldResults(
        theta, zero, valid, ~valid, fresh, drawn_by, no_numbers, foreign, no_numbers, stacked
    )


RULES = [
    {"share": 1.0, "pulled": True},  # the regression alone
    {"share": 0.0},  # the weights alone
    {"prior": 0.3, "most": 0.5, "shrink": 0.5},
    {"repeats": False},
    {},
]


def rules_of(case):
    """All for the one case of the diagonal family; the default and two for each of the full."""
    at = CASES.index(case)
    return RULES if at == 0 else [RULES[at % 4], RULES[(at + 1) % 4], RULES[-1]]


UPDATES = [(*case, rule) for case in CASES for rule in rules_of(case)]
UPDATES += [pytest.param(53, bowl, 1.0, rule, marks=pytest.mark.slow) for rule in RULES]


@pytest.mark.parametrize(("dim", "objective", "noise", "settings"), UPDATES)
def test_thirty_updates_are_those_of_the_formulas_written_out(dim, objective, noise, settings):
    rng = np.random.default_rng(dim)
    start, batch = rng.normal(size=dim), 7
    oracle = Plain(start, 0.5, **settings)
    rho = (Full if oracle.full else Diagonal).start(start, np.full(dim, 0.5))
    rule = Rule(FULL if oracle.full else DIAGONAL, **settings)
    theta, returns, memory, proposals = np.zeros((0, dim)), np.zeros(0), None, [rho]
    for i in range(30):
        fresh = oracle.mean + rng.normal(size=(batch, dim)) @ oracle.factor.T
        if oracle.wanted:
            fresh[1] = fresh[0]
        earned = objective(fresh) + noise * rng.normal(size=batch)
        if i == 20:
            earned[:] = -200.0
        oracle.tell(fresh, earned)
        theta, returns = np.concatenate([theta, fresh]), np.concatenate([returns, earned])
        drawn_by = np.repeat(np.arange(i + 1), batch)
        seen = told(theta, returns, drawn_by, proposals, batch)
        made = plain.move(FAMILY[oracle.full](), rule, None, rho, seen, memory)
        rho, memory = made.rho, made.memory
        proposals.append(rho)
        assert bool(memory.pairs.wanted) == oracle.wanted
        np.testing.assert_allclose(made.found.notes.bold, oracle.bold, rtol=1e-6, atol=1e-6)
        covariance = rho.factor @ rho.factor.T if oracle.full else np.diag(rho.std**2)
        np.testing.assert_allclose(rho.mean, oracle.mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            covariance, oracle.factor @ oracle.factor.T, rtol=1e-6, atol=1e-6 * covariance.max()
        )


@pytest.mark.parametrize(  # every two of family, precision and failure meet
    ("dim", "double", "failure"),
    [
        (1, True, "avoid"),
        (51, True, "censored"),
        (3, True, "avoid"),
        (3, False, "avoid"),
        (3, False, "censored"),
    ],
)
def test_jax_makes_the_moves_of_numpy(dim, double, failure):
    """With late results, failures, and more samples than the window holds."""
    with jax.enable_x64(double):
        row = replace(sized(METHODS["recoup"], dim), failure=failure)
        search = recoup.search("recoup", dim=dim, batch=6, failure=failure)
        state = search.init(jax.random.key(0), mean=0.0, std=0.5)
        rho = FAMILIES[row.family].rho.start(np.zeros(dim), np.full(dim, 0.5))
        rng, proposals, memory = np.random.default_rng(0), [rho], None
        theta, returns, drawn_by = np.zeros((0, dim)), np.zeros(0), np.zeros(0, int)
        for i in range(1 + max(reach_of(dim, 6, None)) // 6):
            by = np.array([i] * 5 + [max(i - 2, 0)])
            fresh = np.stack([proposals[p].theta(rng.normal(size=dim)) for p in by])
            earned = bowl(fresh) + rng.normal(size=6)
            earned[1] = np.nan if i % 7 == 6 else earned[1]
            if i in (0, 9):  # a start that fails altogether, and a batch
                earned[:] = np.nan
            state, info = search.tell(jax.random.key(i), state, fresh, earned, proposal=by)
            theta, returns = np.concatenate([theta, fresh]), np.concatenate([returns, earned])
            drawn_by = np.concatenate([drawn_by, by])
            seen = told(theta, returns, drawn_by, proposals, 6)
            with np.errstate(invalid="ignore"):  # as a study does
                rho, memory, other = moves.make_rule_move(row, rho, seen, memory)
            proposals.append(rho)
        state, info = jax.device_get((state, info))
    close = {"rtol": 1e-9, "atol": 1e-9} if double else {"rtol": 0.02, "atol": 0.01}
    np.testing.assert_allclose(state.mean, rho.mean, **close)
    np.testing.assert_allclose(state.std, rho.std, **close)
    for key in ("objective", "objective_stderr", "ess", "max_weight", "mean_weight", "kl"):
        np.testing.assert_allclose(getattr(info, key), getattr(other, key), err_msg=key, **close)
    assert int(info.samples) + int(info.censored) <= search.capacity
    for key in ("bounded", "widened", "flat", "evident"):
        assert bool(getattr(info.notes, key)) == bool(getattr(other.notes, key))


def searched(objective, dim, moves, batch=4, std=1.0, **settings):
    """Rho after so many moves of the rule from zero."""
    full = 2 <= dim <= 50
    rho = (Full if full else Diagonal).start(np.zeros(dim), np.full(dim, std))
    rng, memory, proposals = np.random.default_rng(1), None, [rho]
    theta, returns = np.zeros((0, dim)), np.zeros(0)
    for i in range(moves):
        fresh = np.stack([rho.theta(rng.normal(size=dim)) for _ in range(batch)])
        theta, returns = np.concatenate([theta, fresh]), np.append(returns, objective(fresh))
        seen = told(theta, returns, np.repeat(np.arange(i + 1), batch), proposals, batch)
        with np.errstate(all="ignore"):  # as a study does
            rule = Rule(FULL if full else DIAGONAL, **settings)
            rho, memory, _ = plain.move(FAMILY[full](), rule, None, rho, seen, memory)
        proposals.append(rho)
    return rho


def ball(theta):
    return -((theta - 1) ** 2).sum(1)


@pytest.mark.parametrize(("dim", "moves"), [(1, 25), (2, 40), (5, 60), (51, 80)])
def test_a_top_far_outside_the_first_spread_is_found_without_noise(dim, moves):
    rho = searched(ball, dim, moves, batch=max(4, dim // 5), std=0.01)
    assert np.abs(rho.mean - 1).max() < 0.05


def test_the_spread_grows_no_further_than_it_may():
    """Along a slope without a top, and among returns that are all equal."""
    slope = searched(lambda theta: theta.sum(1), 3, 80)
    assert 5.5 < np.mean(np.log(np.diag(slope.factor))) < 7.3 + 1e-9
    level = searched(lambda theta: np.full(len(theta), 3.0), 3, 60)
    assert 7.0 <= np.mean(np.log(np.diag(level.factor))) < 7.2 + 1e-9
    np.testing.assert_array_equal(level.mean, 0)


def test_a_batch_of_one_is_no_flat_batch():
    rho = searched(ball, 3, 80, batch=1)
    assert np.abs(rho.mean - 1).max() < 0.2
    assert (rho.std < 1).all()


@pytest.mark.parametrize("unit", [1e-200, 1e-15, 1e15, 1e200])
def test_returns_may_have_any_unit(unit):
    found, want = (searched(lambda theta, u=u: u * ball(theta), 3, 20) for u in (unit, 1.0))
    np.testing.assert_allclose(found.mean, want.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.std, want.std, rtol=1e-6)


def test_float32_keeps_its_covariance_on_a_narrow_ridge():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    search = recoup.search("recoup", dim=3, batch=4)
    state = search.init(jax.random.key(0), mean=1.0, std=1.0)
    for i in range(150):
        theta, state = search.ask(jax.random.key(i), state)
        away = np.asarray(theta, float) @ turn
        state, _ = search.tell(jax.random.key(i), state, theta, -(away**2 @ [1, 1e4, 1e8]))
    assert np.isfinite(state.mean).all()
    assert np.isfinite(state.std).all()


def test_where_no_sample_is_weighed_the_regression_moves_alone():
    """Every result was drawn far away, so that no weight says anything: a step all the same."""
    rng, dim = np.random.default_rng(0), 3
    far, rho = (Full.start(np.full(dim, at), np.full(dim, 0.1)) for at in (0.0, 3.0))
    theta = far.theta(rng.normal(size=(8, dim)))
    seen = told(theta, bowl(theta), np.zeros(8, int), [far], 4)
    with np.errstate(invalid="ignore"):  # as a study does
        made = plain.move(full_gaussian(), Rule(FULL), None, rho, seen, None)
    assert not np.isfinite(made.found.objective)
    assert np.isfinite(made.rho.mean).all()
    assert np.isfinite(made.rho.factor).all()


def test_a_policy_of_fifty_thousand_parameters_moves():
    """D^2 is no number of 32 bits there."""
    dim = 50_000
    search = recoup.search("recoup", dim=dim, batch=4, window=2)
    state = search.init(jax.random.key(0), mean=0.0)
    for i in range(3):
        theta, state = search.ask(jax.random.key(i), state)
        state, info = search.tell(jax.random.key(i), state, theta, -((theta - 0.5) ** 2).sum(1))
        assert info.notes.context is None  # nothing is told of them
        assert all(np.isfinite(note) for note in info.notes if note is not None)
    assert np.isfinite(state.mean).all()
    assert np.isfinite(state.std).all()
    assert np.mean(state.mean) > 0


@pytest.mark.parametrize(
    ("dim", "modelled"), [(100, 300), (450, 1000), (50_000, 1000), (200_000, 250), (10**7, 60)]
)
def test_the_regression_looks_at_no_more_numbers_than_there_is_room_for(dim, modelled):
    """But at two batches."""
    assert reach_of(dim, 30, None) == (modelled, 270)


def test_where_no_result_is_near_enough_earlier_ones_have_no_say():
    """As where a move is made again after an amendment: what was drawn lies elsewhere then."""
    rho, rng = Full.start(np.zeros(3), np.ones(3)), np.random.default_rng(0)
    far = Full.start(np.full(3, 50.0), np.full(3, 0.01))
    theta = np.stack([far.theta(rng.normal(size=3)) for _ in range(12)])
    seen = told(theta, bowl(theta), np.zeros(12, int), [far], 6)
    with np.errstate(all="ignore"):  # as a study does
        found = plain.move(full_gaussian(), Rule(FULL), None, rho, seen, None).found
    assert found.ess == found.max_weight == found.notes.old == 0
