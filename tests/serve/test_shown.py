"""What gets say of a study: the same as the library does."""

import csv
import io
import json

import numpy as np
import pytest
from calls import Calls
from program import recoup
from serving import Server
from waiting import until

from recoup.study.study import Study

ONE = "/v1/studies/robot"
PARAMS = {
    "kp": {"low": 10, "high": 200, "scale": "log", "unit": "N/m"},
    "grip": {"choices": ["soft", "-hard"]},
    "n": (1, 5, "int"),
    "<script>": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with Study.open(folder / "robot.db", params=PARAMS, batch=8, return_unit="m") as study:
        for trial in study.ask(40):
            if trial.id % 9 == 0:
                study.tell(trial.id, failed=f"fell {trial.id}", also={"force": 3.0})
            elif trial.id % 10:
                study.tell(trial.id, -abs(np.log(trial.theta[0] / 60)) - 0.1 * trial.theta[2])
        study.cancel(40, "too late")
    with Study.open(folder / "plain.db", dim=2, batch=100) as study:
        for trial in study.ask(60):
            study.tell(trial.id, -float(np.sum(trial.theta**2)))
    return folder


@pytest.fixture(scope="module")
def study(folder):
    with Study.open(folder / "robot.db", read_only=True) as study:
        yield study


@pytest.fixture(scope="module")
def calls(folder):
    with Server(folder, folder) as server:
        yield Calls(server)


def test_a_study_that_came_later_is_there_at_once(calls, folder):
    Study.open(folder / "later.db", dim=1).close()
    assert calls.get("/v1/studies/later").status == 200
    assert calls.get("/v1/studies/never").status == 404


def test_the_snapshot_knows_when_a_lease_has_run_out(calls, folder):
    Study.open(folder / "lent.db", dim=1).close()
    address = "/v1/studies/lent"
    (trial,) = calls.post(f"{address}/ask", {"lease": 0.1}).said["trials"]
    assert calls.get(f"{address}/snapshot").status == 200
    until(lambda: calls.get(f"{address}/snapshot").said["overdue"] == [trial["id"]])


def test_the_study(calls, study):
    found = calls.get(ONE).said
    assert found["counts"] == study.snapshot().plain()["counts"]
    assert (found["moves"], found["until_move"]) == (len(study.history()), study.until_move())
    assert found["mean"] == pytest.approx(dict(study.mean_policy))
    assert found["unit"] == "m"
    scales = {row["name"]: row["scale"] for row in found["parameters"]}
    assert scales == {"kp": "log", "grip": "choice", "n": "int", "<script>": "lin"}
    assert found["parameters"][0]["unit"] == "N/m"
    assert found["best"]["value"] == study.best[1]


def test_the_snapshot_is_the_library_s(calls, study):
    assert calls.get(f"{ONE}/snapshot").said == json.loads(json.dumps(study.snapshot().plain()))


def test_it_is_not_sent_twice(calls):
    tag = calls.get(ONE).headers["ETag"]
    again = calls.get(ONE, If_None_Match=tag)
    assert (again.status, again.content) == (304, b"")


def test_all_trials_page_by_page(calls, study):
    found, after = [], 0
    while after is not None:
        page = calls.get(f"{ONE}/trials?after={after}&limit=7").said
        found, after = found + page["trials"], page["next"]
    for row, trial in zip(found, study.trials(), strict=True):
        assert (row["id"], row["status"], row["value"]) == (trial.id, trial.status, trial.value)
        assert row["params"] == pytest.approx(trial.params)
        assert row["also"] == (dict(trial.also) or None)
    assert found[8]["failed"] == "fell 9"
    assert found[39]["note"] == "too late"


@pytest.mark.parametrize("status", ["pending", "ok", "failed", "cancelled"])
def test_those_of_a_status(calls, study, status):
    wanted = [trial.id for trial in study.trials() if trial.status == status]
    pages = [calls.get(f"{ONE}/trials?status={status}&limit=1000").said]
    if len(wanted) > 2:
        first = calls.get(f"{ONE}/trials?status={status}&limit=2").said
        assert first["next"] == wanted[1]
    assert [row["id"] for row in pages[0]["trials"]] == wanted


def test_rows_alone(calls, study):
    lines = calls.get(f"{ONE}/trials", Accept="application/x-ndjson").content.decode()
    rows = [json.loads(line) for line in lines.splitlines()]
    assert rows == calls.get(f"{ONE}/trials?limit=1000").said["trials"]
    answered = calls.get(f"{ONE}/trials", Accept="text/csv")
    assert answered.headers["Content-Type"].startswith("text/csv")
    table = list(csv.DictReader(io.StringIO(answered.content.decode())))
    assert [int(row["id"]) for row in table] == [row["id"] for row in rows]
    assert {row["param grip"] for row in table} <= {"soft", "'-hard"}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("*/*", "application/json"),
        ("text/csv;q=0.1, application/json", "application/json"),
        ("application/json;q=0.1, text/*", "text/csv; charset=utf-8"),
        ("TEXT/CSV", "text/csv; charset=utf-8"),
    ],
)
def test_accept_is_weighed(calls, said, kind):
    answered = calls.get(f"{ONE}/trials", Accept=said)
    assert (answered.status, answered.headers["Content-Type"]) == (200, kind)


def test_what_cannot_be_given_is_no_json_in_its_place(calls):
    answered = calls.get(f"{ONE}/trials", Accept="application/xml")
    assert (answered.status, answered.said["title"]) == (406, "Not Acceptable")


