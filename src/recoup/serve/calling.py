"""One HTTP server, called until it answers, with the standard library alone.

A call that was lost (no connection, no answer in time, 503) is made again after growing waits, with
the same body and the same `Idempotency-Key`: the server does what a key asks for once, however
often it hears it.
"""

import json
import os
import random
import ssl
import threading
import time
from collections.abc import Callable
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
)
from urllib.parse import urlencode
from uuid import uuid4

from recoup.checks import InputError, printable, shortly
from recoup.core.types import Given, Plain, Settings

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds between two attempts
LOST = {408, 425, 429, 502, 503, 504, 507}  # statuses after which the same is asked again
NO_TLS = "WRONG_VERSION_NUMBER"  # what OpenSSL calls an answer in plain text
PROBLEM = "application/problem+json"

OnWait = Callable[[str, float], None]  # hears why there is no answer yet, and for how long to wait


class Refused(InputError):
    """The server understood and said no: its sentence, the HTTP status and the whole problem.

    What to do: its sentence is the server's, which says what is wanted; `status` is the HTTP
    status.

    >>> issubclass(Refused, recoup.InputError)
    True
    """

    def __init__(self, status: int, problem: Settings) -> None:
        """`problem` is the answer's body, as RFC 9457 has it."""
        title = problem.get("title") or "no reason was given"
        super().__init__(str(problem.get("detail") or f"the server said {status}: {title}."))
        self.status, self.problem = status, dict(problem)


class _Lost(Exception):
    """A call that has no answer yet: why, and how long the server wants to be left alone."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class Caller:
    """Calls one server. Any number of threads may use it at once, each has its own connection."""

    def __init__(
        self,
        secure: bool,
        host: str,
        port: int,
        token: str | None = None,
        *,
        patience: float = 60.0,
        timeout: float = 60.0,
        certificate: str | None = None,
    ) -> None:
        """`patience` is for how many seconds a call is made again, `timeout` those of one attempt.

        `certificate` is a PEM file of certificates to trust, in place of those of the system.
        """
        shown = f"[{host}]" if ":" in host else host
        self.where = f"{'https' if secure else 'http'}://{shown}:{port}"
        self._host, self._port, self._token = host, port, token
        self.patience, self.timeout = patience, timeout
        self.on_wait: OnWait | None = None
        self._tls = _trusting(certificate) if secure else None
        self._kept, self._hurry = threading.local(), threading.Event()

    def get(self, path: str, **query: object) -> Given:
        """What the server gives, read from JSON."""
        given = {key: value for key, value in query.items() if value is not None}
        return self._until_answered("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path: str, body: object, verb: str = "POST") -> Given:
        """What the server answers to a body, which it acts upon once."""
        try:
            sent = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as wrong:
            raise InputError(f"this cannot be sent as JSON ({wrong}): {shortly(body)}.") from None
        return self._until_answered(verb, path, sent, uuid4().hex)

    def give_up(self) -> None:
        """From now on no call is made again, nor one that waits for its next attempt."""
        self.patience = 0.0
        self._hurry.set()

    def close(self) -> None:
        """Closes this thread's connection; the next call opens another."""
        kept: HTTPConnection | None = self._kept.__dict__.pop("connection", None)
        if kept is not None:
            kept.close()

    def _until_answered(
        self, verb: str, path: str, body: bytes | None = None, key: str | None = None
    ) -> Given:
        began, pause = time.monotonic(), FIRST_PAUSE
        while True:
            try:
                return self._answer(verb, path, body, key)
            except _Lost as lost:
                wait = max(lost.after or 0.0, pause * random.uniform(0.5, 1.0))
                if time.monotonic() - began + wait > self.patience:
                    raise ConnectionError(
                        f"{self.where} gave no answer for {self.patience:g} s: {lost}."
                    ) from None
                if self.on_wait is not None:
                    self.on_wait(str(lost), wait)
                self._hurry.wait(wait)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _answer(self, verb: str, path: str, body: bytes | None, key: str | None) -> Given:
        """One attempt."""
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": str(key)}
        try:
            response, read = self._sent(verb, path, body, headers)
        except ssl.SSLCertVerificationError as wrong:
            raise InputError(
                f"the certificate of {self.where} is not trusted ({wrong.verify_message}): give "
                "its file as certificate=... (or in the environment variable SSL_CERT_FILE)."
            ) from None
        except (OSError, HTTPException) as wrong:
            if isinstance(wrong, ssl.SSLError) and wrong.reason == NO_TLS:
                raise InputError(
                    f"{self.where} speaks no TLS: write http:// in its place."
                ) from None
            raise _Lost(printable(str(wrong)) or type(wrong).__name__) from None
        return self._read(response, read)

    def _sent(
        self, verb: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        """The response, read whole. A connection that was idle may be closed: then by another."""
        while True:
            connection = self._connection()
            used = connection.sock is not None
            try:
                connection.request(verb, path, body, headers)
                response = connection.getresponse()
                return response, response.read()
            except (ConnectionError, BadStatusLine):
                self.close()
                if not used:
                    raise
            except BaseException:  # Ctrl-C too: half an answer is left in the connection
                self.close()
                raise

    def _read(self, response: HTTPResponse, body: bytes) -> Given:
        """The answer, or what it means that there is none."""
        if response.status == 204:
            return None
        if response.status < 300:
            try:
                return json.loads(body)
            except ValueError:
                raise InputError(f"{self.where} is no `recoup serve`: it gave no JSON.") from None
        problem = _problem(response, body)
        said = str(problem.get("detail") or problem.get("title"))
        if response.status in LOST:
            raise _Lost(said.rstrip("."), _seconds(response.getheader("Retry-After")))
        if response.status >= 500:
            raise RuntimeError(f"{self.where} failed ({response.status}): {printable(said)}")
        raise Refused(response.status, problem)

    def _connection(self) -> HTTPConnection:
        """The connection of this thread, of this process: a fork may not use its parent's."""
        kept = self._kept
        if getattr(kept, "process", None) != os.getpid():
            kept.process, kept.connection = os.getpid(), None
        if getattr(kept, "connection", None) is None:
            host, port, most = self._host, self._port, self.timeout
            if self._tls is None:
                kept.connection = HTTPConnection(host, port, timeout=most)
            else:
                kept.connection = HTTPSConnection(host, port, timeout=most, context=self._tls)
        found: HTTPConnection = kept.connection
        return found


def _trusting(certificate: str | None) -> ssl.SSLContext:
    """What TLS trusts."""
    try:
        return ssl.create_default_context(cafile=certificate)
    except (OSError, ssl.SSLError) as wrong:
        raise InputError(f"the certificate {certificate} cannot be read: {wrong}.") from None


def _problem(response: HTTPResponse, body: bytes) -> Plain:
    """The problem that an answer is; of one that is none (a proxy's page), its status alone."""
    if (response.getheader("Content-Type") or "").partition(";")[0].strip() == PROBLEM:
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
    return {"title": response.reason or "no reason was given", "status": response.status}


def _seconds(text: str | None) -> float | None:
    """What `Retry-After` says, where it says a number of seconds."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() else None
