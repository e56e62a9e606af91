"""`recoup.connect`: a served study does what a `Study` does, through a server that is a process."""

import json
import math

import numpy as np
import pytest
from losing import losing
from scripted import FACTS, TRIAL, answer, scripted
from serving import Server
from waiting import until

import recoup
from recoup.checks import InputError, shortly
from recoup.serve.answers import astray
from recoup.serve.client import RemoteStudy, connect
from recoup.serve.shown import parameters
from recoup.serve.trial_rows import trials_of
from recoup.study.study import Study

GAINS = {"kp": (1, 200, "log"), "kd": (0, 5)}
GRIPPER = {"gripper": ("soft", "hard one", "vacuüm"), "fingers": (2, 5, "int"), "x": (0, 1)}
KINDS = {
    "gains": {"params": GAINS},
    "costs": {"params": GRIPPER, "direction": "minimize"},
    "plain": {"dim": 3, "std": 0.5},
    "pairs": {"dim": 2, "method": "mis-pgpe-ob", "batch": 4},
}
OWN = ("told", "many", "lost", "doors", "paused", "noted", "amended")  # one for each test


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(folder):
    """All studies that are here, served."""
    for name, how in [*KINDS.items(), *((name, KINDS["gains"]) for name in OWN)]:
        Study.open(folder / f"{name}.db", **how).close()
    with Server(folder, folder) as server:
        yield server


@pytest.fixture
def remote(server):
    """A function that connects to a study by its name."""
    opened = []

    def to(name, **how):
        opened.append(connect(server.address, study=name, **how))
        return opened[-1]

    yield to
    for one in opened:
        one.close()


def earned(trial):
    return -float(np.sum((trial.theta - 1) ** 2)) + trial.seed % 7 / 10


def numbers(found):
    """What two answers are compared by: the same but for what is no number."""
    if isinstance(found, dict):
        return {key: numbers(value) for key, value in found.items()}
    if isinstance(found, (list, tuple, np.ndarray)):
        return [numbers(value) for value in found]
    if isinstance(found, (float, np.floating)):
        return None if not math.isfinite(found) else pytest.approx(float(found), rel=1e-9)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_study_that_the_library_has(kind, remote, tmp_path):
    there, here = remote(kind), Study.open(tmp_path / f"{kind}.db", **KINDS[kind])
    assert isinstance(there, RemoteStudy)
    with here:
        for _ in range(4):
            ours, theirs = here.ask(5), there.ask(5)
            assert [t.id for t in ours] == [t.id for t in theirs]
            for a, b in zip(ours, theirs, strict=True):
                assert (a.seed, a.kind, a.params, a.values) == (b.seed, b.kind, b.params, b.values)
                assert np.array_equal(a.theta, b.theta)
                here.tell(a.id, earned(a))
                receipt = there.tell(b.id, earned(b))
                assert receipt.trial.value == pytest.approx(earned(a))
                assert receipt.trial.status == "ok"
                assert not receipt.later
            until(
                lambda: there.until_move() == here.until_move()
            )  # it is told first, then it moves
        assert here.counts() == there.counts()
        assert here.batch == there.batch
        if there.names:
            assert there.mean_policy == numbers(dict(here.mean_policy))
        else:
            assert there.mean_policy.tolist() == numbers(here.mean_policy)
        ours, theirs = here.recommend(budget=20), there.recommend(budget=20)
        assert theirs["words"] == theirs.words == str(theirs) == ours.words
        assert theirs.expected == numbers(ours.expected)
        found = [(t.id, t.status, t.value, t.values) for t in here.trials()]
        assert [(t.id, t.status, t.value, t.values) for t in there] == found
        shown = here.snapshot().plain()
        for key in ("counts", "deploy", "verdict", "advice", "moves"):
            assert there.snapshot()[key] == numbers(shown[key])