def test_columns_for_plots(calls, study):
    found = calls.get(f"{ONE}/points?params=*").said
    ok = [trial for trial in study.trials() if trial.value is not None]
    assert (found["id"], found["value"]) == ([t.id for t in ok], [t.value for t in ok])
    assert found["failed"] == [t.id for t in study.trials() if t.status == "failed"]
    assert found["events"] == study.store.last_event()
    assert found["params"]["grip"] == [t.params["grip"] for t in ok]
    assert found["params"]["kp"] == pytest.approx([t.params["kp"] for t in ok])
    pairs = calls.get(f"{ONE}/pairs?x=kp&y=%3Cscript%3E").said
    assert pairs["x"] == pytest.approx(found["params"]["kp"])
    assert calls.get(f"{ONE}/points?params=kq").status == 422
    assert calls.get(f"{ONE}/pairs?x=kp").status == 422


def test_the_moves(calls, study):
    found = calls.get(f"{ONE}/moves").said
    assert found["move"] == [0, *(row["move"] for row in study.history())]
    assert found["mean"]["kp"][-1] == pytest.approx(study.mean_policy["kp"])
    assert found["expected"][1:] == pytest.approx([row["objective"] for row in study.history()])


def test_moves_name_the_trial_of_their_last_result(tmp_path):
    with Study.open(tmp_path / "own.db", params={"x": (0, 1)}, batch=5, seed=0) as study:
        for i in range(7):
            study.enqueue({"x": i / 7})
        for trial in study.ask(7):
            study.tell(trial.id, 0.0)  # of one's own: no move is made of these
        first, *others, last = study.ask(5)
        for trial in (*others, last, first):
            study.tell(trial.id, trial.params["x"])
        (one,) = study.ask(1)
        study.tell(one.id, 1.0)
        with Server(tmp_path, tmp_path / "own.db") as server:
            found = Calls(server).get("/v1/studies/own/moves").said
            assert (found["move"], found["results"]) == ([0, 1], [0, 5])
            assert found["trial"] == [None, first.id] == [None, 8]
            study.amend(first.id, drop="the robot was off")
            found = Calls(server).get("/v1/studies/own/moves").said
            assert found["trial"] == [None, last.id]


class TestAskingTheData:
    @pytest.mark.parametrize("name", ["robot", "plain"])
    def test_evaluate_says_what_the_library_says(self, calls, folder, name):
        path = f"/v1/studies/{name}"
        now = calls.get(path).said
        body = {"mean": now["mean"], "std": {key: 0.9 * x for key, x in now["std"].items()}}
        found = calls.post(f"{path}/evaluate", body).said
        again = calls.post(f"{path}/evaluate", body).said
        assert found == again
        with Study.open(folder / f"{name}.db", read_only=True) as study:
            named = bool(study.names)
            mean, std = (body[k] if named else list(body[k].values()) for k in ("mean", "std"))
            there = study.evaluate(mean, std)
        assert found["words"] == there.words
        for key in ("mean", "low", "high", "unseen"):
            here = np.nan if found[key] is None else found[key]
            assert here == pytest.approx(getattr(there, key), nan_ok=True)

    def test_quickly_by_weights_alone(self, calls, folder):
        path, body = "/v1/studies/plain/evaluate", {"quick": True}
        found, there = calls.post(path, body).said, calls.post(path, {}).said
        assert found["unseen"] == there["unseen"] < 0.15
        assert found["ess"] == pytest.approx(there["ess"])
        assert abs(found["value"] - there["mean"]) < there["high"] - there["low"]
        far = {"mean": {"theta_0": 50, "theta_1": 50}, **body}
        assert calls.post(path, far).said["value"] is None

    def test_a_suggestion_is_what_predict_says_of_it(self, calls):
        found = calls.post("/v1/studies/plain/suggest", {}).said
        assert found["low"] <= found["value"]
        there = calls.post("/v1/studies/plain/predict", {"params": found["params"]}).said
        assert there["low"] == pytest.approx(found["low"])
        assert there["words"] == found["sentence"]

    def test_predict_and_recommend(self, calls, study):
        said = calls.post(f"{ONE}/predict", {"params": {"kp": 60}}).said
        assert said["sentence"] == study.predict({"kp": 60}).words
        found = calls.post(f"{ONE}/recommend", {"budget": 20}).said
        assert found["sentences"] == [study.recommend(budget=20).words]

    def test_the_report_is_a_page_to_be_kept(self, calls):
        answered = calls.get("/v1/studies/plain/report")
        assert "attachment" in answered.headers["Content-Disposition"]
        assert answered.content.startswith(b"<!doctype html>")


def test_a_whole_number_is_one_wherever_it_is_shown(tmp_path):
    path = tmp_path / "whole.db"
    with Study.open(path, params={"kp": (1, 200, "log"), "n": (1, 9, "int")}, batch=4) as study:
        for trial in study.ask(9):
            study.tell(trial.id, -float(abs(trial.params["n"] - 5)))
        assert isinstance(study.snapshot().distribution[1].value, int)
    done = json.loads(recoup("study", "recommend", path, "--json").stdout)
    with Server(tmp_path, path) as server:
        calls, one = Calls(server), "/v1/studies/whole"
        said = [calls.get(one).said["mean"], calls.post(f"{one}/recommend", {}).said["mean_policy"]]
        assert said == [done["mean_policy"]] * 2
        columns = [calls.get(f"{one}/moves").said["mean"]["n"]]
        columns.append(calls.get(f"{one}/points?params=n").said["params"]["n"])
    for value in (*(row["n"] for row in said), done["mean_policy"]["n"], *columns[0], *columns[1]):
        assert isinstance(value, int)
