"""Every method of `Store`: what is written comes back as it was, and nothing else changes."""

import ast
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from stores import MEMORY, SETTINGS, filled, ok, start, trial

import recoup.store
from recoup.store import codec, rows
from recoup.store.layout import Layout
from recoup.store.rows import FOREIGN, MIRROR, OWN, REPEAT, Counters, Fresh, Leaf, Told, same
from recoup.store.store import Store


def same_arrays(one, other):
    np.testing.assert_array_equal(one, other, strict=True)


def same_memory(one, other):
    for got, want in zip(one, other, strict=True):
        assert got.path == want.path
        same_arrays(got.value, np.asarray(want.value))


def tell(store, results):
    with store.writing():
        for number, told in results:
            store.add_result(number, told)


def write_then_raise(store, steps, error):
    writes = (
        lambda: store.add_trials([trial(9)]),
        lambda: store.add_result(9, ok(1.0)),
        lambda: store.add_move("diagonal", rows.Made(2, 6, np.ones(6), None, {})),
        lambda: store.add_densities(2, np.ones(2), np.ones(6)),
        lambda: store.enqueue(np.ones(3), None),
        lambda: store.dequeue(1),
        lambda: store.note("x", {}),
        lambda: store.add_test(rows.Test(1, 1.0, 1.0, 1, 1.0)),
    )
    with store.writing():
        for write in writes[:steps]:
            write()
        raise error


def write_inside(store):
    with store.writing():
        store.add_trials([trial(9)])
        with store.writing():
            pass


class TestReads:
    def test_settings_and_counters(self, store):
        assert store.settings() == SETTINGS
        assert list(store.settings()) == list(SETTINGS)
        assert store.counters() == Counters(trials=8, ok=5, failed=1, counted=6, fresh=1, last=8)
        assert not store.read_only
        assert store.path.name == "robot.db"
        assert store.where == str(store.path)

    def test_proposals(self, store):
        newest = store.newest()
        assert newest[:3] == (1, "move", "diagonal")
        same_arrays(newest.numbers, np.ones(6))
        same_arrays(store.proposal(0).numbers, np.arange(6.0))
        assert store.proposal(0).origin == "start"
        assert list(store.proposals()) == [0, 1]
        assert list(store.proposals([1])) == [1]
        assert store.proposals([]) == {}
        newest.numbers[0] = 5.0  # the caller's own
        for wrong in (lambda: store.proposals([1, 9]), lambda: store.proposal(9)):
            with pytest.raises(ValueError, match=r"of proposals (are|is) not there"):
                wrong()

    def test_moves(self, store):
        first, last = store.moves()
        assert first[:3] == (0, 0, 0)
        assert first.info == {}
        same_memory(first.memory, MEMORY)
        assert last[:4] == (1, 1, 4, None)
        assert math.isnan(last.info["ess"])
        assert last.made > 1e9
        assert store.last_move().id == store.last_move(1).id == store.last_move(7).id == 1
        assert store.last_move(0).id == 0

    def test_trials(self, store):
        assert [t.id for t in store.asked()] == list(range(1, 9))
        assert [t.id for t in store.asked([5, 3, 99, np.int64(3)])] == [3, 5]
        assert [t.id for t in store.asked(kinds=["mean"])] == [8]
        assert store.asked([1, 2], kinds=["mean"]) == []
        (found,) = store.asked([3])
        assert found._replace(theta=0, asked_at=0) == trial(3)._replace(theta=0)
        same_arrays(found.theta, trial(3).theta)
        assert found.asked_at > 1e9
        assert [t.id for t in store.pending()] == [7, 8]
        assert [t.id for t in store.pending(["drawn", MIRROR])] == [7]
        assert [t.id for t in store.last_asked(2, ["drawn"])] == [7, 6]
        assert [t.id for t in store.last_asked(2, ["mean", MIRROR])] == [8]
        assert store.count(["drawn"], told=False) == 1
        assert store.count(told=False) == 2
        assert store.count(["drawn"]) == 7
        assert store.count() == 8
        assert store.statuses() == {"ok": 5, "failed": 1}

    def test_results(self, store):
        found = store.results()
        assert list(found) == [1, 2, 3, 4, 5, 6]
        assert found[5].told == Told("failed", note="slipped")
        assert found[5].counted == 5  # what failed was drawn
        assert found[6].told == Told("ok", 2.0, 0.25, 3)
        assert (found[6].counted, type(found[6].told.value)) == (6, float)
        assert list(store.results([6, 7])) == [6]
        assert list(store.trajectories()) == [1, 2, 3, 4]
        same_arrays(store.trajectories([2, 6])[2], np.full((2, 3), 2.0))

    def test_best_samples_and_places(self, store):
        best, value = store.best((), False)
        assert (best.id, value) == (6, 2.0)
        assert [(t.id, v) for t, v in store.samples()] == [
            *((i, i / 3) for i in range(1, 5)),
            (5, None),
            (6, 2.0),
        ]
        assert store.counted(1, 4) == [(2, 2), (3, 3), (4, 4)]
        failed, ok_one = Fresh(5, 5, "failed", "drawn", 0), Fresh(6, 6, "ok", "drawn", 0)
        assert store.fresh(4) == [failed, ok_one]

    def test_pairs_of_trials_and_results_in_chunks(self, store, monkeypatch):
        monkeypatch.setattr("recoup.store.queries.ROWS_READ", 3)
        found = list(store.trials())
        assert [t.id for t, _ in found] == list(range(1, 9))
        assert [r is not None for _, r in found] == [True] * 6 + [False] * 2
        assert len(store.asked(range(20))) == 8

    def test_densities_queue_events_tests(self, store):
        own, mixture = store.densities(1)
        same_arrays(own, np.arange(4.0))
        same_arrays(mixture, np.arange(4.0) - 9)
        assert store.densities(0)[0].size == 0
        (queued,) = store.queue(5)
        assert (queued.id, queued.note) == (1, "next")
        assert store.queue(0) == []
        (created,) = store.events()
        assert (created.kind, created.content) == ("created", SETTINGS)
        assert store.events("forked") == []
        assert store.tests() == []

    def test_a_sound_file_is_sound(self, store):
        assert store.integrity() is None
        assert store.damaged_rows(chunk=2) == (31, [])

    def test_reading_sees_one_state(self, store):
        other = Store.open(store.path)
        with store.reading():
            before = store.counters()
            with other.writing():
                other.add_result(7, ok(1.0))
            assert store.counters() == before
            with store.reading():  # inside another is the same one
                assert store.counters() == before
        assert store.counters().ok == before.ok + 1
        other.close()


