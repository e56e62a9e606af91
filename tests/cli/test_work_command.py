"""`recoup work`: what it is given, what it prints, how it ends."""

import json
import shlex

import pytest
from program import recoup
from scripted import FACTS, TRIAL, answer, problem, scripted
from serving import Server, free_port

from recoup.serve.client import connect
from recoup.study.study import Study

ROLLOUTS = """
import numpy as np

def named(kp, kd):
    return -abs(kp - 60) / 20 - kd, {"payload": 1.5}

def mapped(params, seed):
    assert set(params) == {"kp", "kd"} and seed > 0
    return [1.0, 3.0]

def theta(x):
    assert isinstance(x, np.ndarray) and x.shape == (3,)
    return -(x**2).sum()

def word(gripper, x):
    return {"soft": 1.0, "hard": 2.0}[gripper]

def raises(kp, kd):
    return undefined

def odd(kp, kd):
    return float("nan")

def breaks(kp, kd):
    raise ValueError("it's 'off'\\n--why")
"""
STUDIES = {
    "gains": {"params": {"kp": (1, 200, "log"), "kd": (0, 5)}},
    "plain": {"dim": 3},
    "words": {"params": {"gripper": ("soft", "hard"), "x": (0, 1)}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "rollouts_here.py").write_text(ROLLOUTS)
    for name, how in STUDIES.items():
        Study.open(folder / f"{name}.db", **how).close()
    with Server(folder, folder) as server:
        yield server


@pytest.fixture
def work(server, monkeypatch):
    """A function that works on a study, three rollouts unless it is said otherwise."""
    monkeypatch.setenv("RECOUP_TOKEN", server.token)

    def does(study, name, *words, episodes=3):
        words = (*words, "--episodes", episodes) if episodes else words
        where = server.study(study)
        return recoup("work", where, f"rollouts_here:{name}", *words, cwd=server.folder)

    return does


def told(server, study, last):
    """The last so many trials of a study."""
    with connect(server.address, study=study) as remote:
        return remote.trials()[-last:]


@pytest.mark.parametrize(
    ("study", "name", "episodes"),
    [("gains", "named", 1), ("gains", "mapped", 2), ("plain", "theta", 1), ("words", "word", 1)],
)
def test_a_rollout_is_called_as_train_calls_it(study, name, episodes, work, server):
    done = work(study, name)
    assert (done.returncode, done.stdout) == (0, "3 results told.\n"), done.stderr
    for trial in told(server, study, 3):
        assert (trial.status, trial.episodes) == ("ok", episodes)
        if name == "theta":
            assert trial.value == pytest.approx(-float((trial.theta**2).sum()))
        if name == "named":
            assert trial.context == {"payload": 1.5}
        if name == "word":
            assert trial.value == {"soft": 1.0, "hard": 2.0}[trial.params["gripper"]]


def test_several_at_a_time_and_in_json(work, server):
    done = work("gains", "named", "--workers", 2, "--json", "--lease", "10m")
    assert json.loads(done.stdout) == {"told": 3, "failed": 0, "refused": 0}
    assert done.stderr == ""
    (worker,) = {trial.worker for trial in told(server, "gains", 3)}
    assert worker  # the computer and the process, for people to read


def test_what_returns_no_number_is_told_as_failed(work, server):
    done = work("gains", "odd")
    assert done.stdout == "3 results told, 3 of them as failed.\n"
    assert {trial.failed for trial in told(server, "gains", 3)} == {"its return was not finite"}


def test_what_only_raises_ends_the_work_with_the_traceback(work, server):
    done = work("gains", "raises", episodes=None)
    assert done.returncode == 1
    assert "in raises" in done.stderr
    assert "the first 5 rollouts raised, the last: NameError" in done.stderr
    assert all("NameError" in trial.failed for trial in told(server, "gains", 5))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("theta", "the function cannot be called with the parameters kp, kd"),
        ("nothing", "rollouts_here has no 'nothing'"),
        ("np", "a task is a name, an environment, a function"),
    ],
)
def test_what_cannot_be_called_is_said_before_a_trial_is_asked_for(name, sentence, work, server):
    if name == "theta":
        (server.folder / "two_more.py").write_text("def theta(a, b, c):\n    return 0.0\n")
        where = server.study("gains")
        done = recoup("work", where, "two_more:theta", "--episodes", 1, cwd=server.folder)
    else:
        done = work("gains", name)
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--workers", 0], "--workers must be a whole number of at least 1"),
        (["--episodes", 0], "--episodes must be a whole number of at least 1"),
        (["--lease", "soon"], "--lease must be a time like 90s"),
        (["--patience", "-1"], "--patience must be a time like 90s"),
        (["--token", "wrong"], "token"),
        (["--study", "other"], "there is no study 'other'"),
        (["--certificate", "none.pem"], "there is no study"),
    ],
)
def test_wrong_use_is_a_sentence(words, sentence, work, server):
    done = work("none" if "--certificate" in words else "gains", "named", *words, episodes=None)
    assert done.returncode == 2
    assert done.stderr.startswith("recoup: ")
    assert sentence in done.stderr


