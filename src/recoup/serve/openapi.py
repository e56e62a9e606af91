"""What openapi.json (3.1) says of the server, from the table of routes."""

import re
from collections.abc import Iterator, Sequence

from recoup import __version__
from recoup.core.types import Plain
from recoup.serve.call import OPEN, Endpoint
from recoup.serve.problems import PROBLEM

PROBLEM_SCHEMA: Plain = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}
IN_PATH = {"name": {"type": "string", "minLength": 1}, "id": {"type": "integer", "minimum": 1}}
NO_CONTENT = 204


def described(table: Sequence[Endpoint]) -> Plain:
    """The document."""
    paths: Plain = {}
    for row in table:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    bearer = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "recoup serve", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": bearer, "schemas": {"Problem": PROBLEM_SCHEMA}},
    }


def _operation(row: Endpoint) -> Plain:
    found: Plain = {
        "operationId": operation_id(row),
        "summary": row.words,
        "description": " ".join((row.does.__doc__ or "").split()),
        "parameters": list(_parameters(row)),
        "responses": {
            str(row.status): _answer(row),
            "default": {
                "description": "Why not",
                "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
        "security": [] if row.kind == OPEN else [{"bearer": []}],
    }
    if row.body is not None:
        content = {"application/json": {"schema": row.body}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def operation_id(row: Endpoint) -> str:
    """The name of a row: `post_studies_trials_tell`."""
    parts = re.sub(r"\{\w+\}|/v1", "", row.path).split("/")
    return "_".join([row.method.lower(), *filter(None, parts)])


def _answer(row: Endpoint) -> Plain:
    if row.status == NO_CONTENT:
        return {"description": "Done"}
    schema = {"application/json": {"type": "object"}}
    return {
        "description": row.words,
        "content": {kind: {"schema": schema.get(kind, {"type": "string"})} for kind in row.gives},
    }


def _parameters(row: Endpoint) -> Iterator[Plain]:
    for name in re.findall(r"\{(\w+)\}", row.path):
        yield {"name": name, "in": "path", "required": True, "schema": IN_PATH[name]}
    for name, schema in row.query.items():
        rest = {key: value for key, value in schema.items() if key != "required"}
        needed = schema.get("required", False)
        yield {"name": name, "in": "query", "required": needed, "schema": rest}
    for name, schema in row.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": schema}
