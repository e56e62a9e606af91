"""Tables at any width: every number is whole, whatever else has to give way."""

import io
import re
import sys
from pathlib import Path

import pytest
from long_names import GAINS
from rich.cells import cell_len

import recoup.cli.text_tables
from recoup.cli.text_tables import (
    USUAL_COLUMNS,
    Cell,
    Grid,
    laid_out,
    show_facts,
    show_list,
    show_table,
    show_text,
    terminal_width,
    wrapped,
)

NUMBERS = [[f"{-(i + 1) * 1234.5678 / (j + 1):.8g}" for j in range(12)] for i in range(5)]
TRIALS = [[str(i + 1), str(1987654321 + i), *NUMBERS[i]] for i in range(5)]


@pytest.fixture
def width(monkeypatch):
    """Sets how wide the terminal is; a pipe has no width."""

    def set_to(columns):
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))

    return set_to


def shown(capsys, columns):
    """What was printed, and that none of it is wider than the terminal, nor cut."""
    text = capsys.readouterr().out
    assert "…" not in text
    if columns is not None:
        assert max(cell_len(line.rstrip()) for line in text.splitlines()) <= columns
    return text


def words_of(text):
    return text.replace("│", " ").replace("┃", " ").split()


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 240, None])
def test_twelve_gains_with_long_names_are_whole(width, capsys, columns):
    width(columns)
    show_table(["id", "seed", *GAINS], TRIALS)
    text = shown(capsys, columns)
    assert {x for row in TRIALS for x in row} <= set(words_of(text))
    for name in GAINS:  # wrapped or not
        assert set(name.split("_")) <= set(text.replace("_", " ").split())


@pytest.mark.parametrize("columns", [34, 40, 80, None])
def test_parameters_with_their_intervals_are_whole(width, capsys, columns):
    width(columns)
    ends = [f"{-i / 7:.5g} to {i / 3:.5g}" for i in range(12)]
    rows = [[n, x, e] for n, x, e in zip(GAINS, NUMBERS[0], ends, strict=True)]
    show_table(["parameter", "deploy", "best between"], rows, texts=["parameter"])
    text = shown(capsys, columns)
    assert all(any(end in line for line in text.splitlines()) for end in ends)
    assert set(NUMBERS[0]) <= set(words_of(text))


def test_a_pipe_gets_one_line_a_row_however_long(width, capsys):
    width(None)
    show_table(["id", "seed", *GAINS], TRIALS, title="trials")
    lines = shown(capsys, None).splitlines()
    assert len(lines) == 1 + 2 + len(TRIALS)  # the title, heads, a rule, rows
    assert all(name in lines[1] for name in GAINS)


def grid(heads, rows, texts=()):
    cells = [[Cell(x, h in texts) for h, x in zip(heads, row, strict=True)] for row in rows]
    return Grid([Cell(head, True) for head in heads], cells)


