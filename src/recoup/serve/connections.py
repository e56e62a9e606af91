"""A connection of the server: how long a request may take to begin, and what is said to no HTTP.

A machine that loses its power in the middle of a request says nothing more, and closes nothing.
Those without a token may hold so many connections: what they make the server keep has an end.
"""

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from recoup.serve.problems import Problem, answer_of
from recoup.serve.tokens import Door

STRANGERS = 256  # connections, at most, on which nobody has shown a token yet
HEAD_SECONDS = 30.0  # for which the head of a request is waited for
NO_HTTP = (
    "this is no request of HTTP/1.1, or its head is too large: the server's address begins with "
    "http://, or with https:// if it was started with a certificate."
)


class Connection(H11Protocol):
    """One that is closed when no request comes, and that refuses in the words of all refusals."""

    _late: asyncio.TimerHandle | None = None

    def __init__(self, door: Door, strangers: dict["Connection", None], **how: Any) -> None:
        """`strangers` are all that have shown no token yet, the oldest first."""
        super().__init__(**how)
        self._door, self._strangers = door, strangers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request; of too many strangers the oldest goes."""
        super().connection_made(transport)
        self._strangers[self] = None
        if len(self._strangers) > STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Reads; once the head of a request is there, its body is waited for by its route."""
        super().data_received(data)
        if self in self._strangers and self.scope and self._door.rights(Request({**self.scope})):
            del self._strangers[self]
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing any more."""
        super().connection_lost(exc)
        self._strangers.pop(self, None)
        self._unwatch()

    def _watch(self) -> None:
        """A head has so long from its first byte on, however slowly the others come."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP."""
        answer = answer_of(Problem(HTTPStatus.BAD_REQUEST, NO_HTTP, {"Connection": "close"}))
        head = h11.Response(status_code=answer.status_code, headers=answer.raw_headers)
        for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
