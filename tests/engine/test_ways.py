"""What a method can do is asked of its way: names of ways stand where words end, nowhere else."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest
from sentences import IN_ACTIONS

import recoup
from recoup.engine.methods import METHODS, Method, default_batch, method_row, settings_of
from recoup.engine.ways import WAYS, settings_in, way_of

SOURCE = Path(recoup.__file__).parent
WORDS_END = {"engine/ways.py", "engine/methods.py", "engine/composition.py", "engine/plain.py"}
PAGES = {"report/reproduction.py"}  # of the paper's table, whose columns are by kind


def compared_with_a_way(tree):
    """Lines that compare something's `direction` with the name of a way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            of = ast.unparse(node.left).endswith(".direction")
            names = {x.value for x in ast.walk(node) if isinstance(x, ast.Constant)}
            if of and names & set(WAYS):
                yield node.lineno


def test_nobody_asks_for_the_name_of_a_way():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        lines = list(compared_with_a_way(ast.parse(path.read_text())))
        if lines and name not in WORDS_END | PAGES:
            found[name] = lines
    assert not found


def test_every_method_has_a_way_whose_settings_are_fields_of_its_row():
    known = {field.name for field in fields(Method)}
    for row in METHODS.values():
        assert row.way is WAYS[row.direction]
        assert set(settings_of(row)) == set(row.way.settings[row.space]) <= known
    assert {row.direction for row in METHODS.values()} == set(WAYS)


def test_a_direction_of_ones_own_is_followed_as_a_gradient():
    assert way_of(lambda *_: None) is WAYS["gradient"]


def test_a_way_says_where_it_searches():
    with pytest.raises(recoup.InputError, match=IN_ACTIONS):
        settings_in("parameters", "em")
    with pytest.raises(recoup.InputError, match="explore in parameters"):
        settings_in("actions", "blend")
    with pytest.raises(recoup.InputError, match="direction"):
        settings_in("parameters", "gradients")


@pytest.mark.parametrize("name", METHODS)
def test_only_a_way_that_avoids_failures_takes_that_word(name):
    row = METHODS[name]
    if "failure" not in settings_of(row):
        return
    if row.way.avoids:
        assert method_row(name, failure="avoid").failure == "avoid"
        return
    with pytest.raises(recoup.InputError, match="failure"):
        method_row(name, failure="avoid")


def test_the_batch_that_a_way_is_made_for_is_half_of_that_of_cma_es():
    assert [default_batch(METHODS["recoup"], dim) for dim in (1, 6, 12, 200)] == [4, 5, 6, 10]
    assert default_batch(METHODS["cem"], 12) is None
