"""Which LAPACK calls of a compiled program may run at the same time, read off its text."""

import re
from typing import NamedTuple

CALLED = re.compile(
    r"(?:calls|to_apply|body|condition|\w+_computations?)=(?:\{([^}]*)\}|%([\w.-]+))"
)
CONTROL = re.compile(r"control-predecessors=\{[^}]*\}")
NAME = re.compile(r"%([\w.-]+)")


class Order(NamedTuple):
    """How many LAPACK calls there are, and loops that hold some; and pairs without an order."""

    calls: int
    unordered: list[tuple[str, str]]


def order_of(function, *args):
    """The order that data gives to the LAPACK calls of a jitted function."""
    computations = _computations(function.lower(*args).compile().as_text())
    orders = [_order(computations, name) for name in computations]
    return Order(sum(o.calls for o in orders), [pair for o in orders for pair in o.unordered])


def _computations(text):
    """For each computation of a program the text of each of its instructions, by their names."""
    found = {}
    for line in text.splitlines():
        begins = re.match(r"(?:ENTRY )?%([\w.-]+) .*->.*\{$", line)
        instruction = re.match(r"\s+(?:ROOT )?%([\w.-]+) = (.*)", line)
        if begins:
            inside = found.setdefault(begins[1], {})
        elif instruction:
            inside[instruction[1]] = instruction[2]
    return found


def _order(computations, name):
    """Of one computation; a loop or branch with LAPACK inside counts as a call itself."""
    inside, before, calls, unordered = computations[name], {}, [], []
    for one, text in inside.items():  # operands stand before what uses them
        data = CONTROL.sub("", CALLED.sub("", text))
        operands = [other for other in NAME.findall(data) if other in before]
        before[one] = set(operands).union(*(before[other] for other in operands))
        if _calls_lapack(computations, text):
            unordered += [(other, one) for other in calls if other not in before[one]]
            calls.append(one)
    return Order(len(calls), unordered)


def _calls_lapack(computations, text):
    called = [NAME.findall(some) if some else [one] for some, one in CALLED.findall(text)]
    return 'custom_call_target="lapack_' in text or any(
        _calls_lapack(computations, inner)
        for names in called
        for name in names
        for inner in computations[name].values()
    )
