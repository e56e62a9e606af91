"""Ask and tell through a server: what is acknowledged is on disk, and asking again is safe."""

import concurrent.futures
import os
import sqlite3

import pytest
from calls import Calls
from serving import PATIENT, Server
from waiting import until

from recoup.study.care.verify import check
from recoup.study.study import Study

ONE = "/v1/studies/gains"
GAINS = {"kp": (1, 200, "log"), "kd": (0, 5)}


@pytest.fixture
def server(tmp_path):
    Study.open(tmp_path / "gains.db", params=GAINS, batch=6).close()
    with Server(tmp_path, tmp_path / "gains.db") as server:
        yield server


def served_patiently(folder):
    """Of which nothing depends on how fast the machine is."""
    Study.open(folder / "gains.db", params=GAINS, batch=6).close()
    return Server(folder, folder / "gains.db", program=PATIENT)


@pytest.fixture
def calls(server):
    return Calls(server)


def ids(answered):
    assert answered.status == 200, answered
    return [trial["id"] for trial in answered.said["trials"]]


def is_sound(folder):
    return all(found.sound for found in check(folder / "gains.db"))


class TestAsking:
    def test_the_same_key_gives_the_same_trials(self, calls, server):
        first = ids(calls.post(f"{ONE}/ask", {"n": 3}, Idempotency_Key="one"))
        assert ids(calls.post(f"{ONE}/ask", {"n": 3}, Idempotency_Key="one")) == first
        assert ids(calls.post(f"{ONE}/ask", {"n": 3, "at": None}, Idempotency_Key="one")) == first
        assert ids(calls.post(f"{ONE}/ask", {"n": 3}, Idempotency_Key="two")) != first
        other = calls.post(f"{ONE}/ask", {"n": 2}, Idempotency_Key="one")
        assert other.status == 422
        assert "another body" in other.said["detail"]
        server.kill()
        server.start()
        assert ids(calls.post(f"{ONE}/ask", {"n": 3}, Idempotency_Key="one")) == first
        assert calls.get(ONE).said["counts"]["pending"] == 6

    def test_many_at_once_with_one_key_are_given_one_set(self, calls):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(calls.post, f"{ONE}/ask", {}, Idempotency_Key="k")] * 4
            asked += [
                pool.submit(calls.post, f"{ONE}/ask", {}, Idempotency_Key="k") for _ in range(8)
            ]
            found = {tuple(ids(one.result())) for one in asked}
        assert len(found) == 1
        assert calls.get(ONE).said["counts"]["pending"] == 1

    @pytest.mark.parametrize("key", [" ", "x" * 201, "a b", "ü"])
    def test_a_wrong_key_is_refused(self, calls, key):
        assert calls.post(f"{ONE}/ask", {}, Idempotency_Key=key.encode()).status == 400

    def test_leases_and_workers_are_kept(self, calls, server):
        (number,) = ids(calls.post(f"{ONE}/ask", {"lease": 60, "worker": "arm 1"}))
        (row,) = calls.get(f"{ONE}/waiting").said["trials"]
        assert (row["worker"], row["handed_out"]) == ("arm 1", 1)
        assert row["lease_until"] > row["asked_at"]
        longer = calls.post(f"{ONE}/trials/{number}/lease", {"seconds": 5000, "worker": "arm 1"})
        assert longer.said["trial"]["lease_until"] > row["lease_until"] + 4000
        other = calls.post(f"{ONE}/trials/{number}/lease", {"worker": "arm 2"})
        assert other.status == 409
        assert "arm 1" in other.said["detail"]
        (free,) = ids(calls.post(f"{ONE}/ask", {"lease": None}))
        assert calls.get(f"{ONE}/trials").said["trials"][free - 1]["lease_until"] is None

    def test_a_trial_of_one_s_own_choice(self, calls):
        calls.post(f"{ONE}/enqueue", {"params": {"kp": 3, "kd": 1}, "note": "last year's"})
        (own,) = calls.post(f"{ONE}/ask", {"at": {"kp": 7, "kd": 2}}).said["trials"]
        assert own["kind"] == "own"
        assert own["params"] == pytest.approx({"kp": 7, "kd": 2})
        (queued,) = calls.post(f"{ONE}/ask", {}).said["trials"]
        assert queued["params"] == pytest.approx({"kp": 3, "kd": 1})
        assert queued["note"] == "last year's"
        (mean,) = calls.post(f"{ONE}/ask", {"at": "mean"}).said["trials"]
        assert mean["kind"] == "mean"

    def test_as_many_of_one_s_own_choice_as_were_asked_for(self, calls, tmp_path):
        body = {"n": 3, "at": {"kp": 7, "kd": 2}, "worker": "arm 2"}
        found = calls.post(f"{ONE}/ask", body).said["trials"]
        assert [trial["id"] for trial in found] == [1, 2, 3]
        assert {trial["worker"] for trial in found} == {"arm 2"}
        assert len({trial["seed"] for trial in found}) == 3
        for trial in found:
            assert trial["kind"] == "own"
            assert trial["params"] == pytest.approx({"kp": 7, "kd": 2})
        assert is_sound(tmp_path)

    def test_paused_it_gives_out_nothing_but_what_was_given(self, calls, server):
        first = ids(calls.post(f"{ONE}/ask", {}, Idempotency_Key="one"))
        since = calls.post(f"{ONE}/pause", {}).said["paused_since"]
        server.kill()
        server.start()
        refused = calls.post(f"{ONE}/ask", {})
        assert (refused.status, refused.said["paused_since"]) == (409, since)
        assert since in refused.said["detail"]
        assert calls.get(ONE).said["paused_since"] == since
        assert ids(calls.post(f"{ONE}/ask", {}, Idempotency_Key="one")) == first
        assert calls.post(f"{ONE}/trials/1/tell", {"return": 1}).status == 200
        assert calls.post(f"{ONE}/resume", {}).said["paused_since"] is None
        assert len(ids(calls.post(f"{ONE}/ask", {}))) == 1


