"""Tables in and out, as strangers and spreadsheets make them."""

import csv
import io
import os
import zipfile

import numpy as np
import pytest
from sentences import EXISTS, NO_ARRAYS, SAMPLES_THERE

from recoup.checks import InputError, printable
from recoup.cli.study_tables import print_trials
from recoup.study.care.verify import check
from recoup.study.exchange import samples, tables
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.study import Study


@pytest.fixture
def study(tmp_path):
    with Study.open(tmp_path / "robot.db", dim=2, batch=4) as study:
        for trial in study.ask(4):
            study.tell(trial.id, float(trial.theta.sum()))
        yield study


def import_file(study, path):
    """What `recoup study import` does."""
    return import_samples(study.opened, read_samples(study.opened, path), str(path))


def read(path):
    """The rows of a table, as a stranger reads them; names as they were."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return [dict(zip(map(tables.unquoted, names), row, strict=True)) for row in rows]


def write_parquet(path, columns):
    """A table of a stranger's, by its columns."""
    pytest.importorskip("pyarrow")
    pyarrow, parquet = tables.pyarrow_modules()
    parquet.write_table(pyarrow.table(columns), path)


class TestOlderTables:
    """What `export` writes over unasked: a table all of whose rows are in the new one."""

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_one_of_the_same_study_is_replaced(self, tmp_path, name):
        if name == "t.parquet":
            pytest.importorskip("pyarrow")
        params = {"n": (1, 9, "int"), "grip": ["-1", "+1"], "x": None}
        path = tmp_path / name
        with Study.open(tmp_path / "a.db", params=params, batch=4) as study:
            for i, trial in enumerate(study.ask(6)):
                if i < 3:
                    study.tell(trial.id, 0.1 * i, also={"force": i / 3})
            study.tell(4, failed="it fell\r\n over ")
            study.note("=n" * 80_000, 1)
            assert study.export(path) == 6
            study.tell(5, values=[1.0, 2.0])
            study.note("more", 1)
            study.amend(2, 9.0)
            study.amend(3, drop="loose")
            assert study.export(path) == 6
            assert study.export(path) == 6

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_one_of_another_study_is_not(self, tmp_path, name):
        if name == "t.parquet":
            pytest.importorskip("pyarrow")
        for file, value in (("a.db", 1.0), ("b.db", 2.0)):
            with Study.open(tmp_path / file, dim=2, batch=4) as study:
                for trial in study.ask(3):
                    study.tell(trial.id, value)
        with Study.open(tmp_path / "a.db") as a, Study.open(tmp_path / "b.db") as b:
            a.export(tmp_path / name)
            before = (tmp_path / name).read_bytes()
            for other in (b, a.fork(tmp_path / "c.db")):
                with pytest.raises(
                    InputError, match=f"{EXISTS}, and is not one that recoup has made of this"
                ):
                    other.export(tmp_path / name)
            assert (tmp_path / name).read_bytes() == before
            b.export(tmp_path / name, force=True)

    @pytest.mark.parametrize("column", ["return", "note", "mean_0", "told_at", "amended"])
    @pytest.mark.parametrize("trial", [1, 2, 3])
    def test_what_somebody_has_typed_is_not_lost(self, tmp_path, trial, column):
        """Into the row of a trial that was told and put right, that was told, that waits."""
        path = tmp_path / "t.csv"
        with Study.open(tmp_path / "s.db", dim=2, batch=4) as study:
            study.ask(3)
            study.tell([1, 2], [0.5, 0.25])
            study.amend(1, 0.75, why="a slip")
            study.export(path)
            head, *rows = (line.split(",") for line in path.read_text().splitlines())
            rows[trial - 1][head.index(column)] = "7.5"
            path.write_text("".join(",".join(cells) + "\n" for cells in [head, *rows]))
            before = path.read_bytes()
            with pytest.raises(InputError, match=f"{EXISTS}, and is not one that recoup"):
                study.export(path)
        assert path.read_bytes() == before

    @pytest.mark.parametrize("how", ["row", "again", "return", "ragged", "note"])
    def test_one_that_somebody_has_written_into_is_not(self, study, tmp_path, how):
        path = tmp_path / "t.csv"
        study.export(path)
        head, first, *rest = path.read_text().splitlines()
        cells = first.split(",")
        added = {
            "row": [first, "77" + first[1:]],
            "again": [first, first],
            "return": [",".join([*cells[:3], "5.5", *cells[4:]])],
            "ragged": [first, "see page 7"],
            "note": [",".join([*cells[:6], "the good one", *cells[7:]])],
        }
        path.write_text("\n".join([head, *added[how], *rest]) + "\n")
        before = path.read_bytes()
        with pytest.raises(
            InputError, match=f"{EXISTS}, and is not one that recoup has made of this"
        ):
            study.export(path)
        assert path.read_bytes() == before


