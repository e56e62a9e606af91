"""Calls that are lost are made again, with the same key, and what is refused is said."""

import re
import shutil
import ssl
import subprocess
import threading
from http.client import HTTPConnection

import pytest
from lying import CHUNKED, lying, sized
from scripted import LOST, Clock, answer, problem, scripted

from recoup.checks import InputError
from recoup.serve.calling import (
    FIRST_PAUSE,
    LAST_TIMEOUT,
    LONGEST_PAUSE,
    Caller,
    Lost,
    NotServed,
    Refused,
)

GOOD = answer({"good": 1})


@pytest.fixture
def call(monkeypatch):
    """A caller of a scripted server, whose waits take no time."""

    def made(script, token="secret", **how):
        caller = Caller(False, "127.0.0.1", script.port, token, **how)
        monkeypatch.setattr(caller, "_speaks_tls", lambda: False)  # the script takes a while to say
        return caller, Clock(monkeypatch, caller)

    return made


@pytest.mark.parametrize(
    "first", [LOST, problem(503, "busy"), problem(507, "full"), problem(429, "too many")]
)
def test_what_is_lost_is_asked_again_with_the_same_key_and_body(call, first):
    with scripted(first, first, GOOD) as script:
        caller, clock = call(script)
        assert caller.post("/ask", {"n": 1}) == {"good": 1}
        caller.close()
    assert len(clock.waits) == 2
    assert len({one.headers["Idempotency-Key"] for one in script.heard}) == 1
    assert [one.body for one in script.heard] == [{"n": 1}] * 3
    assert {one.headers["Authorization"] for one in script.heard} == {"Bearer secret"}


def test_a_token_is_sent_to_nobody_who_does_not_know_it(call):
    """The port is another's by the time at which the connection is lost."""
    with scripted(GOOD, LOST, GOOD) as script:
        caller, clock = call(script)
        caller.get("/v1")
        script.tokens = ("other",)
        with pytest.raises(Refused, match=r"not known at http.*, and was not sent") as refused:
            caller.post("/tell", {})
        assert refused.value.status == 401
        assert len(script.heard) == 2  # both on the connection of the first
        with pytest.raises(Refused):
            caller.post("/tell", {})
        script.tokens = ("other", "secret")
        assert caller.post("/tell", {}) == {"good": 1}
        caller.close()
    assert len(script.heard) == 3
    assert len(script.asked) == 4
    assert "secret" not in str(script.asked)
    assert not clock.waits


@pytest.mark.parametrize(("status", "sent"), [(404, "was not sent"), (403, "call it lab")])
def test_who_gives_no_proof_is_sent_no_token(call, status, sent):
    with lying(lambda: [refusal(status)]) as liar:
        caller, _ = call(liar)
        with pytest.raises(Refused, match=sent):
            caller.get("/v1")
    assert b"secret" not in liar.heard


def refusal(status):
    body = b'{"detail": "call it lab."}'
    head = "HTTP/1.1 %d no\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n"
    return (head % (status, len(body))).encode() + body


def test_a_proof_holds_for_its_connection_alone(call):
    with scripted(GOOD) as script:
        script.said = {"Connection": "close"}
        caller, _ = call(script, patience=0.0)
        with pytest.raises(ConnectionError, match="it closed the connection"):
            caller.get("/v1")
    assert not script.heard


def test_two_calls_have_two_keys(call):
    with scripted(GOOD) as script:
        caller, _ = call(script)
        caller.post("/ask", {})
        caller.post("/ask", {})
        caller.close()
    assert len({one.headers["Idempotency-Key"] for one in script.heard}) == 2


