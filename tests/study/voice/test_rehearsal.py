"""What the next moves should gain, beside the moves that are then made."""

import numpy as np
import pytest

import recoup
from recoup.study.reader.settings import resolved
from recoup.study.voice import rehearsal
from recoup.study.voice.landscape import SHARPER, landscape, results_of
from recoup.study.voice.rehearsal import Scene, forecasts


def slope(theta):
    return 3.0 * float(theta[0]) - float(np.sum(theta**2))


def searched(results, seed=0, noise=0.3, function=slope, **settings):
    given = {"dim": 2, "seed": seed, **settings}
    study = recoup.Study.create(None, resolved(given))
    rng = np.random.default_rng(seed + 5)
    while study.counts()["ok"] < results:
        told(study, 1, rng, noise, function)
    return study, rng


def told(study, n, rng, noise=0.3, function=slope):
    trials = study.ask(n)
    values = [function(t.theta) + noise * rng.normal() for t in trials]
    study.tell([t.id for t in trials], [float(v) for v in values])


def rehearsed(study, batches=1):
    with study.store.reading():
        results = results_of(study.opened)
        scene = Scene(
            study.opened, study._mover.next_results(), landscape(study.opened, results), 1.0
        )
        return forecasts(scene, batches)


def test_the_imagined_candidates_are_those_that_are_asked_next(monkeypatch):
    study, _ = searched(22, batch=5)
    seen = []
    real = rehearsal._with_results
    monkeypatch.setattr(rehearsal, "_with_results", lambda *x: seen.append(x[2]) or real(*x))
    rehearsed(study)
    assert study.until_move() == len(seen[0])
    for trial, theta in zip(study.ask(study.until_move()), seen[0], strict=True):
        if trial.kind == "drawn":  # one tried twice is imagined as another
            np.testing.assert_array_equal(study.opened.latent_theta(trial.theta), theta)


def test_trials_that_wait_are_the_first_that_are_imagined(monkeypatch):
    study, _ = searched(20, batch=5)
    waiting = study.ask(2)
    seen = []
    real = rehearsal._with_results
    monkeypatch.setattr(rehearsal, "_with_results", lambda *x: seen.append(x[2]) or real(*x))
    rehearsed(study)
    np.testing.assert_allclose(seen[0][:2], [t.theta for t in waiting])


def test_a_rehearsed_move_is_the_move_that_is_made(monkeypatch):
    """Where the imagined returns are those that are told afterwards, to the bit."""
    study, _rng = searched(20, batch=5, repeats=False)
    moves = []
    real = rehearsal._step
    monkeypatch.setattr(rehearsal, "_step", lambda *x: moves.append((x, real(*x))) or moves[-1][1])
    rehearsed(study)
    (_, _, rows), after = moves[0]
    trials = study.ask(5)
    study.tell([t.id for t in trials], [float(x) for x in rows.returns[-5:]])
    np.testing.assert_array_equal(after.numbers, study.store.newest().numbers)


@pytest.mark.parametrize("method", ["recoup", "mis-pgpe-ob", "iw-pgpe-ob", "pgpe"])
def test_a_rehearsal_leaves_a_study_as_it_was(method):
    study, _rng = searched(20, method=method, batch=5)
    before = study.diagnostics(), len(study), study.store.newest().numbers
    first = rehearsed(study)
    again = rehearsed(study)
    assert first == again
    assert (study.diagnostics(), len(study)) == before[:2]
    other, _ = searched(20, method=method, batch=5)
    for one in (study, other):
        told(one, 5, np.random.default_rng(3))
    np.testing.assert_array_equal(study.store.newest().numbers, other.store.newest().numbers)


@pytest.mark.parametrize("told_of_a_pair", [0, 1, 2, 3])
def test_of_mirrored_methods_whole_pairs_are_imagined(told_of_a_pair):
    study, _ = searched(20, method="mis-pgpe-ob", batch=4, mirrored=True)
    for trial in study.ask(4)[:told_of_a_pair]:
        study.tell(trial.id, slope(trial.theta))
    found = rehearsed(study, 2)
    assert all(step.results % 2 == 0 for step in found)
    assert np.isfinite(study.recommend().next_gain)


def halves(gain):
    """By how much the interval of a gain reaches below and above it."""
    return gain.value - gain.interval.low, gain.interval.high - gain.value


