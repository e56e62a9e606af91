"""What drew samples, from one study to another: by tables, arrays and files, of every family."""

import csv
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from own_families import leaning, plain_widths, rounded, width_first

from recoup.checks import InputError
from recoup.core.families.table import FAMILIES as OURS
from recoup.core.families.table import WORDS
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

DIM = 3
START = {"batch": 6, "seed": 5, "std": 0.7, "method": "mis-pgpe-ob"}
NAMED = {"stiffness": (10, 200, "log"), "count": (1, 9, "int"), "offset": None}
LEANING, ROUND = leaning(lean=0.8), rounded()
FAMILIES = {**{name: name for name in WORDS}, "leaning": LEANING, "round": ROUND}
DREW = ("family", "rho_", "mean_", "std_")  # how columns begin of what drew a row
QUOTED = ("'x", "'=x", "''x")
FILES = ("csv", "parquet", "db", "npz")


def value_of(theta):
    away = np.asarray(theta) / [100.0, 5.0, 1.0] - 0.5
    return float(-np.sum((away @ [[2, 0, 0], [1, 1, 0], [0, 1, 1]]) ** 2))


def opened(path, family, *, named=False, **more):
    kind = {"params": NAMED} if named else {"dim": DIM}
    return Study.open(path, **{**START, **kind, **more}, family=FAMILIES.get(family, family))


def fill(study):
    """Some moves, with what the study did not draw, what failed and what waits between them."""
    study.enqueue(study.mean_policy)
    for number in range(27):
        (trial,) = study.ask(at="mean") if number == 9 else study.ask()
        if number % 7 == 3:
            study.tell(trial.id, failed="slipped")
        else:
            study.tell(trial.id, value_of(trial.theta))
    study.ask(2)
    assert len(study.history()) >= 2
    return study


@pytest.fixture(scope="module", params=[(f, named) for f in FAMILIES for named in (False, True)])
def source(request, tmp_path_factory):
    """A study of each family, with and without named parameters."""
    family, named = request.param
    folder = tmp_path_factory.mktemp(family)
    with fill(opened(folder / "old.db", family, named=named)) as study:
        yield study, family, named


@pytest.fixture(scope="module")
def quoted_files(tmp_path_factory):
    """For each name of a family that may begin with a quotation mark, a study of that."""
    found = {name: tmp_path_factory.mktemp("quoted") / "a.db" for name in QUOTED}
    for name, path in found.items():
        fill(opened(path, leaning(name))).close()
    return found


@pytest.fixture(scope="module")
def old_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("old") / "old.db"
    fill(opened(path, "leaning")).close()
    return path


@pytest.fixture
def old(old_file, tmp_path):
    """One whose family is the user's, and has a third array."""
    with opened(shutil.copy(old_file, tmp_path / "old.db"), "leaning") as study:
        yield study


def exported(study, path):
    """The results of a study in a file that `import` reads."""
    if path.suffix == ".db":
        return study.store.path
    if path.suffix != ".npz":
        study.export(path)
        return path
    rows = study.store.samples()
    np.savez(
        path,
        theta=study.opened.values([trial for trial, _ in rows]),
        returns=[np.nan if value is None else value for _, value in rows],
        family=study.opened.family,
        rho=[study.store.proposal(trial.proposal).numbers for trial, _ in rows],
    )
    return path


def take(study, path):
    """What `recoup study import` does."""
    return import_samples(study.opened, read_samples(study.opened, path), str(path))


def drawn(study):
    """Every sample of a study, in order: its theta, what drew it, what it earned."""
    return [
        (trial.theta, study.store.proposal(trial.proposal).numbers, value)
        for trial, value in study.store.samples()
    ]


def check_same_bits(mine, other, exact_theta=True):
    assert len(mine) == len(other) > 10
    for (theta, numbers, value), (theta_, numbers_, value_) in zip(mine, other, strict=True):
        assert numbers.tobytes() == numbers_.tobytes()
        assert value == value_
        if exact_theta:
            assert theta.tobytes() == theta_.tobytes()


