"""Bounded tasks in `compare`: what methods are given, what they deploy, and what is said of it."""

import json

import numpy as np
import pytest
from scipy import stats

from recoup.checks import InputError
from recoup.compare.arenas import arena_of, box_task, start_of
from recoup.compare.comparison import Order, compare, plan_of
from recoup.compare.comparison_tables import deployed, markdown, overall_tables, short_table
from recoup.compare.entrants import BOXED, PEERS, entrant_of, made_by
from recoup.compare.peers.gibo import information
from recoup.compare.peers.mpd import ascent, promise
from recoup.compare.peers.slopes import shared, slope
from recoup.compare.peers.small_gp import _cost, best_tried, conditioned, fitted
from recoup.compare.players import Boxed, HostPlayers, StudyPlayer
from recoup.compare.side_by_side import learn, players_of
from recoup.compare.summary import summary
from recoup.study.study import Study
from recoup.tasks.bounded.bounded_suite import BOUNDED, bounded_task
from recoup.tasks.bounded.box import Bounded, Box

FAST = ("cma-es", "cma-es-noise", "lra-cma-es", "spsa", "optuna-tpe", "turbo", "gibo", "mpd")
EXTRA = ("optuna-gp", "botorch-qlognei", "smac:budget=30", "nevergrad-tbpsa", "nevergrad-ngopt")


def made(name, dim, seed=0, **settings):
    package = PEERS[name].package
    pytest.importorskip(package)
    return made_by(PEERS[name].boxed)(dim, seed, settings)


def test_a_list_stands_for_all_and_for_each_half():
    tasks = plan_of(Order(["bounded"], ["recoup"], 1, 50)).arenas
    assert [arena.name for arena in tasks] == list(BOUNDED)
    plan = plan_of(Order(["bounded-tuning"], ["recoup"], 1, 120))
    assert {BOUNDED[arena.name].half for arena in plan.arenas} == {"tuning"}
    assert plan.checkpoints == (20, 50, 100, 120)


def test_ours_is_the_study_that_a_user_would_have(tmp_path):
    """The default start and batch, and the trials that the same seed gives."""
    arena, entrant = arena_of("bounded-bowl-3"), entrant_of("recoup")
    players = players_of(arena, entrant, 4, [2], 50)
    (player,) = players._peers
    assert isinstance(player, StudyPlayer)
    task, mine = box_task(arena, 4, 2), player._study
    with Study.open(tmp_path / "s.db", params=task.params, seed=mine.settings["seed"]) as study:
        assert study.batch == players.batch
        assert study.settings == mine.settings
        np.testing.assert_allclose(study.mean, mine.mean)
        np.testing.assert_allclose(study.std, mine.std)
        asked = players.ask(1)[0]
        np.testing.assert_array_equal(asked, [t.theta for t in study.ask(study.batch)])
        returns = np.array([-1.0, -2.0, np.nan, *range(players.batch - 3)])
        players.tell(1, asked[None], returns[None])
        for trial, value in zip(study.pending(), returns, strict=True):
            study.tell(trial.id, **({"failed": "none"} if np.isnan(value) else {"value": value}))
        recommended = study.mean_policy
        names = task.box.names
        np.testing.assert_allclose(players.mean()[0], [recommended[name] for name in names])


def test_the_middle_of_the_box_is_where_all_start_and_m_is_without_noise():
    arena = arena_of("bounded-cliff-4")
    curves = [learn(arena, entrant_of(name), 7, [3], [2])[0] for name in ("cma-es", "spsa")]
    middle = box_task(arena, 7, 3).true_return(start_of(arena, 7, 3))
    assert [curve.policy[0] for curve in curves] == pytest.approx([middle, middle])