def test_a_candidate_is_judged_as_the_library_does_it(remote, folder):
    there = remote("gains")
    with Study.open(folder / "gains.db", read_only=True) as here:
        for mean, std in (
            (None, None),
            ([60, 1], 0.3),
            ({"kp": 60, "kd": 1}, {"kp": 0.3, "kd": 0.4}),
        ):
            ours, theirs = here.evaluate(mean, std), there.evaluate(mean, std)
            assert theirs.mean == numbers(ours.mean)
            assert (theirs.low, theirs.high) == (numbers(ours.low), numbers(ours.high))
        assert str(there.evaluate([1.01, 4.9], 1e-9)).startswith("The expected return of a draw")
        for params in ({"kp": 60, "kd": 1}, [60, 1]):
            assert there.predict(params).words == here.predict(params).words


def test_several_are_told_at_once_or_none(remote):
    study = remote("many")
    ids = [trial.id for trial in study.ask(3)]
    with pytest.raises(InputError, match="99"):
        study.tell([*ids, 99], [1.0, 2.0, 3.0, 4.0])
    assert study.counts() == {"pending": 3, "ok": 0, "failed": 0}
    study.tell(ids, [1.0, 2.0, 3.0], also=[{"force": 1}, None, {"force": None}])
    assert study.counts() == {"pending": 0, "ok": 3, "failed": 0}
    assert study.trials()[0].also == {"force": 1}
    with pytest.raises(InputError, match="a list of ids and one of returns"):
        study.tell(ids, [1.0])


def test_a_result_may_be_several_a_failure_or_with_numbers_beside_it(remote):
    study = remote("told")
    a, b, c = study.ask(3, worker="arm 2", lease=None)
    assert study.tell(a.id, values=[1.0, 3.0]).trial.value == 2.0
    assert study.tell(b.id, failed="slipped <b>").trial.failed == "slipped <b>"
    found = study.tell(c.id, np.float64(2.5), also={"force": np.int64(3)}, context={"payload": 1.5})
    assert found.trial.also == {"force": 3}
    assert found.trial.context == {"payload": 1.5}
    assert found.trial.worker == "arm 2"
    assert found.trial.lease_until is None
    assert study.tell(c.id, 2.5, also={"force": 3}, context={"payload": 1.5}).trial == found.trial
    with pytest.raises(InputError, match=r"was told 2\.5") as refused:
        study.tell(c.id, 2.6, also={"force": 3}, context={"payload": 1.5})
    assert refused.value.status == 409


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "much", None, True])
def test_what_is_no_return_is_refused_before_it_is_sent_or_after(value, remote):
    study = remote("told")
    with pytest.raises(InputError):
        study.tell(1, value)


def test_amendments_say_first_what_they_would_do(remote):
    study = remote("amended")
    (trial,) = study.ask()
    study.tell(trial.id, 1.0)
    would = study.amend(trial.id, 2.0, why="misread", dry_run=True)
    assert "1 would become 2" in would.changes[0]
    assert study.trials()[0].value == 1.0
    done = study.amend(trial.id, 2.0, why="misread")
    assert done.done
    assert "1 is now 2" in done.changes[0]
    assert study.trials()[0].value == 2.0
    study.amend(trial.id, drop="the sensor was loose")
    assert study.facts()["counts"]["dropped"] == 1
    with pytest.raises(InputError, match="there is no 'valeus' to tell"):
        study.amend(trial.id, valeus=[1.0])


def test_the_other_verbs(remote, folder):
    study = remote("noted")
    study.enqueue({"kp": 60, "kd": 0.7}, note="last year")
    study.enqueue([50, 1])
    own, other, mean = *study.ask(2), *study.ask(at="mean")
    assert (own.kind, own.params) == ("own", {"kp": pytest.approx(60), "kd": pytest.approx(0.7)})
    assert other.values == pytest.approx([50, 1])
    assert mean.kind == "mean"
    assert study.ask(at={"kp": 3, "kd": 4})[0].values == pytest.approx([3, 4])
    study.note("new pads")
    study.note("loud", own.id)
    study.cancel(other.id, "too fast")
    study.title = "Left arm"
    assert study.title == "Left arm"
    assert {row.id for row in study.waiting()} == {1, 3, 4}
    assert {t.id: t.status for t in study.trials()}[other.id] == "cancelled"
    with Study.open(folder / "noted.db", read_only=True) as here:
        assert [(n.trial, n.text) for n in here.notes()][-2:] == [(None, "new pads"), (1, "loud")]
    before = study.facts()["version"]
    assert not study.changes(before, wait=0)["changed"]
    study.note("news")
    assert study.changes(before, wait=60)["changed"]


