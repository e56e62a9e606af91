"""Real files of format 1, carried over: everything in them is in the new file, unchanged."""

import json
import shutil
import sqlite3
import struct
from pathlib import Path

import numpy as np
import pytest
from sentences import EXISTS
from stores import DATA, SETTINGS, start

from recoup.store.format1 import Carried, carry_over
from recoup.store.place import COUNT, LOG, beside
from recoup.store.rows import Counters
from recoup.store.schema import checksum
from recoup.store.store import Store

NAMES = ("run", "hand")
TESTED = ("return_search", "return_search_stderr", "wall_s")
DROPPED = (*TESTED, "iteration", "episodes", "std_min", "std_max")


@pytest.fixture(params=NAMES)
def old(request, tmp_path):
    return Path(shutil.copy(DATA / f"{request.param}-format1.db", tmp_path / "old.db"))


@pytest.fixture
def hand(tmp_path):
    return Path(shutil.copy(DATA / "hand-format1.db", tmp_path / "old.db"))


def table(path, name, columns="*"):
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    found = connection.execute(f"SELECT {columns} FROM {name} ORDER BY id").fetchall()
    connection.close()
    return found


def floats(content):
    return struct.unpack(f"<{len(content) // 8}d", content)


def test_rows_that_did_not_change_are_the_same_to_the_last_bit(old, tmp_path):
    """Their checksums too."""
    carry_over(old, tmp_path / "new.db")
    for name in ("counters", "asked", "told", "trajectories", "queue", "own", "mixture"):
        assert table(tmp_path / "new.db", name) == table(old, name)
    columns = "id, proposal, counted, made"
    assert table(tmp_path / "new.db", "moves", columns) == table(old, "moves", columns)


def test_proposals_and_settings(old, tmp_path):
    carry_over(old, tmp_path / "new.db")
    store = Store.open(tmp_path / "new.db")
    before = table(old, "proposals")
    assert len(store.proposals()) == len(before)
    for number, origin, mean, std, _ in before:
        found = store.proposal(number)
        assert (found.origin, found.family) == (origin, "diagonal")
        assert tuple(found.numbers) == (*floats(mean), *floats(std))
    settings = {key: json.loads(value) for _, key, value, _ in table(old, "settings")}
    assert store.settings() == {**settings, "family": "diagonal"}
    assert list(store.settings())[:-1] == list(settings)
    assert all(move.memory is None for move in store.moves())
    assert store.damaged_rows()[1] == []
    assert store.integrity() is None
    store.close()


def test_events(old, tmp_path):
    carry_over(old, tmp_path / "new.db")
    store = Store.open(tmp_path / "new.db")
    *kept, upgraded = store.events()
    before = table(old, "events")
    assert [(e.id, e.kind, e.at) for e in kept] == [(i, kind, at) for i, kind, _, at, _ in before]
    assert kept[0].content == store.settings()
    for event, (_, _, content, _, _) in zip(kept[1:], before[1:], strict=True):
        assert event.content == json.loads(content)
    last = store.counters().last
    assert (upgraded.kind, upgraded.content) == (
        "upgraded",
        {"from": 1, "of": str(old), "trials": last},
    )
    store.close()


def test_the_moves_of_a_run_and_its_tests(tmp_path):
    old = DATA / "run-format1.db"
    found = carry_over(old, tmp_path / "new.db")
    assert found[:3] == (60, 60, 6)
    store = Store.open(tmp_path / "new.db")
    assert store.tests()[0].episodes == 100
    for move, test, (number, text) in zip(
        store.moves(), store.tests(), table(old, "moves", "id, info"), strict=True
    ):
        info = json.loads(text)
        assert (move.id, test.move) == (number, number)
        assert test[1:3] == (info["return_search"], info["return_search_stderr"])
        assert test.wall_s == info["wall_s"]
        kept = {key: value for key, value in info.items() if key not in DROPPED}
        assert json.dumps(move.info) == json.dumps(kept)  # not a number among them
    assert {"objective", "ess", "ages", "batch_return", "failed"} <= set(store.last_move().info)
    store.close()


def test_the_study_by_hand(hand, tmp_path):
    found = carry_over(hand, tmp_path / "new.db")
    words = f"14 results of 15 trials and 2 moves were carried over to {tmp_path / 'new.db'}; "
    assert found == Carried(14, 15, 2, f"{words}{hand} is as it was.")
    store = Store.open(tmp_path / "new.db")
    assert store.counters() == Counters(15, 13, 1, 11, 0, 15)
    assert [t.id for t in store.pending()] == [15]
    assert store.results()[5].told.note == "slipped off the table"
    assert store.results()[6].told.episodes == 3
    assert [q.note for q in store.queue(9)] == ["next"]
    assert [m.info["late"] for m in store.moves()[1:]] == [0, 0]
    assert store.tests() == []
    assert store.densities(2)[1].size == 11
    with store.writing():  # and it goes on
        store.add_result(15, store.results()[14].told)
    assert store.counters().fresh == 1
    store.close()


