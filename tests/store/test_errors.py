"""What can be wrong with a study file: one sentence each, before any wrong number is used."""

import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from sentences import CLOSED, DAMAGED, EXISTS, FILE_GONE, FOREIGN_SQL
from stores import SETTINGS, filled, ok, start, trial

from recoup.store import file as files
from recoup.store.count import count_beside
from recoup.store.errors import Exists, NoRoom
from recoup.store.place import COUNT, LOG, beside
from recoup.store.rows import Leaf
from recoup.store.schema import (
    FORMAT,
    TABLES,
    checksum,
    packed_memory,
    unpacked_memory,
)
from recoup.store.store import Store


@pytest.fixture
def path(tmp_path):
    filled(tmp_path / "robot.db").close()
    return tmp_path / "robot.db"


def execute(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(*statement if isinstance(statement, tuple) else (statement,))
    connection.commit()
    connection.close()


def forge(path, table, number, column, value):
    """A row changed by someone who knows how to make its checksum."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    (row,) = connection.execute(f"SELECT * FROM {table} WHERE id = ?", (number,))
    content = [value if name == column else row[name] for name in row.keys()[:-1]]
    marks = ", ".join("?" * (len(content) + 1))
    connection.execute(
        f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (*content, checksum(table, content))
    )
    connection.commit()
    connection.close()


def read_all(path):
    store = Store.open(path)
    try:
        store.settings()
        store.counters()
        store.newest()
        store.proposals()
        store.moves()
        list(store.trials())
        store.trajectories()
        store.best((), False)
        store.samples()
        store.queue(9)
        store.events()
        store.tests()
        store.densities(9)
    finally:
        store.close()


class TestRefusals:
    def test_none_a_directory_an_empty_file_and_noise(self, tmp_path):
        (tmp_path / "empty.db").touch()
        (tmp_path / "noise.db").write_bytes(b"noise" * 1000)
        for name, words in (
            ("none.db", "there is no study in"),
            (".", "is a directory, not a study file"),
            ("empty.db", "is empty, so it holds no study"),
            ("noise.db", r"is not a study file \(not SQLite\)"),
        ):
            with pytest.raises(ValueError, match=words):
                Store.open(tmp_path / name)

    def test_another_program_s_file_is_not_touched(self, tmp_path):
        execute(tmp_path / "other.db", "CREATE TABLE t (x)")
        before = (tmp_path / "other.db").read_bytes()
        with pytest.raises(ValueError, match="is a SQLite file of another program, not a study"):
            Store.open(tmp_path / "other.db")
        assert (tmp_path / "other.db").read_bytes() == before

    def test_other_formats(self, path):
        execute(path, f"PRAGMA user_version = {FORMAT + 1}")
        with pytest.raises(
            ValueError, match=rf"newer recoup \(format {FORMAT + 1}, this one reads"
        ):
            Store.open(path)
        for version in (0, FORMAT - 1):
            execute(path, f"PRAGMA user_version = {version}")
            with pytest.raises(
                ValueError, match=rf"is of format {version}, .* `recoup study export`"
            ):
                Store.open(path)

    def test_closed(self, path):
        store = Store.open(path)
        store.close()
        for use in (store.counters, store.count, lambda: store.writing().__enter__()):
            with pytest.raises(ValueError, match=CLOSED):
                use()

    def test_locked(self, path, monkeypatch):
        monkeypatch.setattr("recoup.store.connecting.BUSY", 0.05)
        one, other = Store.open(path), Store.open(path)
        with one.writing(), pytest.raises(ValueError, match="being written by another process"):
            other.writing().__enter__()
        with other.writing():
            other.add_result(7, ok(1.0))
        assert one.counters().ok == 6
        one.close()
        other.close()

    def test_read_only(self, path):
        """As another user, for root writes anywhere; pytest's directories are closed to them."""
        code = (
            "import os, sys; from pathlib import Path\n"
            "from recoup.store.store import Store; from recoup.store.rows import Told\n"
            "if os.getuid() == 0: os.setuid(65534)\n"
            "s = Store.open(Path(sys.argv[1]))\n"
            "print(s.read_only, s.counters().ok, len(s.pending()))\n"
            "try:\n"
            "    with s.writing(): s.add_result(7, Told('ok', 1.0))\n"
            "except ValueError as wrong: print(wrong)\n"
            "s.close()\n"
        )
        with tempfile.TemporaryDirectory() as place:
            shutil.copy(path, place)
            (Path(place) / path.name).chmod(0o444)
            Path(place).chmod(0o555)
            done = subprocess.run(
                [sys.executable, "-c", code, str(Path(place) / path.name)],
                capture_output=True,
                text=True,
            )
            assert [p.name for p in Path(place).iterdir()] == [path.name]
            Path(place).chmod(0o755)
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert first == "True 5 2"
        assert "cannot be written to: it, or its directory, is read-only" in second

    def test_a_full_disk(self, path):
        store = Store.open(path)
        before = store.counters()
        ((pages,),) = store._file.rows("PRAGMA page_count")
        store._file.rows(f"PRAGMA max_page_count = {pages + 2}")
        words = "the disk of .* is full: nothing was changed"
        with pytest.raises(ValueError, match=words), store.writing():
            store.add_trials([trial(i) for i in range(9, 999)])
        assert store.counters() == before
        store._file.rows("PRAGMA max_page_count = 100000")
        with store.writing():
            store.add_trials([trial(i) for i in range(9, 999)])
        store.close()

    @pytest.mark.parametrize("says", ["busy", "left", "full"])
    def test_a_disk_that_is_full_when_a_new_file_is_done(self, tmp_path, monkeypatch, says):
        """Its log has all of it by then, and closing it says nothing where that stays so."""

        class Filled(sqlite3.Connection):
            def execute(self, query, *values):
                if "wal_checkpoint" not in query:
                    return super().execute(query, *values)
                if says == "full":
                    raise sqlite3.OperationalError("database or disk is full")
                return super().execute("SELECT 1, 9, 9" if says == "busy" else "SELECT 0, 9, 3")

        def opened(address):
            options = {"isolation_level": None, "check_same_thread": False, "factory": Filled}
            return sqlite3.connect(address, uri=True, **options)

        with monkeypatch.context() as patch:
            patch.setattr("recoup.store.file.connect", opened)
            with pytest.raises(NoRoom, match="nothing was changed"):
                Store.create(tmp_path / "s.db", SETTINGS, start())
        assert list(tmp_path.iterdir()) == []
        Store.create(tmp_path / "s.db", SETTINGS, start()).close()

    def test_a_new_file_that_cannot_be_opened_for_want_of_room_is_there(
        self, tmp_path, monkeypatch
    ):
        def fail(connection):
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("recoup.store.file.identity", fail)
            with pytest.raises(NoRoom, match="is there, and whole"):
                Store.create(tmp_path / "s.db", SETTINGS, start())
        Store.open(tmp_path / "s.db").close()

    @pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
    def test_a_limit_of_file_sizes_is_no_damage(self, path):
        code = (
            "import resource, sys\n"
            "from pathlib import Path\n"
            "from stores import trial\n"
            "from recoup.store.store import Store\n"
            "store = Store.open(Path(sys.argv[1]))\n"
            "before = store.counters()\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (32768, resource.RLIM_INFINITY))\n"
            "try:\n"
            "    with store.writing():\n"
            "        store.add_trials([trial(i) for i in range(9, 999)])\n"
            "except ValueError as wrong:\n"
            "    print(wrong)\n"
            "most = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, most)\n"
            "print(store.counters() == before)\n"
            "with store.writing():\n"
            "    store.add_trials([trial(i) for i in range(9, 999)])\n"
            "store.close()\n"
        )
        helpers = str(Path(__file__).parents[1] / "helpers")
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": helpers},
        )
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert "takes no more (a quota or a limit of file sizes, or the disk fails)" in first
        assert "nothing was changed; free some space and try again" in first
        assert second == "True"

    def test_places_for_a_new_file(self, path):
        with pytest.raises(Exists, match=EXISTS):
            Store.create(path, SETTINGS, start())
        with pytest.raises(ValueError, match="does not exist: make it, or name another place"):
            Store.create(path.parent / "no" / "s.db", SETTINGS, start())
        beside(path.parent / "s.db", LOG).write_bytes(b"x")
        with pytest.raises(ValueError, match=FILE_GONE):
            Store.create(path.parent / "s.db", SETTINGS, start())

    def test_another_process_was_faster(self, path, tmp_path, monkeypatch):
        def taken(*_):
            raise FileExistsError

        monkeypatch.setattr(os, "link", taken)
        with pytest.raises(Exists, match="another process has made it"):
            Store.create(tmp_path / "s.db", SETTINGS, start())
        assert [p.name for p in tmp_path.iterdir()] == ["robot.db"]

    def test_another_process_makes_it_while_we_look(self, path, tmp_path, monkeypatch):
        """The log that lies there then is that of a study whose file is there too."""

        def meanwhile(place, *_, **__):
            shutil.copy(path, place)
            beside(place, LOG).write_bytes(b"x")

        monkeypatch.setattr("recoup.store.place.check_directory", meanwhile)
        with pytest.raises(Exists, match="another process has made it"):
            Store.create(tmp_path / "s.db", SETTINGS, start())

    def test_a_file_system_without_links(self, tmp_path, monkeypatch):
        def refuses(*_):
            raise PermissionError

        monkeypatch.setattr(os, "link", refuses)
        Store.create(tmp_path / "s.db", SETTINGS, start()).close()
        assert [p.name for p in tmp_path.iterdir()] == ["s.db"]

    def test_what_others_have_put_beside_it_stays(self, tmp_path):
        names = ["robot.db.backup.new", "robot.db.20240101.newer.csv", "robot.db.new"]
        for name in names:
            (tmp_path / name).write_text("mine")
        (tmp_path / "robot.db.99999999999.new").write_text("of a process that is gone")
        Store.create(tmp_path / "robot.db", SETTINGS, start()).close()
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["robot.db", *names])

    def test_odd_names(self, tmp_path):
        for name in ("a b.db", "50%?x=1#y.db", "ä'.db"):
            filled(tmp_path / name).close()
            assert (tmp_path / name).is_file()
            read_all(tmp_path / name)