class TestWrites:
    def test_imported_results_count_but_are_not_fresh(self, memory):
        with memory.writing():
            first = memory.add_proposals("imported", "diagonal", np.ones((2, 6)))
            memory.add_trials([trial(1, FOREIGN, first), trial(2), trial(3, OWN, None)])
            for i in (1, 2, 3):
                memory.add_result(i, ok(1.0))
        assert first == 1
        assert list(memory.proposals()) == [0, 1, 2]
        assert memory.counters() == Counters(3, 3, 0, counted=2, fresh=1, last=3)
        assert memory.counted(0, 9, foreign=False) == [(2, 2)]
        assert [t.id for t, _ in memory.samples()] == [1, 2]

    @pytest.mark.parametrize("order", [(1, 2), (2, 1)])
    @pytest.mark.parametrize(
        ("first", "second", "place", "fresh"),
        [("ok", "ok", 2, 2), ("ok", "failed", 2, 1), ("failed", "failed", 2, 0)],
    )
    def test_a_mirrored_pair_counts_when_both_were_told(
        self, memory, order, first, second, place, fresh
    ):
        with memory.writing():
            memory.add_trials([trial(1), trial(2, MIRROR)])
            for number, status in zip(order, (first, second), strict=True):
                assert memory.counters().counted == 0
                memory.add_result(number, Told(status, 1.0 if status == "ok" else None))
        results = memory.results()
        assert (results[order[0]].counted, results[order[1]].counted) == (None, place)
        assert memory.counters().fresh == fresh
        assert memory.counters().counted == (place or 0)

    @pytest.mark.parametrize("order", [(1, 2), (2, 1)])
    def test_a_repeat_and_its_first_count_each_when_told(self, memory, order):
        with memory.writing():
            memory.add_trials([trial(1), trial(2, REPEAT)])
            for place, number in enumerate(order, 1):
                memory.add_result(number, ok(1.0))
                assert memory.counters()[3:5] == (place, place)  # counted, fresh
        assert {n: row.counted for n, row in memory.results().items()} == dict(
            zip(order, (1, 2), strict=True)
        )

    def test_the_same_told_again_changes_nothing(self, store):
        before = store.counters()
        with store.writing():
            store.add_result(1, ok(1 / 3, trajectory=np.full((2, 3), 1)))
            store.add_result(5, Told("failed", note="slipped"))
            store.add_result(6, Told("ok", np.float64(2), np.float32(0.25), np.int64(3)))
        assert store.counters() == before

    @pytest.mark.parametrize(
        ("number", "told", "words"),
        [
            (6, ok(3.0), r"trial 6 was told 2\.0 before, and now 3\.0: it stays as it was"),
            (6, ok(2.0), r"and now 2\.0 of other episodes"),
            (1, ok(1 / 3, trajectory=np.zeros((2, 3))), "and now another trajectory"),
            (1, ok(1 / 3, trajectory=np.ones((1, 3))), "and now another trajectory"),
            (5, ok(1.0), r"was told failed \(slipped\) before, and now 1\.0"),
            (5, Told("failed", note="fell"), r"and now failed \(fell\)"),
            (99, ok(1.0), "there is no trial 99 in"),
            (0, ok(1.0), "there is no trial 0 in"),
            (2**70, ok(1.0), "there is no trial 1180591620717411303424 in"),
            (7, ok(1.0, trajectory=np.zeros(3)), r"shape \[t, F \+ A \+ 1\], t > 0, got \[3\]"),
        ],
    )
    def test_something_else_is_refused(self, store, number, told, words):
        before = store.counters()
        results = [(7, ok(5.0)), (number, told)] if number != 7 else [(number, told)]
        with pytest.raises(ValueError, match=words):
            tell(store, results)
        assert store.counters() == before  # nor was anything beside it written
        assert 7 not in store.results()

    def test_numbers_that_sqlite_would_change(self, memory):
        """Whole numbers among reals, minus zero, no number, and what NumPy gives."""
        nan = float("nan")
        values = [3, -0.0, np.float32(0.1), np.int32(4), 1e300, 2.0**60, float("inf"), nan]
        with memory.writing():
            memory.add_trials([trial(np.int64(i), asked_at=5) for i in range(1, 9)])
            for i, value in enumerate(values, 1):
                memory.add_result(i, Told("ok", value, value, np.int64(2)))
                memory.add_test(rows.Test(i, value, value, np.int64(7), value))
        assert memory.damaged_rows()[1] == []
        told = memory.results()
        for i, (value, test) in enumerate(zip(values[:-1], memory.tests(), strict=False), 1):
            assert told[i].told.value == told[i].told.stderr == float(value)
            assert test == rows.Test(i, float(value), float(value), 7, float(value))
        assert told[8].told.value is None
        last = memory.tests()[-1]
        assert math.isnan(last.mean)
        assert math.isnan(last.stderr)
        assert last.episodes == 7
        assert memory.asked([1])[0].asked_at == 5.0
        with memory.writing():
            memory.add_result(8, Told("ok", nan, nan, 2))  # the same again

    def test_memory_of_a_rule(self, memory):
        rng = np.random.default_rng(0)
        leaves = (
            Leaf("", np.float64(math.pi)),
            Leaf("[0].mu", rng.standard_normal((3, 2)).astype(np.float32)),
            Leaf("[0].count", np.int32(7)),
            Leaf("[1]", np.array([True, False])),
            Leaf("none", np.zeros((0, 4))),
            Leaf("big", np.arange(6, dtype=">f8")[::2]),
        )
        with memory.writing():
            assert memory.add_move("diagonal", rows.Made(1, 0, np.ones(6), leaves, {})) == 1
            memory.add_move("diagonal", rows.Made(2, 0, np.ones(6), (), {}))
        for want, got in zip(leaves, memory.last_move(1).memory, strict=True):
            assert got.path == want.path
            same_arrays(got.value, np.asarray(want.value).astype(got.value.dtype))
            assert got.value.dtype.name == np.asarray(want.value).dtype.name
        assert memory.last_move().memory == ()
        wrong = rows.Made(3, 0, np.ones(6), (Leaf("x", np.array([1j])),), {})
        with pytest.raises(ValueError, match="'x' is complex128"), memory.writing():
            memory.add_move("diagonal", wrong)
        assert memory.last_move().id == 2

    def test_where(self, memory):
        assert memory.path is None
        assert memory.where == ":memory:"

    def test_queue(self, memory):
        with memory.writing():
            for i in range(3):
                memory.enqueue(np.full(3, i), None)
            assert [q.theta[0] for q in memory.dequeue(2)] == [0.0, 1.0]
        assert [q.theta[0] for q in memory.queue(9)] == [2.0]

    def test_densities_of_the_newest_move_replace_the_mixture(self, memory):
        with memory.writing():
            memory.add_densities(1, np.ones(2), np.ones(2))
            memory.add_densities(2, np.zeros(1), np.zeros(3))
            memory.add_densities(3, np.zeros(0), np.zeros(0))
        own, mixture = memory.densities(3)
        same_arrays(own, np.array([1.0, 1.0, 0.0]))
        same_arrays(mixture, np.zeros(3))

    def test_last(self, memory):
        with memory.writing():
            memory.set_last(40)
            memory.set_last(7)
            memory.add_trials([])
        assert memory.counters() == Counters(last=40)

    def test_events(self, memory):
        with memory.writing():
            memory.note("imported", {"of": "x", "n": 3})
        (found,) = memory.events("imported")
        assert (found.id, found.content) == (2, {"of": "x", "n": 3})

    def test_counters_are_read_and_written_once(self, tmp_path):
        store = Store.create(tmp_path / "s.db", SETTINGS, start())
        statements = []
        store._file.connection.set_trace_callback(statements.append)
        with store.writing():
            store.add_trials([trial(i) for i in range(1, 11)])
            for i in range(1, 11):
                store.add_result(i, ok(1.0))
        assert sum("counters" in s for s in statements) == 2
        store.close()

    def test_opening_reads_no_results(self, store):
        seen = []
        connect = sqlite3.connect

        def traced(*args, **how):
            connection = connect(*args, **how)
            connection.set_trace_callback(seen.append)
            return connection

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", traced)
            Store.open(store.path).close()
        tables = [s.split(" FROM ")[1].split()[0] for s in seen if "SELECT" in s]
        assert sorted(set(tables)) == ["counters", "events", "sqlite_schema"]