class TestTelling:
    def test_the_same_again_is_fine_and_another_is_not(self, calls):
        calls.post(f"{ONE}/ask", {"n": 2})
        for _ in range(2):
            found = calls.post(f"{ONE}/trials/1/tell", {"return": 1.5})
            assert found.status == 200
            assert found.said["trial"]["value"] == 1.5
            assert found.said["until_move"] == 5
        other = calls.post(f"{ONE}/trials/1/tell", {"return": 1.25})
        assert other.status == 409
        assert (other.said["kept"], other.said["given"]) == ({"return": 1.5}, {"return": 1.25})
        failed = calls.post(f"{ONE}/trials/1/tell", {"failed": "it fell"})
        assert failed.said["given"] == {"failed": "it fell"}
        assert calls.get(ONE).said["counts"]["ok"] == 1

    def test_several_or_none(self, calls):
        calls.post(f"{ONE}/ask", {"n": 3})
        rows = [{"id": 1, "return": 1}, {"id": 2, "failed": "it fell"}, {"id": 9, "return": 1}]
        missing = calls.post(f"{ONE}/tell", rows)
        assert missing.status == 404
        assert "there is no trial 9" in missing.said["detail"]
        assert calls.get(ONE).said["counts"]["ok"] == 0
        told = calls.post(f"{ONE}/tell", rows[:2])
        assert [row["status"] for row in told.said["trials"]] == ["ok", "failed"]
        rows[0]["return"] = 2
        assert calls.post(f"{ONE}/tell", rows[:2]).status == 409

    def test_what_is_told_beside(self, calls):
        calls.post(f"{ONE}/ask", {"n": 2})
        body = {"returns": [1, 2, 3], "also": {"force": 41}, "context": {"payload": 2.5}}
        trial = calls.post(f"{ONE}/trials/1/tell", body).said["trial"]
        assert (trial["value"], trial["episodes"]) == (2.0, 3)
        assert (trial["also"], trial["context"]) == ({"force": 41.0}, {"payload": 2.5})
        both = calls.post(f"{ONE}/trials/2/tell", {"return": 1, "failed": "no"})
        assert both.status == 422

    def test_a_slip_is_pointed_out_at_once(self, calls):
        calls.post(f"{ONE}/ask", {"n": 20, "lease": None})
        for number in range(1, 20):
            found = calls.post(f"{ONE}/trials/{number}/tell", {"return": -12 - number / 10})
            assert found.said["slip"] is None
        slip = calls.post(f"{ONE}/trials/20/tell", {"return": 13}).said["slip"]
        assert "another sign" in slip

    def test_a_move_is_made_and_who_asks_next_is_drawn_from_it(self, calls, tmp_path):
        calls.post(f"{ONE}/ask", {"n": 6})
        for number in range(1, 7):
            found = calls.post(f"{ONE}/trials/{number}/tell", {"return": -float(number)})
            assert found.status == 200
        assert found.said["until_move"] == 0
        until(lambda: calls.get(ONE).said["moves"] == 1)
        (trial,) = calls.post(f"{ONE}/ask", {}).said["trials"]
        assert trial["proposal"] == 1

    def test_a_trial_that_was_handed_out_again_keeps_both(self, calls, tmp_path):
        (number,) = ids(calls.post(f"{ONE}/ask", {"lease": 1e-6}))
        assert ids(calls.post(f"{ONE}/ask", {})) == [number]
        assert calls.post(f"{ONE}/trials/1/tell", {"return": 1}).said["later"] is False
        second = calls.post(f"{ONE}/trials/1/tell", {"return": 2})
        assert second.said["later"] is True
        assert "further episode" in second.said["slip"]