class TestTheCount:
    def test_a_log_that_was_removed_is_noticed(self, path):
        store = Store.open(path)
        with store.writing():
            store.add_result(7, ok(1.0))
        assert count_beside(path)[:2] == (7, 8)
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        shutil.copy(beside(path, COUNT), beside(copy, COUNT))
        store.close()
        assert not beside(path, COUNT).exists()
        with pytest.raises(ValueError, match=r"1 of the 7 results told to .* are missing: its log"):
            Store.open(copy)

    def test_none_for_what_is_in_memory_or_fails(self, memory, path, monkeypatch):
        monkeypatch.chdir(path.parent)
        with memory.writing():
            memory.add_trials([trial(1)])
            memory.add_result(1, ok(1.0))
        with pytest.raises(KeyboardInterrupt):
            self.fails(path)
        assert [p.name for p in path.parent.iterdir() if COUNT in p.name] == []

    @staticmethod
    def fails(path):
        store = Store.open(path)
        try:
            with store.writing():
                store.add_result(7, ok(1.0))
                raise KeyboardInterrupt
        finally:
            store.close()

    def test_a_result_is_kept_where_the_count_cannot_be(self, path):
        beside(path, COUNT).mkdir()
        store = Store.open(path)
        with store.writing():
            store.add_result(7, ok(1.0))
        assert store.counters().ok == 6
        beside(path, COUNT).rmdir()
        store.close()


