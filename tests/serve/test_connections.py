"""Connections on which no request comes, or something that is none."""

import json
import socket

import pytest
from calls import Calls
from serving import PROGRAM, Server
from waiting import LIMIT, ticks

from recoup.study.study import Study

HASTY = f"""from recoup.serve import connections
connections.HEAD_SECONDS = 0.05
{PROGRAM}"""
FEW = f"""from recoup.serve import connections
connections.STRANGERS = 4
{PROGRAM}"""


@pytest.fixture
def server(tmp_path, request):
    Study.open(tmp_path / "gains.db", dim=1).close()
    with Server(tmp_path, tmp_path / "gains.db", program=request.param) as server:
        yield server


def connected(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT)


def answer(connection):
    """All that comes until the server closes."""
    with connection.makefile("rb") as coming:
        return coming.read()


def drip(connection, head):
    for tick in ticks(0.02, len(head)):
        connection.sendall(head[tick : tick + 1])


@pytest.mark.parametrize("server", [HASTY], indirect=True)
class TestSilent:
    def test_one_on_which_nothing_comes_is_closed(self, server):
        with connected(server) as connection:
            assert answer(connection) == b""

    def test_one_on_which_a_head_stops_is_closed(self, server):
        with connected(server) as connection:
            connection.sendall(b"GET /v1 HTTP/1.1\r\nHost: ")
            assert answer(connection) == b""

    def test_one_on_which_a_head_never_ends_is_closed(self, server):
        with connected(server) as connection, pytest.raises(ConnectionError):
            drip(connection, b"GET /v1 HTTP/1.1\r\n" + b"X" * 30_000)  # a head may be longer


def unfinished(server, path="/v1/session", token=""):
    """A connection on which the body of a post has begun."""
    connection = connected(server)
    kind = f"Host: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    head = f"POST {path} HTTP/1.1\r\n{kind}Authorization: Bearer {token}\r\n"
    connection.sendall(f'{head}Content-Length: 99\r\n\r\n{{"tok'.encode())
    return connection


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("server", [FEW], indirect=True)
class TestStrangers:
    def test_of_too_many_the_oldest_goes_and_who_has_a_token_stays(self, server):
        known = unfinished(server, "/v1/studies/gains/note", server.token)
        calls = Calls(server)
        assert calls.get("/v1").status == 200  # by now the server has read what came before
        held = [unfinished(server) for _ in range(12)]
        assert [is_closed(connection) for connection in held[:8]] == [True] * 8
        assert calls.get("/v1").status == 200
        known.sendall(b" " * 94)
        assert known.recv(12) == b"HTTP/1.1 400"  # it was read to its end
        for connection in (known, *held):
            connection.close()


@pytest.mark.parametrize("server", [PROGRAM], indirect=True)
class TestNoHTTP:
    def test_strangers_write_nothing_on_the_terminal(self, server):
        for sent in (
            b"\x16\x03\x01 hello\r\n\r\n",
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
        ):
            with connected(server) as connection:
                connection.sendall(sent)
                connection.recv(1)
        unfinished(server).close()
        assert Calls(server).get("/v1").status == 200
        server.stop()
        assert server.errors.read_text() == "recoup: stopped.\n"

    @pytest.mark.parametrize(
        "sent", [b"\x16\x03\x01 hello\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nbad\r\n\r\n"]
    )
    def test_it_is_refused_as_all_is(self, server, sent):
        with connected(server) as connection:
            connection.sendall(sent)
            head, _, body = answer(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"content-type: application/problem+json" in head.lower()
        said = json.loads(body)
        assert said["status"] == 400
        assert "no request of HTTP/1.1" in said["detail"]

    def test_others_are_served_meanwhile(self, server):
        with connected(server) as silent, connected(server) as connection:
            silent.sendall(b"GET /v1 HT")
            host = f"Host: 127.0.0.1:{server.port}\r\n\r\n".encode()
            connection.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n" + host)
            assert answer(connection).startswith(b"HTTP/1.1 200 ")
