"""One HTTP server, called until it answers, with the standard library alone.

A call that was lost (no connection, no answer in time, 503) is made again after growing waits, with
the same body and the same `Idempotency-Key`: the server does what a key asks for once, however
often it hears it.
"""

import json
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from io import BufferedReader, RawIOBase
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode
from uuid import uuid4

from recoup.checks import InputError, printable, shortly
from recoup.core.types import Given, Plain, Settings
from recoup.serve.answers import PROOFS, REFUSAL, proof_of, understood

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds between two attempts
LOST = {408, 425, 429, 502, 503, 504, 507}  # statuses after which the same is asked again
PROBE_TIMEOUT = 5.0  # seconds in which a port that speaks TLS has shown it
LAST_TIMEOUT = 10.0  # seconds of an attempt, at most, once no other is made
LARGEST, PIECE = 64_000_000, 2**16  # bytes of an answer, at most; that are read at a time
HUNG_UP = (BadStatusLine, ConnectionResetError, BrokenPipeError)  # what TLS answers to plain text
NO_TLS = "WRONG_VERSION_NUMBER"  # what OpenSSL calls an answer in plain text
PROBLEM = "application/problem+json"
UNKNOWN = (
    "this token is not known at {}, and was not sent: take the address that the server printed "
    "when it was started last (`--token-file` keeps tokens)."
)

Found = TypeVar("Found")
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


class NotServed(InputError):
    """At the address there is no `recoup serve` that this caller can talk to as it was told to."""