class TestWholeOrNothing:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    @pytest.mark.parametrize("steps", range(9))
    def test_a_transaction_that_raises_leaves_nothing(self, store, steps, error):
        """After any of its steps."""
        before = store.damaged_rows(), store.counters(), store.densities(9)[1].tolist()
        with pytest.raises(error):
            write_then_raise(store, steps, error)
        assert (store.damaged_rows(), store.counters(), store.densities(9)[1].tolist()) == before
        assert store.queue(9)[0].id == 1
        with store.writing():  # and it goes on
            store.add_trials([trial(9)])

    def test_two_moves_of_one_number(self, store):
        from recoup.store.errors import Conflict

        with pytest.raises(Conflict), store.writing():
            store.add_move("diagonal", rows.Made(1, 4, np.ones(6), None, {}))
        assert len(store.proposals()) == 2

    def test_writes_belong_into_a_transaction(self, store):
        for write in (
            lambda: store.add_trials([trial(9)]),
            lambda: store.add_result(7, ok(1.0)),
            lambda: store.add_proposals("x", "y", [np.ones(2)]),
            lambda: store.add_move("diagonal", rows.Made(2, 4, np.ones(6), None, {})),
            lambda: store.add_densities(2, np.ones(2), np.ones(6)),
            lambda: store.lend([7], 1.0),
            lambda: store.end_leases([7]),
            lambda: store.replace_result(1, ok(2.0)),
            lambda: store.replace_moves("diagonal", [], rows.KeptDensities({}, np.ones(1))),
            lambda: store.set_last(1),
            lambda: store.enqueue(np.ones(3), None),
            lambda: store.dequeue(1),
            lambda: store.note("x", {}),
            lambda: store.add_test(rows.Test(1, 1.0, 1.0, 1, 1.0)),
            lambda: store.restore(None, Counters()),
        ):
            with pytest.raises(RuntimeError, match=r"inside `with store.writing\(\):`"):
                write()

    def test_a_transaction_inside_another(self, store):
        with pytest.raises(ValueError, match="within a transaction"):
            write_inside(store)
        assert store.counters().trials == 8

    def test_transactions_that_are_one(self, store):
        with store.writing_together():
            for i in (9, 10):
                with store.writing():
                    store.add_trials([trial(i)])
                assert store.counters().trials == i
        with pytest.raises(ValueError, match="the second"), store.writing_together():  # noqa: PT012
            with store.writing():
                store.add_trials([trial(11)])
            raise ValueError("the second")
        assert store.counters().trials == 10
        writing = store.writing()  # the next is as before
        with pytest.raises(ValueError, match="within a transaction"), writing, store.writing():
            pass

    def test_events_are_read_anew_once_there_is_another(self, store, monkeypatch):
        made, make = [], codec.event_of
        monkeypatch.setattr(codec, "event_of", lambda row: made.append(row[0]) or make(row))
        with store.writing():
            store.note("note", {"text": "a"})
        for _ in range(3):
            assert [event.content["text"] for event in store.events("note")] == ["a"]
        assert len(made) == 1
        with pytest.raises(ValueError, match="taken back"), store.writing():  # noqa: PT012
            store.note("note", {"text": "b"})
            assert len(store.events("note")) == 2
            raise ValueError("taken back")
        with store.writing():
            store.note("note", {"text": "c"})  # with the number of the one before
        assert [event.content["text"] for event in store.events("note")] == ["a", "c"]
        with closing(Store.open(store.path)) as other, other.writing():
            other.note("note", {"text": "d"})
        assert [event.content["text"] for event in store.events("note")] == ["a", "c", "d"]

    def test_a_creation_that_fails_leaves_nothing(self, tmp_path, monkeypatch):
        def fails(store):
            store.add_trials([trial(1)])
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Store.create(tmp_path / "s.db", SETTINGS, start(), then=fails)
        assert list(tmp_path.iterdir()) == []

    def test_then_is_there_from_the_beginning(self, tmp_path):
        def then(store):
            store.add_trials([trial(3)])
            store.add_result(3, ok(1.0))
            store.note("forked", {"of": "x"})

        store = Store.create(tmp_path / "s.db", SETTINGS, start(), MEMORY[1:], then)
        assert store.counters() == Counters(1, 1, 0, 1, 1, 3)
        assert [e.kind for e in store.events()] == ["created", "forked"]
        same_memory(store.last_move().memory, MEMORY[1:])
        store.close()
        assert [p.name for p in tmp_path.iterdir()] == ["s.db"]

    def test_killed_in_the_middle(self, tmp_path):
        """What was committed is there, what was not is not."""
        filled(tmp_path / "s.db").close()
        code = (
            "import os, sys; from pathlib import Path; import numpy as np\n"
            "from recoup.store.store import Store; from recoup.store.rows import Asked, Told\n"
            "s = Store.open(Path(sys.argv[1]))\n"
            "with s.writing(): s.add_result(7, Told('ok', 1.0))\n"
            "with s.writing():\n"
            "    s.add_trials([Asked(9, 'drawn', 0, np.zeros(3), 1)])\n"
            "    os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "s.db")])
        store = Store.open(tmp_path / "s.db")
        assert (store.counters().ok, store.counters().trials) == (6, 8)
        assert store.damaged_rows()[1] == []
        store.close()
        assert [p.name for p in tmp_path.iterdir()] == ["s.db"]


class TestParts:
    def test_same(self):
        one = Told("ok", 1.0, trajectory=np.ones((2, 3)))
        assert same(one, Told("ok", 1.0, trajectory=np.ones((2, 3))))
        for other in (
            Told("ok", 1.0),
            Told("ok", 2.0, trajectory=np.ones((2, 3))),
            Told("ok", 1.0, trajectory=np.ones((3, 2))),
            Told("ok", 1.0, trajectory=np.zeros((2, 3))),
        ):
            assert not same(one, other)
            assert not same(other, one)

    def test_layout(self):
        layout = Layout(dim=4, stds=2, horizon=5, actions=2)
        parts = np.hsplit(np.arange(10.0).reshape(2, 5), [2, 4])
        for got, want in zip(layout.trajectory(np.arange(10.0).reshape(2, 5)), parts, strict=True):
            same_arrays(got, want.squeeze() if want.shape[1] == 1 else want)
        assert [a.shape for a in layout.arrays(3)] == [(3, 5, 2), (3, 5, 2), (3, 5), (3,)]
        assert [a.shape for a in Layout(4, 4).arrays(3)] == [(3, 4)]
        with pytest.raises(ValueError, match=r"a trajectory of the shape \[2, 4\]"):
            layout.trajectory(np.zeros((2, 4)))

    def test_the_package_imports_little(self):
        known, below = {"numpy", *sys.stdlib_module_names}, ("recoup.checks", "recoup.outputs")
        for path in Path(recoup.store.__file__).parent.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    inside = name.startswith("recoup.store") or name in below
                    assert inside or name.partition(".")[0] in known, f"{path.name}: {name}"
