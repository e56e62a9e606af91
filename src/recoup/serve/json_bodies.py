"""JSON bodies and queries, checked by the schemas that the table of routes has of them.

A schema is a JSON Schema as openapi.json shows it; here are the few words that ours use.
"""

import json
import math
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NoReturn

from recoup.checks import nearest, shortly
from recoup.core.types import Given, Plain
from recoup.serve.problems import Problem

PLAIN_NUMBER = re.compile(r"[-+.0-9a-zA-Z]+", re.ASCII)
KINDS_OF_JSON: dict[str, tuple[Any, str]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "null": (type(None), "null"),
}


def parsed(content: bytes) -> Given:
    """What a body says; one that is no JSON, NaN in it, or a name twice, is refused."""
    try:
        return json.loads(content, parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as wrong:
        why = str(wrong).partition("\n")[0] if not isinstance(wrong, RecursionError) else "too deep"
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {why}.") from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: Sequence[tuple[str, Given]]) -> Plain:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def checked(what: str, schema: Plain, value: Given) -> Given:
    """`value` with what was left out, once it fits the schema; else a 422 that says where not."""
    if "anyOf" in schema:
        return _any_of(what, schema["anyOf"], value)
    kinds = schema.get("type", list(KINDS_OF_JSON))
    value = _of_kind(what, [kinds] if isinstance(kinds, str) else kinds, value)
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(json.dumps(one) for one in schema["enum"])
        _refuse(what, f"one of {known}", value)
    if isinstance(value, dict):
        return _object(what, schema, value)
    if isinstance(value, list):
        _check_size(what, "entries", len(value), schema.get("minItems"), schema.get("maxItems"))
        items = schema.get("items", {})
        return [checked(f"{what}[{i}]", items, one) for i, one in enumerate(value)]
    if isinstance(value, str):
        least, most = schema.get("minLength"), schema.get("maxLength")
        _check_size(what, "characters", len(value), least, most)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        _check_bounds(what, schema, value)
    return value


def typed(what: str, schema: Plain, text: str) -> Given:
    """A value of a query as its schema has it: numbers are written as texts there."""
    kinds = schema.get("type", "string")
    if kinds in ("integer", "number"):
        try:
            if not PLAIN_NUMBER.fullmatch(text):  # Python reads more: `1_0`, spaces, other digits
                raise ValueError
            return checked(what, schema, (int if kinds == "integer" else float)(text))
        except ValueError:
            _refuse(what, KINDS_OF_JSON[kinds][1], text)
    return checked(what, schema, text)


def _any_of(what: str, schemas: Sequence[Plain], value: Given) -> Given:
    """The first that fits; of none, what is wrong by the one that was meant."""
    wrong: list[Problem] = []
    for schema in schemas:
        try:
            return checked(what, schema, value)
        except Problem as problem:
            wrong.append(problem)
    if isinstance(value, dict) and all("required" in schema for schema in schemas):
        raise wrong[_named(what, schemas, value)]
    of_kind = [i for i, schema in enumerate(schemas) if _is_of_kind(schema, value)]
    others = [i for i, schema in enumerate(schemas) if schema.get("type") != "null"]
    raise wrong[(of_kind or others)[-1]]


def _named(what: str, schemas: Sequence[Plain], value: Plain) -> int:
    """Of objects that are told apart by a field that each needs: the one whose field is there."""
    needed = [set(schema["required"]) for schema in schemas]
    apart = [one - set.intersection(*needed) for one in needed]
    there = [i for i, one in enumerate(apart) if one & set(value)]
    if len(there) != 1:
        names = ", ".join(sorted(set.union(*apart)))
        found = " and ".join(sorted(set.union(*apart) & set(value))) or "none of them"
        sentence = f"{what} has one of the fields {names}; got {found}."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, sentence)
    return there[0]


def _is_of_kind(schema: Plain, value: Given) -> bool:
    kinds = schema.get("type", list(KINDS_OF_JSON))
    try:
        _of_kind("", [kinds] if isinstance(kinds, str) else kinds, value)
    except Problem:
        return False
    return True


def _of_kind(what: str, kinds: Sequence[str], value: Given) -> Given:
    for kind in kinds:
        types, _ = KINDS_OF_JSON[kind]
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)  # 1.0 is a whole number to JSON
        if isinstance(value, types) and (isinstance(value, bool) == (kind == "boolean")):
            return value
    return _refuse(what, " or ".join(KINDS_OF_JSON[kind][1] for kind in kinds), value)


def _object(what: str, schema: Plain, value: Plain) -> Plain:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", False)
    for name in value:
        if name not in known and others is False:
            names = ", ".join(known) or "none"
            sentence = f"{what} has the fields {names}; got {shortly(name)}.{nearest(name, known)}"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, sentence)
    for name in schema.get("required", ()):
        if name not in value:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{what} needs the field {name!r}.")
    given = {
        name: checked(f"`{name}`", known.get(name, others if isinstance(others, dict) else {}), x)
        for name, x in value.items()
    }
    _check_size(what, "fields", len(value), schema.get("minProperties"), None)
    return {name: one["default"] for name, one in known.items() if "default" in one} | given


def _check_size(what: str, of: str, n: int, least: int | None, most: int | None) -> None:
    if least is not None and n < least:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{what} needs at least {least} {of}.")
    if most is not None and n > most:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{what} may have {most} {of}, got {n}.")


def _check_bounds(what: str, schema: Plain, value: float) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(what, "a finite number", value)
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if not least <= value <= most:
        ends = f"at least {least}" if value < least else f"at most {most}"
        _refuse(what, f"a number of {ends}", value)
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        _refuse(what, f"a number above {schema['exclusiveMinimum']}", value)


def _refuse(what: str, wanted: str, value: Given) -> NoReturn:
    sentence = f"{what} must be {wanted}, got {shortly(value)}."
    raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, sentence)
