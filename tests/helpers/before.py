"""Policies as earlier versions have described them."""


def as_before(plain):
    """A description whose spaces have objects of JSON for a Dict, in its order."""
    if isinstance(plain, dict) and "dict" in plain:
        return {"dict": {key: as_before(part) for key, part in plain["dict"]}}
    if isinstance(plain, dict):
        return {key: as_before(value) for key, value in plain.items()}
    return [as_before(part) for part in plain] if isinstance(plain, list) else plain


def all_sorted(space):
    """A space of before with all its keys sorted, as one was that had been loaded."""
    if "tuple" in space:
        return {"tuple": [all_sorted(part) for part in space["tuple"]]}
    if "dict" not in space:
        return space
    return {"dict": {key: all_sorted(part) for key, part in sorted(space["dict"].items())}}