class TestDamage:
    @pytest.mark.parametrize(
        ("table", "change"),
        [
            ("counters", "ok = 4"),
            ("settings", "value = '7'"),
            ("proposals", "family = 'other'"),
            ("moves", "info = '{}'"),
            ("asked", "seed = seed + 1"),
            ("told", '"return" = 99.0'),
            ("trajectories", "steps = 1"),
            ("queue", "note = 'other'"),
            ("events", "at = 0.0"),
            ("own", "content = x'0000000000000000'"),
            ("mixture", "content = x'0000000000000000'"),
        ],
    )
    def test_a_changed_row_is_noticed(self, path, table, change):
        execute(path, f"UPDATE {table} SET {change} WHERE id = (SELECT MAX(id) FROM {table})")
        with pytest.raises(ValueError, match=rf"row \d+ of {table} is not as written"):
            read_all(path)
        if table != "counters":
            store = Store.open(path)
            count, (wrong,) = store.damaged_rows()
            assert count == 31
            assert wrong.startswith(f"{table} ")
            store.close()

    @pytest.mark.parametrize(
        ("table", "number", "column", "value"),
        [
            ("counters", 0, "fresh", "x"),
            ("counters", 0, "ok", None),
            ("counters", 0, "ok", 2**63 - 1),
            ("counters", 0, "last", 2**63 - 1),
            ("settings", 0, "value", "[" * 100_000),
            ("settings", 0, "value", "{"),
            ("settings", 0, "value", None),
            ("proposals", 1, "numbers", b"abc"),
            ("proposals", 1, "numbers", None),
            ("moves", 1, "info", "[1]"),
            ("moves", 1, "proposal", 99),
            ("moves", 1, "memory", b"abc"),
            ("moves", 1, "memory", "text"),
            ("asked", 6, "theta", b"abcdefg"),
            ("asked", 6, "theta", None),
            ("asked", 6, "theta", 10**9),
            ("asked", 6, "kind", None),
            ("asked", 6, "proposal", "x"),
            ("asked", 6, "seed", "x"),
            ("moves", 1, "counted", None),
            ("moves", 1, "made", "pending"),
            ("proposals", 1, "family", b""),
            ("events", 1, "at", "pending"),
            ("told", 6, "return", "much"),
            ("told", 6, "status", "pending"),
            ("told", 6, "counted", "x"),
            ("told", 6, "stderr", "x"),
            ("told", 6, "episodes", "x"),
            ("told", 6, "told_at", None),
            ("trajectories", 2, "steps", 5),
            ("trajectories", 2, "steps", "x"),
            ("events", 1, "content", "null"),
            ("own", 1, "content", b"abc"),
        ],
    )
    def test_nonsense_with_its_checksum_in_order(self, path, table, number, column, value):
        forge(path, table, number, column, value)
        with pytest.raises(ValueError, match=r"is damaged \(.*--recover NEW") as wrong:
            read_all(path)
        assert "\n" not in str(wrong.value)

    @pytest.mark.parametrize("value", [None, "much", float("inf")])
    def test_a_forged_return_is_none_of_the_finite_ones(self, path, value):
        forge(path, "told", 6, "return", value)
        store = Store.open(path)
        found = store.returns()
        store.close()
        assert found
        assert 6 not in found

    def test_missing_rows(self, path):
        execute(path, "DELETE FROM counters")
        with pytest.raises(ValueError, match="a row of counters is not there"):
            Store.open(path)

    def test_a_missing_trial(self, path):
        execute(path, "DELETE FROM asked WHERE id = 6")
        store = Store.open(path)
        with pytest.raises(ValueError, match="rows of trials are not there"):
            store.best((), False)
        store.close()

    def test_broken_pages(self, path):
        """A count of bytes that is wrong, and then a whole page."""
        whole = path.read_bytes()
        for place, noise in ((7, b"\x05"), (0, b"\xff" * 4096)):
            content = bytearray(whole)
            content[4096 * 5 + place : 4096 * 5 + place + len(noise)] = noise
            path.write_bytes(content)
            store = Store.open(path)
            if place:
                assert "\n" not in store.integrity()
            else:
                with pytest.raises(ValueError, match=r"is damaged \(database disk image"):
                    store.integrity()
                with pytest.raises(ValueError, match=DAMAGED):
                    store.damaged_rows()
            store.close()

    def test_tables_that_are_gone(self, path):
        execute(path, "DROP TABLE queue")
        with pytest.raises(ValueError, match=r"is damaged \(queue is not there\)"):
            Store.open(path)

    def test_a_schema_of_a_stranger_runs_nothing(self, path):
        execute(path, "DROP VIEW trials", "CREATE VIEW trials AS SELECT load_extension('evil')")
        with pytest.raises(ValueError, match=rf"{FOREIGN_SQL} \('trials'\)"):
            Store.open(path)


