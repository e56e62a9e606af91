"""What went wrong, as `application/problem+json` (RFC 9457): a status, and a sentence."""

import json
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from recoup.checks import InputError, without_nan
from recoup.core.types import Plain
from recoup.store.errors import Damaged, Locked, NoRoom, ToldBefore
from recoup.store.rows import FAILED, Told

PROBLEM = "application/problem+json"
AGAIN = {"Retry-After": "1"}  # seconds
KINDS = {  # of errors, the first that fits -> status
    NoRoom: HTTPStatus.INSUFFICIENT_STORAGE,
    Locked: HTTPStatus.SERVICE_UNAVAILABLE,
    Damaged: HTTPStatus.GONE,
    ToldBefore: HTTPStatus.CONFLICT,
    InputError: HTTPStatus.UNPROCESSABLE_ENTITY,
}
OF_ROUTES = {  # what is said where nothing of a study was looked at
    404: "there is no such address here: /openapi.json lists them all.",
    405: "this address is not asked like that: the header Allow says how.",
}


class Problem(Exception):
    """Why a request is not done."""

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        """With a sentence, and what else the answer holds."""
        super().__init__(detail)
        self.status, self.detail, self.headers, self.more = status, detail, headers, more


def problem_of(error: Exception) -> Problem:
    """The problem that an error is."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        headers = dict(error.headers) if error.headers else None
        detail = OF_ROUTES.get(error.status_code, f"{error.detail.rstrip('.')}.")
        return Problem(error.status_code, detail, headers)
    if isinstance(error, ClientDisconnect):
        return Problem(HTTPStatus.REQUEST_TIMEOUT, "who asked has gone.")
    for kind, status in KINDS.items():
        if isinstance(error, kind):
            headers = AGAIN if status == HTTPStatus.SERVICE_UNAVAILABLE else None
            return Problem(status, str(error), headers, **_values(error))
    what = str(error).partition("\n")[0] or type(error).__name__
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"{what} (the server's terminal shows where)")


def _values(error: Exception) -> Plain:
    """Of a trial that was told otherwise before, both results."""
    if not isinstance(error, ToldBefore):
        return {}
    return {"kept": came(error.before), "given": came(error.told), "trial": error.number}


def came(told: Told) -> Plain:
    """What came of a trial, as it is told."""
    said: Plain = {"failed": told.note} if told.status == FAILED else {"return": told.value}
    return {**said, "also": told.also} if told.also else said


def answer_of(problem: Problem) -> Response:
    """The answer that says it."""
    title = HTTPStatus(problem.status).phrase
    said = {"type": "about:blank", "title": title, "status": int(problem.status)}
    content = json.dumps(without_nan({**said, "detail": problem.detail, **problem.more}))
    return Response(content, problem.status, problem.headers, PROBLEM)


async def on_error(request: Request, error: Exception) -> Response:
    """The answer to a request that an error has ended."""
    return answer_of(problem_of(error))