class Lost(Exception):
    """A call that has no answer yet: why, and how long the server wants to be left alone."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class _Timely(RawIOBase):
    """What comes through a socket until a moment: its own timeout is that of each read."""

    def __init__(self, through: socket.socket, came: RawIOBase, until: float) -> None:
        self._through, self._came, self._until = through, came, until

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int | None:
        """What has come, if it is not too late."""
        self._through.settimeout(_left(self._until))
        return self._came.readinto(into)

    def close(self) -> None:
        """Lets go of the socket."""
        self._came.close()
        super().close()


class _Request(NamedTuple):
    """What is asked for, the same in each attempt."""

    verb: str
    path: str
    shape: Given = object  # of what the answer holds, as `answers` has them
    body: bytes | None = None
    key: str | None = None
    longer: float = 0.0  # seconds that the attempt may take beyond `timeout`


class Caller:
    """Calls one server. Any number of threads may use it at once, each has its own connection."""

    def __init__(
        self,
        secure: bool,
        host: str,
        port: int,
        token: str | None = None,
        *,
        base: str = "",
        patience: float = 60.0,
        timeout: float = 60.0,
        certificate: str | None = None,
    ) -> None:
        """`patience` is for how many seconds a call is made again, `timeout` those of one attempt.

        `certificate` is a PEM file of certificates to trust, in place of those of the system;
        `base` stands before /v1, where a proxy puts something there.
        """
        shown = f"[{host}]" if ":" in host else host
        self.where = f"{'https' if secure else 'http'}://{shown}:{port}"
        self._host, self._port, self._token, self._base = host, port, token, base
        self.patience, self.timeout = patience, timeout
        self.on_wait: OnWait | None = None
        self._tls = _trusting(certificate) if secure else None
        self._kept, self._hurry = threading.local(), threading.Event()
        self._known = secure  # whether it is known what the port speaks

    def get(
        self, path: str, shape: Given = object, *, longer: float = 0.0, **query: object
    ) -> Given:
        """What the server gives, of a shape, for which it may take so many seconds `longer`."""
        given = {key: value for key, value in query.items() if value is not None}
        asked = f"{path}?{urlencode(given)}" if given else path
        return self._until_answered(_Request("GET", asked, shape, longer=longer))

    def post(self, path: str, body: object, shape: Given = object, verb: str = "POST") -> Given:
        """What the server answers to a body, of a shape; it acts upon the body once."""
        try:
            sent = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as wrong:
            raise InputError(f"this cannot be sent as JSON ({wrong}): {shortly(body)}.") from None
        return self._until_answered(_Request(verb, path, shape, sent, uuid4().hex))

    def stranger(self, why: str) -> NotServed:
        """The error that whoever answers at the address is another program."""
        return NotServed(f"{self.where} is no `recoup serve`: {why}.")

    def give_up(self) -> None:
        """From now on no call is made again, nor one that waits for its next attempt."""
        self.patience, self.timeout = 0.0, min(self.timeout, LAST_TIMEOUT)
        self._hurry.set()

    def close(self) -> None:
        """Closes this thread's connection; the next call opens another."""
        kept: HTTPConnection | None = self._kept.__dict__.pop("connection", None)
        if kept is not None:
            kept.close()

    def _until_answered(self, request: _Request) -> Given:
        return self.repeated(lambda: self._answer(request), self.on_wait)

    def repeated(
        self, attempt: Callable[[], Found], hear: OnWait | None, what: str = "gave no answer"
    ) -> Found:
        """What an attempt gives; one that is `Lost` is made again, for as long as patience lasts.

        `hear` is told of each wait, `what` is what the server did all that time. However long the
        first attempt takes, there is a second one.
        """
        began, pause, second = time.monotonic(), FIRST_PAUSE, True
        while True:
            try:
                return attempt()
            except Lost as lost:
                wait = max(lost.after or 0.0, pause * random.uniform(0.5, 1.0))
                if second:
                    wait = min(wait, self.patience)
                late = time.monotonic() - began + wait > self.patience
                if not self.patience or (late and not second):
                    said = f"{self.where} {what} for {self.patience:g} s: {lost}."
                    raise ConnectionError(said) from None
                if hear is not None:
                    hear(str(lost), wait)
                self._hurry.wait(wait)
                pause, second = min(2 * pause, LONGEST_PAUSE), False

    def _answer(self, request: _Request) -> Given:
        """One attempt."""
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if request.body is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": str(request.key)}
        try:
            response, read = self._sent(request, headers)
        except ssl.SSLCertVerificationError as wrong:
            raise NotServed(
                f"the certificate of {self.where} is not trusted ({wrong.verify_message}): give "
                "its file as certificate=... (or in the environment variable SSL_CERT_FILE)."
            ) from None
        except (OSError, HTTPException) as wrong:
            self._check_tls(wrong)
            raise Lost(printable(str(wrong)) or type(wrong).__name__) from None
        self._known = True
        return self._read(request, response, read)

    def _check_tls(self, wrong: Exception) -> None:
        """Raises where a call was lost since one side speaks TLS and the other does not."""
        if isinstance(wrong, ssl.SSLError) and wrong.reason == NO_TLS:
            raise NotServed(
                f"{self.where} speaks no TLS: it was started without --certfile, or another "
                "answers there, which http:// would send the token to."
            ) from None
        if not self._known and isinstance(wrong, HUNG_UP):
            self._known = True
            if self._speaks_tls():
                raise NotServed(f"{self.where} speaks TLS: write https:// in its place.") from None

    def _speaks_tls(self) -> bool:
        """Whether the port does; nothing is said to it, and nobody trusted."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        most = min(self.timeout, PROBE_TIMEOUT)
        try:
            with (
                socket.create_connection((self._host, self._port), most) as plain,
                context.wrap_socket(plain, server_hostname=self._host),
            ):
                return True
        except OSError:
            return False

    def _sent(self, request: _Request, headers: dict[str, str]) -> tuple[HTTPResponse, bytes]:
        """The response, read whole. A connection that was idle may be closed: then by another."""
        until = time.monotonic() + self.timeout + request.longer
        while True:
            connection = self._connection()
            used = connection.sock is not None
            try:
                if not used:
                    connection.timeout = _left(until)
                    connection.connect()
                    self._prove(connection, until)
                return self._exchanged(connection, request, headers, until)
            except (ConnectionError, BadStatusLine):
                self.close()
                if not used:
                    raise
            except BaseException:  # Ctrl-C too: half an answer is left in the connection
                self.close()
                raise

    def _prove(self, connection: HTTPConnection, until: float) -> None:
        """Raises unless whoever listens knows the token, which it is not told before.

        The port may be another's by now. With TLS the certificate says whose it is.
        """
        if self._token is None or self._tls is not None:
            return
        nonce, proofs = token_hex(16), []
        request = _Request("GET", f"{self._base}/v1/proof?nonce={nonce}", PROOFS)
        try:
            answered = self._exchanged(connection, request, {"Accept": "application/json"}, until)
            proofs = self._read(request, *answered)["proofs"]
        except Refused as refused:  # by another program, or since it has another name: 403
            if refused.status == 403:
                raise
        if proof_of(self._token, nonce) not in proofs:
            raise Refused(401, {"detail": UNKNOWN.format(self.where)})
        if connection.sock is None:
            raise HTTPException("it closed the connection on which it proved that it is the server")

    def _exchanged(
        self, connection: HTTPConnection, request: _Request, headers: dict[str, str], until: float
    ) -> tuple[HTTPResponse, bytes]:
        """The response to a request, by a moment, on a connection that is open."""
        connection.sock.settimeout(_left(until))
        connection.response_class = partial(_timely, until)  # type: ignore[assignment]
        connection.request(request.verb, request.path, request.body, headers)
        found = bytearray()
        with connection.getresponse() as response:
            while (response.length or len(found)) <= LARGEST:
                if piece := response.read1(PIECE):
                    found += piece
                elif response.length:
                    raise IncompleteRead(bytes(found), response.length)
                else:
                    return response, bytes(found)
        raise NotServed(f"{self.where} gave more than {LARGEST // 10**6} MB, and no more is read.")

    def _read(self, request: _Request, response: HTTPResponse, body: bytes) -> Given:
        """The answer, or what it means that there is none."""
        if response.status < 300:
            try:
                return understood(b"null" if response.status == 204 else body, request.shape)
            except ValueError:
                raise self.stranger("its answer makes no sense") from None
        problem = _problem(response, body)
        said = printable(str(problem.get("detail") or problem.get("title")))
        if response.status in LOST:
            raise Lost(said.rstrip("."), _seconds(response.getheader("Retry-After")))
        if response.status >= 500:
            raise RuntimeError(f"{self.where} failed ({response.status}): {said}")
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


def _left(until: float) -> float:
    """The seconds until a moment, of which there are some."""
    if (left := until - time.monotonic()) > 0:
        return left
    raise TimeoutError("timed out")


def _timely(until: float, through: socket.socket, **how: Any) -> HTTPResponse:
    """A response that comes until a moment."""
    response = HTTPResponse(through, **how)
    response.fp = BufferedReader(_Timely(through, response.fp.detach(), until))
    return response


def _trusting(certificate: str | None) -> ssl.SSLContext:
    """What TLS trusts."""
    try:
        return ssl.create_default_context(cafile=certificate)
    except (OSError, ssl.SSLError) as wrong:
        raise InputError(f"the certificate {certificate} cannot be read: {wrong}.") from None


def _problem(response: HTTPResponse, body: bytes) -> Plain:
    """The problem that an answer is; of one that is none (a proxy's page), its status alone."""
    if (response.getheader("Content-Type") or "").partition(";")[0].strip() == PROBLEM:
        with suppress(ValueError):
            found: Plain = understood(body, REFUSAL)
            return found
    return {"title": response.reason or "no reason was given", "status": response.status}


def _seconds(text: str | None) -> float | None:
    """What `Retry-After` says, where it says a number of seconds."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() else None
