"""Pages are in plain English: long lines and sentences are counted, and become fewer."""

import pytest
from plain_words import allowed, counted, long_lines, long_sentences, name_of, pages

ALLOWED = 979  # of all pages: it shrinks, and does not grow


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_page_has_more_long_lines_or_sentences_than_it_had(page):
    text, most = page.read_text(), allowed().get(name_of(page), [0, 0])
    for found, many in zip((long_lines(text), long_sentences(text)), most, strict=True):
        assert len(found) <= many, f"(line, size): {found}"


def test_the_allowance_shrinks():
    assert sum(map(sum, allowed().values())) <= ALLOWED
    assert set(allowed()) <= set(counted())


def test_what_is_too_long_is_found_with_its_line():
    words = "word " * 41
    text = (
        f"# A\n\nShort. {words}\nend. Short.\n\n```\n{'x' * 200}\n```\n\n- {words}.\n- {words}.\n"
    )
    text += f"\n| a | {'word ' * 21}| {'word ' * 21}|\n"
    assert [line for line, _ in long_sentences(text)] == [3, 10, 11]
    assert [line for line, _ in long_lines(text)] == [3, 10, 11, 13]


def test_an_address_and_a_title_are_not_counted_as_words():
    address = "-".join(["a"] * 50)
    assert long_sentences(f"See [this]({address}).\n") == []
