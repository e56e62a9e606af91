"""Rows read from the bytes of a damaged file, and written to a new one as they were."""

import math
import random

import numpy as np
import pytest
from stores import SETTINGS, filled, ok, start, trial

from recoup.checks import InputError
from recoup.store import rows
from recoup.store.pages import ROOTS, Pages, places
from recoup.store.places import densities_fit, fitting_counters
from recoup.store.rows import MIRROR, OWN, REPEAT, Counters, Leaf, Told
from recoup.store.salvage import salvage, salvaged_records
from recoup.store.schema import TABLES
from recoup.store.store import Store
from recoup.study.care.recover import recover

PAGE = 4096


def contents(path):
    """Everything in a file, by table and id, as SQLite reads it."""
    store = Store.open(path)
    found = {
        table: {row[0]: row for row in store._file.read(table, tuple, "ORDER BY id")}
        for table in TABLES
    }
    store.close()
    return found


@pytest.fixture
def path(tmp_path):
    store = filled(tmp_path / "robot.db")
    with store.writing():
        memory = (Leaf("m", np.ones(600)), Leaf("n", np.int32(3)))  # longer than a page
        store.add_move("diagonal", rows.Made(2, 6, np.zeros(6), memory, {}), used=1)
        store.add_test(rows.Test(2, float("nan"), 3, 100, 1))
        store.add_densities(2, np.ones(2), np.ones(6))
    store.close()
    return tmp_path / "robot.db"


def restored(saved, new, last=8):
    def write(store):
        store.restore(saved, fitting_counters(saved, last))

    Store.create(new, saved.settings, start(), then=write).close()
    return contents(new)


def test_salvage_reads_what_sqlite_reads(path):
    assert salvaged_records(path).rows == contents(path)


def test_salvage_as_named_rows(path):
    found = salvage(path).rows
    store = Store.open(path)
    assert found.settings == store.settings() == SETTINGS
    assert found.counters == store.counters()
    assert found.told == store.results()
    assert list(found.asked) == [t.id for t in store.asked()]
    assert [leaf.path for leaf in found.moves[2].memory] == ["m", "n"]
    assert found.queue[1].note == "next"
    assert math.isnan(found.tests[2].mean)
    store.close()


def test_salvage_reads_the_log(tmp_path):
    store = filled(tmp_path / "robot.db")
    assert len(salvage(tmp_path / "robot.db").rows.told) == 6
    store.close()


def test_a_sound_file_comes_back_the_same(path, tmp_path):
    found, before = restored(salvage(path).rows, tmp_path / "new.db"), contents(path)
    assert found == before


