"""A move that a killed process has left due: made when a study is opened, said where it is not."""

import json

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup import Study
from recoup.study.moves.settling import MoveMaker
from recoup.study.voice import sentences

PARAMS = {"kp": (1, 200, "log"), "kd": (0, 5)}
DUE = "A move is due: the next `ask` or `tell` makes it"


def told(path, n=24, last=True, **settings):
    """A study of `n` results; without `last`, killed between the last of them and its move."""
    with Study.open(path, params=PARAMS, batch=6, seed=1, **settings) as study:
        for i in range(n):
            (trial,) = study.ask(1)
            if i == n - 1 and not last:
                study._mover.settle = lambda: None
            kp, kd = trial.params["kp"], trial.params["kd"]
            study.tell(trial.id, -(np.log(kp / 60) ** 2) - (kd - 0.7) ** 2)
        return study.mean


@pytest.fixture
def path(tmp_path):
    told(tmp_path / "due.db", last=False)
    return tmp_path / "due.db"


def test_opening_makes_it(path, tmp_path):
    with Study.open(path) as study:
        assert (len(study.history()), study.until_move()) == (4, 6)
        np.testing.assert_array_equal(study.mean, told(tmp_path / "whole.db"))
        assert "is due" not in " ".join(study.snapshot().advice)


def test_what_only_reads_says_that_it_is_due_and_forecasts_nothing_of_it(path):
    with Study.open(path, read_only=True) as study:
        found = study.recommend(budget=10)
        assert found.words.startswith(DUE)
        assert "next result" not in found.words
        assert "search with 1 " not in found.words
        assert found.next_results == 0
        said = " ".join(study.snapshot().advice)
        assert said.count("A move is due") == 1
        assert len(study.history()) == 3
    shown = " ".join(program("study", "show", path).stdout.split())
    assert "3; the next is due" in shown
    assert DUE in shown
    assert "0 more results" not in shown
    predict = ("predict", path, "--param", "kp=60")
    for words in (("recommend", path), ("evaluate", path), predict):
        assert DUE in " ".join(program("study", *words).stdout.split())
    dry = program("study", "amend", path, 3, "1.0", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(program("study", "show", path, "--json").stdout)["moves"] == 3
    program("study", "note", path, "went home")
    assert json.loads(program("study", "show", path, "--json").stdout)["moves"] == 4


def test_before_the_first_move_it_is_said_once(tmp_path):
    told(tmp_path / "s.db", 6, last=False)
    with Study.open(tmp_path / "s.db", read_only=True) as study:
        assert study.diagnostics()["advice"][0] == sentences.due()
        assert "after 0" not in " ".join(study.snapshot().advice)


@pytest.mark.parametrize("wrong", [OSError("no room"), ZeroDivisionError("of a part"), KeyError(7)])
def test_opening_works_where_it_cannot_be_made(path, monkeypatch, wrong):
    def fails(self):
        raise wrong

    monkeypatch.setattr(MoveMaker, "_move", fails)
    with Study.open(path) as study:
        assert study.recommend().words.startswith(DUE)
        with pytest.raises(type(wrong)) as said:
            study.ask()
    assert said.value is wrong


def test_one_that_waits_for_a_part_is_made_once_opened_with_it(tmp_path):
    mine = recoup.Mover("mine", lambda xp, seen, rho, memory: (rho, memory))
    path = tmp_path / "s.db"
    told(path, 9, method=mine)
    with Study.open(path) as study:
        for trial in study.ask(3):
            study.tell(trial.id, 1.0)
        assert study.recommend().words.startswith("A move is due. It needs method=mine")
        assert len(study.history()) == 1
        (trial,) = study.ask(1)
    said = " ".join(program("study", "tell", path, trial.id, "1.0").stdout.split())
    assert "A move is due. It needs method=mine" in said
    with Study.open(path, method=mine) as study:
        assert (len(study.history()), study.until_move()) == (2, 5)
