"""A worker asks, has rolled out, tells, gives back; here of a made-up study, by made-up hands."""

import threading
from types import SimpleNamespace

import pytest
from scripted import Clock
from waiting import LIMIT

from recoup.checks import InputError
from recoup.serve.calling import Caller, NotServed, Refused
from recoup.serve.remote_trials import Receipt, RemoteTrial
from recoup.serve.remote_worker import (
    BROKEN_AFTER,
    Left,
    OnlyRaises,
    Settings,
    Untold,
    Worker,
)


class Remote:
    """A study of as many trials as are asked for, which notes what is done to it."""

    def __init__(self, pairs=False, uses_context=False):
        self.caller = Caller(False, "127.0.0.1", 1, patience=100.0)
        self.uses_context, self.pairs = uses_context, pairs
        self.asked, self.told, self.renewed, self.refusals = [], [], [], []
        self.in_the_way = []  # errors of the next tells; the last of them for ever if `blocked`
        self.blocked = False
        self.heard = threading.Event()  # a renewal

    def ask(self, n, lease, worker):
        if self.refusals:
            raise self.refusals.pop(0)
        self.asked.append((n, lease, worker))
        first = 1 + sum(n + (n % 2 if self.pairs else 0) for n, _, _ in self.asked[:-1])
        numbers = range(first, first + n + (n % 2 if self.pairs else 0))
        return [RemoteTrial(number, number, {"x": 0.5}, [0.5]) for number in numbers]

    def tell(self, id, **how):
        if self.in_the_way:
            raise self.in_the_way[0] if self.blocked else self.in_the_way.pop(0)
        if how.get("value") == "refused":
            raise InputError("it was told before.")
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


class Interrupted(Hands):
    """Ctrl-C comes while everything runs."""

    def wait(self, seconds):
        if seconds:
            raise KeyboardInterrupt
        return []


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
    assert "trial 2: it was told before. Its result: 1.0." in [one.says for one in heard]
    told = {"value": 1.0, "context": None}
    assert worker.left == Left((Untold(2, told, "it was told before."),), 0, 0)


def test_a_study_that_is_paused_is_asked_again(monkeypatch):
    remote = Remote()
    remote.refusals = [Refused(409, {"detail": "paused since noon", "paused_since": "noon"})] * 2
    heard = []
    worker = Worker(remote, Hands(), Settings(episodes=1), lambda tally, _: heard.append(tally))
    waits = []
    monkeypatch.setattr(worker._stopping, "wait", waits.append)
    assert worker.work().told == 1
    assert len(waits) == 2
    assert "paused since noon" in [one.says for one in heard]


@pytest.mark.parametrize(
    "refusal",
    [
        Refused(401, {"detail": "this token is not known"}),
        Refused(409, {"detail": "it is the study of a run", "paused_since": None}),
    ],
)
def test_another_refusal_ends_the_work(refusal):
    remote = Remote()
    remote.refusals = [refusal]
    with pytest.raises(InputError, match=str(refusal)):
        work(remote, Hands())


def test_a_refusal_ends_the_work_once_what_runs_is_told():
    """The first result is told while the other rollout goes on: no more is asked for, nor lost."""
    remote, hands = Remote(), Hands(slots=2)
    refusal = Refused(401, {"detail": "this token is not known"})
    first = Remote.tell

    def tell(id, **how):
        remote.refusals = [refusal] * 3
        return first(remote, id, **how)

    remote.tell = tell
    with pytest.raises(InputError, match="not known"):
        work(remote, hands)
    assert numbers(remote) == [1, 2]


# -- results that the server does not take yet --

IN_THE_WAY = [
    Refused(401, {"detail": "a token is needed."}),
    Refused(403, {"detail": "this token may only read."}),
    Refused(410, {"detail": "robot.db was moved or removed."}),
    NotServed("http://lab speaks no TLS."),
]