def test_a_trial_is_kept_or_given_back(remote):
    study = remote("doors")
    (trial,) = study.ask(lease=3600, worker="a")
    assert trial.lease_until == pytest.approx(trial.asked_at + 3600)  # seconds since 1970
    study.renew(trial.id, 7200, worker="a")
    assert study.trials()[0].lease_until > trial.lease_until
    with pytest.raises(InputError, match="handed out to 'a'"):
        study.renew(trial.id, worker="b")
    study.give_back(trial.id, worker="a")
    (again,) = study.ask(worker="b")
    assert (again.id, again.worker, again.seed) == (trial.id, "b", trial.seed)


def test_a_paused_study_gives_nothing_and_takes_results(remote):
    study = remote("paused")
    (trial,) = study.ask()
    study.pause()
    with pytest.raises(InputError, match="is paused since") as refused:
        study.ask()
    assert refused.value.problem["paused_since"]
    study.tell(trial.id, 1.0)
    study.resume()
    assert study.ask()


def test_lost_answers_change_nothing(server):
    """Of three answers two are lost, each after the server has done what it was asked for."""
    with losing(server.port, every=3) as port:
        study = connect(f"http://127.0.0.1:{port}/", server.token, study="lost")
        ids = [trial.id for _ in range(4) for trial in study.ask(2)]
        assert ids == list(range(1, 9))
        for id in ids:
            study.tell(id, -float(id))
        study.note("once")
        study.enqueue([50, 1])
        study.amend(1, 5.0)
        study.cancel(study.ask(at="mean")[0].id)
        assert study.counts() == {"pending": 0, "ok": 8, "failed": 0}
        assert study.facts()["counts"]["enqueued"] == 1
        study.close()
    with Study.open(server.folder / "lost.db", read_only=True) as here:
        assert [note.text for note in here.notes()] == ["once"]
        assert not here.told_later()
        assert sum("amend" in row.what for row in here.log()) == 1
        assert sum("cancel" in row.what for row in here.log()) == 1


# -- addresses and tokens --


def test_the_token_may_stand_in_three_places(server, monkeypatch):
    monkeypatch.delenv("RECOUP_TOKEN", raising=False)
    where = server.study("gains")
    with pytest.raises(InputError) as refused:
        connect(where)
    assert refused.value.status == 401
    connect(f"{where}#token={server.token}").close()
    connect(where, server.token).close()
    monkeypatch.setenv("RECOUP_TOKEN", server.token)
    connect(where).close()


def test_who_takes_the_port_after_a_kill_is_not_told_the_token(server, monkeypatch):
    study = connect(server.address, study="gains", patience=60.0)
    server.kill()
    with scripted(answer(FACTS), port=server.port, tokens=()) as stranger:
        with pytest.raises(InputError, match="was not sent"):
            study.facts()
        with pytest.raises(InputError, match="was not sent"):
            connect(server.address, study="gains")
    server.start()
    assert study.counts()["ok"]
    study.close()
    assert not stranger.heard
    assert len(stranger.asked) == 2
    assert server.token not in str(stranger.asked)


def test_who_may_only_read_changes_nothing(server):
    study = connect(server.read_address, study="gains")
    assert study.counts()["ok"]
    assert study.predict([60, 1]).words
    with pytest.raises(InputError) as refused:
        study.ask()
    assert refused.value.status == 403
    study.close()


def test_of_several_studies_one_is_named(server):
    with pytest.raises(InputError, match=r"serves 11 studies: .* amended, .*gains"):
        connect(server.address)
    with pytest.raises(InputError) as refused:
        connect(server.address, study="no such")
    assert refused.value.status == 404


