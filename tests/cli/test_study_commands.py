"""A walk through `recoup study` as somebody with a robot would take it."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from program import recoup
from waiting import until

from recoup.store.file import StudyFile
from recoup.study.study import Study
from recoup.study.trials import leases

pytestmark = pytest.mark.usefixtures("few_rehearsals")


def study(cwd, *arguments, fails=None):
    done = recoup("study", *arguments, cwd=cwd)
    if fails is None:
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert fails in done.stderr
    return ""


def test_a_walk(tmp_path):
    """New, ask, tell in odd order, fail one, wrong results, a file of results, show, evaluate."""
    words = "new robot.db --dim 2 --std 0.3 --mean -1,0.5 --batch 3 --method iw-pgpe-ob --seed 4"
    assert study(tmp_path, *words.split()) == "robot.db\nTell returns: larger is better.\n"
    study(tmp_path, "new", "robot.db", "--dim", "2", fails="exists already")
    trials = json.loads(study(tmp_path, *["ask", "robot.db", "-n", "6", "--format", "json"]))
    assert [trial["id"] for trial in trials] == [1, 2, 3, 4, 5, 6]
    assert len(trials[0]["theta"]) == 2
    study(tmp_path, "tell", "robot.db", 3, -12.3)
    study(tmp_path, "tell", "robot.db", 3, -12.3)
    study(tmp_path, "tell", "robot.db", 3, -12.4, fails="told -12.3 before, and now -12.4")
    study(tmp_path, "tell", "robot.db", 3, "--failed", "no", fails="told -12.3 before")
    study(tmp_path, "tell", "robot.db", 9, 1, fails="there is no trial 9")
    study(tmp_path, "tell", "robot.db", "x", 1, fails="must be a whole number, got 'x'")
    for value in ("nan", "-inf", "-NaN", "-Infinity"):
        study(tmp_path, "tell", "robot.db", 1, value, fails="report a failure")
    study(tmp_path, "tell", "robot.db", 1, "fast", fails="must be a number, got 'fast'")
    study(tmp_path, "tell", "robot.db", fails="takes the id of a trial, or --file")
    study(tmp_path, "tell", "robot.db", 6, "--failed", "gripper slipped")
    results = tmp_path / "results.csv"
    results.write_text("id,return,failed\n5,-1e0,\n1,,\n")
    study(tmp_path, "tell", "robot.db", "--file", results, fails="line 3 of")
    results.write_text("id,return,failed\n5,-1e0,\n1,-2.5,\n2,,fell over\n")
    assert study(tmp_path, "tell", "robot.db", "--file", results).startswith("3 results told (")
    shown = study(tmp_path, "show", "robot.db")
    assert "1 pending, 3 ok, 2 failed" in shown
    assert "waiting" in shown
    (waiting,) = json.loads(study(tmp_path, "pending", "robot.db", "--format", "json"))
    assert waiting.pop("asked_at") > 0
    assert waiting == trials[3]
    assert "trial 5: -1" in shown
    with Study.open(tmp_path / "robot.db") as same:
        assert [trial.id for trial in same.pending()] == [4]
        assert len(same.history()) == 1
        assert not np.allclose(same.mean, [-1, 0.5])
    assert "say too little about it" in study(tmp_path, "evaluate", "robot.db", "--mean", "9")
    rows = study(tmp_path, *["ask", "robot.db", "-n", "2", "--format", "csv"]).splitlines()
    assert rows[0] == "id,seed,theta_0,theta_1"
    assert [row.split(",")[0] for row in rows[1:]] == ["7", "8"]


@pytest.mark.slow
def test_a_longer_walk(tmp_path):
    """Named parameters, a kill, then show, evaluate, check, replay, fork, export, import."""
    (tmp_path / "robot.toml").write_text(
        '[stiffness]\nlow = 10\nhigh = 200\nscale = "log"\nstart = 50\n'
        "[damping]\nlow = 0\nhigh = 1\n"
    )
    words = "new robot.db --params robot.toml --std 0.5 --batch 6 --seed 2"
    assert study(tmp_path, *words.split()) == "robot.db\nTell returns: larger is better.\n"
    trials = json.loads(study(tmp_path, *["ask", "robot.db", "-n", "20", "--format", "json"]))
    assert set(trials[0]["params"]) == {"stiffness", "damping"}
    assert all(10 < trial["params"]["stiffness"] < 200 for trial in trials)
    results = tmp_path / "results.csv"
    rows = [f"{t['id']},{score(t['params'])}," for t in reversed(trials[1:])]
    results.write_text("id,return,failed\n" + "\n".join(rows) + "\n1,,gripper slipped\n")
    killed(tmp_path, "tell", "robot.db", "--file", results)
    told = study(tmp_path, "tell", "robot.db", "--file", results)  # the same again does no harm
    assert told.startswith("20 results told (")
    shown = study(tmp_path, "show", "robot.db")
    assert "0 pending, 19 ok, 1 failed" in shown
    assert "3; the next after 4 more results" in shown  # the failed one is of a batch, too
    assert "The last step rests to" in shown
    assert "stiffness" in shown
    found = json.loads(study(tmp_path, "show", "robot.db", "--json"))
    assert (found["moves"], found["ok"], found["failed"]) == (3, 19, 1)
    study(tmp_path, "enqueue", "robot.db", "stiffness=60", "damping=0.4", "--note", "last year's")
    study(tmp_path, "enqueue", "robot.db", "60", "4", fails="damping must lie in 0..1, got 4")
    mine, mean = (
        json.loads(study(tmp_path, "ask", "robot.db", *more, "--format", "json"))[0]
        for more in ([], ["--at", "mean"])
    )
    assert mine["params"]["stiffness"] == pytest.approx(60)
    assert (mine["kind"], mean["kind"]) == ("own", "mean")
    study(tmp_path, "tell", "robot.db", mine["id"], "-1.5", "-2.5", "-1.7")
    judged = json.loads(
        study(tmp_path, *["evaluate", "robot.db", "--mean", "50,0.5", "--std", "0.4", "--json"])
    )
    assert judged["mean"] is not None
    assert judged["samples"] == 19
    assert "say too little about it" in study(
        tmp_path, *["evaluate", "robot.db", "--mean", "199,0.01", "--std", "0.01"]
    )
    checked = study(tmp_path, "check", "robot.db")
    assert checked.count("ok ") == 5
    assert "to the last bit" in checked
    study(tmp_path, *["replay", "robot.db", "--method", "iw-pgpe-ob", "--plot", "replay.png"])
    assert (tmp_path / "replay.png").read_bytes().startswith(b"\x89PNG")
    replayed = json.loads(study(tmp_path, *["replay", "robot.db", "--set", "share=0.3", "--json"]))
    assert [row["results"] for row in replayed] == [6, 12, 18]
    forked = study(
        tmp_path, *["fork", "robot.db", "fork.db", "--method", "iw-pgpe-ob", "--batch", "4"]
    )
    assert "starts from 20 results" in forked
    table = study(tmp_path, "export", "robot.db").splitlines()
    assert table[0].startswith("id,kind,status,return")
    assert len(table) == 23
    study(tmp_path, *["export", "robot.db", "--out", "table.parquet"])
    study(tmp_path, *["export", "robot.db", "--format", "csv", "--out", "table.csv"])
    study(tmp_path, *["new", "warm.db", "--params", "robot.toml", "--seed", "3"])
    imported = study(tmp_path, *["import", "warm.db", "table.csv"])
    assert "19 samples imported from" in imported
    assert "fresh rollouts" in imported
    study(tmp_path, *["import", "warm.db", "robot.db"], fails="are in the study already")
    study(tmp_path, *["import", "warm.db", "results.csv"], fails="has no column 'stiffness'")


def test_a_walk_to_deployment(tmp_path, monkeypatch):
    """A lease that runs out, a slip put right, what to deploy, wider bounds, the mean tried."""
    words = (
        "new robot.db --param stiffness=10:70:log --param damping=0:1 --param n=1:5:int --batch 6"
    )
    study(tmp_path, *words.split())
    lent = ["ask", "robot.db", "-n", "2", "--lease", "60", "--format", "json"]
    first = json.loads(study(tmp_path, *lent))
    earlier = leases.now
    monkeypatch.setattr(leases, "now", lambda: earlier() + 61)
    again = json.loads(study(tmp_path, *["ask", "robot.db", "-n", "1", "--format", "json"]))
    assert again == first[:1]  # its worker has died
    study(tmp_path, "tell", "robot.db", 1, -2.0)
    kept = study(tmp_path, "tell", "robot.db", 1, -2.1)
    assert "kept as a further episode and does not count" in kept
    table = study(tmp_path, *["ask", "robot.db", "--format", "csv"]).splitlines()
    assert dict(zip(*(row.split(",") for row in table), strict=True))["n"].isdecimal()
    study(tmp_path, "ask", "robot.db", "--lease", "soon", fails="a time like 90s, 15m, 1h or 2d")
    for _ in range(7):
        trials = json.loads(study(tmp_path, *["ask", "robot.db", "-n", "6", "--format", "json"]))
        rows = [f"{t['id']},{score(t['params'])}," for t in trials]
        (tmp_path / "results.csv").write_text("id,return,failed\n" + "\n".join(rows) + "\n")
        study(tmp_path, "tell", "robot.db", "--file", "results.csv")
    (late,) = json.loads(study(tmp_path, *["ask", "robot.db", "--format", "json"]))
    slip = study(tmp_path, "tell", "robot.db", late["id"], 125)
    assert "times farther from the others" in slip
    dry = study(tmp_path, "amend", "robot.db", late["id"], -1.25, "--dry-run")
    assert "would become -1.25" in dry
    study(tmp_path, "amend", "robot.db", late["id"], -1.25, "--why", "a slip of the keyboard")
    assert "a slip of the keyboard" in study(tmp_path, "show", "robot.db")
    advice = study(tmp_path, "recommend", "robot.db")
    assert "stiffness" in advice
    assert "expected return of the mean policy is" in " ".join(advice.split())
    found = json.loads(study(tmp_path, "recommend", "robot.db", "--json"))
    assert set(found["params"]) == {"stiffness", "damping", "n"}
    assert isinstance(found["params"]["n"], int)
    assert found["verdict"] in ("go on", "stop", "try the mean")
    wide = [
        "fork",
        "robot.db",
        "wide.db",
        "--param",
        "stiffness=10:200:log",
        "--rename",
        "n=fingers",
    ]
    assert "starts from 44 results of robot.db" in study(tmp_path, *wide)
    before, after = (
        json.loads(study(tmp_path, "evaluate", name, "--json"))["ess"]
        for name in ("robot.db", "wide.db")
    )
    assert after > before / 2  # what was learned is kept
    trials = json.loads(study(tmp_path, *["ask", "wide.db", "-n", "6", "--format", "json"]))
    for trial in trials:
        params = {**trial["params"], "n": trial["params"]["fingers"]}
        study(tmp_path, "tell", "wide.db", trial["id"], score(params))
    assert "to the last bit" in study(tmp_path, "check", "wide.db")
    for noise in (0.0, 0.1, -0.1, 0.05, -0.05):
        mean = ["ask", "wide.db", "--at", "mean", "--format", "json"]
        (trial,) = json.loads(study(tmp_path, *mean))
        params = {**trial["params"], "n": trial["params"]["fingers"]}
        study(tmp_path, "tell", "wide.db", trial["id"], score(params) + noise)
    assert "from 5 trials of the mean policy" in " ".join(
        study(tmp_path, "recommend", "wide.db").split()
    )
    study(tmp_path, "plot", "wide.db", "--out", "wide.png")
    assert (tmp_path / "wide.png").read_bytes().startswith(b"\x89PNG")
    assert recoup("report", "wide.db", cwd=tmp_path).returncode == 0
    assert "best between" in (tmp_path / "wide-report.html").read_text()


HEAVY = ["jax", "jaxlib", "optax", "scipy", "gymnasium", "matplotlib", "pandas", "pyarrow"]
ELSEWHERE = [
    "runs",
    "report",
    "compare",
    "reproduce",
    "tasks.own",
    "cli.train_commands",
    "cli.compare",
]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("tell robot.db 1010 -- -3", "The distribution moved."),
        ("evaluate robot.db", "from 256 results"),
        ("ask robot.db", "theta"),
        ("show robot.db", "1009 ok"),
    ],
)
def test_a_thousand_results_by_hand_load_nothing_that_they_do_not_need(
    big, tmp_path, command, says
):
    """No compiler, no environments, no pictures: importing them took most of a command's time."""
    shutil.copy(big, tmp_path / "robot.db")
    program = [sys.executable, "-X", "importtime", "-m", "recoup", "study", *command.split()]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "recoup.study.study" in loaded
    assert not {*HEAVY, *(f"recoup.{name}" for name in ELSEWHERE)} & loaded


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A study of 1,009 results x 20 parameters: one more, and it moves."""
    path = tmp_path_factory.mktemp("big") / "robot.db"
    rng = np.random.default_rng(0)
    with Study.open(path, dim=20, batch=10, std=0.5) as found:
        for _ in range(100):
            trials = found.ask(10)
            values = [-float(np.sum((t.theta - 1) ** 2)) + rng.normal() for t in trials]
            found.tell([t.id for t in trials], values)
        trials = found.ask(10)[:9]
        found.tell([t.id for t in trials], rng.normal(size=9).tolist())
    return path


def score(params):
    return -(np.log(params["stiffness"] / 60) ** 2) - (params["damping"] - 0.4) ** 2


def killed(cwd, *arguments):
    """The same command, killed as soon as it has written anything, or a little later."""
    command = [sys.executable, "-m", "recoup", "study", *map(str, arguments)]
    log = cwd / "robot.db-wal"
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    until(lambda: (log.exists() and log.stat().st_size) or process.poll() is not None)
    time.sleep(0.05)
    process.kill()
    process.wait()
    counts = json.loads(study(cwd, "show", "robot.db", "--json"))
    assert counts["ok"] + counts["failed"] in (0, 20)  # all, or none


def test_trajectories_are_told_from_files(tmp_path):
    words = "new robot.db --dim 2 --method r3 --horizon 4 --discount 0.9 --batch 2"
    study(tmp_path, *words.split())
    (trial,) = json.loads(study(tmp_path, *["ask", "robot.db", "--format", "json"]))
    assert len(trial["std"]) == 1
    rewards = np.array([1.0, 2.0, 4.0])
    np.savez(tmp_path / "e.npz", features=np.ones((3, 2)), actions=np.ones((3, 1)), rewards=rewards)
    study(tmp_path, *["tell", "robot.db", "1", "3.5"], fails="tell a `trajectory=...`")
    study(tmp_path, *["tell", "robot.db", "1", "--trajectory", "e.npz"])
    with Study.open(tmp_path / "robot.db") as same:
        assert same.best[1] == pytest.approx(rewards @ 0.9 ** np.arange(3))


def test_a_damaged_file_is_recovered(tmp_path):
    words = ["new", "robot.db", "--dim", "40", "--batch", "50", "--set", "family=diagonal"]
    study(tmp_path, *words)
    with Study.open(tmp_path / "robot.db") as same:
        for trial in same.ask(60):
            same.tell(trial.id, float(trial.id))
    content = bytearray((tmp_path / "robot.db").read_bytes())
    content[-9000:-3000] = bytes(6000)
    (tmp_path / "robot.db").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "recoup", "study", "check", "robot.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "WRONG" in done.stdout
    assert "--recover NEW" in done.stdout
    assert "Traceback" not in done.stderr
    said = study(tmp_path, *["check", "robot.db", "--recover", "new.db"])
    assert "missing" in said
    assert "none that was told" not in said
    study(tmp_path, *["ask", "new.db"])


def test_an_error_of_ours_is_not_called_damage(tmp_path, monkeypatch):
    """Only where the file is found to be damaged is it to blame."""
    made = [tmp_path / "whole.db", tmp_path / "forged.db"]
    for path in made:
        with Study.open(path, dim=2, batch=4) as same:
            for trial in same.ask(6):
                same.tell(trial.id, float(trial.id))
    file = StudyFile.open(made[1])
    with file.writing():  # a theta of another length, its checksum in order
        rows = file.read("asked", list, "WHERE id = 6")
        rows[0][3] = np.zeros(3).tobytes()
        file.insert("asked", rows, verb="INSERT OR REPLACE")
    file.close()

    def wrong(*_, **__):
        raise ValueError("a fault of ours")

    monkeypatch.setattr("recoup.cli.study_ask.print_trials", wrong)
    monkeypatch.setattr("recoup.report.study_page.write_study_report", wrong)
    monkeypatch.setattr("recoup.report.studies_page.write_studies_report", wrong)
    for words in (("study", "ask", "whole.db"), ("report", "whole.db")):
        done = recoup(*words, cwd=tmp_path)
        assert (done.returncode, "damaged" in done.stderr) == (1, False)
        assert "a fault of ours" in done.stderr
    study(tmp_path, "ask", "forged.db", fails="forged.db is damaged (ValueError: a fault of ours)")
    done = recoup("report", "whole.db", "forged.db", cwd=tmp_path)
    assert (done.returncode, "forged.db is damaged" in done.stderr) == (2, True)


def test_wrong_use_gets_one_sentence(tmp_path):
    study(tmp_path, "ask", "robot.db", fails="there is no study in robot.db: `recoup study new")
    study(tmp_path, "new", "robot.db", fails="give --dim, or the parameters' names")
    study(tmp_path, "new", "robot.db", "--param", "a=2:1", fails="low must lie below high")
    study(tmp_path, "new", "robot.db", "--params", "no.toml", fails="no.toml cannot be read")
    study(tmp_path, "check", "robot.db", fails="there is no study in robot.db")
    study(tmp_path, "new", "robot.db", "--dim", "2", "--std", "0", fails="std must be")
    study(tmp_path, "new", "robot.db", "--dim", "2", "--method", "cma", fails="method must be one")
    study(tmp_path, "new", "no/robot.db", "--dim", "2", fails="no does not exist")
    (tmp_path / "robot.db").write_text("id,return\n" * 200)
    study(tmp_path, "show", "robot.db", fails="is not a study file (not SQLite)")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("id;return\n1;2\n", "needs the columns id, return, failed; it has id;return"),
        ("", "needs the columns id, return, failed; it has none"),
        ("id,return,failed\n", "holds no results"),
        ("id,return,failed\nabc,1,\n", "line 2 of r.csv: the id of a trial must be a whole number"),
        ("id,return,failed\n1,1,fell\n", "line 2 of r.csv: give a return, or why it failed"),
        ("id,return,failed\n1,,\n", "line 2 of r.csv: trial 1 has no return: give one"),
        ("id,return,failed\n1,inf,\n", "line 2 of r.csv: a return must be finite"),
    ],
)
def test_wrong_results_change_nothing(tmp_path, content, sentence):
    with Study.open(tmp_path / "s.db", dim=1) as s:
        s.ask()
    (tmp_path / "r.csv").write_text(content)
    study(tmp_path, "tell", "s.db", "--file", "r.csv", fails=sentence)


def test_results_as_spreadsheets_write_them(tmp_path):
    """A mark at the beginning, Windows line ends, columns in another order, spaces."""
    with Study.open(tmp_path / "s.db", dim=1) as s:
        s.ask(2)
    (tmp_path / "r.csv").write_bytes(b"\xef\xbb\xbffailed, id ,return\r\n,1,-2.5\r\nfell,2,\r\n")
    assert study(tmp_path, "tell", "s.db", "--file", "r.csv").startswith("2 results told (")


def test_a_line_that_stands_twice_is_one_result(tmp_path):
    with Study.open(tmp_path / "s.db", dim=1) as s:
        s.ask(2)
    (tmp_path / "r.csv").write_text("id,return,failed\n1,-2.5,\n2,,fell\n1,-2.5,\n")
    assert study(tmp_path, "tell", "s.db", "--file", "r.csv").startswith("2 results told (")
    told = json.loads(study(tmp_path, "tell", "s.db", "--file", "r.csv", "--json"))["told"]
    assert [row["id"] for row in told] == [1, 2]
    (tmp_path / "r.csv").write_text("id,return,failed\n1,-2.5,\n1,-3.5,\n")
    study(tmp_path, "tell", "s.db", "--file", "r.csv", fails="with -2.5 and with -3.5: nothing was")


@pytest.mark.parametrize("number", ["1_0", "\u0663", "1\u0660", "1e1_0"])
def test_a_number_is_one_as_people_write_it(tmp_path, number):
    """Python reads more than that: a slip would be told as ten."""
    study(tmp_path, "new", "s.db", "--param", "kp=1:200", "--param", "x=0:1", "--limit", "force<50")
    study(tmp_path, "ask", "s.db", "-n", 20, "--format", "json")
    for trial in range(10, 20):
        study(tmp_path, "tell", "s.db", trial, -trial, "--also", "force=1")
    (tmp_path / "r.csv").write_text(f"id,return,also_force\n1,{number},1\n")
    (tmp_path / "i.csv").write_text(f"kp,x,return,also_force\n10,0.3,{number},1\n20,0.4,2,1\n")
    (tmp_path / "n.csv").write_text(f"id,return,also_force\n{number},1,1\n")
    beside = ("--also", "force=1")
    for words, want in (
        (("tell", "s.db", 1, number, *beside), "a return must be a number, got"),
        (("tell", "s.db", number, 1, *beside), "must be a whole number, got"),
        (("tell", "s.db", 1, 1, "--also", f"force={number}"), "--also force must be a number"),
        (("tell", "s.db", "--file", "r.csv"), "line 2 of r.csv: a return must be a number"),
        (("tell", "s.db", "--file", "n.csv"), "the id of a trial must be a whole number"),
        (("import", "s.db", "i.csv"), "line 2 of i.csv: return must be a number"),
        (("predict", "s.db", "--param", f"kp={number}"), "must be an array of real numbers"),
        (("new", "t.db", "--param", f"kp=0:{number}"), "kp"),
        (("new", "t.db", "--dim", 1, "--limit", f"force<{number}"), "a limit is written like"),
    ):
        study(tmp_path, *words, fails=want)
    for trial, plain in enumerate((" 1 ", "+1e1", "-.5", "2."), 2):
        study(tmp_path, "tell", "s.db", trial, plain, *beside)


def test_a_name_that_is_given_twice_is_refused(tmp_path):
    study(tmp_path, "new", "s.db", "--param", "kp=1:200", "--param", "x=0:1")
    for words, want in (
        (("predict", "s.db", "--param", "kp=1", "--param", "kp=2"), "--param kp is given twice"),
        (("evaluate", "s.db", "--mean", "kp=1,kp=2"), "--mean kp is given twice"),
        (("evaluate", "s.db", "--mean", "kp=1", "--mean", "kp=2"), "--mean kp is given twice"),
        (("enqueue", "s.db", "kp=1", "x=0.5", "kp=2"), "the parameter kp is given twice"),
        (("fork", "s.db", "t.db", "--freeze", "x=0.1", "--freeze", "x"), "--freeze x is given"),
        (("fork", "s.db", "t.db", "--unit", "x=m", "--unit", "x=s"), "--unit x is given twice"),
    ):
        study(tmp_path, *words, fails=want)
    assert not (tmp_path / "t.db").exists()


def test_a_mean_may_be_given_a_name_at_a_time(tmp_path):
    """The last one was taken, and the others left out without a word."""
    study(tmp_path, "new", "s.db", "--param", "kp=1:200", "--param", "x=0:1")
    ways = ("kp=45,x=0.2",), ("kp=45", "x=0.2"), ("45", "0.2")
    for i, way in enumerate(ways):
        given = [word for text in way for word in ("--mean", text)]
        study(tmp_path, "fork", "s.db", f"{i}.db", *given)
        with Study.open(tmp_path / f"{i}.db") as fork:
            assert dict(fork.mean_policy) == pytest.approx({"kp": 45, "x": 0.2})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_where_only_printing_fails_that_is_said(tmp_path):
    with Study.open(tmp_path / "s.db", dim=1) as s:
        s.ask(2)
    words = [sys.executable, "-m", "recoup", "study", "tell", "s.db", "1", "3"]
    for more in ([], ["--json"]):
        with open("/dev/full", "w") as full:
            how = {"stdout": full, "stderr": subprocess.PIPE, "text": True}
            how["env"] = {**os.environ, "PYTHONUNBUFFERED": "1" if more else ""}
            done = subprocess.run([*words, *more], cwd=tmp_path, **how)
        said = "only printing failed (No space left on device): what was to be stored is stored."
        assert (done.returncode, done.stderr) == (1, f"recoup: {said}\n")
    with Study.open(tmp_path / "s.db") as s:
        assert s.trials()[0].value == 3


def test_odd_names_and_places(tmp_path):
    """Names that look like markup, and paths that look like addresses."""
    folder = tmp_path / "a b?c#d%20"
    folder.mkdir()
    study(folder, "new", "x y.db", "--param", "[/red]=0:1", "--param", "größe")
    assert "[/red]" in study(folder, "ask", "x y.db")
    assert "größe" in study(folder, "show", f"/{folder}/x y.db")


def test_an_evaluation_is_the_expected_return(tmp_path):
    """Against the exact value, within four standard errors, and the error is not empty."""
    with Study.open(tmp_path / "s.db", dim=2, batch=400, std=0.5, method="iw-pgpe-ob") as s:
        trials = s.ask(600)
        s.tell([t.id for t in trials], [float(-np.sum((t.theta - 0.3) ** 2)) for t in trials])
        mean, std = np.array([0.2, 0.1]), np.array([0.4, 0.5])
        found = s.evaluate(mean, std)
        exact = -np.sum((mean - 0.3) ** 2 + std**2)
        assert abs(found.mean - exact) < 4 * found.stderr
        assert 0 < found.stderr < 0.05
        assert found.ess > 300
        assert found.low < exact < found.high
        assert "600 results" in found.words
        away = s.evaluate(mean + 10, std)
        assert np.isnan(away.mean)
        assert "hardly any result could have been drawn" in away.words
        with pytest.raises(ValueError, match="several trials are told with a list of ids"):
            s.tell([1, 2], 3.0)
