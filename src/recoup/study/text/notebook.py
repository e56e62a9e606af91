"""Numbers and parameters as people read them, in lines and tables."""

from collections.abc import Sequence

from recoup.core.types import Given

SHOWN = 12  # parameters that are shown one by one
LARGE = 1e15  # beyond, numbers are written with an exponent


def digits(value: float | str) -> str:
    """A number with five digits; a choice as it is."""
    return value if isinstance(value, str) else f"{value:.5g}"


def typed(value: float | str, varies: float | None = None) -> str:
    """A number with the digits that whoever types it needs: five, or more where fewer are too far.

    That is by more than a thousandth of what it `varies` by, or a ten-millionth of itself where
    that is not known. A choice as it is.
    """
    if isinstance(value, str):
        return value
    near = 1e-7 * abs(value) if varies is None else 1e-3 * varies
    texts = (f"{value:.{n}g}" for n in range(5, 18))
    text = next((x for x in texts if abs(float(x) - value) <= near), repr(value))
    return f"{float(text):.0f}" if "e+" in text and abs(value) < LARGE else text


def in_a_row(names: Sequence[str], values: Given) -> str:
    """Parameters `[D]` in one line, by name if they have names; of many, the first."""
    shown = [digits(value) for value in values[:SHOWN]]
    left = len(values) - len(shown)
    rest = [f"... {left} more"] if left else []
    if not names:
        return f"theta=[{', '.join(shown + rest)}]"
    return ", ".join([f"{n}={v}" for n, v in zip(names, shown, strict=False)] + rest)


def parameter_rows(names: Sequence[str], values: Sequence[float | str]) -> dict[str, str]:
    """Parameters as rows of a table; of many, the first."""
    heads = names or [f"theta_{i}" for i in range(len(values))]
    rows = {name: digits(value) for name, value in zip(heads[:SHOWN], values, strict=False)}
    left = len(values) - SHOWN
    return {**rows, "...": f"{left} more"} if left > 0 else rows