def test_action_space_and_trajectories(hand, tmp_path):
    """A setting that says so makes the family `policy`."""
    row = (99, "horizon", "10")
    steps = (14, 2, np.arange(6.0).tobytes())
    connection = sqlite3.connect(hand)
    connection.execute("INSERT INTO settings VALUES (?,?,?,?)", (*row, checksum("settings", row)))
    crc = checksum("trajectories", steps)
    connection.execute("INSERT INTO trajectories VALUES (?,?,?,?)", (*steps, crc))
    connection.commit()
    connection.close()
    carry_over(hand, tmp_path / "new.db")
    store = Store.open(tmp_path / "new.db")
    assert {p.family for p in store.proposals().values()} == {"policy"}
    assert "family" not in store.settings()
    np.testing.assert_array_equal(store.trajectories()[14], np.arange(6.0).reshape(2, 3))
    store.close()


def test_the_old_file_is_not_changed(old, tmp_path):
    before, when = old.read_bytes(), old.stat().st_mtime_ns
    carry_over(old, tmp_path / "new.db")
    assert (old.read_bytes(), old.stat().st_mtime_ns) == (before, when)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.db", "old.db"]


def test_a_log_is_read_too_and_left_as_it_is(hand, tmp_path):
    """As after a crash: the last result is in the log alone."""
    connection = sqlite3.connect(hand, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    event = (77, "noted", "{}", 1.0)
    crc = checksum("events", event)
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (*event, crc))
    folder = tmp_path / "crashed"
    folder.mkdir()
    for path in (hand, beside(hand, LOG)):
        shutil.copy(path, folder)
    connection.close()
    crashed = folder / "old.db"
    before = [path.read_bytes() for path in sorted(folder.iterdir())]
    carry_over(crashed, tmp_path / "new.db")
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == before
    store = Store.open(tmp_path / "new.db")
    assert [e.kind for e in store.events()][-2:] == ["noted", "upgraded"]
    store.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('UPDATE told SET "return" = 9.0 WHERE id = 2', "row 2 of told is not as written"),
        ("DELETE FROM told WHERE id = 2", "counters are higher than its rows"),
        ("DELETE FROM asked WHERE id = 15", "counters are higher than its rows"),
        ("DELETE FROM proposals WHERE id = 2", "rows of proposals or moves are not there"),
        ("DELETE FROM moves WHERE id = 0", "rows of proposals or moves are not there"),
        ("DELETE FROM counters", "a row of counters is not there"),
        ("DROP TABLE queue", "no such table: queue"),
    ],
)
def test_damage(hand, tmp_path, change, words):
    connection = sqlite3.connect(hand)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match=words) as wrong:
        carry_over(hand, tmp_path / "new.db")
    assert "recover it with recoup 0.1, which wrote it, and then upgrade" in str(wrong.value)
    assert not (tmp_path / "new.db").exists()


def test_torn_pages(hand, tmp_path):
    content = bytearray(hand.read_bytes())
    content[4096 * 4 : 4096 * 5] = b"\xff" * 4096
    hand.write_bytes(content)
    with pytest.raises(ValueError, match=r"recover it with recoup 0\.1"):
        carry_over(hand, tmp_path / "new.db")


def test_results_that_were_lost_with_a_log(hand, tmp_path):
    beside(hand, COUNT).write_bytes(struct.pack("<qq", 17, 18))
    with pytest.raises(ValueError, match=r"3 of the 17 results told to .* are missing"):
        carry_over(hand, tmp_path / "new.db")


def test_refusals(hand, tmp_path):
    for name, words in (
        ("none.db", "there is no study in"),
        (".", "is a directory"),
        ("noise.db", r"is not a study file \(not SQLite\)"),
        ("other.db", "a SQLite file of another program"),
        ("now.db", "is of format 2: only format 1"),
    ):
        (tmp_path / "noise.db").write_bytes(b"noise" * 1000)
        if name == "other.db":
            sqlite3.connect(tmp_path / name).execute("CREATE TABLE t (x)").connection.close()
        if name == "now.db":
            Store.create(tmp_path / name, SETTINGS, start()).close()
        with pytest.raises(ValueError, match=words):
            carry_over(tmp_path / name, tmp_path / "new.db")
    with pytest.raises(ValueError, match=f"{EXISTS}: name another file to upgrade to"):
        carry_over(hand, hand)
    assert not (tmp_path / "new.db").exists()