def check_same_judgement(mine, other):
    known = 0
    for mean, std in ((mine.mean_policy, 0.6), (other.mean_policy, 0.6), (other.mean_policy, 0.9)):
        here, there = mine.evaluate(mean, std), other.evaluate(mean, std)
        by_weights = there.explained < 1  # the model knows of trials that no distribution drew, too
        weighed = ("mean", "stderr", "low", "high") if by_weights else ()
        for key in ("ess", "unseen", *weighed):
            want = getattr(there, key)
            assert getattr(here, key) == pytest.approx(want, rel=1e-12, nan_ok=True)
        known += by_weights and np.isfinite(there.mean)
    assert known


def contents(study):
    """What an import could change."""
    return study.counts(), len(study.store.proposals()), len(study.store.events())


def table_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows, names=None):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, list(rows[0]) if names is None else names, extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(rows)
    return path


def without(path, out, *prefixes):
    """A table without the columns that begin so."""
    rows = table_of(path)
    return write(out, rows, [name for name in rows[0] if not name.startswith(prefixes)])


class TestRoundTrip:
    @pytest.mark.parametrize("ending", FILES)
    def test_what_drew_each_sample_comes_back_to_the_last_bit(self, source, tmp_path, ending):
        study, family, named = source
        path = exported(study, tmp_path / f"t.{ending}")
        with opened(tmp_path / "new.db", family, named=named, seed=8) as new:
            if ending == "npz" and named:  # which has no latent thetas: whole numbers are rounded
                assert take(new, path).samples == study.counts()["ok"] - 2
                got, want = drawn(new), drawn(study)
                assert [x[1].tobytes() for x in got] == [x[1].tobytes() for x in want]
                return
            found = take(new, path)
            assert (found.samples, found.fitted) == (study.counts()["ok"] - 2, False)
            assert found.failed > 0
            check_same_bits(drawn(new), drawn(study))
            check_same_judgement(new, study)

    def test_so_it_does_from_a_table_of_imported_samples(self, source, tmp_path):
        study, family, named = source
        study.export(tmp_path / "t.csv")
        with opened(tmp_path / "b.db", family, named=named) as b:
            take(b, tmp_path / "t.csv")
            b.export(tmp_path / "u.csv")
        with opened(tmp_path / "c.db", family, named=named) as c:
            take(c, tmp_path / "u.csv")
            check_same_bits(drawn(c), drawn(study))

    def test_so_it_does_from_a_table_that_pandas_has_written(self, source, tmp_path):
        pytest.importorskip("pandas")
        study, family, named = source
        study.dataframe(full=True).to_csv(tmp_path / "t.csv", index=False)
        study.export(tmp_path / "u.csv")
        assert list(study.dataframe(full=True).columns) == list(table_of(tmp_path / "u.csv")[0])
        with opened(tmp_path / "b.db", family, named=named) as b:
            take(b, tmp_path / "t.csv")
            check_same_bits(drawn(b), drawn(study))

    def test_a_table_has_the_family_and_the_numbers_of_what_drew_each_row(self, source, tmp_path):
        study, family, _ = source
        study.export(tmp_path / "t.csv")
        size = study.opened.block_size
        kinds = set()
        for row in table_of(tmp_path / "t.csv"):
            kinds.add((row["kind"], row["status"]))
            cells = [row[f"rho_{i}"] for i in range(size)]
            assert f"rho_{size}" not in row
            if row["proposal"]:
                numbers = study.store.proposal(int(row["proposal"])).numbers
                assert (row["family"], [float(cell) for cell in cells]) == (
                    family,
                    numbers.tolist(),
                )
            else:
                assert {row["family"], *cells} == {""}
        assert {("own", "ok"), ("mean", "ok"), ("drawn", "failed"), ("drawn", "pending")} <= kinds

    def test_of_other_bounds_it_comes_back_under_those_that_it_was_drawn_under(self, tmp_path):
        """A fork's table: each row has its own bounds, and one name of the family."""
        changed = {"stiffness": (30, 90, "log")}
        with opened(tmp_path / "a.db", "diagonal", named=True) as a:
            for trial in a.ask(14):
                a.tell(trial.id, value_of(trial.theta))
            want = drawn(a)
            with a.fork(tmp_path / "b.db", params=changed) as b:
                assert {p.family for p in b.store.proposals().values()} > {"diagonal:1"}
                b.export(tmp_path / "t.csv")
        assert {row["family"] for row in table_of(tmp_path / "t.csv")} == {"diagonal"}
        with opened(tmp_path / "c.db", "diagonal", named=True) as c:
            take(c, tmp_path / "t.csv")
            check_same_bits(drawn(c), want)

    def test_a_table_of_trajectories_says_what_drew_them(self, tmp_path):
        how = {"method": "iw-reinforce-ob", "horizon": 4, "actions": 2}
        with Study.open(tmp_path / "a.db", dim=4, **how) as study:
            study.ask(2)
            study.export(tmp_path / "t.csv")
            numbers = study.store.proposal(0).numbers.tolist()
        for row in table_of(tmp_path / "t.csv"):
            cells = [float(row[f"rho_{i}"]) for i in range(6)]
            assert (row["family"], cells) == ("policy", numbers)
        other = opened(tmp_path / "b.db", "diagonal", dim=4)
        with other, pytest.raises(InputError, match="from the family policy, this study from dia"):
            take(other, tmp_path / "t.csv")

    @settings(max_examples=12, deadline=None)
    @given(data=st.data(), family=st.sampled_from(["diagonal", "full", "leaning"]))
    def test_any_numbers_come_back(self, tmp_path_factory, data, family):
        path, given_family = tmp_path_factory.mktemp("any") / "t.csv", FAMILIES[family]
        made = resolved({"dim": DIM, "family": given_family, **START})
        parts = {"family": given_family} if family == "leaning" else {}
        with Study.create(None, made, parts) as one, Study.create(None, made, parts) as other:
            size, most = one.opened.block_size, 30.0 if parts else 1e6  # of logarithms, or not
            some = st.floats(-most, most).map(lambda x: x + 0.0)  # one zero, not two
            blocks = data.draw(arrays.arrays(np.float64, (5, size), elements=some))
            if not parts:
                spread = one.opened.rho(np.arange(float(size))).positive.astype(int)
                scale = st.floats(1e-9, 1e9)
                blocks[:, spread] = data.draw(arrays.arrays(np.float64, (5, DIM), elements=scale))
            one.import_samples(blocks[:, :DIM] + 1e-3, np.arange(5.0), rho=blocks)
            one.export(path)
            take(other, path)
            got = [numbers for _, numbers, _ in drawn(other)]
            np.testing.assert_array_equal(got, blocks, strict=True)