def test_a_server_that_never_answers_is_waited_for_and_given_up(server):
    address = f"http://127.0.0.1:{free_port()}/"
    words = ["rollouts_here:named", "--patience", "0.3s", "--token", "t"]
    done = recoup("work", address, *words, cwd=server.folder)
    assert done.returncode == 1
    assert done.stderr.count("no answer, trying again") == 1
    assert "gave no answer for 0.3 s" in done.stderr


@pytest.mark.parametrize(
    ("name", "shown", "status"),
    [
        ("named", "its result: -", "ok"),
        ("mapped", "its result: 1.0, 3.0;", "ok"),
        ("breaks", "its result: failed (ValueError: it's", "failed"),
    ],
)
@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (problem(401, "a token is needed."), "took no result for 0.3 s: a token is needed."),
        (problem(422, "no such field."), "was not told (no such field); its result"),
    ],
)
def test_a_result_that_was_not_told_is_shown_with_the_command_that_tells_it(
    name, shown, status, refusal, says, tmp_path
):
    file = tmp_path / "my robot.db"
    with Study.open(file, **STUDIES["gains"]) as study:
        (trial,) = study.ask(1)
        params = dict(trial.params)
    (tmp_path / "rollouts_here.py").write_text(ROLLOUTS)
    rows = [{"name": name, "scale": "lin"} for name in params]
    facts = {**FACTS, "named": True, "parameters": rows, "path": str(file), "uses_context": True}
    asked = {"trials": [{**TRIAL, "params": params}]}
    with scripted(answer(facts), answer(asked), refusal) as script:
        where = f"http://127.0.0.1:{script.port}/v1/studies/robot"
        words = [f"rollouts_here:{name}", "--patience", "0.3s", "--token", "t", "--episodes", 1]
        done = recoup("work", where, *words, "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert says in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("trial 1 was not told"))
    assert shown in line
    told = recoup(*shlex.split(line.partition("by hand, where the file is: recoup ")[2]))
    assert told.returncode == 0, told.stderr
    with Study.open(file, read_only=True) as study:
        (trial,) = study.trials()
    assert trial.status == status
    if name == "named":
        assert trial.value == pytest.approx(-abs(params["kp"] - 60) / 20 - params["kd"])
        assert "--context payload=1.5" in line


@pytest.mark.parametrize("lie", [{"x": 1e9}, {"x": "0.5"}], ids=str)
def test_a_function_is_never_called_beyond_the_bounds_that_the_server_named(lie, tmp_path):
    (tmp_path / "never_called.py").write_text(
        "def rollout(x):\n    open('called', 'w')\n    return 1.0\n"
    )
    row = {"name": "x", "low": 0.0, "high": 1.0, "scale": "lin"}
    facts = answer({**FACTS, "named": True, "parameters": [row]})
    with scripted(facts, answer({"trials": [{**TRIAL, "params": lie}]})) as script:
        where = f"http://127.0.0.1:{script.port}/v1/studies/robot"
        words = ["--token", "t", "--episodes", 1]
        done = recoup("work", where, "never_called:rollout", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert f"it gives out x = {lie['x']!r}, against its own bounds" in done.stderr
    assert not (tmp_path / "called").exists()