@pytest.mark.parametrize(
    "url", ["", "robot.db", "ftp://lab/", "http://", "http://lab:port/", 7, None, "//lab:8765"]
)
def test_an_address_that_is_none_is_refused_without_its_token(url):
    given = f"{url}#token=secret" if isinstance(url, str) else url
    with pytest.raises(InputError, match=r"must look like http://127.0.0.1:8765") as refused:
        connect(given)
    assert "secret" not in str(refused.value)


def test_the_only_study_needs_no_name_and_names_are_encoded(monkeypatch):
    listed = answer({"studies": [{"name": "my arm/ö"}], "runs": []})
    with scripted(listed, answer(FACTS)) as script:
        study = connect(f"http://127.0.0.1:{script.port}/lab/", "t")
        study.close()
    assert [one.path for one in script.heard] == ["/lab/v1", "/lab/v1/studies/my%20arm%2F%C3%B6"]
    assert study.name == "my arm/ö"
    assert "my arm" in repr(study)


@pytest.mark.parametrize(
    ("token", "address"),
    [
        ("a+b/c=", "token=a+b/c="),
        ("a+b/c=", "token=a%2Bb%2Fc%3D"),
        ("50%&more", "token=50%25%26more"),
        ("a b", "other=1&token=a%20b"),
    ],
)
def test_a_token_may_have_any_characters_encoded_or_not(token, address, monkeypatch):
    monkeypatch.setenv("RECOUP_TOKEN", "another")
    with scripted(answer({"studies": [{"name": "arm"}]}), answer(FACTS)) as script:
        connect(f"http://127.0.0.1:{script.port}/#{address}").close()
    assert {one.headers["Authorization"] for one in script.heard} == {f"Bearer {token}"}


def test_a_study_may_stand_behind_the_token():
    with scripted(answer(FACTS)) as script:
        study = connect(f"http://127.0.0.1:{script.port}/#token=t&study=my%20arm")
        study.close()
    assert study.name == "my arm"


NONSENSE = r"is no `recoup serve`: its answer makes no sense"


@pytest.mark.parametrize("said", [{"detail": "hello"}, [1], None, {"studies": [1]}, {"studies": 1}])
def test_another_server_that_speaks_json_is_called_one(said):
    with scripted(answer(said)) as script:
        where = f"http://127.0.0.1:{script.port}"
        with pytest.raises(InputError, match=NONSENSE):
            connect(where, "t")
        with pytest.raises(InputError, match=NONSENSE):
            connect(where, "t", study="arm")


RECEIPT = {"trial": TRIAL, "until_move": 3, "slip": None, "later": False}
ODD = [None, 7, [], [7]]
LIES = {  # what is called -> answers that it cannot have
    "facts": [{**FACTS, key: []} for key in ("batch", "counts", "mean", "title")],
    "ask": [{"trials": [{**TRIAL, key: {}}]} for key in ("id", "seed", "value", "std")],
    "tell": [{**RECEIPT, key: {}} for key in RECEIPT],
    "trials": [{"trials": [{**TRIAL, **lie}]} for lie in ({"value": "x"}, {"params": None})],
    **{name: [] for name in ("waiting", "snapshot", "evaluate", "recommend")},
}
LIES["facts"] += [{**FACTS, "counts": {"ok": 1}}, {**FACTS, "until_move": 2**63}]
LIES["ask"] += [{"trials": [{**TRIAL, "id": 10**400}]}, {"trials": [{**TRIAL, "std": ["x"]}]}]
BROKEN = ["[" * 100_000, "{", '{"batch": ' + "9" * 5000 + "}", ""]


@pytest.mark.parametrize(
    ("called", "said"),
    [(called, said) for called in LIES for said in [*ODD, *BROKEN, *LIES[called]]],
    ids=lambda found: shortly(found)[:40],
)
def test_what_makes_no_sense_is_said_to_in_one_sentence(called, said):
    with scripted(answer(FACTS), answer(said)) as script:
        study = connect(f"http://127.0.0.1:{script.port}", "t", study="arm")
        with study, pytest.raises(InputError, match=NONSENSE):
            getattr(study, called)(*((1, 2.0) if called == "tell" else ()))