class TestNames:
    @pytest.mark.parametrize("ending", FILES)
    def test_another_family_is_refused_and_nothing_changes(self, source, tmp_path, ending):
        study, family, named = source
        path = exported(study, tmp_path / f"t.{ending}")
        for other in FAMILIES:
            if other == family or (family == "diagonal" and other in WORDS):
                continue
            with opened(tmp_path / f"{other}.db", other, named=named) as new:
                before = contents(new)
                match = rf"from the family {family}, this study from {other}: they do not match"
                with pytest.raises(InputError, match=match):
                    take(new, path)
                assert contents(new) == before

    @pytest.mark.parametrize("ending", FILES)
    @pytest.mark.parametrize("named", [False, True])
    def test_full_covariances_take_what_diagonal_ones_drew(self, tmp_path, ending, named):
        with (
            fill(opened(tmp_path / "a.db", "diagonal", named=named)) as a,
            opened(tmp_path / "b.db", "full", named=named) as b,
        ):
            take(b, exported(a, tmp_path / f"t.{ending}"))
            for (_, mine, _), (_, other, _) in zip(drawn(b), drawn(a), strict=True):
                factor = b.opened.rho(mine).factor
                assert mine[:DIM].tobytes() == other[:DIM].tobytes()
                np.testing.assert_array_equal(factor, np.diag(other[DIM:]))

    @pytest.mark.parametrize("ending", FILES)
    @pytest.mark.parametrize("name", QUOTED)
    def test_a_quotation_mark_belongs_to_the_name(self, quoted_files, tmp_path, ending, name):
        mine, other = leaning(name), leaning(name.lstrip("'"))
        with (
            opened(shutil.copy(quoted_files[name], tmp_path / "a.db"), mine) as a,
            opened(tmp_path / "b.db", mine) as b,
            opened(tmp_path / "c.db", other) as c,
        ):
            path = exported(a, tmp_path / f"t.{ending}")
            take(b, path)
            check_same_bits(drawn(b), drawn(a))
            with pytest.raises(InputError, match=r"they do not match|not with the"):
                take(c, path)

    @pytest.mark.parametrize("ending", FILES)
    def test_another_family_of_the_same_name_is_refused(self, old, tmp_path, ending):
        path = exported(old, tmp_path / f"t.{ending}")
        with opened(tmp_path / "b.db", rounded("leaning")) as new:
            before = contents(new)
            with pytest.raises(
                InputError, match=r"9 numbers .* where this study has 4|not with the"
            ):
                take(new, path)
            assert contents(new) == before

    def test_a_table_of_ones_own_family_needs_its_numbers(self, old, tmp_path):
        """Means and deviations alone would be another distribution, of the same name."""
        old.export(tmp_path / "t.csv")
        for name, words in (
            ("leaning", "of which mean and std do not tell all"),
            ("diagonal", "from the family leaning, this study from diagonal"),
            ("round", "from the family leaning, this study from round"),
        ):
            path = without(tmp_path / "t.csv", tmp_path / f"{name}.csv", "rho_")
            new = opened(tmp_path / f"{name}.db", name)
            with new, pytest.raises(InputError, match=words):
                take(new, path)
        bare = without(tmp_path / "t.csv", tmp_path / "bare.csv", "rho_", "family")
        with opened(tmp_path / "b.db", "leaning") as new:
            with pytest.raises(InputError, match="mean and std do not tell a distribution of the"):
                take(new, bare)
            assert new.counts()["ok"] == 0

    def test_of_correlations_that_are_left_out_it_is_said(self, tmp_path):
        with fill(opened(tmp_path / "a.db", "full")) as a:
            a.export(tmp_path / "t.csv")
        path = without(tmp_path / "t.csv", tmp_path / "u.csv", "rho_")
        with opened(tmp_path / "b.db", "full") as b:
            with pytest.raises(InputError, match="of which mean and std do not tell all"):
                take(b, path)
            bare = without(path, tmp_path / "v.csv", "family")
            assert "from 4 proposals, taken as uncorrelated" in take(b, bare).words
        with opened(tmp_path / "c.db", "diagonal") as c:
            assert "uncorrelated" not in take(c, bare).words

    def test_a_parameter_of_before_may_be_called_as_the_column_is(self, tmp_path, monkeypatch):
        """In a table of somebody's own; an export of ours would have two columns of that name."""
        monkeypatch.setattr("recoup.study.reader.settings.check_new", lambda parameters: None)
        params = {"family": None, "rho_0": None}
        path = tmp_path / "t.csv"
        path.write_text("family,rho_0,return\n1,2,3\n2,4,4\n0,1,2\n")
        with Study.open(tmp_path / "a.db", params=params) as study:
            assert take(study, path).fitted
            with pytest.raises(InputError, match="two columns would be called 'family': fork"):
                study.export(tmp_path / "u.csv")
        with Study.open(tmp_path / "b.db", params={"task_version": None}, batch=4) as study:
            for trial in study.ask(4):
                study.tell(trial.id, 1.0 * trial.id)
            study.export(tmp_path / "v.csv")
        with Study.open(tmp_path / "c.db", params={"task_version": None}, batch=4) as study:
            assert take(study, tmp_path / "v.csv").samples == 4