@pytest.mark.parametrize("page", range(20))
def test_any_page_can_be_destroyed(path, tmp_path, page):
    """What is saved is as it was; all other pages are saved."""
    content = bytearray(path.read_bytes())
    assert len(content) <= 20 * PAGE
    content[page * PAGE : (page + 1) * PAGE] = random.Random(page).randbytes(PAGE)
    before = contents(path)
    path.write_bytes(content[: len(content) // PAGE * PAGE])
    saved = salvaged_records(path).rows
    lost = 0
    for table, found in saved.items():
        assert found.items() <= before[table].items()
        lost += found != before[table]
    assert lost <= 1
    assert salvage(path).rows.settings == SETTINGS  # twice in the file


@pytest.mark.parametrize("table", ["own", "mixture"])
def test_densities_are_taken_whole_or_made_again(path, table):
    content = bytearray(path.read_bytes())
    page = ROOTS[table] - 1
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(content)
    found = salvage(path).rows
    assert (found.own, found.mixture) == ({}, {})


def test_tables_are_where_they_are_made(path):
    pages = Pages(path.read_bytes(), b"")
    assert pages.roots() == ROOTS
    content = bytearray(path.read_bytes())
    content[103] ^= 255  # how many tables there are
    assert Pages(bytes(content), b"").roots() == {
        **ROOTS,
        "leases": 0,
        "also": 0,
        "requests": 0,
        "workers": 0,
    }


def test_rows_that_make_no_sense_are_left_out(path):
    store = Store.open(path)
    with store.writing():
        store._file.insert("asked", [(50, "drawn", 0, b"abc", 1, 1.0)])
        store._file.insert("moves", [(3, 0, 0, b"abc", "{}", 1.0)])
    store.close()
    found = salvage(path).rows
    assert 50 not in found.asked
    assert 3 not in found.moves
    assert len(found.asked) == 8


def test_what_was_asked_does_not_wait_again(tmp_path):
    store = Store.create(tmp_path / "s.db", SETTINGS, start())
    with store.writing():
        store.enqueue(np.ones(3), None)
        store.enqueue(np.zeros(3), None)
    with store.writing():
        (queued,) = store.queue(1)
        store.add_trials([rows.Asked(1, OWN, None, queued.theta, 1)])
        store.dequeue(1)
    assert list(salvage(tmp_path / "s.db").rows.queue) == [2]
    store.close()


def test_counters_that_fit(path):
    saved = salvage(path).rows
    assert fitting_counters(saved, 8) == saved.counters
    del saved.moves[2]
    assert fitting_counters(saved, 30) == Counters(8, 5, 1, 6, fresh=1, last=30)
    del saved.told[6]
    assert fitting_counters(saved, 8) == Counters(8, 4, 1, 5, fresh=0, last=8)


def test_a_place_that_a_move_was_made_of_is_not_given_out_again(path):
    saved = salvage(path).rows
    assert saved.moves[2].counted == 6
    saved.told[6] = saved.told[6]._replace(counted=None)  # as one that was dropped
    assert fitting_counters(saved, 8).counted == 6
    del saved.told[6]
    assert fitting_counters(saved, 8).counted == 6


def test_counters_that_fit_pairs(tmp_path):
    store = Store.create(tmp_path / "s.db", SETTINGS, start())
    with store.writing():
        store.add_trials([trial(i, "drawn" if i % 2 else MIRROR) for i in range(1, 9)])
        for i in (2, 1, 3, 5, 6):
            store.add_result(i, ok(1.0))
        store.add_result(4, Told("failed", note="x"))
    assert store.counters() == Counters(8, 5, 1, counted=6, fresh=5, last=8)
    store.close()
    assert fitting_counters(salvage(tmp_path / "s.db").rows, 8) == Counters(8, 5, 1, 6, 5, 8)


def test_counters_that_fit_repeats(tmp_path):
    store = Store.create(tmp_path / "s.db", SETTINGS, start())
    with store.writing():
        store.add_trials([trial(1), trial(2, REPEAT), trial(3)])
        store.add_result(2, ok(1.0))
        store.add_result(3, ok(1.0))
    assert store.counters() == Counters(3, 2, 0, counted=2, fresh=2, last=3)
    store.close()
    assert fitting_counters(salvage(tmp_path / "s.db").rows, 3) == Counters(3, 2, 0, 2, 2, 3)


def test_densities_fit_or_not(path):
    saved = salvage(path).rows
    assert densities_fit(saved)
    assert not densities_fit(saved._replace(own={2: saved.own[2]}))
    assert not densities_fit(saved._replace(mixture={1: saved.mixture[2]}))
    assert densities_fit(saved._replace(own={}, mixture={}))
    del saved.told[1]
    assert not densities_fit(saved)


def test_noise_gives_nothing(tmp_path):
    (tmp_path / "noise.db").write_bytes(random.Random(0).randbytes(50_000))
    found = salvage(tmp_path / "noise.db").rows
    assert found.settings is None
    assert found.counters is None
    assert not found.told


def test_in_noise_few_places_are_tried(tmp_path, monkeypatch):
    """One in a thousand and fewer; the work grows with the size, and with nothing else."""
    tried, row = [], Pages.row
    monkeypatch.setattr(Pages, "row", lambda *at: tried.append(at) or row(*at))
    for size in (100_000, 1_000_000):
        (tmp_path / "noise.db").write_bytes(np.random.default_rng(0).bytes(size))
        tried.clear()
        salvage(tmp_path / "noise.db")
        assert len(tried) < size / 500


def test_every_row_begins_where_it_is_looked_for(path, tmp_path):
    """Where the head of every page is destroyed, each byte is tried here."""
    store = Store.open(path)
    long = "a note " * 700  # beyond the page
    with store.writing():
        store.add_trials([trial(i) for i in (20, 300, 70_000, 2**40)])
        for number, note in ((20, long), (300, "x" * 200), (70_000, ""), (2**40, "y" * 3000)):
            store.add_result(number, Told("failed", note=note))
    store.close()
    whole, content = contents(path), bytearray(path.read_bytes())
    for at in range(0, len(content), PAGE):
        head = at + (100 if at == 0 else 0)
        content[head] = 0  # no page of rows
    path.write_bytes(content)
    pages = Pages(bytes(content), b"")
    found = {}
    for page in pages.images:
        rows = {offset: pages.row(page, offset) for offset in range(PAGE - 8)}
        begins = {offset for offset, row in rows.items() if row is not None}
        assert begins <= set(places(page))
        found |= {(row.table, row.values[0]): row for row in rows.values() if row is not None}
    assert len(found) > 30
    assert salvaged_records(path).rows["told"] == whole["told"]


def test_overflow_that_goes_in_a_circle_ends(path):
    """A page that says that it goes on in itself, for two gigabytes."""
    content = bytearray(path.read_bytes())
    content[PAGE * 3 : PAGE * 3 + 4] = (4).to_bytes(4, "big")
    page = bytearray(PAGE)
    page[100:107] = bytes([0x87, 0xFF, 0xFF, 0xFF, 0x7F, 1, 9])  # a row of 2^31 bytes
    for at in range(200, PAGE - 4, 4):
        page[at : at + 4] = (4).to_bytes(4, "big")
    pages = Pages(bytes(content + page), b"")
    assert pages.row(pages.images[-1], 100) is None


def test_how_far_it_is_is_told(path, tmp_path):
    """Pages that are destroyed are looked at twice."""
    content, heard = random.Random(3).randbytes(20 * PAGE), []
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds no settings"):
        recover(path, tmp_path / "saved.db", lambda done, of: heard.append((done, of)))
    done, of = zip(*heard, strict=True)
    assert len(set(of)) == 1
    assert sorted(done) == list(done)
    assert done[-1] == of[0]
    assert done[:40] == tuple(range(1, 41))
