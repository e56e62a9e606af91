"""The application: a request passes the door, its body is checked, its route's function asked."""

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recoup.checks import nearest
from recoup.core.types import Given, Plain
from recoup.serve.call import OPEN, WRITE, Call, Endpoint, as_json
from recoup.serve.endpoints import ENDPOINTS
from recoup.serve.hub import Hub
from recoup.serve.json_bodies import checked, parsed, typed
from recoup.serve.openapi import described
from recoup.serve.problems import Problem, answer_of, on_error, problem_of
from recoup.serve.tokens import ASK_FOR_TOKEN, FULL, said_by

BODY_BYTES, STRANGE_BYTES = 1_000_000, 4000  # of a body, at most: with a token, and without
BODY_SECONDS = 30.0  # for which a body is waited for
QUERY_LENGTH = 20_000  # characters of an address
JSON, EVENTS = "application/json", "text/event-stream"
TRIAL_DIGITS = 19  # of the number of a trial, at most
TOKEN_NEEDED = "a token is needed: the address that the server printed has one behind #."
TOKEN_UNKNOWN = (
    "this token is not known here: take the address that the server printed when it was started "
    "last (`--token-file` keeps tokens)."
)
SAFE = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'; img-src 'self' blob:; media-src 'self' blob:"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
log = logging.getLogger(__name__)


class _TrialNumber(Convertor[int]):
    """The number of a trial in an address; one with more digits is none."""

    regex = f"[0-9]{{1,{TRIAL_DIGITS}}}"

    def convert(self, value: str) -> int:
        """The number."""
        return int(value)

    def to_string(self, value: int) -> str:
        """As it stands in an address."""
        return str(value)


register_url_convertor("trial", _TrialNumber())


def application(hub: Hub) -> ASGIApp:
    """What uvicorn serves."""
    rows: dict[str, list[Endpoint]] = {}
    for row in ENDPOINTS:
        rows.setdefault(row.path.replace("{id}", "{id:trial}"), []).append(row)
    routes: list[BaseRoute] = [_route(hub, path, of) for path, of in rows.items()]
    document = described(ENDPOINTS)
    routes.append(Route("/openapi.json", lambda request: as_json(document)))
    routes += _page()
    app = Starlette(
        routes=routes,
        exception_handlers={Exception: _failed, 400: on_error, 404: on_error, 405: on_error},
    )
    app.router.redirect_slashes = False
    return _guarded(app, hub)


def _page() -> list[BaseRoute]:
    """The page and its files, which hold no data."""
    folder = Path(str(files("recoup.serve") / "page"))
    if not folder.is_dir():
        return []
    index = folder / "index.html"
    return [
        Route("/", lambda request: FileResponse(index, media_type="text/html")),
        Mount("/static", StaticFiles(directory=folder)),
    ]


def _guarded(app: ASGIApp, hub: Hub) -> ASGIApp:
    """Refuses what was meant for another server, and says to browsers what a page may do."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
                fixed = scope["path"] == "/" or scope["path"].startswith("/static/")
                headers.setdefault("Cache-Control", "no-cache" if fixed else "no-store")
            await send(message)

        request = Request(scope, receive)
        try:
            hub.door.check_origin(request.headers.get("host", ""), request.headers.get("origin"))
        except Problem as problem:
            await answer_of(problem)(scope, receive, safely)
            return
        await app(scope, receive, safely)

    return guarded


async def _failed(request: Request, error: Exception) -> Response:
    """The answer to an error: of one that nobody foresaw the terminal shows where."""
    problem = problem_of(error)
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return answer_of(problem)


def _route(hub: Hub, path: str, rows: Sequence[Endpoint]) -> Route:
    """A path with all its methods."""
    by_method = {row.method: row for row in rows}

    async def answered(request: Request) -> Response:
        row = by_method["GET" if request.method == "HEAD" else request.method]
        try:
            return await _answered(hub, row, request)
        except Exception as error:
            return await _failed(request, error)

    return Route(path, answered, methods=list(by_method))


async def _answered(hub: Hub, row: Endpoint, request: Request) -> Response:
    rights = hub.door.rights(request)
    if row.kind != OPEN and rights is None:
        said = TOKEN_UNKNOWN if said_by(request) else TOKEN_NEEDED
        raise Problem(HTTPStatus.UNAUTHORIZED, said, ASK_FOR_TOKEN)
    may_write = rights == FULL and not hub.read_only
    if row.kind == WRITE and not may_write:
        said = "this server only reads." if hub.read_only else "this token may only read."
        raise Problem(HTTPStatus.FORBIDDEN, said)
    name = request.path_params.get("name")
    if name is not None and name not in hub.served:  # it may have been made since
        await asyncio.to_thread(hub.find)
    query = _query(row, request)
    most = STRANGE_BYTES if rights is None else BODY_BYTES
    body = None if row.body is None else await _body(row.body, request, most)
    call = Call(hub, request, body, query, may_write)
    if request.method == "HEAD" and EVENTS in row.gives and call.served:  # which would not end
        return Response(media_type=EVENTS)
    found: Given = await row.does(call)
    if isinstance(found, Response):
        return found
    return as_json(found, row.status)


def _query(row: Endpoint, request: Request) -> Plain:
    if len(request.url.query) > QUERY_LENGTH:
        raise Problem(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long.")
    pairs = request.query_params.multi_items()
    found: Plain = {}
    for name, text in pairs:
        if name not in row.query:
            known = ", ".join(row.query) or "none"
            said = f"the query takes {known}; got {name!r}.{nearest(name, row.query)}"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, said)
        if name in found:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name!r} stands twice in the query.")
        found[name] = typed(f"`{name}`", row.query[name], text)
    for name, schema in row.query.items():
        if schema.get("required") and name not in found:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"the query needs {name!r}.")
    return found


async def _body(schema: Plain, request: Request, most: int) -> Given:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        said = f"the body must be {JSON}, and Content-Type must say so."
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, said)
    return checked("the body", schema, parsed(await _content(request, most)))


async def _content(request: Request, most: int) -> bytes:
    """The body, once it is known not to be too large: what says so is not even read."""
    said, found = request.headers.get("content-length", "0"), bytearray()
    too_large = Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {most:,} bytes.")
    if said.isdecimal() and int(said) > most:
        raise too_large
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                found += chunk
                if len(found) > most:
                    raise too_large
    except TimeoutError:
        late = f"the body did not come within {BODY_SECONDS:g} seconds: send the request again."
        raise Problem(HTTPStatus.REQUEST_TIMEOUT, late, {"Connection": "close"}) from None
    return bytes(found)
