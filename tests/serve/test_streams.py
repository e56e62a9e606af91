"""Changes of a study as they happen, none missing and none twice."""

import http.client
import json

import pytest
from calls import Calls
from serving import Server
from waiting import LIMIT

from recoup.study.study import Study

ONE = "/v1/studies/gains"


@pytest.fixture
def server(tmp_path):
    Study.open(tmp_path / "gains.db", dim=2, batch=50).close()
    with Server(tmp_path, tmp_path / "gains.db") as server:
        yield server


class Stream:
    """A stream of events, read one at a time."""

    def __init__(self, server, last=None, token=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        headers = {"Authorization": f"Bearer {token or server.token}"}
        headers |= {} if last is None else {"Last-Event-ID": str(last)}
        self.connection.request("GET", f"{ONE}/events", headers=headers)
        self.response = self.connection.getresponse()

    def next(self):
        """The id of the next event, and what it says."""
        found = {}
        while line := self.response.readline().decode().strip():
            if not line.startswith(":"):
                key, _, value = line.partition(": ")
                found[key] = value
        if not found:
            return self.next()
        assert found["event"] == "changed"
        return int(found["id"]), json.loads(found["data"])

    def close(self):
        self.response.close()
        self.connection.close()


def test_every_change_is_an_event_and_a_stream_goes_on_where_it_broke(server):
    calls, stream = Calls(server), Stream(server)
    first, said = stream.next()
    assert said["counts"]["pending"] == 0
    heard = [first]
    for n in range(1, 6):
        calls.post(f"{ONE}/ask", {})
        number, said = stream.next()
        assert said["counts"]["pending"] == n
        assert said["version"] == number
        heard.append(number)
    stream.close()
    assert heard == sorted(set(heard))
    again = Stream(server, heard[2])
    assert [again.next()[0] for _ in range(3)] == heard[3:]
    calls.post(f"{ONE}/ask", {})
    assert again.next()[1]["counts"]["pending"] == 6
    again.close()


def test_what_another_process_writes_is_an_event(server, tmp_path):
    stream = Stream(server)
    stream.next()
    with Study.open(tmp_path / "gains.db") as study:
        study.tell(study.ask()[0].id, 1.0)
    said = stream.next()[1]
    while not said["counts"]["ok"]:
        said = stream.next()[1]
    assert (said["counts"]["ok"], said["until_move"]) == (1, 49)
    stream.close()


def test_after_a_restart_it_is_said_how_things_are(server):
    stream = Stream(server)
    last, _ = stream.next()
    Calls(server).post(f"{ONE}/ask", {})
    server.kill()
    server.start()
    again = Stream(server, last)
    number, said = again.next()
    for one in (stream, again):
        one.close()
    assert number > last
    assert said["counts"]["pending"] == 1


def test_very_many_streams_are_refused_and_the_server_stays(server):
    streams = [Stream(server) for _ in range(130)]
    statuses = [stream.response.status for stream in streams]
    assert statuses.count(200) == 100
    assert statuses.count(503) == 30
    assert Calls(server).post(f"{ONE}/ask", {}).status == 200
    for stream in streams:
        stream.close()
    assert server.stop() == 130


@pytest.mark.parametrize("last", ["x", "-1", "9" * 40, "0"])
def test_a_strange_last_event_is_taken_for_none(server, last):
    stream = Stream(server, last)
    assert stream.next()[1]["counts"]["pending"] == 0
    stream.close()


def test_those_without_streams_wait_for_a_change(server):
    calls = Calls(server)
    version = calls.get(f"{ONE}/changes").said["version"]
    assert calls.get(f"{ONE}/changes?since={version}").said["changed"] is False
    calls.post(f"{ONE}/ask", {})
    found = calls.get(f"{ONE}/changes?since={version}&wait=60").said
    assert (found["changed"], found["counts"]["pending"]) == (True, 1)


def test_a_stream_ends_with_the_session_that_opened_it(server):
    calls = Calls(server)
    session = calls.post("/v1/session", {"token": server.token}).said["session"]
    stream = Stream(server, token=session)
    stream.next()
    calls("DELETE", "/v1/session", token=session)
    calls.post(f"{ONE}/ask", {})
    stream.response.read()  # all that comes, before it ends
    stream.close()
