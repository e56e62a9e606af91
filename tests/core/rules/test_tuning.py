"""The constants of the default method: each has one home, says what it is, and is used."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import recoup.core.rules
from recoup.core.rules import tuning
from recoup.core.rules.tuning import TUNED, Tuning

CORE = Path(recoup.core.rules.__file__).parents[1]
USED = re.compile(r"TUNED\.(\w+)")


@pytest.mark.parametrize("one", fields(Tuning), ids=lambda one: one.name)
def test_a_constant_says_its_unit_and_where_it_is_from(one):
    known = {getattr(tuning, name) for name in ("THEORY", "CHOSEN", "COST", "SUITE")}
    known |= {tuning.CONTROL, tuning.RUGGED}
    assert one.metadata["origin"] in known
    assert one.metadata["unit"]


def test_each_is_used_and_none_is_used_that_is_not_there():
    used = {name for path in CORE.rglob("*.py") for name in USED.findall(path.read_text())}
    assert used == {one.name for one in fields(Tuning)}


def test_they_cannot_be_changed_by_mistake():
    with pytest.raises(AttributeError):
        TUNED.stride = 1.0