def test_waits_grow_to_a_limit_and_end_with_patience(call):
    with scripted(LOST) as script:
        caller, clock = call(script, patience=100.0)
        with pytest.raises(ConnectionError, match=r"gave no answer for 100 s: .*closed connection"):
            caller.get("/v1")
    assert 90 < sum(clock.waits) <= 100
    assert clock.waits[0] <= FIRST_PAUSE
    assert LONGEST_PAUSE / 2 <= clock.waits[-1] <= LONGEST_PAUSE
    assert sorted(clock.waits)[: len(clock.waits) // 3] == clock.waits[: len(clock.waits) // 3]


def test_nobody_there_is_waited_for_too(call):
    with scripted(GOOD) as script:
        pass  # the port is free again
    caller, clock = call(script, patience=1.0)
    with pytest.raises(ConnectionError, match="refused"):
        caller.get("/v1")
    assert clock.waits


def test_without_patience_there_is_one_attempt(call):
    with scripted(LOST) as script:
        caller, clock = call(script, patience=0.0)
        with pytest.raises(ConnectionError):
            caller.get("/v1")
    assert len(script.heard) == 1
    assert not clock.waits


@pytest.mark.parametrize(("patience", "attempts"), [(60.0, 2), (200.0, 4), (0.0, 1)])
def test_an_attempt_that_takes_all_the_time_is_repeated_once(call, monkeypatch, patience, attempts):
    with scripted(GOOD) as script:
        caller, clock = call(script, patience=patience)
    made = []

    def slow(request):
        made.append(request)
        clock.now += 60.0
        raise Lost("timed out")

    monkeypatch.setattr(caller, "_answer", slow)
    with pytest.raises(ConnectionError, match=f"gave no answer for {patience:g} s: timed out"):
        caller.get("/v1")
    assert len(made) == attempts


def test_an_answer_may_be_given_longer_in_one_call(call, monkeypatch):
    """The first call opens a connection, the others use it."""
    limits = []
    sent = HTTPConnection.getresponse

    def noted(connection):
        limits.append(connection.sock.gettimeout())
        return sent(connection)

    monkeypatch.setattr(HTTPConnection, "getresponse", noted)
    with scripted(GOOD) as script:
        caller, _ = call(script, None, timeout=100.0)
        for longer in (30.0, 60.0, 0.0):
            caller.get("/v1", longer=longer)
        caller.give_up()
        caller.get("/v1")
        caller.close()
    assert limits == [130.0, 160.0, 100.0, LAST_TIMEOUT]


SPACES = b" " * 1000
SLOW = {  # heads, and what comes after them ten thousand times, and at the end
    "before the head": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", sized(2) + b"{}"),
    "in the body": (sized(10_000_002), SPACES, b"{}"),
    "in chunks": (CHUNKED, b"3e8\r\n" + SPACES + b"\r\n", b"2\r\n{}\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("where", SLOW)
def test_an_attempt_ends_in_its_time_however_slowly_the_answer_comes(call, where):
    """Each piece takes a second, as the caller's clock has it; by each alone there is time left."""
    head, piece, end = SLOW[where]

    def says():
        yield head
        for _ in range(10_000):
            clock.now += 1.0
            yield piece
        yield end

    with lying(says) as liar:
        caller, clock = call(liar, None, patience=0.0, timeout=60.0)
        with pytest.raises(ConnectionError, match="timed out"):
            caller.get("/v1")


def test_an_answer_that_says_how_large_it_is_is_not_even_read(call):
    def says():
        yield sized(10**9)
        yield from [b"[]" * 500_000] * 100

    with lying(says) as liar:
        caller, _ = call(liar, None)
        with pytest.raises(NotServed, match="gave more than 64 MB"):
            caller.get("/v1")
    assert liar.sent < 60  # what fits between two processes, and not what was to come


@pytest.mark.parametrize("size", [b"f4240", b"-1"])
def test_an_answer_without_an_end_is_read_to_a_size(call, size):
    """The sizes of chunks: a million, and one that Python takes for all that is to come."""

    def says():
        yield CHUNKED
        for _ in range(90):
            yield size + b"\r\n" + b" " * 1_000_000 + b"\r\n"
        yield b"2\r\n{}\r\n0\r\n\r\n"

    with lying(says) as liar:
        caller, _ = call(liar, None)
        with pytest.raises(NotServed, match="gave more than 64 MB"):
            caller.get("/v1")


def test_an_answer_that_ends_too_early_is_lost(call):
    with lying(lambda: [sized(10), b"{}"]) as liar:
        caller, _ = call(liar, None, patience=0.0)
        with pytest.raises(ConnectionError, match="2 bytes read, 8 more expected"):
            caller.get("/v1")


def test_what_a_server_says_is_shown_as_a_terminal_may_show_it(call):
    heard = []
    with scripted(problem(503, "\x1b[2Jno\nway.")) as script:
        caller, _ = call(script, patience=1.0)
        caller.on_wait = lambda why, wait: heard.append(why)
        with pytest.raises(ConnectionError, match=r": \\x1b\[2Jno\\nway\.$"):
            caller.get("/v1")
        caller.close()
    assert set(heard) == {r"\x1b[2Jno\nway"}


def test_the_server_may_say_how_long_to_wait(call):
    busy = problem(503, "the file is locked")
    busy.headers["Retry-After"] = "7"
    heard = []
    with scripted(busy, GOOD) as script:
        caller, clock = call(script)
        caller.on_wait = lambda why, wait: heard.append((why, wait))
        caller.get("/v1")
        caller.close()
    assert clock.waits == [7.0]
    assert heard == [("the file is locked", 7.0)]


def test_a_refusal_is_the_sentence_of_the_server(call):
    with scripted(problem(409, "trial 1 was told 2 before", kept=2, given=3)) as script:
        caller, clock = call(script)
        with pytest.raises(InputError, match="trial 1 was told 2 before") as refused:
            caller.post("/tell", {})
        caller.close()
    assert isinstance(refused.value, Refused)
    assert refused.value.status == 409
    assert refused.value.problem["kept"] == 2
    assert not clock.waits


def test_a_page_of_a_proxy_is_a_refusal_too(call):
    with scripted(answer("<h1>no</h1>", 404, kind="text/html")) as script:
        caller, _ = call(script)
        with pytest.raises(InputError, match="the server said 404: Not Found"):
            caller.get("/v1")
        caller.close()


def test_what_is_no_json_comes_from_another_server(call):
    with scripted(answer("<h1>hello</h1>", kind="text/html")) as script:
        caller, _ = call(script)
        with pytest.raises(InputError, match="is no `recoup serve`"):
            caller.get("/v1")
        caller.close()


def test_a_fault_of_the_server_is_no_fault_of_the_caller(call):
    with scripted(problem(500, "division by zero")) as script:
        caller, _ = call(script)
        with pytest.raises(RuntimeError, match=r"failed \(500\): division by zero"):
            caller.get("/v1")
        caller.close()


def test_no_body_is_no_answer(call):
    with scripted(answer("", 204)) as script:
        caller, _ = call(script)
        assert caller.post("/note", {}) is None
        caller.close()


def test_what_json_has_not_is_not_sent(call):
    with scripted(GOOD) as script:
        caller, _ = call(script)
        with pytest.raises(InputError, match="cannot be sent as JSON"):
            caller.post("/tell", {"return": float("nan")})
    assert not script.heard


def test_a_thread_has_a_connection_of_its_own_and_keeps_it(call):
    with scripted(GOOD) as script:
        caller, _ = call(script)

        def twice():
            caller.get("/v1")
            caller.get("/v1")
            caller.close()

        other = threading.Thread(target=twice)
        other.start()
        other.join()
        twice()
    ports = [one.port for one in script.heard]
    assert ports[0] == ports[1] != ports[2] == ports[3]


def test_a_connection_that_was_closed_meanwhile_is_replaced_at_once(call):
    with scripted(GOOD, LOST, GOOD) as script:
        caller, clock = call(script)
        caller.get("/v1")
        assert caller.post("/ask", {}) == {"good": 1}
        caller.close()
    assert not clock.waits
    first, again = script.heard[1:]
    assert first.headers["Idempotency-Key"] == again.headers["Idempotency-Key"]


def test_a_query_leaves_out_what_is_not_said(call):
    with scripted(GOOD) as script:
        caller, _ = call(script)
        caller.get("/v1/changes", since="a b", wait=None)
        caller.close()
    assert script.heard[0].path == "/v1/changes?since=a+b"


def test_who_gives_up_waits_no_more():
    with scripted(GOOD) as script:
        pass
    caller = Caller(False, "127.0.0.1", script.port, patience=1e9)
    caller.on_wait = lambda why, wait: caller.give_up()
    with pytest.raises(ConnectionError):
        caller.get("/v1")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of 127.0.0.1, and its key, that nobody else has signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    home = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 3650"
    more = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *more], cwd=home, check=True, capture_output=True)
    return home / "cert.pem", home / "key.pem"


def test_tls_is_spoken_with_whom_the_caller_trusts(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, certificate))
    with scripted(GOOD, tls=context) as script:
        where = (True, "127.0.0.1", script.port)
        trusting = Caller(*where, "secret", certificate=str(certificate[0]))
        assert trusting.get("/v1") == {"good": 1}
        trusting.close()
        assert not script.asked  # the certificate has said whose the port is
        stranger = Caller(*where, patience=0.0)
        with pytest.raises(InputError, match=re.escape("give its file as certificate=...")):
            stranger.get("/v1")


