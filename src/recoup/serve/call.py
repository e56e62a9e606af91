"""What a route's function is given, and the row of the table that it stands in."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from recoup.checks import without_nan
from recoup.core.types import Given, Plain
from recoup.serve.hub import Hub
from recoup.serve.problems import Problem
from recoup.serve.served import Served
from recoup.study.study import Study
from recoup.study.trials.leases import overdue

Found = TypeVar("Found")
GONE_SECONDS = 1.0  # between two looks whether who asked is still there
ANSWERS_KEPT = 64  # of judgements, while nothing changes
WRITE, JUDGE, READ, OPEN = "write", "judge", "read", "open"  # what a route does; OPEN to all


class Call(NamedTuple):
    """A request that is allowed, with its body and query checked."""

    hub: Hub
    request: Request
    body: Given
    query: Plain
    may_write: bool

    @property
    def served(self) -> Served:
        """The study that it names."""
        name = self.request.path_params["name"]
        found = self.hub.served.get(name)
        if found is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no study {name!r} here.")
        return found

    @property
    def trial(self) -> int:
        """The trial that it names."""
        return int(self.request.path_params["id"])

    def header(self, name: str) -> str | None:
        """What a header says."""
        return self.request.headers.get(name)


Does = Callable[[Call], Awaitable[Given]]  # what JSON can hold, or a whole answer


class Endpoint(NamedTuple):
    """A row of the table of routes."""

    method: str
    path: str
    does: Does
    words: str  # what it is for
    kind: str = READ
    body: Plain | None = None  # its schema
    query: Mapping[str, Plain] = {}  # schemas
    headers: Mapping[str, Plain] = {}  # likewise, of those that it looks at
    gives: tuple[str, ...] = ("application/json",)  # content types
    status: int = HTTPStatus.OK


async def done(future: "Future[Found]") -> Found:
    """What a lane finds; who asked may have gone meanwhile, and it is done all the same."""
    return await asyncio.shield(asyncio.wrap_future(future))


Job = Callable[[Study, Call], Given]


def reading(job: Job) -> Does:
    """A route that reads."""

    async def does(call: Call) -> Given:
        return await done(call.served.reads(lambda study: as_answer(job(study, call))))

    return does


def judging(job: Job) -> Does:
    """A route whose answer may take a while."""

    async def does(call: Call) -> Given:
        return await wanted(call, call.served.judges(lambda study: _kept(study, call, job)))

    return does


async def wanted(call: Call, future: "Future[Found]") -> Found:
    """What a lane finds; where whoever asked has gone, it need not begin with it."""
    waiting = asyncio.wrap_future(future)
    while not (await asyncio.wait([waiting], timeout=GONE_SECONDS))[0]:
        if await call.request.is_disconnected():
            waiting.cancel()
            raise ClientDisconnect
    return waiting.result()


def _kept(study: Study, call: Call, job: Job) -> Given:
    """What was found before, where nothing in the study has changed: pages ask for the same."""
    served = call.served
    now = served.look().version, tuple(overdue(study.store))  # the latter by the clock
    if served.judged_at != now:
        served.judged, served.judged_at = {}, now
    key = json.dumps([call.request.url.path, call.body, call.query], sort_keys=True)
    if key not in served.judged:
        if len(served.judged) >= ANSWERS_KEPT:
            served.judged.clear()
        served.judged[key] = as_answer(job(study, call))
    return served.judged[key]


def writing(job: Job) -> Does:
    """A route that writes."""

    async def does(call: Call) -> Given:
        return await done(call.served.writes(lambda study: as_answer(job(study, call))))

    return does


def as_answer(found: Given) -> Response:
    """An answer, made by the thread that has found what it says: a large one takes a while."""
    return found if isinstance(found, Response) else as_json(found)


def as_json(found: Given, status: int = HTTPStatus.OK, headers: Any = None) -> Response:
    """An answer of what JSON can hold: null for what is not a number."""
    content = json.dumps(without_nan(plainly(found)), ensure_ascii=False, allow_nan=False)
    return Response(content.encode(errors="backslashreplace"), status, headers, "application/json")


def plainly(found: Given) -> Given:
    """The same as dicts, lists, texts and numbers."""
    if hasattr(found, "_asdict"):
        found = found._asdict()
    if isinstance(found, Mapping):
        return {str(key): plainly(value) for key, value in found.items()}
    if isinstance(found, (list, tuple, set, frozenset)):
        return [plainly(value) for value in found]
    return found.tolist() if hasattr(found, "tolist") else found