class TestImports:
    def test_what_no_density_can_tell_is_refused_before_it_is_written(self, study, tmp_path):
        path = tmp_path / "wild.csv"
        path.write_text("theta_0,theta_1,return\n1e200,0,1\n-1e200,1,2\n0,2,3\n")
        before = study.counts()
        with pytest.raises(InputError, match="must be below 1e\\+100: nothing was imported"):
            import_file(study, path)
        assert study.counts() == before
        assert all(part.sound for part in check(study.store.path))

    @pytest.mark.parametrize("name", ["t.csv", "robot.db"])
    def test_texts_come_back_with_their_white_space(self, study, tmp_path, name):
        why, note = " \r\n it fell\r twice\n ", "a\r\nb\rc\nd"
        (trial,) = study.ask(1)
        study.tell(trial.id, failed=why)
        study.note(note, trial.id)
        study.export(tmp_path / "t.csv")
        with Study.open(tmp_path / "new.db", dim=2, batch=4) as new:
            import_file(new, tmp_path / name)
            (told,) = (trial for trial in new if trial.status == "failed")
            assert told.note == why
            assert list(told.notes) == [note]

    def test_a_long_note_comes_back(self, study, tmp_path):
        (trial,) = study.ask(1)
        study.tell(trial.id, failed="x" * 200_000)
        study.export(tmp_path / "out.csv")
        with Study.open(tmp_path / "new.db", dim=2, batch=4) as new:
            assert import_file(new, tmp_path / "out.csv").samples == 4

    @pytest.mark.parametrize("shape", [(10**12,), (2**40, 2**40), (5, 3)])
    def test_an_array_that_says_to_be_larger_than_it_is(self, study, tmp_path, shape):
        header = io.BytesIO()
        what = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, what)
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
            file.writestr("theta.npy", header.getvalue() + b"\0" * 8)
        with pytest.raises(InputError, match=r"theta.npy says to be larger than it is"):
            import_file(study, tmp_path / "x.npz")

    @pytest.mark.parametrize("content", [b"", b"PK\3\4", b"\x93NUMPY", os.urandom(300)])
    def test_what_is_no_archive_is_a_sentence(self, study, tmp_path, content):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(InputError, match=NO_ARRAYS):
            import_file(study, tmp_path / "x.npz")

    def test_nor_is_an_archive_of_something_else(self, study, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
            file.writestr("theta.npy", b"not an array")
        with pytest.raises(InputError, match=NO_ARRAYS):
            import_file(study, tmp_path / "x.npz")


class TestOutcomes:
    """What a table says came of its rows: `return`, `failed`, `status`."""

    def told(self, tmp_path, content, name="s.csv"):
        """What a new study holds, once a table of this content was imported."""
        if isinstance(content, str):
            (tmp_path / name).write_text(content)
        with Study.open(tmp_path / f"{name}.db", dim=2, batch=4) as new:
            found = import_file(new, tmp_path / name)
            assert found.samples + found.failed == len(new)
            return [trial.value if trial.note is None else trial.note for trial in new.trials()]

    @pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
    @pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
    def test_a_return_that_is_not_finite_has_failed_in_every_file(self, tmp_path, ending, what):
        path, returns = tmp_path / f"s.{ending}", [1.0, what, 3.0]
        columns = {"theta_0": [1.0, 2.0, 3.0], "theta_1": [0.3, 0.4, 0.6], "return": returns}
        if ending == "npz":
            theta = np.array([columns["theta_0"], columns["theta_1"]]).T
            np.savez(path, theta=theta, returns=np.array(returns))
        elif ending == "parquet":
            write_parquet(path, columns)
        else:
            lines = [columns, *zip(*columns.values(), strict=True)]
            path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
        assert self.told(tmp_path, None, path.name) == [1.0, samples.UNSAID, 3.0]

    def test_an_empty_cell_says_nothing(self, tmp_path):
        table = {"theta_0": [1.0, 2.0, 3.0], "theta_1": [0.3, 0.4, 0.6], "return": [1.0, None, 3.0]}
        write_parquet(tmp_path / "s.parquet", table)
        assert self.told(tmp_path, None, "s.parquet") == [1.0, 3.0]
        assert self.told(tmp_path, "theta_0,theta_1,return\n1,1,1\n2,3,\n3,2,3\n") == [1.0, 3.0]

    def test_why_it_failed_is_read_as_tell_reads_it(self, tmp_path):
        head = "theta_0,theta_1,return,failed\n"
        rows = "1,1,1,\n2,3,, slipped \n3,2,3,false\n4,5,,True\n5,4,nan,stuck\n6,7,,\n"
        unsaid = samples.UNSAID
        assert self.told(tmp_path, head + rows) == [1.0, "slipped", 3.0, unsaid, "stuck"]
        with pytest.raises(InputError, match=r"line 3 of .*: give a return .*not both"):
            self.told(tmp_path, f"{head}1,1,1,\n2,3,2,slipped\n3,2,3,\n", "both.csv")

    def test_flags_of_failure_are_no_reasons(self, tmp_path):
        table = {"theta_0": [1.0, 2.0, 3.0, 4.0], "theta_1": [0.3, 0.4, 0.6, 0.1]}
        table |= {"return": [1.0, None, 3.0, 4.0], "failed": [False, True, None, False]}
        write_parquet(tmp_path / "s.parquet", table)
        assert self.told(tmp_path, None, "s.parquet") == [1.0, samples.UNSAID, 3.0, 4.0]

    def test_a_result_counts_whatever_its_row_was_before(self, tmp_path):
        head = "theta_0,theta_1,return,status,note\n"
        rows = "1,1,1, OK ,\n2,3,2,pending,\n3,2,3,Cancelled,\n4,5,4,,\n5,4,,FAILED,slipped\n"
        none = "6,7,,pending,\n7,6,nan,cancelled,\n8,9,,ok,\n9,8,,,\n"
        assert self.told(tmp_path, head + rows + none) == [1.0, 2.0, 3.0, 4.0, "slipped"]

    @pytest.mark.parametrize("status", ["", "pending", "cancelled", "ok"])
    def test_what_was_typed_for_trials_that_wait_here_is_told(self, study, tmp_path, status):
        """Its own study does not import it, another takes it as any result."""
        study.ask(3)
        study.cancel(7, "the day is over")
        study.export(tmp_path / "s.csv")
        head, *rows = (line.split(",") for line in (tmp_path / "s.csv").read_text().splitlines())
        for row in rows[-2:]:
            row[head.index("status")], row[head.index("return")] = status, "7.5"
        table = "".join(",".join(cells) + "\n" for cells in [head, *rows])
        (tmp_path / "s.csv").write_text(table)
        before = study.counts()
        with pytest.raises(InputError, match=r"was not told of \(6, 7\).*tell .*robot.db --file "):
            import_file(study, tmp_path / "s.csv")
        assert study.counts() == before
        assert self.told(tmp_path, table)[-2:] == [7.5, 7.5]
        study.tell([6, 7], [7.5, 7.5])
        with pytest.raises(InputError, match=f"{SAMPLES_THERE} already"):
            import_file(study, tmp_path / "s.csv")

    @pytest.mark.parametrize(
        ("row", "sentence"),
        [
            (
                "3,2,3,done",
                "line 3 of .*: status must be ok, failed, pending or cancelled .*'done'",
            ),
            ("3,2,3,failed", r"line 3 of .*: give a return \(status ok\), or why it failed .*both"),
        ],
    )
    def test_what_contradicts_itself_or_is_no_word_is_refused(self, tmp_path, row, sentence):
        with pytest.raises(InputError, match=sentence):
            self.told(tmp_path, f"theta_0,theta_1,return,status\n1,1,1,ok\n{row}\n5,4,2,ok\n")


class TestExports:
    def test_names_that_begin_with_theta_have_columns_of_their_own(self, tmp_path):
        named = {"params": [{"name": "x"}, {"name": "theta_x"}]}
        with Study.open(tmp_path / "named.db", batch=4, **named) as study:
            found = tables.columns_of(study.opened)
            for trial in study.ask(4):
                study.tell(trial.id, 1.0 * trial.id)
            study.export(tmp_path / "out.csv")
        assert len(found) == len(set(found))
        assert {"mean_x", "mean_theta_x", "std_x", "std_theta_x"} <= set(found)
        with Study.open(tmp_path / "again.db", batch=4, **named) as again:
            assert import_file(again, tmp_path / "out.csv").samples == 4

    @pytest.mark.parametrize(
        "note",
        ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\tx", "＝1+1", "'=1"],
    )
    def test_a_note_is_no_formula(self, study, tmp_path, note):
        (trial,) = study.ask(1)
        study.tell(trial.id, failed=note)
        study.export(tmp_path / "out.csv")
        with (tmp_path / "out.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["note"] for row in rows if row["note"]] == [f"'{note}"]
        assert tables.unquoted(f"'{note}") == note
        assert float(rows[0]["theta_0"])  # a number stays one, whatever its sign

    @pytest.mark.parametrize("text", ["'quoted'", "a=b", "", "'", "''", "1-2", "' a", "it's -1"])
    def test_other_texts_stay_as_they_are(self, text):
        assert tables.quoted(text) == tables.unquoted(text) == text

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_a_name_behind_a_quotation_mark_comes_back(self, tmp_path, ending):
        named = {"params": {"'=a": (-1, 1), "=a": (-1, 1), "'b": None}, "batch": 4}
        with Study.open(tmp_path / "named.db", **named) as study:
            for trial in study.ask(4):
                study.tell(trial.id, 1.0 * trial.id)
            study.export(tmp_path / f"out.{ending}")
            before = [trial.params for trial in study.trials()]
        with Study.open(tmp_path / "again.db", **named) as again:
            assert import_file(again, tmp_path / f"out.{ending}").samples == 4
            assert [trial.params for trial in again.trials()] == before

    def test_a_name_is_no_formula_either_and_comes_back(self, tmp_path, capsys):
        names = ["=1+1", "-y", "@z", "'+w", "＝v", "plain"]
        named = {"params": dict.fromkeys(names, (-1, 1)), "batch": 4}
        with Study.open(tmp_path / "named.db", **named) as study:
            print_trials(study, study.ask(4), "csv")
            for trial in study.pending():
                study.tell(trial.id, 1.0 * trial.id)
            study.export(tmp_path / "out.csv")
        for line in (capsys.readouterr().out, (tmp_path / "out.csv").read_text()):
            cells = next(csv.reader([line.partition("\n")[0]]))
            assert {"'=1+1", "'-y", "'@z", "''+w", "'＝v", "plain"} <= set(cells)
            assert not [cell for cell in cells if cell.strip()[:1] in tuple("=+-@＝＋－＠")]
        with Study.open(tmp_path / "again.db", **named) as again:
            assert import_file(again, tmp_path / "out.csv").samples == 4
            again.export(tmp_path / "second.csv")
        first, second = (
            np.array([[float(row[f"latent_{name}"]) for name in names] for row in rows])
            for rows in (read(tmp_path / "out.csv"), read(tmp_path / "second.csv"))
        )
        np.testing.assert_array_equal(first, second)

    def test_a_table_of_before_without_such_marks_is_read(self, tmp_path):
        with Study.open(tmp_path / "new.db", params={"-y": (-1, 1)}, batch=4) as study:
            (tmp_path / "old.csv").write_text("-y,return\n0.5,1\n-0.5,2\n0.1,3\n")
            assert import_file(study, tmp_path / "old.csv").samples == 3

    def test_an_ending_that_is_none_of_ours_is_refused(self, study, tmp_path):
        with pytest.raises(InputError, match=r"x.xlsx must end in .csv, .parquet or .pq"):
            study.export(tmp_path / "x.xlsx")

    def test_one_that_is_stopped_leaves_nothing_under_its_name(self, study, tmp_path, monkeypatch):
        def stopped(study, file):
            file.write("id,kind\n1,")
            raise KeyboardInterrupt

        monkeypatch.setattr(tables, "write_csv", stopped)
        with pytest.raises(KeyboardInterrupt):
            study.export(tmp_path / "out.csv")
        assert [p.name for p in tmp_path.iterdir() if "out.csv" in p.name] == []


def test_what_is_not_a_number_is_not_sound(study):
    """A distribution that became NaN by whatever way: `check` says so."""
    path = study.store.path
    with study.store.writing():
        study.store.add_proposals("imported", "diagonal", [np.full(4, np.nan)])
    found = check(path)
    assert not found[-1].sound
    assert "is not made of finite numbers" in found[-1].words


def test_a_terminal_obeys_nothing_that_is_shown():
    assert printable("fell \x1b[2J over\n") == "fell \\x1b[2J over\\n"