class TestPuttingRight:
    def test_a_dry_run_says_what_would_change(self, calls):
        calls.post(f"{ONE}/ask", {"n": 6})
        for number in range(1, 7):
            calls.post(f"{ONE}/trials/{number}/tell", {"return": -float(number)})
        until(lambda: calls.get(ONE).said["moves"] == 1)
        tag = calls.get(ONE).headers["ETag"]
        body = {"return": -30, "why": "a slip", "dry_run": True}
        dry = calls.post(f"{ONE}/trials/3/amend", body).said
        assert (dry["done"], dry["moves"]) == (False, [1])
        assert calls.get(ONE, If_None_Match=tag).status == 304
        done = calls.post(f"{ONE}/trials/3/amend", {**body, "dry_run": False}).said
        assert (done["done"], done["trial"]["value"]) == (True, -30.0)
        assert calls.get(ONE, If_None_Match=tag).status == 200

    def test_what_cannot_be_says_why(self, calls):
        calls.post(f"{ONE}/ask", {"n": 2})
        assert calls.post(f"{ONE}/trials/1/amend", {"return": 1}).status == 409
        assert calls.post(f"{ONE}/trials/9/amend", {"return": 1}).status == 404
        assert calls.post(f"{ONE}/trials/1/cancel", {"why": "dangerous"}).status == 200
        assert calls.get(f"{ONE}/trials").said["trials"][0]["status"] == "cancelled"
        calls.post(f"{ONE}/trials/2/tell", {"return": 1})
        assert calls.post(f"{ONE}/trials/2/cancel", {}).status == 409
        assert calls.post(f"{ONE}/trials/2/amend", {"drop": "loose"}).said["done"] is True

    def test_titles_and_notes(self, calls):
        called = "<script>alert(1)</script> \u202eright to left"
        assert calls("PUT", f"{ONE}/title", {"title": called}).said["title"] == called
        assert calls.get(ONE).said["title"] == called
        assert calls.post(f"{ONE}/note", {"text": "windy"}).said["notes"][0]["text"] == "windy"
        assert calls.post(f"{ONE}/note", {"text": "x", "trial": 4}).status == 404


class TestKilled:
    def test_between_commit_and_answer_nothing_is_lost_or_given_twice(self, tmp_path):
        """The server is killed once the answer is on disk, before it is said."""
        Study.open(tmp_path / "gains.db", params=GAINS, batch=6).close()
        with Server(tmp_path, tmp_path / "gains.db") as server:
            calls, path = Calls(server), tmp_path / "gains.db"
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                for round in range(4):
                    key, before = f"round {round}".replace(" ", "-"), rows_in(path)
                    lost = pool.submit(calls.post, f"{ONE}/ask", {"n": 2}, Idempotency_Key=key)
                    until(lambda before=before: rows_in(path) > before)
                    server.kill()
                    lost.exception()
                    server.start()
                    found = ids(calls.post(f"{ONE}/ask", {"n": 2}, Idempotency_Key=key))
                    assert found == [2 * round + 1, 2 * round + 2]
            assert calls.get(ONE).said["counts"]["pending"] == 8
            server.stop()
        assert is_sound(tmp_path)

    def test_what_was_acknowledged_is_there(self, tmp_path):
        Study.open(tmp_path / "gains.db", params=GAINS, batch=3).close()
        with Server(tmp_path, tmp_path / "gains.db") as server:
            calls = Calls(server)
            for number in range(1, 10):
                calls.post(f"{ONE}/ask", {})
                assert calls.post(f"{ONE}/trials/{number}/tell", {"return": number}).status == 200
                if number % 3 == 0:
                    server.kill()
                    server.start()
            until(lambda: calls.get(ONE).said["moves"] == 3 or calls.post(f"{ONE}/ask", {}) is None)
            server.stop()
        with Study.open(tmp_path / "gains.db", read_only=True) as study:
            assert [trial.value for trial in study.trials()[:9]] == list(range(1, 10))
        assert is_sound(tmp_path)

    def test_ctrl_c_ends_it_with_one_file(self, tmp_path):
        with served_patiently(tmp_path) as server:
            calls = Calls(server)
            calls.post(f"{ONE}/ask", {"n": 3})
            for number in (1, 2, 3):
                calls.post(f"{ONE}/trials/{number}/tell", {"return": 1})
            assert server.stop() == 130
        assert sorted(path.name for path in tmp_path.iterdir() if "gains" in path.name) == [
            "gains.db"
        ]
        with Study.open(tmp_path / "gains.db", read_only=True) as study:
            assert study.counts()["ok"] == 3


