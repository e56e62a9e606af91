"""The door of a server: who may do what, what is refused, and what an answer says to browsers."""

import asyncio
import hmac
import json
import socket
from itertools import chain, repeat

import pytest
from calls import Calls
from serving import Server, token_of

from recoup.serve import application
from recoup.serve.hub import Hub
from recoup.serve.tokens import Door, new_tokens
from recoup.study.study import Study

ONE = "/v1/studies/gains"
WRITES = {
    "ask": {},
    "trials/1/tell": {"return": 1},
    "tell": [{"id": 1, "return": 1}],
    "trials/1/lease": {},
    "trials/1/cancel": {},
    "trials/1/amend": {"return": 2},
    "enqueue": {"params": {"kp": 3}},
    "note": {"text": "a note"},
    "pause": {},
    "resume": {},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with Study.open(folder / "gains.db", params={"kp": (1, 200, "log")}, batch=6) as study:
        study.ask(3)
    (folder / "secret.txt").write_text("not served")
    with Server(folder, folder) as server:
        yield server


@pytest.fixture(scope="module")
def calls(server):
    return Calls(server)


@pytest.fixture(scope="module")
def reader(server):
    return Calls(server, token_of(server.read_address))


def session_of(calls):
    """What a page is given for a token."""
    answered = calls("POST", "/v1/session", {"token": calls.token}, token="")
    assert calls.token not in str(answered.content)
    return answered.said["session"]


def problem(answered, status):
    """The sentence of a problem."""
    assert answered.status == status, answered
    assert answered.headers["Content-Type"] == "application/problem+json"
    said = answered.said
    assert said["status"] == status
    assert said["detail"].endswith((".", "?"))
    return said["detail"]


async def silently(path, address, some, token=None):
    """What is answered to a post of which `some` comes, and then nothing any more."""
    hub = Hub([path], Door("127.0.0.1", 80, False, new_tokens()), False)
    said = {"host": "127.0.0.1", "content-type": "application/json", "content-length": "99"}
    said["authorization"] = f"Bearer {hub.door.tokens.full if token is None else token}"
    scope = {"type": "http", "method": "POST", "path": address, "raw_path": address.encode()}
    scope |= {"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in said.items()]
    coming = chain([{"type": "http.request", "body": some, "more_body": True}], repeat(None))
    answered = []

    async def receive():
        return next(coming) or await asyncio.Event().wait()

    async def send(message):
        answered.append(message)

    await application.application(hub)(scope, receive, send)
    hub.close()
    return answered


class TestTokens:
    @pytest.mark.parametrize("token", ["", "x", "ü", "0" * 10_000])
    def test_without_the_right_one_nothing_is_said(self, calls, token):
        for path in ("/v1", ONE, f"{ONE}/trials", "/v1/runs/gains"):
            answered = calls("GET", path, headers={"Authorization": f"Bearer {token}".encode()})
            assert ("is not known" if token else "is needed") in problem(answered, 401)
            assert answered.headers["WWW-Authenticate"] == "Bearer"

    def test_a_stream_that_is_only_looked_at_needs_one_too(self, calls):
        assert calls("HEAD", f"{ONE}/events", token="wrong").status == 401
        assert calls("HEAD", "/v1/studies/nothing/events").status == 404
        assert calls("HEAD", f"{ONE}/events").status == 200

    @pytest.mark.parametrize("number", ["9" * 20, "9" * 5000])
    def test_the_number_of_a_trial_has_so_many_digits_at_most(self, calls, number):
        for token in ("", None):
            answered = calls("POST", f"{ONE}/trials/{number}/tell", {"return": 1}, token=token)
            assert "no such address" in problem(answered, 404)

    @pytest.mark.parametrize("path", sorted(WRITES))
    def test_one_that_may_read_writes_nothing(self, reader, path):
        assert "may only read" in problem(reader.post(f"{ONE}/{path}", WRITES[path]), 403)

    def test_and_it_may_ask_the_data(self, reader):
        assert reader.get(ONE).said["counts"]["pending"] == 3
        assert reader.get("/v1").said["may_write"] is False
        for path, body in {"evaluate": {}, "predict": {"params": {"kp": 3}}}.items():
            assert (
                "needed to evaluate" in (said := reader.post(f"{ONE}/{path}", body).said["detail"])
                or "has no return yet" in said
            )
        assert "title" in problem(reader("PUT", f"{ONE}/title", {}), 403) or True

    def test_it_proves_to_anybody_that_it_knows_both_and_tells_neither(self, server, calls):
        for nonce in ("a" * 16, "b" * 200):
            answered = calls("GET", f"/v1/proof?nonce={nonce}", token="")
            assert answered.said["proofs"] == [
                hmac.new(token.encode(), f"recoup proof{nonce}".encode(), "sha256").hexdigest()
                for token in (server.token, token_of(server.read_address))
            ]
        for nonce in ("", "a" * 15, "b" * 201):
            problem(calls("GET", f"/v1/proof?nonce={nonce}", token=""), 422)

    def test_a_page_exchanges_it_for_a_session_until_that_ends(self, server, calls, reader):
        session, other = (session_of(of) for of in (calls, reader))
        assert calls("GET", "/v1", token=session).said["may_write"] is True
        assert calls("GET", "/v1", token=other).said["may_write"] is False
        assert calls("DELETE", "/v1/session", token=session).status == 204
        assert "is not known" in problem(calls("GET", "/v1", token=session), 401)
        assert "is not known" in problem(calls("POST", f"{ONE}/ask", {}, token=session), 401)
        assert calls("GET", "/v1", token=other).status == calls.get("/v1").status == 200
        problem(calls("POST", "/v1/session", {"token": "wrong"}, token=""), 401)
        problem(calls("POST", "/v1/session", {"token": other}, token=""), 401)  # is no token

    def test_a_token_is_not_ended(self, calls):
        assert calls("DELETE", "/v1/session").status == 204
        assert calls.get("/v1").status == 200

    def test_a_cookie_opens_nothing_and_none_is_given(self, server, calls):
        answered = calls("POST", "/v1/session", {"token": server.token}, token="")
        assert "Set-Cookie" not in answered.headers
        for value in (answered.said["session"], server.token):
            kept = {"Cookie": f"recoup_{server.port}={value}"}
            assert "is needed" in problem(calls("GET", "/v1", token="", headers=kept), 401)


class TestElsewhere:
    @pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", ""])
    def test_another_host_is_refused(self, server, calls, host):
        answered = calls("GET", "/v1", headers={"Host": host.format(port=server.port) or "x"})
        assert "Host" in problem(answered, 403)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_names_of_this_machine_are_not(self, server, calls, host):
        assert calls("GET", "/v1", headers={"Host": f"{host}:{server.port}"}).status == 200

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}"])
    def test_a_page_of_another_origin_is_refused(self, server, calls, origin):
        said = {"Origin": origin.format(port=server.port)}
        assert "origin" in problem(calls("POST", f"{ONE}/ask", {}, headers=said), 403)
        assert calls.get(ONE).said["counts"]["pending"] == 3

    def test_one_of_ours_is_not(self, server, calls):
        assert calls.get("/v1", Origin=f"http://127.0.0.1:{server.port}").status == 200

    @pytest.mark.parametrize(
        "path", ["/static/../../../pyproject.toml", "/secret.txt", "/static/%2e%2e/hub.py", "/x"]
    )
    def test_no_other_file_is_served(self, calls, path):
        assert "/openapi.json lists them all" in problem(calls.get(path), 404)

    @pytest.mark.parametrize("name", ["secret", "..", "gains.db", "%2e%2e%2fgains", "x" * 3000])
    def test_nor_another_study(self, calls, name):
        assert calls.get(f"/v1/studies/{name}").status == 404


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "status", "words"),
        [
            (b"", 400, "not JSON"),
            (b"{", 400, "not JSON"),
            (b'{"n": NaN}', 400, "NaN"),
            (b'{"lease": Infinity}', 400, "Infinity"),
            (b'{"n": 1, "n": 2}', 400, "twice"),
            (b"[" * 100_000, 400, "not JSON"),
            (b"\xff", 400, "not JSON"),
            (b"[]", 422, "an object"),
            (b'{"leese": 1}', 422, "Did you mean 'lease'?"),
            (b'{"n": 0}', 422, "at least 1"),
            (b'{"n": true}', 422, "a whole number"),
            (b'{"n": 1.5}', 422, "a whole number"),
            (b'{"n": 100000000}', 422, "at most"),
            (b'{"n": 1' + b"0" * 5000 + b"}", 400, "not JSON"),
            (b'{"lease": -1}', 422, "above 0"),
            (b'{"lease": 1e400}', 422, "finite"),
            (b'{"at": "mode"}', 422, "`at`"),
            (b'{"at": {"kq": 3}}', 422, "the parameters are kp"),
            (b'{"at": {"kp": 1e9}}', 422, "kp"),
        ],
    )
    def test_a_wrong_one_is_refused_and_nothing_is_asked(self, calls, body, status, words):
        assert words in problem(calls.post(f"{ONE}/ask", body), status)
        assert calls.get(ONE).said["counts"]["pending"] == 3

    @pytest.mark.parametrize(
        ("path", "body", "words"),
        [
            ("trials/1/tell", {"return": "9"}, "`return` must be a number, got '9'."),
            ("trials/1/tell", {"returns": []}, "`returns` needs at least 1 entries."),
            ("trials/1/tell", {"failed": 3}, "`failed` must be a text, got 3."),
            ("trials/1/tell", {"return": 1, "alsi": {}}, "Did you mean 'also'?"),
            ("trials/1/tell", {}, "has one of the fields failed, return, returns, traj"),
            ("trials/1/tell", {"return": 1, "failed": "x"}, "trajectory; got failed and return."),
            ("trials/1/tell", {"value": 1}, "got none of them."),
            ("tell", [{"id": 1, "return": None}], "`return` must be a number, got None."),
            ("tell", [{"return": 1}], "the body[0] needs the field 'id'."),
            ("tell", [{"id": 1}], "the body[0] has one of the fields failed, return"),
            ("recommend", {"budget": 0}, "`budget` must be a number of at least 1, got 0."),
            ("recommend", {"budget": "x"}, "`budget` must be a whole number, got 'x'."),
            ("recommend", {"worth": -1}, "`worth` must be a number above 0, got -1."),
            ("evaluate", {"mean": 3}, "`mean` must be an object, got 3."),
        ],
    )
    def test_it_is_said_what_is_wrong_with_what_was_meant(self, calls, path, body, words):
        assert words in problem(calls.post(f"{ONE}/{path}", body), 422)

    @pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
    def test_one_of_another_kind_is_refused(self, calls, kind):
        answered = calls("POST", f"{ONE}/ask", b"{}", headers={"Content-Type": kind})
        assert "application/json" in problem(answered, 415)

    def test_one_that_is_too_large_is_refused(self, calls):
        text = json.dumps({"text": "x" * 1_000_001}).encode()
        problem(calls.post(f"{ONE}/note", text), 413)

    def test_without_a_token_it_is_a_small_one(self, calls):
        body = json.dumps({"token": "x" * 4000}).encode()
        assert "4,000 bytes" in problem(calls("POST", "/v1/session", body, token=""), 413)
        assert "1,000,000" in problem(calls("POST", "/v1/session", b"x" * 1_000_001), 413)

    def test_without_a_token_no_more_of_one_is_kept(self, tmp_path):
        Study.open(tmp_path / "gains.db", dim=2).close()
        some = b'"' + b"x" * 4000  # and it does not say how long it is
        start, _ = asyncio.run(silently(tmp_path / "gains.db", "/v1/session", some, token=""))
        assert start["status"] == 413

    def test_what_is_no_http_is_refused(self, server, calls):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(b"\x16\x03\x01nonsense\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400")
        assert calls.get("/v1").status == 200

    @pytest.mark.parametrize("some", [b"", b'{"n": '])
    def test_one_that_does_not_come_is_not_waited_for_for_ever(self, tmp_path, monkeypatch, some):
        monkeypatch.setattr(application, "BODY_SECONDS", 0.01)
        Study.open(tmp_path / "gains.db", dim=2).close()
        start, body = asyncio.run(silently(tmp_path / "gains.db", f"{ONE}/ask", some))
        assert (start["status"], dict(start["headers"])[b"connection"]) == (408, b"close")
        assert "send the request again" in json.loads(body["body"])["detail"]

    @pytest.mark.parametrize(
        "query",
        [
            "limit=0",
            "limit=x",
            "limit=1_0",
            "limit=%205",
            "limit=%D9%A5",
            "x=1",
            "limit=1&limit=2",
            "status=no",
        ],
    )
    def test_nor_is_a_wrong_query_guessed_at(self, calls, query):
        problem(calls.get(f"{ONE}/trials?{query}"), 422)

    def test_another_method_is_refused(self, calls):
        answered = calls("PATCH", ONE)
        assert "the header Allow says how" in problem(answered, 405)
        assert answered.headers["Allow"]


def test_browsers_are_told_what_a_page_may_do(calls):
    for path in ("/v1", ONE, "/nothing", "/openapi.json"):
        headers = calls.get(path).headers
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Server" not in headers


def test_a_server_that_only_reads_refuses_all_else(tmp_path):
    with Study.open(tmp_path / "gains.db", params={"kp": (1, 200, "log")}) as study:
        study.ask(3)
    before = (tmp_path / "gains.db").read_bytes()
    with Server(tmp_path, tmp_path / "gains.db", words=["--read-only"]) as server:
        calls = Calls(server)
        for path, body in WRITES.items():
            assert "only reads" in problem(calls.post(f"{ONE}/{path}", body), 403)
        assert calls.get(ONE).said["counts"]["pending"] == 3
        assert server.stop() is not None
    assert (tmp_path / "gains.db").read_bytes() == before