@pytest.mark.parametrize("error", IN_THE_WAY, ids=str)
def test_a_result_stays_in_line_until_what_is_in_the_way_is_gone(error, monkeypatch):
    remote, heard = Remote(), []
    clock = Clock(monkeypatch, remote.caller)
    remote.in_the_way = [error] * 4
    worker = Worker(remote, Hands(), Settings(episodes=2), lambda tally, _: heard.append(tally))
    tally = worker.work()
    assert (tally.told, tally.refused) == (2, 0)
    assert len(clock.waits) == 4
    says = next(one.says for one in heard if one.says)
    assert str(error).rstrip(".") in says
    assert says.startswith("the result of trial 1 waits: ")
    assert says.endswith("Ctrl-C twice ends this and shows it.")
    assert worker.left == Left((), 0, 0)


@pytest.mark.parametrize("error", [*IN_THE_WAY, RuntimeError("the server failed (500)")], ids=str)
def test_a_result_that_is_never_taken_is_left_when_patience_is_over(error, monkeypatch):
    remote = Remote()
    clock = Clock(monkeypatch, remote.caller)
    remote.in_the_way, remote.blocked = [error], True
    worker = Worker(remote, Hands(slots=3), Settings(name="me"))
    kind, words, back = ConnectionError, "took no result for 100 s", 0
    if isinstance(error, RuntimeError):
        kind, words, back = RuntimeError, "failed", 1
    with pytest.raises(kind, match=words):
        worker.work()
    assert (sum(clock.waits) > 90) == (kind is ConnectionError)
    told = {"value": 1.0, "context": None}
    assert {one.trial for one in worker.left.results} == {3, 2}  # one more had come back by then
    assert all(one.told == told and one.refused is None for one in worker.left.results)
    assert remote.renewed == [(1, "back", "me")] * back  # not tried where nobody would hear it
    assert (worker.left.given_back, worker.left.kept) == (back, 1 - back)


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_a_result_that_will_never_be_taken_is_given_up_at_once(status, monkeypatch):
    remote = Remote()
    clock = Clock(monkeypatch, remote.caller)
    remote.in_the_way = [Refused(status, {"detail": "no."})]
    worker = Worker(remote, Hands(), Settings(episodes=2))
    assert worker.work().refused == 1
    assert not clock.waits
    assert [(one.trial, one.refused) for one in worker.left.results] == [(1, "no.")]


def test_who_stops_for_good_is_told_what_the_server_has_not(monkeypatch):
    """Ctrl-C once while a result waits, and once more: what is in line is tried once again."""
    remote, heard = Remote(), []
    Clock(monkeypatch, remote.caller)
    remote.in_the_way, remote.blocked = [IN_THE_WAY[0]], True
    worker = Worker(remote, Hands(), Settings(), lambda tally, _: pressed(tally))

    def pressed(tally):
        heard.append(tally.says)
        if "Ctrl-C twice" in tally.says:
            worker.stop()
        if "Ctrl-C again ends" in tally.says:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worker.work()
    assert [one.trial for one in worker.left.results] == [1]
    assert not remote.told


def test_what_came_back_is_told_when_the_work_is_broken_off():
    remote = Remote()
    pressed = [True]

    def came_of(trial):
        if pressed and pressed.pop():
            hands.out.append(trial)  # Ctrl-C comes while it runs
            raise KeyboardInterrupt
        return came(trial.id, 2.0)

    hands = Hands(came_of=came_of)
    worker = Worker(remote, hands, Settings())
    with pytest.raises(KeyboardInterrupt):
        worker.work()
    assert remote.told == [(1, {"value": 2.0, "context": None})]
    assert worker.left == Left((), 0, 0)


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
    remote, hands = Remote(), Interrupted(slots=2)
    worker = Worker(remote, hands, Settings(name="me"))
    with pytest.raises(KeyboardInterrupt):
        worker.work()
    assert remote.renewed == [(1, "back", "me"), (2, "back", "me")]
    assert worker.left == Left((), 2, 0)


@pytest.mark.parametrize(
    ("error", "tries"), [(ConnectionError("refused"), 1), (Refused(401, {"detail": "no."}), 2)]
)
def test_what_nobody_could_be_told_of_is_not_given_back(error, tries):
    remote, asked = Remote(), []

    def give_back(id, worker):
        asked.append(id)
        raise error

    remote.give_back = give_back
    worker = Worker(remote, Interrupted(slots=2), Settings())
    with pytest.raises(KeyboardInterrupt):
        worker.work()
    assert len(asked) == tries  # where nobody answers, the others are not tried
    assert worker.left == Left((), 0, 2)


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