@pytest.mark.parametrize("name", FAST)
def test_peers_stay_in_the_box_repeat_themselves_and_find_the_best(name):
    best = np.array([0.3, 0.6, 0.45])
    rng = np.random.default_rng(3)
    first, again = made(name, 3, 11), made(name, 3, 11)
    for _ in range(-(-120 // first.batch)):
        x = first.ask()
        np.testing.assert_allclose(x, again.ask())
        assert x.shape == (first.batch, 3)
        assert ((x >= 0) & (x <= 1)).all()
        returns = -np.sum((x - best) ** 2, 1) + 0.01 * rng.standard_normal(len(x))
        first.tell(x, returns)
        again.tell(x, returns)
    drawn = first.draw(np.random.default_rng(0).standard_normal((30, 3)))
    assert ((drawn >= 0) & (drawn <= 1)).all()
    assert np.linalg.norm(first.mean() - best) < 0.25
    for one in (first, again):
        if hasattr(one, "close"):
            one.close()


@pytest.mark.slow
@pytest.mark.parametrize("text", EXTRA)
def test_peers_of_the_extra_find_the_best(text):
    """On a box with a log scale, where trials near one corner fail and count as the worst."""
    name = text.partition(":")[0]
    pytest.importorskip(PEERS[name].package)
    box = Box((Bounded("rate", 0.01, 1.0, "log"), Bounded("gain", -2.0, 2.0)))
    best, entrant = np.array([0.3, 0.6]), entrant_of(text)
    peer = Boxed(box, made_by(PEERS[name].boxed)(2, 1, entrant.settings))
    players, failed = HostPlayers(text, [peer]), 0
    for number in range(30):
        values = players.ask(number)
        x = box.unit(values[0])
        assert ((x >= -1e-9) & (x <= 1 + 1e-9)).all()
        crashed = x.min(1) > 0.9
        returns = np.where(crashed, np.nan, -np.sum((x - best) ** 2, 1))
        failed += int(crashed.sum())
        players.tell(number, values, returns[None])
    players.close()
    assert np.linalg.norm(box.unit(players.mean())[0] - best) < 0.3


@pytest.mark.parametrize("name", FAST)
def test_peers_take_failures_and_log_scales(name):
    """In units of a box with a log scale; a quarter of the box fails."""
    pytest.importorskip(PEERS[name].package)
    box = Box((Bounded("rate", 0.01, 1.0, "log"), Bounded("gain", -2.0, 2.0)))
    best = np.array([0.2, 0.6])
    peer = Boxed(box, made_by(PEERS[name].boxed)(2, 4, {}))
    players = HostPlayers(name, [peer])
    for number in range(-(-100 // players.batch)):
        values = players.ask(number)
        assert (values[..., 0] >= 0.01 - 1e-12).all()
        assert (values[..., 0] <= 1 + 1e-12).all()
        x = box.unit(values[0])
        returns = np.where(x[:, 0] > 0.75, np.nan, -np.sum((x - best) ** 2, 1))
        players.tell(number, values, returns[None])
    found = box.unit(players.mean())[0]
    players.close()
    assert np.linalg.norm(found - best) < 0.25


def test_a_step_of_spsa_is_spalls():
    peer = made("spsa", 4, 2)
    x = peer.ask()
    delta = np.sign(x[0] - x[1])
    np.testing.assert_allclose(x, 0.5 + 0.1 * np.outer([1, -1], delta))
    peer.tell(x, np.array([3.0, 1.0]))
    np.testing.assert_allclose(peer.mean(), 0.5 + 0.1 * delta)  # |gradient| is 10 all over
    x = peer.ask()
    width = 0.1 / 2**0.101
    np.testing.assert_allclose(np.abs(x - peer.mean()).max(), width)


def small_process(dim=3, n=14):
    rng = np.random.default_rng(5)
    x = rng.random((n, dim))
    returns = np.sin(4 * x[:, 0]) + x @ np.arange(dim) + 0.1 * rng.standard_normal(n)
    return conditioned(x, returns, np.log([0.4, 0.7, 0.9, 1.3, 0.05]))


def test_the_gradient_is_that_of_the_posterior_mean_and_covaries_as_differences_do():
    gp, at, h = small_process(), np.array([0.4, 0.5, 0.6]), 1e-4
    steps = h * np.eye(3)
    numeric = [(gp.mean((at + s)[None]) - gp.mean((at - s)[None]))[0] / (2 * h) for s in steps]
    found = slope(gp, at)
    np.testing.assert_allclose(gp.scale * found.mean, numeric, rtol=1e-5)
    z = np.concatenate([at + steps, at - steps, [[0.1, 0.9, 0.3]]])

    def matern(a, b):
        d = np.sqrt((((a[:, None] - b) / np.exp(gp.log[:3])) ** 2).sum(-1))
        return 1.3 * (1 + 5**0.5 * d + 5 / 3 * d**2) * np.exp(-(5**0.5) * d)

    noisy = matern(gp.x, gp.x) + 0.05 * np.eye(len(gp.x))
    posterior = matern(z, z) - matern(z, gp.x) @ np.linalg.solve(noisy, matern(gp.x, z))
    difference = np.hstack([np.eye(3), -np.eye(3), np.zeros((3, 1))]) / (2 * h)
    covariance = difference @ posterior @ difference.T
    np.testing.assert_allclose(found.covariance, covariance, rtol=2e-3, atol=2e-3)
    common, variance = shared(gp, found, at, z[-1:])
    np.testing.assert_allclose(common[0], difference @ posterior[:, -1], rtol=1e-4)
    assert variance[0] == pytest.approx(posterior[-1, -1] + 0.05)


def after(gp, point, value):
    """The process once one more standardised return is told, its scale kept."""
    y = np.append((returns_of(gp) - gp.centre) / gp.scale, value)
    x = np.concatenate([gp.x, point[None]])
    told = conditioned(x, y, gp.log)
    factor = np.asarray(told.factor)
    return told._replace(alpha=np.linalg.solve(factor @ factor.T, y), centre=0.0, scale=1.0)


def returns_of(gp):
    return gp.centre + gp.scale * (gp.factor @ gp.factor.T @ gp.alpha)


def test_what_a_trial_teaches_about_the_gradient_is_what_it_takes_off_its_variance():
    gp, at, z = small_process(), np.array([0.4, 0.5, 0.6]), np.array([0.5, 0.4, 0.8])
    before = slope(gp, at)
    taught = before.covariance.trace() - slope(after(gp, z, 0.7), at).covariance.trace()
    assert information(before, *shared(gp, before, at, z[None]))[0] == pytest.approx(taught)


def test_the_promise_of_a_trial_is_an_expectation_over_its_return():
    gp, at, z = small_process(), np.array([0.4, 0.5, 0.6]), np.array([0.5, 0.4, 0.8])
    before = slope(gp, at)
    common, variance = shared(gp, before, at, z[None])
    nodes, mass = np.polynomial.hermite_e.hermegauss(8)
    mean = (gp.mean(z[None])[0] - gp.centre) / gp.scale
    expected = 0.0
    for node, weight in zip(nodes, mass / mass.sum(), strict=True):
        found = slope(after(gp, z, mean + node * variance[0] ** 0.5), at)
        expected += weight * found.mean @ np.linalg.solve(found.covariance, found.mean)
    assert promise(before, common, variance)[0] == pytest.approx(expected, rel=1e-5)


def test_no_direction_goes_up_more_probably_than_the_most_probable_one():
    found = slope(small_process(), np.array([0.4, 0.5, 0.6]))
    direction, probability = ascent(found)
    drawn = np.random.default_rng(0).standard_normal((2000, 3))
    spread = np.sqrt(np.einsum("ij,jk,ik->i", drawn, found.covariance, drawn))
    assert stats.norm.cdf(drawn @ found.mean / spread).max() <= probability
    own = direction @ found.mean / np.sqrt(direction @ found.covariance @ direction)
    assert stats.norm.cdf(own) == pytest.approx(probability, rel=1e-6)


def test_the_gaussian_process_has_the_evidence_of_scipy_and_its_gradient():
    rng = np.random.default_rng(0)
    x, y = rng.random((12, 2)), rng.standard_normal(12)
    log = np.log([0.4, 0.9, 1.3, 0.2])
    d = np.sqrt(np.sum(((x[:, None] - x) / np.exp(log[:2])) ** 2, -1))
    k = 1.3 * (1 + 5**0.5 * d + 5 / 3 * d**2) * np.exp(-(5**0.5) * d) + 0.2 * np.eye(12)
    prior = 0.5 * np.sum((log[:2] - np.log(0.5)) ** 2)
    evidence = stats.multivariate_normal(np.zeros(12), k).logpdf(y) + 6 * np.log(2 * np.pi)
    value, gradient = _cost(log, x, y)
    assert value == pytest.approx(prior - evidence, rel=1e-6)
    for i in range(4):
        step = np.eye(4)[i] * 1e-5
        numeric = (_cost(log + step, x, y)[0] - _cost(log - step, x, y)[0]) / 2e-5
        assert gradient[i] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_what_a_process_deploys_is_no_lucky_trial():
    x = np.linspace(0, 1, 41)[:, None]
    returns = -((x[:, 0] - 0.7) ** 2) * 10
    lucky = returns.copy()
    lucky[2] += 6.0
    assert best_tried(x, lucky)[0] == pytest.approx(0.7, abs=0.1)
    gp = fitted(x, returns)
    np.testing.assert_allclose(gp.mean(x), returns, atol=0.2)
    drawn = [gp.sample(x[:5], np.random.default_rng(i)) for i in range(200)]
    np.testing.assert_allclose(np.mean(drawn, 0), gp.mean(x[:5]), atol=0.2)


def test_methods_and_tasks_that_do_not_fit_are_refused_in_a_sentence():
    for task, method, words in (
        ("bounded-bowl-3", "snes", "knows no bounds"),
        ("sphere-10", "spsa", "needs bounds"),
        ("bounded-bowl-3", "optuna-tpe:width=3", "leave width"),
        ("bounded-bowl-3@2", "recoup", "leave @"),
    ):
        with pytest.raises(InputError, match=words):
            plan_of(Order([task], [method], 1, 20))
    assert set(BOXED) <= set(PEERS)


def test_a_comparison_says_what_is_deployed_and_shows_both_halves(tmp_path):
    order = Order(["bounded-bowl-3", "bounded-corner-4"], ["recoup", "spsa"], 2, 20)
    plan = plan_of(order)
    curves = compare(order, tmp_path, workers=1)
    said = json.loads(json.dumps(summary(plan, curves)))
    assert short_table(said, said["tasks"][0]).heads[1:3] == ["m @20", "J @20"]
    assert "spsa: its iterate" in deployed(said)
    titles = [table.title for table in overall_tables(said)]
    assert [title.partition(";")[0] for title in titles] == [
        "All tasks",
        "The tuning half",
        "The untouched half",
    ]
    assert deployed(said) in markdown(said)
    task = bounded_task("bounded-corner-4", [order.seed, 0, 5])
    first = said["tasks"][1]["methods"][1]["policy"]["runs"][0][0]
    assert first == pytest.approx(task.true_return(task.box.units(np.full(4, 0.5))))