class TestTheOrderOfWhatGivesWay:
    """First nothing, then words, then the table is turned, then what can be spared goes."""

    def test_what_fits_stays(self):
        table = grid(["id", "gain"], [["1", "0.5"]])
        assert laid_out(table, ["gain"], 40).pieces == [table]

    def test_words_wrap_and_numbers_stay(self):
        table = grid(["note", "gain"], [["the gripper slipped again", "0.123456"]], ["note"])
        (piece,), gone = laid_out(table, ["gain"], 30)
        assert piece.rows[0][0].text == "the gripper\nslipped again"
        assert piece.rows[0][1].text == "0.123456"
        assert gone == []

    def test_a_wide_table_is_turned_before_anything_is_left_out(self):
        table = grid(["id", *GAINS], [["7", *NUMBERS[0]]])
        (piece,), gone = laid_out(table, GAINS[:1], 60)
        assert [head.text for head in piece.heads] == ["id", "7"]
        assert [row[0].text for row in piece.rows] == GAINS
        assert gone == []

    def test_what_can_be_spared_goes_one_by_one(self):
        rows = [["recoup", *NUMBERS[i % 5][:6]] for i in range(9)]
        table = grid(["method", *"abcdef"], rows, ["method"])
        laid = laid_out(table, ["a", "b", "c", "d", "e"], 60)
        assert [head.text for head in laid.pieces[0].heads] == ["method", "c", "d", "e", "f"]
        assert laid.left_out == ["a", "b"]

    def test_then_it_is_turned_in_pieces(self):
        table = grid(["id", *GAINS], [[str(i), *NUMBERS[i % 5]] for i in range(20)])
        pieces, gone = laid_out(table, [], 80)
        heads = [head.text for piece in pieces for head in piece.heads[1:]]
        assert heads == [str(i) for i in range(20)]
        assert len(pieces) > 1
        assert gone == []

    def test_that_columns_were_left_out_is_said(self, width, capsys):
        width(60)
        rows = [["recoup", *NUMBERS[i % 5][:6]] for i in range(9)]
        show_table(["method", *"abcdef"], rows, texts=["method"], spare=["a", "b"])
        assert "Left out for want of room: a, b." in shown(capsys, 60)


class TestText:
    def test_breaks_between_words(self):
        assert wrapped("one two three four", 9) == ["one two", "three", "four"]
        assert wrapped("one two three four", None) == ["one two three four"]

    @pytest.mark.parametrize("columns", range(12, 60))
    def test_a_number_stays_with_its_unit_and_its_error(self, columns):
        words = "It gained 0.32 ± 0.05 N/m, 95 % of what 1200 ms gave, -1.25 to 3.5 in all."
        lines = wrapped(words, columns)
        assert " ".join(lines) == words
        for whole in ("0.32 ± 0.05", "95 %", "1200 ms"):
            assert any(whole in line for line in lines)

    def test_numbers_in_a_row_may_stand_on_several_lines(self):
        assert wrapped("1.5 2.5 3.5 4.5", 7) == ["1.5 2.5", "3.5 4.5"]

    def test_of_a_paragraph_a_pipe_gets_one_line(self, width, capsys):
        width(None)
        show_text("word " * 100 + "end")
        assert capsys.readouterr().out == "word " * 100 + "end\n"
        width(40)
        show_text("word " * 100 + "end")
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 40

    def test_nothing_in_it_is_obeyed(self, width, capsys):
        width(40)
        show_text("[red]x[/red] \x1b[2J")
        show_table(["[b]", "n"], [["[red]\x1b[2J\n", "1"]], texts=["[b]"])
        text = capsys.readouterr().out
        assert "[red]x[/red] \\x1b[2J" in text
        assert "[red]\\x1b[2J\\n" in text


@pytest.mark.parametrize("columns", [24, 40, 80, None])
def test_facts_and_lists_wrap_their_words(width, capsys, columns):
    width(columns)
    rows = {"trials": "7 pending, 4 ok, 12 failed", "best": "trial 12: -1234.5678, of several"}
    show_facts(rows)
    show_list(rows)
    text = shown(capsys, columns)
    assert text.count("-1234.5678,") == 2
    assert text.count("trials") == 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_width_is_that_of_a_terminal_alone(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_width() is None
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert terminal_width() == USUAL_COLUMNS  # it does not say
    monkeypatch.setenv("COLUMNS", "123")
    assert terminal_width() == 123
    monkeypatch.setenv("COLUMNS", "0")
    assert terminal_width() == USUAL_COLUMNS


def test_every_table_and_paragraph_of_the_program_is_laid_out_in_one_place():
    """Rich alone would cut what is too wide, and fit what goes into a pipe to 80 columns."""
    for path in Path(recoup.cli.text_tables.__file__).parent.glob("*.py"):
        if path.name != "text_tables.py":
            text = path.read_text()
            assert "rich.table" not in text, path.name
            assert not re.search(r"Console\((?!stderr=True)", text), path.name
