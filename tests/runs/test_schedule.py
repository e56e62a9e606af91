"""The one loop: what is asked for when, tried again, held back, told."""

from collections import deque

import numpy as np
import pytest

import recoup
from recoup.runs.schedule import BROKEN_AFTER, Rules, Schedule
from recoup.study.reader.settings import resolved
from recoup.tasks.engines.engine import Broken, Outcome


class Simulated:
    """An engine whose trials end in the order of times that are drawn for them."""

    def __init__(self, slots, value=None, times=None):
        self.slots, self.now = slots, 0.0
        self._value = value or (lambda job, tries: -float(job.theta @ job.theta))
        self._times = times or (lambda job: 1.0)
        self._out, self.tries, self.most = [], {}, 0

    def submit(self, job):
        assert len(self._out) < self.slots
        self._out.append((self.now + self._times(job), job))
        self.most = max(self.most, len(self._out))

    def wait(self, seconds=None):
        if not self._out:
            return []
        first = min(self._out, key=lambda one: (one[0], one[1].id))
        self._out.remove(first)
        self.now, job = first
        self.tries[job.id] = self.tries.get(job.id, 0) + 1
        found = self._value(job, self.tries[job.id])
        if isinstance(found, str):
            return [Outcome(job.id, failed=found, trace=f"Traceback of {job.id}")]
        return [Outcome(job.id, (found,))]

    def close(self):
        pass


def study_of(batch=4, **settings):
    return recoup.Study.create(None, resolved({"dim": 2, "batch": batch, "seed": 1, **settings}))


def spend(study, engine, budget, rules=None, told=0, waiting=(), listen=None):
    heard = []

    def note(news, load):
        heard.extend(news)
        return bool(listen and listen(news, load))

    came = Schedule(study, engine, rules).spend(budget, told, list(waiting), note)
    return came, heard


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("slots", [1, 3, 7, 50])
def test_the_budget_is_spent_and_no_trial_twice(slots, sync):
    study, engine = study_of(), Simulated(slots)
    came, heard = spend(study, engine, 23, Rules(sync))
    assert came
    assert sorted(one.trial.id for one in heard) == list(range(1, 24))
    assert study.counts() == {"pending": 0, "ok": 23, "failed": 0}
    assert len(study.history()) == 5
    assert engine.most == min(slots, 4 if sync else 23)


def test_without_a_barrier_workers_are_never_idle():
    times = np.random.default_rng(0).lognormal(0, 1, 1000)
    ends = {}
    for sync in (False, True):
        engine = Simulated(4, times=lambda job: times[job.id])
        spend(study_of(5), engine, 200, Rules(sync))
        ends[sync] = engine.now
    work = times[1:201].sum() / 4
    assert ends[False] < work + times[1:201].max()  # an ideal scheduler's
    assert ends[True] > 1.5 * ends[False]


def test_late_results_count_with_the_density_that_drew_them():
    """Every move is what `estimate` says of the results told so far, each by its own proposal."""
    times = np.random.default_rng(1).lognormal(0, 1, 1000)
    study = study_of(4, method="mis-pgpe-ob")
    spend(study, Simulated(6, times=lambda job: times[job.id]), 40)
    late = [info["late"] for info in study.history()]
    assert sum(late) > 10
    rows = [trial for trial in study.trials() if trial.status == "ok"]
    order = sorted(rows, key=lambda trial: study.store.results([trial.id])[trial.id].counted)
    means, stds = (np.array([study.distributions()[i][part] for i in range(10)]) for part in (0, 1))
    mark = study.history()[8]
    used = order[: mark["results"]]
    found = recoup.estimate(
        np.array([t.theta for t in used]),
        np.array([t.value for t in used]),
        proposals=(means[:9], stds[:9]),
        proposal=np.array([t.proposal for t in used]),
        target=(means[8], stds[8]),
    )
    step = np.concatenate([means[9] - means[8], stds[9] - stds[8]])
    gradient = np.concatenate([found.mean_gradient, found.std_gradient])
    np.testing.assert_allclose(
        step / np.linalg.norm(step), gradient / np.linalg.norm(gradient), atol=1e-6
    )


def test_a_trial_that_fails_is_tried_again_with_its_theta_and_seed():
    seen = {}

    def flaky(job, tries):
        seen.setdefault(job.id, []).append((tuple(job.theta), job.seed))
        return "lost" if job.id % 3 == 0 and tries == 1 else 1.0

    study = study_of()
    spend(study, Simulated(3, flaky), 12)
    assert study.counts()["failed"] == 0
    assert [len(seen[i]) for i in (1, 2, 3, 6)] == [1, 1, 2, 2]
    assert all(len(set(attempts)) == 1 for attempts in seen.values())


@pytest.mark.parametrize("retries", [0, 2])
def test_then_it_is_marked_failed_with_its_reason(retries):
    engine = Simulated(2, lambda job, tries: "burnt" if job.id == 4 else 1.0)
    study = study_of()
    _, heard = spend(study, engine, 10, Rules(retries=retries))
    assert study.counts() == {"pending": 0, "ok": 9, "failed": 1}
    assert engine.tries[4] == 1 + retries
    failed = next(trial for trial in study.trials() if trial.status == "failed")
    assert (failed.id, failed.note) == (4, "burnt")
    assert next(one for one in heard if one.trial.id == 4).told.note == "burnt"


def test_a_return_that_is_no_number_has_failed_and_is_not_tried_again():
    engine = Simulated(2, lambda job, tries: np.nan if job.id == 2 else 1.0)
    study = study_of()
    spend(study, engine, 8)
    assert study.trials()[1].note == "its return was not finite"
    assert engine.tries[2] == 1


