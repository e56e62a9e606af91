"""Which status an error has."""

import json

import pytest
from starlette.requests import ClientDisconnect

from recoup.checks import InputError
from recoup.serve.problems import answer_of, problem_of
from recoup.store.errors import Damaged, Locked, NoRoom, ToldBefore
from recoup.store.rows import FAILED, OK, Told

ERRORS = {
    507: NoRoom("the disk of robot.db is full"),
    503: Locked("robot.db is being written by another process for over 10 s: try again."),
    410: Damaged("robot.db is damaged (x)."),
    409: ToldBefore("trial 1 was told.", 1, Told(OK, 1.0), Told(FAILED, note="fell")),
    408: ClientDisconnect("who asked has gone."),
    422: InputError("a return must be a number, got 'x'."),
    500: ZeroDivisionError("division by zero"),
}


@pytest.mark.parametrize("status", ERRORS)
def test_every_error_is_a_problem_with_its_sentence(status):
    answer = answer_of(problem_of(ERRORS[status]))
    said = json.loads(answer.body)
    assert answer.media_type == "application/problem+json"
    assert answer.status_code == said["status"] == status
    assert said["type"] == "about:blank"
    assert str(ERRORS[status]).partition("\n")[0] in said["detail"]
    assert ("retry-after" in answer.headers) == (status == 503)


def test_what_was_told_before_has_both_results():
    said = json.loads(answer_of(problem_of(ERRORS[409])).body)
    assert (said["kept"], said["given"]) == ({"return": 1.0}, {"failed": "fell"})
