"""Requests by key and names of workers: kept with checksums, salvaged, and known to every door."""

import sqlite3

import pytest

from recoup.checks import InputError
from recoup.store.rows import Request
from recoup.store.salvage import salvage
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.study import Study

ASKED = Request("a key", '{"n": 2}', [1, 2])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "s.db"
    with Study.open(path, dim=2, batch=4) as study:
        for trial in study.ask(6):
            study.tell(trial.id, float(trial.id))
    return path


def keyed(path):
    """The file, with a request and a worker in it."""
    with Study.open(path) as study, study.store.writing():
        study.store.add_request(ASKED)
        study.store.hand_to([1, 2], "arm 1")
        study.store.hand_to([2], "arm 2")
    return path


def test_they_are_made_when_they_are_first_needed(path):
    with Study.open(path) as study:
        assert study.store.request("a key") is None
        assert study.store.workers() == {}
    keyed(path)
    with Study.open(path) as study:
        assert study.store.request("a key")[:3] == ASKED[:3]
        assert study.store.request("another") is None
        assert study.store.workers() == {1: "arm 1", 2: "arm 2"}
        assert study.store.workers([1, 3]) == {1: "arm 1"}


def test_one_that_is_not_as_written_is_damage(path):
    connection = sqlite3.connect(keyed(path))
    connection.execute("UPDATE requests SET body = '{\"n\": 3}'")
    connection.commit()
    connection.close()
    words = r"row \d+ of requests is not as"
    with Study.open(path) as study, pytest.raises(InputError, match=words):
        study.store.request("a key")
    assert not all(found.sound for found in check(path))


def test_they_are_salvaged_and_recovered(path, tmp_path):
    rows = salvage(keyed(path)).rows
    assert [row[:3] for row in rows.requests.values()] == [ASKED[:3]]
    assert rows.workers == {1: "arm 1", 2: "arm 2"}
    assert all(found.sound for found in check(path))
    recover(path, tmp_path / "new.db")
    with Study.open(tmp_path / "new.db") as study:
        assert study.store.request("a key")[:3] == ASKED[:3]
        assert study.store.workers() == {1: "arm 1", 2: "arm 2"}


def test_a_fork_and_a_table_do_without(path, tmp_path):
    with Study.open(keyed(path)) as study:
        with study.fork(tmp_path / "fork.db") as fork:
            assert fork.store.request("a key") is None
            assert len(fork) == 6
        assert study.export(tmp_path / "table.csv") == 6