def test_a_task_that_is_broken_ends_the_run_after_a_few_and_costs_none():
    study, engine = study_of(), Simulated(3, lambda job, tries: "no power")
    with pytest.raises(
        Broken, match=f"{BROKEN_AFTER} trials failed one after the other.*no power"
    ) as raised:
        spend(study, engine, 1000)
    assert "Traceback of" in raised.value.trace
    assert len(engine.tries) <= BROKEN_AFTER + 3
    assert study.counts()["failed"] == 0  # they wait for another attempt
    waiting = study.pending()
    came, _ = spend(study, Simulated(3), 10, waiting=waiting)
    assert came
    assert study.counts() == {"pending": 0, "ok": 10, "failed": 0}


def test_one_that_breaks_later_ends_the_run_too():
    study = study_of(4)
    engine = Simulated(1, lambda job, tries: 1.0 if job.id <= 20 else "no power")
    with pytest.raises(Broken, match="12 trials failed"):
        spend(study, engine, 1000)
    assert study.counts()["ok"] == 20


def test_failures_between_successes_are_told_in_their_order():
    study = study_of()
    engine = Simulated(1, lambda job, tries: "slipped" if job.id in (2, 3, 7) else 1.0)
    _, heard = spend(study, engine, 7, Rules(retries=0))
    assert [one.trial.id for one in heard] == [1, 2, 3, 4, 5, 6, 7]  # the last at the end


def test_a_listener_stops_it_and_nothing_told_is_lost():
    study, engine = study_of(), Simulated(3)
    came, heard = spend(study, engine, 100, listen=lambda news, load: load.told >= 9)
    assert not came
    assert study.counts()["ok"] == len(heard) == 9
    waiting = study.pending()
    assert len(waiting) == 2
    came, more = spend(study, Simulated(3), 30, told=9, waiting=waiting)
    assert came
    assert {one.trial.id for one in more} == set(range(1, 31)) - {one.trial.id for one in heard}


def test_the_load_says_who_is_busy():
    loads = deque()
    study = study_of()
    engine = Simulated(3, lambda job, tries: "lost" if job.id == 2 else 1.0)
    spend(study, engine, 9, listen=lambda news, load: loads.append(load))
    assert {load.slots for load in loads} == {3}
    assert max(load.out for load in loads) == 2  # one has just come back
    assert (loads[-1].told, loads[-1].failed, loads[-1].again) == (9, 1, 1)
    assert loads[-1].rate > 0


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("value", [1.0, "slipped"])
def test_thetas_put_in_line_are_no_part_of_the_budget(slots, sync, value):
    """They were: a run ended with rollouts unspent, and results of which no move was made."""
    study = study_of(4)
    for x in (0.1, 0.2, 0.3):
        study.enqueue([x, x])
    engine = Simulated(slots, lambda job, tries: value if job.theta[0] == job.theta[1] else 1.0)
    came, heard = spend(study, engine, 12, Rules(sync))
    assert came
    assert [one.trial.kind for one in heard].count("drawn") == 12
    assert len(heard) == len(study) == 15
    assert study.history()[-1]["move"] == 3


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_trial_that_a_lease_brings_back_is_rolled_out_once(slots):
    """One that was asked for by hand, is out or held, and comes back by the next `ask`."""
    study = study_of(4)
    spend(study, Simulated(1), 4)
    waiting = study.ask(4, lease=1e-9)
    last = waiting[-1].id
    engine = Simulated(
        slots,
        lambda job, tries: "slipped" if job.id == last else 1.0,
        lambda job: 9.0 if job.id == last else 1.0,
    )
    came, heard = spend(study, engine, 16, Rules(retries=0), told=4, waiting=waiting)
    assert came
    assert sorted(one.trial.id for one in heard) == list(range(5, 17))
    assert set(engine.tries.values()) == {1}
    assert not study.told_later()


def test_mirrored_pairs_stay_together():
    study = study_of(4, method="mis-pgpe-ob", mirrored=True)
    spend(study, Simulated(3), 16)
    assert study.counts() == {"pending": 0, "ok": 16, "failed": 0}
    assert len(study.history()) == 4


def test_failures_that_come_back_sooner_do_not_break_a_run():
    """Slow successes are waited for before failures alone count."""
    quick = lambda job: 0.01 if job.theta[0] > 0 else 30.0  # noqa: E731
    engine = Simulated(8, lambda job, tries: "slipped" if job.theta[0] > 0 else 1.0, quick)
    study = study_of(4)
    came, _ = spend(study, engine, 40)
    assert came
    assert study.counts()["failed"] > 5
    assert study.counts()["ok"] > 5


def test_a_resumed_run_knows_that_trials_have_succeeded():
    study = study_of(4)
    spend(study, Simulated(1), 8)
    engine = Simulated(1, lambda job, tries: "cold" if job.id <= 15 else 1.0)
    came, _ = spend(study, engine, 20, told=8)
    assert came
    assert study.counts() == {"pending": 0, "ok": 13, "failed": 7}


def test_what_succeeded_in_the_same_look_is_told_before_a_run_ends():
    class AtOnce(Simulated):
        def wait(self, seconds=None):
            return [
                outcome for _ in range(len(self._out)) for outcome in super(AtOnce, self).wait()
            ]

    study = study_of(4)
    engine = AtOnce(20, lambda job, tries: 1.0 if job.id == 1 else "no power")
    with pytest.raises(Broken):
        spend(study, engine, 100, Rules(retries=0))
    assert study.counts()["ok"] == 1