def test_pages_without_an_end_are_not_read_for_ever():
    page = answer({"trials": [TRIAL], "next": 1})
    with scripted(answer(FACTS), page, page, answer({"trials": [], "next": None})) as script:
        study = connect(f"http://127.0.0.1:{script.port}", "t", study="arm")
        with study, pytest.raises(InputError, match="its pages have no end"):
            study.trials()


KNOWN = [
    {"name": "kp", "low": 1, "high": 200.0, "scale": "log", "choices": None},
    {"name": "n", "low": 1, "high": 5, "scale": "int", "choices": None},
    {"name": "grip", "low": None, "high": None, "scale": "choice", "choices": ["soft", "hard"]},
    {"name": "free", "low": None, "high": None, "scale": "lin", "choices": None},
]
GIVEN = {"kp": 200.0, "n": 5, "grip": "soft", "free": -1e9}


@pytest.mark.parametrize(
    "lie",
    [
        *({"kp": x} for x in (200.1, 0.99, "7", None, True, float("nan"), float("inf"))),
        *({"n": x} for x in (2.5, 2.0, 6, "2")),
        *({"grip": x} for x in ("warm", 0, None)),
        *({"free": x} for x in (None, "x", float("nan"), float("-inf"), 10**400)),
        {"more": 1.0},
    ],
    ids=shortly,
)
def test_parameters_are_rolled_out_only_as_the_server_named_them(lie):
    facts = answer({**FACTS, "named": True, "parameters": KNOWN})
    asked = [answer({"trials": [{**TRIAL, "params": row}]}) for row in (GIVEN, {**GIVEN, **lie})]
    with scripted(facts, *asked) as script:
        study = connect(f"http://127.0.0.1:{script.port}", "t", study="arm")
        with study:
            assert study.ask()[0].params == GIVEN
            with pytest.raises(InputError, match=r"it gives out|makes no sense"):
                study.ask()


def test_what_our_own_studies_give_out_is_within_what_they_name(tmp_path):
    """So far from where they begin that every bound is met."""
    wide = {"std": 40.0}
    params = [
        *({"name": x, "low": 0.1, "high": 0.7, "scale": x, **wide} for x in ("linear", "log")),
        {"name": "int", "low": -2, "high": 3, "scale": "int", **wide},
        {"name": "beyond", "low": 0.1, "high": 0.7, "beyond": 0.2, **wide},
        {"name": "free"},
        {"name": "word", "choices": ["a", "b", "c"]},
    ]
    with Study.open(tmp_path / "a.db", params=params) as study:
        rows = json.loads(json.dumps(parameters(study)))
        met = set()
        for trial in study.ask(50):
            values = json.loads(json.dumps(trials_of(study, [trial.id])[0]["params"]))
            assert astray(rows, values) is None
            met |= {name for name, x in values.items() if x in (0.1, 0.7, 3)}
    assert met == {"linear", "log", "int", "beyond"}


def test_changes_are_waited_for_beyond_the_time_of_an_attempt(monkeypatch):
    """The server answers when there is a change, or when the wait is over."""
    with scripted(answer(FACTS)) as script:
        study = connect(f"http://127.0.0.1:{script.port}", "t", study="arm")
        asked = []
        monkeypatch.setattr(study.caller, "get", lambda *_, **how: asked.append(how))
        for wait in (5, 60.0, -1, 1e9):
            study.changes(7, wait=wait)
        study.caller.close()
    assert [how["longer"] for how in asked] == [5.0, 60.0, 0.0, 60.0]
    assert asked[0] == {"longer": 5.0, "since": 7, "wait": 5}


def test_nothing_served_is_said():
    nothing = answer({"studies": [], "runs": []})
    with scripted(nothing) as script, pytest.raises(InputError, match="serves no study"):
        connect(f"http://127.0.0.1:{script.port}")


def test_it_is_the_one_of_the_package():
    assert recoup.connect is connect


def test_connect_imports_nothing_but_the_standard_library_and_numpy():
    import subprocess
    import sys

    program = (
        "import sys, recoup; recoup.connect; "
        "slow = {'jax', 'scipy', 'starlette', 'uvicorn', 'sqlite3', 'gymnasium', 'typer'}; "
        "assert not slow & set(sys.modules), slow & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
