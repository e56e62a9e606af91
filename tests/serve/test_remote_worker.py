"""A worker asks, has rolled out, tells, gives back; here of a made-up study, by made-up hands."""

import threading
from types import SimpleNamespace

import pytest
from waiting import LIMIT

from recoup.checks import InputError
from recoup.serve.calling import Refused
from recoup.serve.remote_trials import Receipt, RemoteTrial
from recoup.serve.remote_worker import BROKEN_AFTER, OnlyRaises, Settings, Worker


class Remote:
    """A study of as many trials as are asked for, which notes what is done to it."""

    def __init__(self, pairs=False, uses_context=False):
        self.caller = SimpleNamespace(on_wait=None, give_up=lambda: None)
        self.uses_context, self.pairs = uses_context, pairs
        self.asked, self.told, self.renewed, self.refusals = [], [], [], []
        self.heard = threading.Event()  # a renewal

    def ask(self, n, lease, worker):
        if self.refusals:
            raise self.refusals.pop(0)
        self.asked.append((n, lease, worker))
        first = 1 + sum(n + (n % 2 if self.pairs else 0) for n, _, _ in self.asked[:-1])
        numbers = range(first, first + n + (n % 2 if self.pairs else 0))
        return [RemoteTrial(number, number, {"x": 0.5}, [0.5]) for number in numbers]

    def tell(self, id, **how):
        if how.get("value") == "refused":
            raise InputError("it was told before")
        self.told.append((id, how))
        return Receipt(None, 3, None, False)

    def renew(self, id, seconds, worker):
        self.renewed.append((id, seconds, worker))
        self.heard.set()

    def close(self):
        pass

    def give_back(self, id, worker):
        self.renewed.append((id, "back", worker))


def came(id, *values, **more):
    kept = {"failed": None, "trace": "", "context": None, **more}
    return SimpleNamespace(id=id, values=values, **kept)


class Hands:
    """Rolls out what it has, the newest first, as `came_of` says."""

    def __init__(self, slots=1, came_of=lambda trial: came(trial.id, 1.0)):
        self.slots, self.came_of = slots, came_of
        self.out, self.most = [], 0

    def submit(self, trial):
        self.out.append(trial)
        self.most = max(self.most, len(self.out))

    def wait(self, seconds):
        return [self.came_of(self.out.pop())] if self.out else []


def work(remote, hands, **settings):
    return Worker(remote, hands, Settings(**settings)).work()


def numbers(remote):
    return sorted(id for id, _ in remote.told)


def test_so_many_episodes_are_asked_for_and_told_and_no_more():
    remote, hands = Remote(), Hands(slots=3)
    tally = work(remote, hands, episodes=7, lease=60.0, name="me")
    assert numbers(remote) == list(range(1, 8))
    assert hands.most == 3
    assert {(lease, worker) for _, lease, worker in remote.asked} == {(60.0, "me")}
    assert (tally.told, tally.failed, tally.out, tally.until_move) == (7, 0, 0, 3)
    assert not remote.renewed


def test_the_other_of_a_pair_is_rolled_out_too():
    remote, hands = Remote(pairs=True), Hands(slots=1)
    work(remote, hands, episodes=4)
    assert numbers(remote) == [1, 2, 3, 4]
    assert len(remote.asked) == 2


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (came(1, 2.0), {"value": 2.0, "context": None}),
        (came(1, 2.0, 3.0), {"values": (2.0, 3.0), "context": None}),
        (came(1, 2.0, context={"payload": 1}), {"value": 2.0, "context": {"payload": 1}}),
        (came(1, failed="ValueError: no\n"), {"failed": r"ValueError: no\n"}),
        (came(1), {"failed": "it returned nothing"}),
        (came(1, float("nan")), {"failed": "its return was not finite"}),
        (came(1, 2.0, float("inf")), {"failed": "its return was not finite"}),
    ],
)
def test_what_came_of_a_rollout_is_told(outcome, told):
    remote = Remote(uses_context=True)
    work(remote, Hands(came_of=lambda _: outcome), episodes=1)
    assert remote.told == [(1, told)]


def test_what_was_known_before_is_told_where_moves_look_at_it():
    remote = Remote(uses_context=False)
    work(remote, Hands(came_of=lambda _: came(1, 2.0, context={"payload": 1})), episodes=1)
    assert remote.told == [(1, {"value": 2.0, "context": None})]


def test_a_result_that_is_refused_is_counted_and_the_work_goes_on():
    remote, heard = Remote(), []
    hands = Hands(came_of=lambda trial: came(trial.id, 1.0))
    first = Remote.tell

    def tell(id, **how):
        return first(remote, id, **({"value": "refused"} if id == 2 else how))

    remote.tell = tell
    worker = Worker(remote, hands, Settings(episodes=3), lambda tally, _: heard.append(tally))
    tally = worker.work()
    assert (tally.told, tally.refused) == (2, 1)
    assert numbers(remote) == [1, 3]
    assert any("trial 2: it was told before" in one.says for one in heard)


def test_a_study_that_is_paused_is_asked_again(monkeypatch):
    remote = Remote()
    remote.refusals = [Refused(409, {"detail": "paused since noon"})] * 2
    heard = []
    worker = Worker(remote, Hands(), Settings(episodes=1), lambda tally, _: heard.append(tally))
    waits = []
    monkeypatch.setattr(worker._stopping, "wait", waits.append)
    assert worker.work().told == 1
    assert len(waits) == 2
    assert "paused since noon" in [one.says for one in heard]


def test_another_refusal_ends_the_work():
    remote = Remote()
    remote.refusals = [Refused(401, {"detail": "this token is not known"})]
    with pytest.raises(InputError, match="this token is not known"):
        work(remote, Hands())


def test_who_is_stopped_finishes_what_runs():
    remote = Remote()
    worker = Worker(remote, Hands(slots=2), Settings())
    hear = worker._hear

    def stop_after_two(tally, outcome):
        if tally.told == 2:
            worker.stop()
        hear(tally, outcome)

    worker._hear = stop_after_two
    tally = worker.work()
    asked = sum(n for n, _, _ in remote.asked)
    assert tally.told == asked == len(remote.told)
    assert not remote.renewed  # nothing was left to give back


def test_what_is_broken_off_is_given_back():
    def pressed(_):
        raise KeyboardInterrupt

    remote = Remote()
    with pytest.raises(KeyboardInterrupt):
        work(remote, Hands(slots=2, came_of=pressed), name="me")
    assert remote.renewed == [(1, "back", "me"), (2, "back", "me")]


def test_leases_are_renewed_while_a_rollout_runs():
    remote = Remote()

    def slow(trial):
        assert remote.heard.wait(LIMIT)
        return came(trial.id, 1.0)

    work(remote, Hands(came_of=slow), episodes=1, lease=0.03)
    assert set(remote.renewed) == {(1, 0.03, None)}


def test_rollouts_that_only_raise_end_the_work():
    remote = Remote()
    raises = Hands(came_of=lambda trial: came(trial.id, failed="NameError: gain", trace="here"))
    with pytest.raises(OnlyRaises, match="NameError: gain") as ended:
        work(remote, raises)
    assert ended.value.trace == "here"
    assert len(remote.told) == BROKEN_AFTER
    assert {how["failed"] for _, how in remote.told} == {"NameError: gain"}


def test_a_rollout_that_once_did_not_raise_may_raise_for_ever():
    def often(trial):
        if trial.id == 2:
            return came(trial.id, 1.0)
        return came(trial.id, failed="slipped", trace="here")

    assert work(Remote(), Hands(came_of=often), episodes=20).failed == 19