def test_a_server_without_tls_is_called_by_its_name():
    with scripted(GOOD) as script, pytest.raises(NotServed, match="another answers there"):
        Caller(True, "127.0.0.1", script.port).get("/v1")


def test_a_server_with_tls_is_called_by_its_name(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, certificate))
    with scripted(GOOD, tls=context) as script:
        caller = Caller(False, "127.0.0.1", script.port)
        waits = []
        caller.on_wait = lambda why, wait: waits.append(why)
        with pytest.raises(NotServed, match="speaks TLS: write https:// in its place"):
            caller.get("/v1")
    assert not waits


def test_whether_tls_is_spoken_is_looked_at_once_and_never_of_what_has_answered(monkeypatch):
    looked = []
    with scripted(LOST, LOST, GOOD) as script:
        caller = Caller(False, "127.0.0.1", script.port)
        monkeypatch.setattr(caller, "_speaks_tls", lambda: looked.append(1))
        assert caller.get("/v1") == {"good": 1}
        caller.close()
    assert len(looked) == 1
    with scripted(GOOD, LOST, LOST, GOOD) as script:
        caller = Caller(False, "127.0.0.1", script.port)
        monkeypatch.setattr(caller, "_speaks_tls", lambda: looked.append(1))
        caller.get("/v1")
        caller.get("/v1")
        caller.close()
    assert len(looked) == 1


def test_a_certificate_that_is_none_is_refused(tmp_path):
    (tmp_path / "cert.pem").write_text("no certificate")
    for name in ("cert.pem", "none.pem"):
        with pytest.raises(InputError, match="cannot be read"):
            Caller(True, "127.0.0.1", 1, certificate=str(tmp_path / name))
