"""What openapi.json says is what the server does: whatever is sent, nothing fails."""

import http.client
import json

import pytest
from hypothesis import HealthCheck, given, settings
from serving import Server
from waiting import LIMIT

from recoup.serve.endpoints import ENDPOINTS
from recoup.serve.openapi import operation_id
from recoup.study.study import Study

STREAMED = "get_studies_events"  # does not end
SLOW = [f"post_studies_{x}" for x in ("recommend", "suggest", "predict")] + ["get_studies_report"]
NAMES = ["gains", "plain", "nothing"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    gains = {"kp": (1, 200, "log"), "grip": ("soft", "hard"), "n": (1, 5, "int")}
    for name, how in {"gains": {"params": gains}, "plain": {"dim": 2}}.items():
        with Study.open(folder / f"{name}.db", batch=6, **how) as study:
            for trial in study.ask(30):
                if trial.id % 5:
                    study.tell(trial.id, -float(trial.theta[0]))
    with Server(folder, folder) as server:
        yield server


@pytest.fixture(scope="module")
def document(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/openapi.json")
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found


def test_every_route_is_in_it_and_no_other(document):
    said = {(path, method) for path, row in document["paths"].items() for method in row}
    assert said == {(row.path, row.method.lower()) for row in ENDPOINTS}
    assert document["openapi"].startswith("3.1")
    assert len({operation_id(row) for row in ENDPOINTS}) == len(ENDPOINTS)


@pytest.fixture(scope="module")
def operations(server, document):
    """The routes as schemathesis has them, with names and numbers that are there."""
    schemathesis = pytest.importorskip("schemathesis")
    for row in (row for path in document["paths"].values() for row in path.values()):
        for given_there in row["parameters"]:
            if given_there["in"] == "path":
                names = {"name": {"enum": NAMES}, "id": {"type": "integer", "maximum": 40}}
                given_there["schema"] |= names[given_there["name"]]
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=server.url.rstrip("/"))
    found = (one.ok() for one in schema.get_all_operations())
    return {one.definition.raw["operationId"]: one for one in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", [operation_id(row) for row in ENDPOINTS])
def test_nothing_that_is_sent_fails(server, operations, name):
    if name == STREAMED:
        pytest.skip("a stream does not end")
    import schemathesis.checks
    from schemathesis.specs.openapi import checks

    held = [
        schemathesis.checks.not_a_server_error,
        *(checks.status_code_conformance, checks.content_type_conformance),
        checks.response_schema_conformance,
    ]
    unhurried = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

    few = 3 if name in SLOW else 12

    @settings(max_examples=few, deadline=None, suppress_health_check=unhurried, database=None)
    @given(case=operations[name].as_strategy())
    def holds(case):
        headers = {"Authorization": f"Bearer {server.token}"}
        case.call_and_validate(headers=headers, checks=held, timeout=LIMIT)

    holds()
