"""A server that answers as it is told to, one answer a call, and notes what it was asked."""

import hmac
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from recoup.serve import calling

TOKENS = ("secret", "t", "a+b/c=", "50%&more", "a b")
LOST = None  # in place of an answer: the connection ends without one
FACTS = {  # of a study with nothing in it
    "parameters": [],
    "named": False,
    "direction": "maximize",
    "noun": "return",
    "batch": 12,
    "until_move": 3,
    "counts": {"pending": 0, "ok": 0, "failed": 0},
    "mean": {},
}
TRIAL = {"id": 1, "seed": 7, "kind": "drawn", "status": "pending", "params": {}}


def answer(body, status=200, headers=None, kind="application/json"):
    return SimpleNamespace(body=body, status=status, headers=headers or {}, kind=kind)


def problem(status, detail, **more):
    body = {"type": "about:blank", "title": "no", "status": status, "detail": detail, **more}
    return answer(body, status, kind="application/problem+json")


class Clock:
    """In the place of a caller's clock and of its waiting: a wait takes no time, and is noted."""

    def __init__(self, monkeypatch, caller):
        self.now, self.waits = 0.0, []
        monkeypatch.setattr(calling, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(caller, "_hurry", self)

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now += seconds

    def set(self):
        pass


class Scripted:
    """`heard` is what came, `answers` what is given; when they are used up, the last again.

    `asked` are the headers of who asks for a proof that it knows its `tokens`, `said` those that it
    is given with.
    """

    def __init__(self, answers, tokens):
        self.answers, self.heard, self.lock = list(answers), [], threading.Lock()
        self.tokens, self.asked, self.said = tokens, [], {}

    def next(self, asked):
        with self.lock:
            self.heard.append(asked)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def handler(script):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self):
            path, _, nonce = self.path.partition("?nonce=")
            if path.endswith("/v1/proof"):
                script.asked.append(dict(self.headers))
                keys, text = (
                    [one.encode() for one in script.tokens],
                    f"recoup proof{nonce}".encode(),
                )
                proofs = [hmac.new(key, text, "sha256").hexdigest() for key in keys]
                self.give(answer({"proofs": proofs}, headers=script.said))
                return
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            asked = SimpleNamespace(
                verb=self.command,
                path=self.path,
                headers=dict(self.headers),
                body=json.loads(body) if body else None,
                port=self.client_address[1],
            )
            given = script.next(asked)
            if given is LOST:
                self.close_connection = True
                return
            self.give(given)

        def give(self, given):
            text = given.body if isinstance(given.body, str) else json.dumps(given.body)
            self.send_response(given.status)
            self.send_header("Content-Type", given.kind)
            self.send_header("Content-Length", str(len(text.encode())))
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_PUT = do

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def scripted(*answers, tls=None, tokens=TOKENS, port=0):
    """The server, with its `port`; `tls` is the context of one that speaks TLS.

    It proves that it knows its tokens, which is neither heard nor one of its answers.
    """
    script = Scripted(answers, tokens)
    server = ThreadingHTTPServer(("127.0.0.1", port), handler(script))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    script.port = server.server_address[1]
    with running(server):
        yield script


@contextmanager
def running(server):
    """A server that answers meanwhile, in a thread."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
