"""What a server must answer: the kinds of all that a client reads, and parameters in their bounds.

Whoever has taken a server's port may answer anything.
"""

import hmac
import json
import sys
from types import NoneType

from recoup.checks import LARGEST_INTEGER, shortly
from recoup.core.types import Given, Plain

NUMBER, LARGEST_NUMBER = int | float, sys.float_info.max
TRIAL: Plain = {
    **dict.fromkeys(("id", "seed"), int),
    **dict.fromkeys(("kind", "status"), str),
    **dict.fromkeys(("failed", "note", "worker"), str | None),
    **dict.fromkeys(("value", "stderr", "asked_at", "told_at", "lease_until"), NUMBER | None),
    **dict.fromkeys(("episodes", "proposal"), int | None),
    **dict.fromkeys(("also", "context"), dict | None),
    "params": {...: NUMBER | str | None},
    "std": ([NUMBER], NoneType),
}
TRIALS: Plain = {"trials": [TRIAL]}
PAGE: Plain = {**TRIALS, "next": int | None}
RECEIPT: Plain = {"until_move": int, "slip": str | None, "later": bool}
FACTS: Plain = {
    "parameters": [
        {
            "name": str,
            "low": NUMBER | None,
            "high": NUMBER | None,
            "scale": str,
            "choices": ([str], NoneType),
        }
    ],
    "direction": str,
    "noun": str,
    "title": str | None,
    "batch": int,
    "until_move": int,
    "counts": dict.fromkeys(("pending", "ok", "failed"), int),
    "mean": {...: NUMBER | str | None},
}
SERVICE: Plain = {"studies": [{"name": str}]}
PROOFS: Plain = {"proofs": [str]}
REFUSAL: Plain = dict.fromkeys(("title", "detail"), str | None)


def proof_of(token: str, nonce: str) -> str:
    """What only who knows a token can say, which does not tell it."""
    key, text = (one.encode(errors="surrogatepass") for one in (token, nonce))
    return hmac.new(key, b"recoup proof" + text, "sha256").hexdigest()


def understood(body: bytes, shape: Given) -> Given:
    """What JSON of a shape says; a ValueError of what is none, is too deep, or of another."""
    try:
        found = json.loads(body)
    except RecursionError:
        raise ValueError("too deep") from None
    if fits(found, shape):
        return found
    raise ValueError("of another shape")


def fits(found: Given, shape: Given) -> bool:
    """Whether what has come is of a kind, and its numbers are finite; what is left out is null.

    A tuple has kinds of which it may be any, a list that of its entries, a dict those of its fields
    by name, `...` that of all of them.
    """
    if isinstance(shape, tuple):
        return any(fits(found, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(found, list) and all(fits(one, shape[0]) for one in found)
    if isinstance(shape, dict):
        if not isinstance(found, dict):
            return False
        fields = dict.fromkeys(found, shape[...]) if ... in shape else shape
        return all(fits(found.get(name), one) for name, one in fields.items())
    if isinstance(found, int | float):
        most = LARGEST_INTEGER if isinstance(found, int) else LARGEST_NUMBER
        return isinstance(found, shape) and -most <= found <= most
    return isinstance(found, shape)


def astray(parameters: list[Plain], params: Plain) -> str | None:
    """What of parameters to roll out is not as the server itself has named it, if anything is."""
    if list(params) != [p["name"] for p in parameters]:
        return "other parameters than it named"
    wrong = (p["name"] for p in parameters if not _is_value(p, params[p["name"]]))
    name = next(wrong, None)
    return None if name is None else f"{name} = {shortly(params[name])}, against its own bounds"


def _is_value(p: Plain, value: Given) -> bool:
    """Whether a parameter may have a value."""
    if p.get("choices"):
        return value in p["choices"]
    low, high = (value if p.get(key) is None else p[key] for key in ("low", "high"))
    kinds = (int,) if p["scale"] == "int" else (int, float)
    return type(value) in kinds and low <= value <= high