class TestByHand:
    @pytest.mark.parametrize(
        ("column", "value", "words"),
        [
            (
                "mean_1",
                "0.3",
                r"line 4 of .*mean_1 is 0.3, but .* leave out the columns that begin",
            ),
            ("std_0", "9.5", r"line 4 of .*std_0 is 9.5, but .* by the columns rho_"),
            ("mean_1", "inf", r"line 4 of .*mean_1 is inf, but .* by the columns rho_"),
            ("mean_1", "-1e400", r"line 4 of .*mean_1 is -inf, but .* by the columns rho_"),
            ("std_0", "1e400", r"line 4 of .*std_0 is inf, but .* by the columns rho_"),
            ("rho_4", "", "line 4 of .*rho_0 to rho_8, of what drew it, must all be finite"),
            ("rho_4", "inf", "line 4 of .*rho_0 to rho_8, of what drew it, must all be finite"),
            ("family", "", "line 4 of .*the family is empty"),
            ("family", "full", "line 4 of .*the family is full, where line 3 has leaning"),
            ("rho_4", "x", "line 4 of .*rho_4 must be a number, got 'x'"),
        ],
    )
    def test_what_contradicts_itself_is_refused(self, old, tmp_path, column, value, words):
        old.export(tmp_path / "t.csv")
        rows = table_of(tmp_path / "t.csv")
        rows[2][column] = value
        with opened(tmp_path / "b.db", "leaning") as new:
            before = contents(new)
            with pytest.raises(InputError, match=words):
                take(new, write(tmp_path / "u.csv", rows))
            assert contents(new) == before

    @pytest.mark.parametrize("column", ["latent_stiffness", "latent_count", "latent_offset"])
    @pytest.mark.parametrize(
        ("value", "words"),
        [("inf", "is not that of"), ("-1e400", "is not that of"), ("", "is empty")],
    )
    def test_nor_is_a_latent_value_that_was_edited(self, tmp_path, column, value, words):
        with fill(opened(tmp_path / "a.db", "diagonal", named=True)) as a:
            a.export(tmp_path / "t.csv")
        rows = table_of(tmp_path / "t.csv")
        rows[2][column] = value
        with opened(tmp_path / "b.db", "diagonal", named=True) as new:
            before = contents(new)
            with pytest.raises(InputError, match=f"line 4 of .*{column} {words}"):
                take(new, write(tmp_path / "u.csv", rows))
            assert contents(new) == before
            rows[2] |= {f"{what}_{name}": "" for what in ("latent", "bounds") for name in NAMED}
            rows = [{k: v for k, v in row.items() if not k.startswith(DREW)} for row in rows]
            take(new, write(tmp_path / "v.csv", rows))  # a row of somebody's own

    def test_a_row_that_nothing_drew_has_no_mean_beside_it(self, old, tmp_path):
        old.export(tmp_path / "t.csv")
        rows = table_of(tmp_path / "t.csv")
        mine = {key: "" for key in rows[2] if key.startswith(DREW)}
        with opened(tmp_path / "b.db", "leaning") as new:
            for column in ("mean_1", "std_0"):
                rows[2] |= {**mine, column: "inf"}
                with pytest.raises(
                    InputError, match=r"line 4 of .*or all are empty, and its mean_"
                ):
                    take(new, write(tmp_path / "u.csv", rows))

    def test_numbers_without_their_means_or_some_of_them(self, old, tmp_path):
        old.export(tmp_path / "t.csv")
        rows = table_of(tmp_path / "t.csv")
        for cell in [f"rho_{i}" for i in range(9)]:
            rows[1][cell] = ""
        with opened(tmp_path / "b.db", "leaning") as new:
            for path, words in (
                (write(tmp_path / "half.csv", rows), "or all are empty, and its mean_ and std_"),
                (without(tmp_path / "t.csv", tmp_path / "u.csv", "rho_2"), "no column 'rho_2'"),
                (without(tmp_path / "t.csv", tmp_path / "v.csv", "family"), "no column 'family'"),
                (without(tmp_path / "t.csv", tmp_path / "w.csv", "rho_8"), "has 8 numbers for a"),
            ):
                with pytest.raises(InputError, match=words):
                    take(new, path)
            take(new, without(tmp_path / "t.csv", tmp_path / "x.csv", "mean_", "std_"))
            check_same_bits(drawn(new), drawn(old))

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_spread_that_none_has_is_refused_before_it_is_written(self, tmp_path, family):
        with opened(tmp_path / "a.db", family) as study:
            block = study.store.proposal(0).numbers.copy()
            block[DIM if family in OURS else slice(DIM, None)] = -1.0 if family in OURS else -1e4
            before = contents(study)
            with pytest.raises(InputError, match="must be positive standard deviations"):
                study.import_samples(np.ones((4, DIM)), np.arange(4.0), rho=block)
            assert contents(study) == before

    def test_arrays_say_whose_numbers_they_are(self, old, tmp_path):
        rows = drawn(old)
        found = {
            "theta": np.stack([theta for theta, _, _ in rows]),
            "returns": np.array([np.nan if value is None else value for _, _, value in rows]),
        }
        moments = {"mean": np.zeros(DIM), "std": np.ones(DIM)}
        rho = np.stack([numbers for _, numbers, _ in rows])
        cases = [
            ({"rho": rho}, "it needs family, one name, beside it"),
            ({"rho": rho, "family": ["leaning", "full"]}, "it needs family, one name, beside it"),
            ({"rho": rho, "family": "leaning", **moments}, "and neither mean nor std"),
            ({"rho": rho[:, :-1], "family": "leaning"}, "has 8 numbers for a distribution"),
            ({"rho": rho[:-1], "family": "leaning"}, r"shape \[K\] = \[9\], got"),
            ({"rho": rho.astype(str), "family": "leaning"}, "must be an array of real numbers"),
            ({"family": "leaning", **moments}, "of which mean and std do not tell all"),
            (
                {"family": "diagonal", **moments},
                "from the family diagonal, this study from leaning",
            ),
            (moments, "mean and std do not tell a distribution of the family leaning: give rho"),
        ]
        with opened(tmp_path / "b.db", "leaning") as new:
            before = contents(new)
            for i, (more, words) in enumerate(cases):
                np.savez(tmp_path / f"{i}.npz", **found, **more)
                with pytest.raises(InputError, match=words):
                    take(new, tmp_path / f"{i}.npz")
            with pytest.raises(InputError, match="mean and std do not tell a distribution"):
                new.import_samples(**found, **moments)
            assert contents(new) == before
            new.import_samples(**found, rho=rho)
            check_same_bits(drawn(new), rows)

    def test_what_a_family_cannot_start_with_is_not_fitted(self, tmp_path):
        """One width for all coordinates is no fit of samples whose spreads differ."""
        theta = np.random.default_rng(0).normal(0, [0.1, 1.0, 3.0], (30, DIM))
        with opened(tmp_path / "a.db", "round") as study:
            with pytest.raises(
                InputError, match="family round starts with other means and standard"
            ):
                study.import_samples(theta, theta.sum(1))
            assert study.counts()["ok"] == 0