def test_more_may_be_gained_than_a_smooth_model_sees_and_not_less():
    """By a share of what the mean policy earns over a draw, which others say by the same model."""
    study, _ = searched(60, seed=4, batch=4)
    found = rehearsed(study)[0]
    top = study.recommend().expected - study.evaluate().mean
    for gain in (found.policy, found.draw):
        below, above = halves(gain)
        assert 0 < SHARPER * top < below
        assert above == pytest.approx(below + SHARPER * top, rel=1e-9)


def test_the_interval_of_a_gain_gets_at_most_half_as_wide_again():
    """Without noise: the top that is seen is far larger than what is left in doubt."""
    study, _ = searched(24, noise=0.0, batch=4)
    gain = rehearsed(study)[0].policy
    top = study.recommend().expected - study.evaluate().mean
    below, above = halves(gain)
    assert SHARPER * top > below > 0
    assert above == pytest.approx(2 * below, rel=1e-9)


def test_several_batches_gain_one_after_the_other():
    study, _ = searched(12, batch=4)
    found = rehearsed(study, 3)
    assert [step.results for step in found] == [4, 8, 12]
    assert all(step.policy.interval.low < step.policy.value for step in found)


def test_a_slope_is_forecast_to_be_climbed_and_a_top_is_not():
    early, _ = searched(12, batch=4, mean=[-3.0, 0.0], std=0.5)
    late, _ = searched(120, batch=4)
    gains = [rehearsed(study)[0].policy.value for study in (early, late)]
    assert gains[0] > 0.3
    assert abs(gains[1]) < 0.02


@pytest.mark.slow
def test_nine_in_ten_gains_lie_in_their_intervals():
    """60 studies of a slope, mean policy and draw: at least 90 % less two binomial errors (4 %).

    `benchmarks.voice` has forty studies each of many tasks, and how much is said on average.
    """
    held = []
    for seed in range(60):
        study, rng = searched(16, seed, batch=4, mean=[-1.0, 0.5], std=0.7)
        found = rehearsed(study)[0]
        before = slope(study.mean)
        told(study, 4, rng)
        low, high = found.policy.interval
        held.append(low <= slope(study.mean) - before <= high)
    assert np.mean(held) > 0.9 - 2 * (0.9 * 0.1 / 60) ** 0.5


def test_methods_that_need_a_compiler_are_not_rehearsed():
    study, _ = searched(8, batch=4, method="mis-pgpe-ob", update="adam")
    assert not rehearsal.can_rehearse(study.opened)


def test_moves_of_very_many_results_are_not_rehearsed():
    """Their time grows with the cube of the results: a page would wait for minutes."""
    many = rehearsal.REHEARSED
    study, _ = searched(8, batch=many)
    assert rehearsal.can_rehearse(study.opened)
    study, _ = searched(40, batch=many + 1)
    assert not rehearsal.can_rehearse(study.opened)
    found = study.recommend()
    assert np.isnan(found.next_gain)
    assert found.words


@pytest.mark.parametrize(
    "settings", [{"method": "cem"}, {"method": "mis-pgpe-ob", "family": "full"}]
)
def test_methods_that_need_none_are(settings):
    study, _ = searched(8, batch=4, **settings)
    assert rehearsal.can_rehearse(study.opened)
    assert np.isfinite(study.recommend().next_draw_gain)


def test_at_a_bound_that_is_reached_nothing_more_is_promised():
    """Beyond it every trial stands at the bound; in the model the slope goes on."""
    box = {"a": (0, 1), "b": (0, 1)}
    study, rng = searched(0, function=lambda theta: 0.0, params=box)
    while study.counts()["ok"] < 80:
        told(study, 1, rng, 0.1, lambda theta: 3.0 * float(np.sum(theta)))
    assert min(study.mean_policy.values()) > 0.99
    found = study.recommend()
    assert abs(found.next_gain) < 0.01
    assert found.verdict != "go on"


def test_between_moves_forecast_and_verdict_stay():
    study, rng = searched(24, batch=8)
    found = [study.recommend()]
    for _ in range(3):
        told(study, 1, rng)
        found.append(study.recommend())
    assert [one.next_results for one in found] == [8, 7, 6, 5]
    for one in found[1:]:
        assert one.next_gain == pytest.approx(found[0].next_gain, rel=1e-9)
        assert one.next_draw_gain_interval == pytest.approx(found[0].next_draw_gain_interval)
        assert one.verdict == found[0].verdict
