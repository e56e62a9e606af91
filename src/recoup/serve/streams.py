"""Changes of a study as they happen: server-sent events, and long polls for those without."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from recoup.core.types import Given
from recoup.serve.call import Call, done
from recoup.serve.changes import Change
from recoup.serve.hub import Hub
from recoup.serve.problems import AGAIN, Problem
from recoup.serve.served import Served

QUIET_SECONDS = 15.0  # after which a line says that the stream still is
STREAMS = 100  # that are open at once
LONGEST_POLL = 60.0  # seconds


async def _now(served: Served) -> Change:
    return await done(served.reads(lambda _: served.look()))


class _Stream(StreamingResponse):
    """An answer that goes on; it counts among those that are open as long as it does."""

    def __init__(self, hub: Hub, content: AsyncIterator[str]) -> None:
        how = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(content, headers=how, media_type="text/event-stream")
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it, until nothing comes any more or nobody hears it."""
        self._hub.streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hub.streams -= 1


async def events(call: Call) -> Given:
    """Every change of the study, from the last that one has heard of."""
    served, last = call.served, call.header("last-event-id") or ""
    now = await _now(served)
    if call.hub.streams >= STREAMS:
        said = f"{STREAMS} streams are open already."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, said, AGAIN)
    known = int(last) if last.isascii() and last.isdecimal() and len(last) < 19 else 0
    first = served.changes.after(known, now) if last else [now]
    version = first[-1].version if first else known
    return _Stream(call.hub, _streamed(call, first, version))


async def _streamed(call: Call, first: list[Change], version: int) -> AsyncIterator[str]:
    """The events, for as long as whoever hears them may; a session is used by hearing them."""
    changes = call.served.changes
    for change in first:
        yield _event(change)
    while not changes.ended and call.hub.door.rights(call.request) is not None:
        some = changes.since(version)
        for change in some:
            version = change.version
            yield _event(change)
        if not some and not await changes.wait(QUIET_SECONDS):
            yield ": here\n\n"


def _event(change: Change) -> str:
    return f"id: {change.version}\nevent: changed\ndata: {json.dumps(change.line)}\n\n"


async def changes(call: Call) -> Given:
    """Whether the study is another than a version; waits for a while for it to be."""
    served, since = call.served, call.query.get("since", 0)
    loop = asyncio.get_running_loop()
    until = loop.time() + call.query.get("wait", 0.0)
    now = await _now(served)
    while now.version == since and not served.changes.ended:
        left = until - loop.time()
        if not served.changes.since(since) and (left <= 0 or not await served.changes.wait(left)):
            break
        now = await _now(served)
    return {"version": now.version, "changed": now.version != since, **now.line}