IMPOSTORS = {
    "of another size": rounded("leaning"),
    "of another meaning": plain_widths("leaning"),
}


class TestTheFamilyOfAFile:
    """A file holds a family's name and numbers: what reads them must be what wrote them."""

    @pytest.mark.parametrize("which", IMPOSTORS)
    def test_another_of_its_name_is_not_taken(self, old, tmp_path, which):
        other, path = IMPOSTORS[which], old.store.path
        words = "was made with a family 'leaning', but not with the one that was given"
        with pytest.raises(InputError, match=words):
            Study.open(path, family=other)
        with pytest.raises(InputError, match=words):
            old.fork(tmp_path / "fork.db", family=other)
        with pytest.raises(InputError, match=words):
            old.replay(family=other)
        assert not (tmp_path / "fork.db").exists()
        with pytest.raises(InputError, match=r"made with family=leaning, not round"):
            Study.open(path, family=ROUND)

    def test_a_fork_draws_as_its_study_does(self, old, tmp_path):
        with old.fork(tmp_path / "fork.db") as new:
            assert new.store.newest().numbers.tobytes() == old.store.newest().numbers.tobytes()
            check_same_bits(drawn(new), drawn(old))
            check_same_judgement(new, old)
            np.testing.assert_array_equal(new.std, old.std)
        with Study.open(tmp_path / "fork.db", family=LEANING) as again:
            again.ask()

    def test_its_own_replay_goes_where_it_went(self, old):
        marks = old.distributions()
        for row in old.replay():
            np.testing.assert_array_equal(row.mean, marks[row.move][0])
            np.testing.assert_array_equal(row.std, marks[row.move][1])

    def test_means_and_deviations_are_shown_in_double(self, old):
        numbers = old.store.newest().numbers
        width, lean = np.exp(numbers[DIM : 2 * DIM]), numbers[2 * DIM :] * [0, 1, 1]
        np.testing.assert_allclose(old.std, width * np.sqrt(1 + lean**2), rtol=1e-14)

    def test_one_whose_means_do_not_come_first_is_not_moved_by_its_mean_alone(self, tmp_path):
        """What stands first, its widths, would be taken for the means, in silence."""
        with opened(tmp_path / "a.db", width_first()) as study:
            for trial in study.ask(5):
                study.tell(trial.id, value_of(trial.theta))
            with pytest.raises(InputError, match="width-first does not pack its means first"):
                study.evaluate(0.3)
            assert study.evaluate(0.3, 0.7).samples == 5

    def test_recovered_it_draws_and_judges_as_before(self, old, tmp_path):
        old.close()
        copy = shutil.copy(old.store.path, tmp_path / "copy.db")
        assert recover(copy, tmp_path / "new.db").missing == 0
        assert all(verdict.sound for verdict in check(tmp_path / "new.db"))
        with (
            opened(tmp_path / "new.db", "leaning") as new,
            opened(old.store.path, "leaning") as again,
        ):
            check_same_bits(drawn(new), drawn(again))
            assert [t.theta.tobytes() for t in new.ask(2)] == [
                t.theta.tobytes() for t in again.ask(2)
            ]


def test_every_family_says_what_it_starts_as():
    for ours in OURS.values():
        first = OURS[ours.starts_as] if ours.starts_as else ours
        known = first.rho
        mean, std = np.array([0.3, -0.2]), np.array([0.5, 2.0])
        started = ours.rho.start(mean, std)
        np.testing.assert_array_equal(started.mean, known.start(mean, std).mean)
        np.testing.assert_array_equal(started.std, known.start(mean, std).std)
        assert first.starts_as is None
        assert known.start(mean, std).packed().size == 4  # those given, and no other


@pytest.mark.parametrize("name", ["", " ", "a:1", "a:b", "a\nb", None, 3])
def test_a_family_needs_a_name_that_files_can_hold(name):
    with pytest.raises(InputError, match="a family needs a name"):
        leaning(name)
