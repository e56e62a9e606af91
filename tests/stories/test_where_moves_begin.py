"""Where a move begins: at the newest distribution of which half a batch of results is known."""

import os
import signal

import numpy as np
import pytest

import recoup
from recoup import Study
from recoup.study.care.verify import check
from recoup.study.exchange.replay import differences
from recoup.study.reader.settings import resolved
from recoup.study.study import Study as AnyStudy

METHODS = ["recoup", "cem", "rwr", "reps"]


def bowl(theta, number):
    noise = np.random.default_rng(number).standard_normal()
    return -float(np.sum(np.arange(1, len(theta) + 1) * (theta - 1.5) ** 2)) + 0.1 * noise


def made(**settings):
    return AnyStudy.create(None, resolved({"dim": 3, "batch": 6, "seed": 4, **settings}))


def tell(study, trials):
    for trial in trials:
        study.tell(trial.id, bowl(trial.theta, trial.id))


def begun(study):
    return [move.begun for move in study.store.moves()[1:]]


def by_hand(study):
    """Where each move should begin, by plain counting over the trials in their order of telling."""
    moves, found = study.store.moves(), []
    made_by = {move.proposal: move.id for move in moves}
    told = sorted((row.counted, id) for id, row in study.store.results().items())
    drew = {trial.id: made_by[trial.proposal] for trial in study.store.asked()}
    for move in moves[1:]:
        best = found[-1] if found else 0
        for number in range(best + 1, move.id):
            known = sum(drew[id] >= number for place, id in told if place <= move.counted)
            if 2 * known >= study.batch:
                best = number
        found.append(best)
    return found


def test_one_by_one_each_goes_on_from_the_one_before():
    study = made()
    for _ in range(30):
        tell(study, study.ask())
    assert begun(study) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("method", METHODS)
def test_of_results_of_one_distribution_all_moves_begin_there(method):
    """The last is the one move that all of them make together."""
    study, once = made(method=method), made(method=method, batch=24)
    for one in (study, once):
        tell(one, one.ask(24))
    assert begun(study) == [0, 0, 0, 0]
    assert begun(once) == [0]
    np.testing.assert_allclose(study.mean, once.mean, rtol=1e-12)
    np.testing.assert_allclose(study.std, once.std, rtol=1e-12)


@pytest.mark.parametrize("method", ["mis-pgpe-ob", "pgpe-ob", "iw-pgpe-ob"])
def test_steps_that_are_as_short_as_somebody_has_set_them_follow_each_other(method):
    """To begin anew would make them as many times slower as more trials are on their way."""
    study = made(method=method)
    tell(study, study.ask(24))
    assert begun(study) == [0, 1, 2, 3]
    assert max(gap for _, gap in differences(study.opened)) == 0.0


@pytest.mark.parametrize("waiting", [2, 5, 9, 16, 40])
def test_with_many_on_their_way_it_is_as_counted_by_hand(waiting):
    study, rng, out = made(), np.random.default_rng(waiting), []
    for _ in range(90):
        out += study.ask(waiting - len(out))
        tell(study, [out.pop(int(rng.integers(len(out))))])
    assert begun(study) == by_hand(study)
    assert (begun(study) == list(range(15))) == (waiting == 2)
    assert max(gap for _, gap in differences(study.opened)) == 0.0


def test_what_a_kill_leaves_and_what_is_amended_follow_to_the_last_bit(tmp_path):
    path, twin = tmp_path / "a.db", made()
    trials = twin.ask(20)
    with Study.open(path, dim=3, batch=6, seed=4) as study:
        assert [t.theta.tolist() for t in study.ask(20)] == [t.theta.tolist() for t in trials]
    for trial in trials:  # each in a process of its own, killed once it has told
        child = os.fork()
        if child == 0:
            study = Study.open(path)
            study.tell(trial.id, bowl(trial.theta, trial.id))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    tell(twin, trials)
    with Study.open(path) as study:
        assert begun(study) == begun(twin) == [0, 0, 0]
        np.testing.assert_array_equal(study.mean, twin.mean)
        study.amend(trials[1].id, -50.0)
        assert begun(study) == [0, 0, 0]
    checked = check(path)
    assert all(one.sound for one in checked), [one.words for one in checked]
    assert "to the last bit" in checked[-1].words


def test_results_of_a_distribution_that_was_made_again_count_for_the_one_in_its_place():
    study = made()
    tell(study, study.ask(6))
    late = study.ask(6)  # drawn by move 1 as it was
    study.amend(2, -30.0)
    tell(study, late)
    assert begun(study) == [0, 1]


def test_of_twenty_at_once_none_leads_far_from_where_anything_was_seen():
    """Steps on steps ran away: the last mean lay far outside of all that had been tried."""
    for seed in range(6):
        study = made(dim=8, batch=None, seed=seed, std=0.5)
        trials = study.ask(20)
        tell(study, trials)
        away = np.linalg.norm(study.mean - study.store.proposals()[0].numbers[:8])
        farthest = max(np.linalg.norm(trial.theta) for trial in trials)
        assert away < farthest


def test_a_search_begins_there_too(x64):
    """`search.tell` with late results, beside a study of the same results."""
    import jax
    import jax.numpy as jnp

    study, rng = made(batch=4, repeats=False), np.random.default_rng(0)
    search = recoup.search("recoup", dim=3, batch=4, repeats=False)
    state, out = search.init(jax.random.key(0), mean=0.0, std=1.0), []
    for _ in range(8):  # no more than a study's window has too
        batch = []
        for _ in range(4):
            out += study.ask(11 - len(out))
            trial = out.pop(int(rng.integers(len(out))))
            asked = study.store.asked([trial.id])[0]
            drew = study.store.maker(asked.proposal)
            batch.append((asked.theta, bowl(trial.theta, trial.id), drew))
            tell(study, [trial])
        theta, returns, proposal = (jnp.asarray(np.array(x)) for x in zip(*batch, strict=True))
        state, _ = search.tell(jax.random.key(1), state, theta, returns, proposal)
        np.testing.assert_allclose(state.mean, study.mean, rtol=1e-6)
    assert begun(study) != list(range(8))
