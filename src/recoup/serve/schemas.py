"""The schemas of bodies and queries, as openapi.json shows them and `json_bodies` checks them."""

from recoup.checks import LARGEST_INTEGER
from recoup.core.types import Given, Plain
from recoup.serve.trial_rows import MOST_ROWS, STATUSES

NUMBER: Plain = {"type": "number"}
TEXT: Plain = {"type": "string", "maxLength": 10_000}
ID: Plain = {"type": "integer", "minimum": 1, "maximum": LARGEST_INTEGER}
VALUES: Plain = {  # of parameters, by name
    "type": "object",
    "additionalProperties": {"type": ["number", "string"]},
    "minProperties": 1,
}
NUMBERS: Plain = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
BESIDE: Plain = {"also": NUMBERS, "context": NUMBERS}
MOST_TOLD, ASKED_AT_ONCE = 1000, 10_000  # results and trials at once
SECONDS: Plain = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}
WORKER: Plain = {"type": ["string", "null"], "maxLength": 200, "default": None}
ROWS: Plain = {"type": "array", "items": {"type": "array", "items": NUMBER}}
TRAJECTORY: Plain = {
    "type": "object",
    "properties": {
        "features": ROWS,
        "actions": ROWS,
        "rewards": {"type": "array", "items": NUMBER},
        "steps": ID,
    },
    "required": ["features", "actions", "rewards"],
    "additionalProperties": False,
}
NAME: Plain = {"type": "string", "maxLength": 10_000}


def one_of(**fields: Given) -> Plain:
    """An object with these fields, of which none need be there."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


def needing(*needed: str, **fields: Given) -> Plain:
    """The same, with some that must be."""
    return {**one_of(**fields), "required": list(needed)}


def or_null(schema: Plain) -> Plain:
    """The same, or null, which is also what is left out."""
    return {"anyOf": [schema, {"type": "null"}], "default": None}


CAME: Plain = {  # ways to say what came of a trial
    "return": NUMBER,
    "returns": {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 100_000},
    "failed": {**TEXT, "minLength": 1},
    "trajectory": TRAJECTORY,
}
TELL: Plain = {"anyOf": [needing(key, **{key: CAME[key]}, **BESIDE) for key in CAME]}
TELL_MANY: Plain = {
    "type": "array",
    "items": {"anyOf": [needing("id", key, id=ID, **{key: CAME[key]}, **BESIDE) for key in CAME]},
    "minItems": 1,
    "maxItems": MOST_TOLD,
}
ASK = one_of(
    n={"type": "integer", "minimum": 1, "maximum": ASKED_AT_ONCE, "default": 1},
    lease={**SECONDS, "type": ["number", "null"], "default": 3600},
    worker=WORKER,
    at={"anyOf": [{"enum": ["mean"]}, {"type": "null"}, VALUES], "default": None},
)
LEASE = one_of(seconds={**SECONDS, "default": 3600}, worker=WORKER)
WHY: Plain = {"type": ["string", "null"], "maxLength": 10_000, "default": None}
CANCEL = one_of(why=WHY)
AMEND = one_of(
    **{key: CAME[key] for key in ("return", "returns", "failed")},
    trajectory={"anyOf": [{"enum": ["before"]}, TRAJECTORY]},
    drop={**TEXT, "minLength": 1},
    **BESIDE,
    why=WHY,
    dry_run={"type": "boolean", "default": False},
)
ENQUEUE = needing("params", params=VALUES, note=WHY)
NOTE = needing("text", text={**TEXT, "minLength": 1}, trial=or_null(ID))
TITLE = needing("title", title={"type": ["string", "null"], "maxLength": 1000})
NOTHING = one_of()
EVALUATE = one_of(
    mean=or_null(VALUES),
    std=or_null({"type": "object", "additionalProperties": NUMBER, "minProperties": 1}),
    quick={"type": "boolean", "default": False},
)
PREDICT = needing("params", params=VALUES)
RECOMMEND = one_of(
    worth=or_null({"type": "number", "exclusiveMinimum": 0}),
    budget=or_null({"type": "integer", "minimum": 1, "maximum": LARGEST_INTEGER}),
)
TOKEN = needing("token", token={"type": "string", "maxLength": 1000})

AFTER: Plain = {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER}
PAGE_QUERY: Plain = {
    "after": AFTER,
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS},
    "status": {"type": "string", "enum": list(STATUSES)},
}
POINTS_QUERY: Plain = {
    "width": {"type": "integer", "minimum": 2, "maximum": 20_000},
    "params": NAME,
}
PAIRS_QUERY: Plain = {
    "x": {**NAME, "required": True},
    "y": {**NAME, "required": True},
    "limit": {"type": "integer", "minimum": 2, "maximum": 20_000},
}
PROOF_QUERY: Plain = {
    "nonce": {"type": "string", "minLength": 16, "maxLength": 200, "required": True}
}
CHANGES_QUERY: Plain = {
    "since": AFTER,
    "wait": {"type": "number", "minimum": 0, "maximum": 60},
}
