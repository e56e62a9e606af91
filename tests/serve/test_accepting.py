"""`Accept`: which of several types an answer has."""

import pytest

from recoup.serve.accepting import accepted
from recoup.serve.problems import Problem

JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
GIVEN = (JSON, LINES, CSV)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("*", JSON),
        ("application/*", JSON),
        ("text/*", CSV),
        ("TEXT/CSV", CSV),
        ("text/csv; charset=utf-8", CSV),
        ("text/csv, */*", CSV),
        ("*/*, text/csv", CSV),
        ("text/csv;q=0.1, application/json", JSON),
        ("application/x-ndjson;q=0.5, text/csv", CSV),
        ("application/x-ndjson, text/csv", LINES),
        ("text/csv, application/x-ndjson", CSV),
        ("text/csv;q=0, */*;q=0.1", JSON),
        ("application/json; q=0, application/*", LINES),
        ("application/json;q=0,application/x-ndjson;q=0,*/*;q=0.001", CSV),
        ("text/csv; Q=0.2, application/json;q=0.3", JSON),
        (BROWSER, JSON),
        ("nonsense", JSON),
        ("text/csv;q=2", JSON),
        ("text/csv;q=nan", JSON),
        ("/, text/csv", CSV),
    ],
)
def test_what_is_wanted_most_is_given(said, wanted):
    assert accepted([said], GIVEN) == wanted


def test_a_header_may_come_in_parts():
    assert accepted(["application/json;q=0.5", "text/csv"], GIVEN) == CSV
    assert accepted([], GIVEN) == JSON


@pytest.mark.parametrize("said", ["application/xml", "text/csvx", "*/*;q=0", "text/csv;q=0.0"])
def test_where_none_is_allowed_it_is_said_which_there_are(said):
    with pytest.raises(Problem, match=r"one of application/json, .*, text/csv\.") as wrong:
        accepted([said], GIVEN)
    assert wrong.value.status == 406