def blob(header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + content


def leaf(dtype="float64", shape=(1,), path="x"):
    return {"path": path, "dtype": dtype, "shape": list(shape)}


class TestMemoryThatLies:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\0\0",
            b"\xff\xff\xff\xff[]",
            blob(b"["),
            blob(b"\xff\xfe"),
            blob(b"null"),
            blob({"path": "x"}),
            blob([1]),
            blob([{}]),
            blob([leaf()]),
            blob([leaf()], bytes(9)),
            blob([leaf(shape=[-1])], bytes(8)),
            blob([leaf(shape=[-1, -1])], bytes(8)),
            blob([leaf(shape=[1.0])], bytes(8)),
            blob([leaf(shape=[True])], bytes(8)),
            blob([leaf(shape=["1"])], bytes(8)),
            blob([{**leaf(), "shape": 1}], bytes(8)),
            blob([{**leaf(), "shape": "1"}], bytes(8)),
            blob([leaf(shape=[2**40])], bytes(8)),
            blob([leaf(shape=[2**30, 2**30, 2**30])], bytes(8)),
            blob([leaf(shape=[0, 2**30, 2**30, 2**30])]),
            blob([leaf(shape=[0, 10**400])]),
            blob([leaf(shape=[1] * 99)], bytes(8)),
            blob([leaf("object")], bytes(8)),
            blob([leaf("V8")], bytes(8)),
            blob([leaf("complex128")], bytes(16)),
            blob([leaf(["float64"])], bytes(8)),
            blob([leaf(path=3)], bytes(8)),
            blob([leaf("bool")], b"\2"),
            blob(b"[" * 100_000),
        ],
    )
    def test_is_damage_in_one_sentence(self, path, content):
        forge(path, "moves", 1, "memory", content)
        store = Store.open(path)
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"is damaged \(") as wrong:
            store.last_move()
        assert tracemalloc.get_traced_memory()[1] < 5e6
        tracemalloc.stop()
        assert "\n" not in str(wrong.value)
        assert len(str(wrong.value)) < 500
        store.close()

    def test_every_truncation_is_noticed(self):
        content = packed_memory((Leaf("a", np.arange(3.0)), Leaf("b", np.int32(5))))
        for end in range(len(content)):
            with pytest.raises(ValueError):
                unpacked_memory(content[:end])
        assert len(unpacked_memory(content)) == 2

    def test_nothing_is_a_pickle(self):
        home = Path(files.__file__).parent
        source = "".join(path.read_text() for path in home.glob("*.py"))
        for word in ("import pickle", "eval(", "exec(", "allow_pickle", "__import__"):
            assert word not in source


def test_a_checksum_is_that_of_the_values_one_after_the_other():
    import zlib

    for table in TABLES:
        row = (3, "a'b", None, b"\0xyz", -1.5, b"", 7, b"q", "ü")
        crc = zlib.crc32(table.encode())
        for value in row:
            crc = zlib.crc32(value if isinstance(value, bytes) else repr(value).encode(), crc)
        assert checksum(table, row) == crc