def rows_in(path):
    """How many trials are on disk, whoever has it open."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT COUNT(*) FROM asked").fetchone()[0]
    finally:
        connection.close()


class TestFaults:
    def test_a_file_that_another_holds_is_503(self, server, calls, tmp_path):
        assert len(ids(calls.post(f"{ONE}/ask", {}))) == 1
        holder = sqlite3.connect(tmp_path / "gains.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        refused = calls.post(f"{ONE}/ask", {})
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert "by another process" in refused.said["detail"]
        assert calls.get(ONE).status == 200
        holder.execute("ROLLBACK")
        holder.close()
        assert len(ids(calls.post(f"{ONE}/ask", {}))) == 1

    def test_a_file_that_was_replaced_says_so_until_it_is_back(self, server, calls, tmp_path):
        calls.post(f"{ONE}/ask", {})
        path, aside = tmp_path / "gains.db", tmp_path / "aside"
        os.rename(path, aside)
        for answered in (calls.get(ONE), calls.post(f"{ONE}/ask", {})):
            assert answered.status == 410
            assert "was moved or removed" in answered.said["detail"]
        Study.open(path.with_name("other.db"), dim=2).close()
        os.rename(path.with_name("other.db"), path)
        assert calls.post(f"{ONE}/trials/1/tell", {"return": 1}).status == 410
        (line,) = calls.get("/v1").said["studies"]
        assert "another file lies in the place" in line["error"]
        os.unlink(path)
        os.rename(aside, path)
        assert calls.post(f"{ONE}/trials/1/tell", {"return": 1}).status == 200

    def test_a_foreign_and_a_damaged_file_leave_the_others_alone(self, tmp_path):
        for name in ("good", "bad"):
            with Study.open(tmp_path / f"{name}.db", dim=2) as study:
                study.ask(50)
        content = bytearray((tmp_path / "bad.db").read_bytes())
        content[4096:] = os.urandom(len(content) - 4096)
        (tmp_path / "bad.db").write_bytes(content)
        (tmp_path / "text.db").write_text("this is no study" * 100)
        connection = sqlite3.connect(tmp_path / "foreign.db")
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        with Server(tmp_path, tmp_path) as server:
            calls = Calls(server)
            lines = {line["name"]: line["error"] for line in calls.get("/v1").said["studies"]}
            assert lines.pop("good") is None
            assert "is damaged" in lines.pop("bad")
            assert "not a study" in lines.pop("text")
            assert "of another program" in lines.pop("foreign")
            for name in ("bad", "text", "foreign"):
                for answered in (
                    calls.get(f"/v1/studies/{name}"),
                    calls.post(f"/v1/studies/{name}/ask", {}),
                ):
                    assert answered.status == 410, answered
            assert len(ids(calls.post("/v1/studies/good/ask", {}))) == 1


def test_what_another_process_tells_is_noticed(server, calls, tmp_path):
    tag = calls.get(ONE).headers["ETag"]
    version = calls.get(ONE).said["version"]
    with Study.open(tmp_path / "gains.db") as study:
        study.tell(study.ask()[0].id, 1.0)
    assert calls.get(ONE, If_None_Match=tag).said["counts"]["ok"] == 1
    found = calls.get(f"{ONE}/changes?since={version}&wait=60").said
    assert found["changed"]
    assert found["counts"]["ok"] == 1
    assert calls.get(f"{ONE}/changes?since={found['version']}").said["changed"] is False
