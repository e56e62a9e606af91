"""Contexts: what was known before a trial, kept with its result and taken off of returns."""

import csv

import numpy as np
import program
import pytest

import recoup
from recoup import InputError
from recoup.cli.study_diary import _shown
from recoup.study.care.verify import check
from recoup.study.space.contexts import MOST_NUMBERS

PARAMS = {"kp": None, "kd": None}


def known_before(trial):
    """The payload and the temperature of a trial."""
    load, warm = np.random.default_rng([trial.id, 7]).normal(size=2)
    return {"payload": float(load), "warm": float(warm)}


def earned(trial, known):
    aside = 3 * known["payload"] + known["warm"] ** 2
    return -(trial.params["kp"] ** 2) - (trial.params["kd"] - 1) ** 2 + aside


def tell(study, n, context=True):
    """Asks for `n` trials and tells them, with what was known before if said."""
    for _ in range(n):
        (trial,) = study.ask()
        known = known_before(trial)
        how = {"context": known} if context else {}
        study.tell(trial.id, earned(trial, known), **how)


def means(study):
    """Where every move has gone."""
    store = study.store
    return [store.proposal(move.proposal).numbers.tolist() for move in store.moves()]


def kept(study):
    return {t.id: dict(t.also) for t in study.trials() if t.also}


def trial(study, number):
    return next(t for t in study.trials() if t.id == number)


@pytest.fixture
def path(tmp_path):
    """A study of 24 trials with contexts."""
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 24)
    return tmp_path / "a.db"


def test_contexts_make_other_moves_and_are_said_to_explain_them(path, tmp_path):
    with (
        recoup.Study.open(path) as study,
        recoup.Study.open(tmp_path / "b.db", params=PARAMS, context=False) as without,
    ):
        tell(without, 24)
        assert kept(study) == kept(without)
        assert means(study)[:2] == means(without)[:2]  # four results are too few
        assert means(study)[-1] != means(without)[-1]
        share = study.history()[-1]["notes"]["context"]
        assert 0.5 < share <= 1
        words = f"What was known before each trial explains {share:.0%} of the variance of returns"
        assert words in " ".join(study.snapshot().advice)
        assert "context" not in without.history()[-1]["notes"]
        assert "known before" not in " ".join(without.snapshot().advice)


def test_without_contexts_the_setting_changes_nothing(tmp_path):
    found = []
    for context in (True, False):
        with recoup.Study.open(tmp_path / f"{context}.db", params=PARAMS, context=context) as study:
            tell(study, 12, context=False)
            found.append(means(study))
            assert "context" not in study.history()[-1]["notes"]
    assert found[0] == found[1]


def test_moves_follow_from_the_file_to_the_bit(path):
    """Amended and put back, they are made again; `check` makes each once more."""
    with recoup.Study.open(path) as study:
        before = means(study)
        tell(study, 4)
    with recoup.Study.open(path) as study:
        study.amend(20, context={"payload": 9.0})
        amended = means(study)
        study.amend(20, context={"payload": known_before(trial(study, 20))["payload"]})
        assert means(study)[: len(before)] == before
    assert amended[: len(before) - 2] == before[:-2]
    assert amended[len(before) - 1] != before[-1]
    assert all(one.sound for one in check(path))


def test_names_are_those_of_the_first_and_what_is_bad_changes_nothing(path):
    with recoup.Study.open(path) as study:
        (trial,) = study.ask()
        before = study.counts()
        for bad, words in (
            ({"payload": 1.0}, "hold payload, warm|hold payload and warm, and this one payload"),
            ({"payload": 1.0, "cold": 2.0}, "the same names every time"),
            ({"payload": float("nan"), "warm": 1.0}, "context payload must be a finite number"),
            ({"payload": "heavy", "warm": 1.0}, "context payload must be"),
            ({"a b": 1.0}, "a number of a context needs a name"),
            ({1: 1.0}, "a number of a context needs a name"),
            ({"p" * 33: 1.0}, "at most 32 letters"),
            ({}, f"must hold 1 to {MOST_NUMBERS} numbers, got 0"),
            (
                [0.0] * (MOST_NUMBERS + 1),
                f"must hold 1 to {MOST_NUMBERS} numbers, got {MOST_NUMBERS + 1}",
            ),
            ([[1.0, 2.0]], "must be one row of numbers"),
            ("payload=1", "what was known before the trial"),
            (3.0, "what was known before the trial"),
        ):
            with pytest.raises(InputError, match=words):
                study.tell(trial.id, 1.0, context=bad)
        assert study.counts() == before
        study.tell(trial.id, 1.0)  # none is one too
        with pytest.raises(InputError, match="the same names every time"):
            study.amend(3, context={"cold": 1.0})


def test_a_list_is_a_context_of_numbers_in_order(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2) as study:
        first, second = study.ask(2)
        study.tell([first.id, second.id], [1.0, 2.0], context=[[0.1, -2], np.array([0.2, 3.0])])
        assert kept(study) == {
            1: {"context.1": 0.1, "context.2": -2.0},
            2: {"context.1": 0.2, "context.2": 3.0},
        }
        more = study.ask(2)
        with pytest.raises(InputError, match="`context` is a list"):
            study.tell([t.id for t in more], [1.0, 2.0], context={"payload": 1.0})


def test_several_told_at_once_have_one_set_of_names(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2) as study:
        ids = [t.id for t in study.ask(2)]
        with pytest.raises(InputError, match="the same names every time"):
            study.tell(ids, [1.0, 2.0], context=[{"a": 1.0}, {"b": 1.0}])
        assert study.counts()["ok"] == 0


def test_a_failed_trial_keeps_its_context(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        study.tell(study.ask()[0].id, failed="the gripper opened", context={"payload": 2.0})
        assert kept(study) == {1: {"context.payload": 2.0}}


def test_a_part_of_a_context_is_put_right(path):
    with recoup.Study.open(path) as study:
        value, warm = trial(study, 5).value, kept(study)[5]["context.warm"]
        study.amend(5, context={"payload": 0.25})
        assert kept(study)[5] == {"context.payload": 0.25, "context.warm": warm}
        assert trial(study, 5).value == value
        study.amend(5, -1.5)
        assert kept(study)[5] == {"context.payload": 0.25, "context.warm": warm}


def test_a_name_that_was_mistyped_is_put_right(tmp_path):
    """Also that of the first context, which all others have to have."""
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        first, second, third = (t.id for t in study.ask(3))
        study.tell(first, 1.0, context={"paylaod": 2.0})
        with pytest.raises(InputError, match="hold paylaod, and this one payload"):
            study.tell(second, 2.0, context={"payload": 3.0})
        study.amend(first, context={"paylaod": float("nan"), "payload": 2.0})
        study.tell(second, 2.0, context={"payload": 3.0})
        with pytest.raises(InputError, match="hold payload, and this one cold and payload"):
            study.amend(first, context={"cold": 1.0})
        with pytest.raises(InputError, match="must be a finite number"):
            study.tell(third, 2.0, context={"payload": float("nan")})
        study.amend(second, context={"payload": None})
        assert kept(study) == {first: {"context.payload": 2.0}}


def test_a_number_given_twice_is_refused_by_every_door(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        (number,) = (t.id for t in study.ask(1))
        how = {"also": {"context.payload": 1.0}, "context": {"payload": 2.0}}
        with pytest.raises(InputError, match="is given twice, beside the return"):
            study.tell(number, 1.0, **how)
        study.tell(number, 1.0, context={"payload": 2.0})
        with pytest.raises(InputError, match="is given twice, beside the return"):
            study.amend(number, 1.0, **how)
    rows = tmp_path / "rows.csv"
    rows.write_text("id,return,also_context.payload,context_payload\n2,1.0,1,2\n")
    done = program.recoup("study", "tell", tmp_path / "a.db", "--file", rows)
    assert "context.payload is given twice" in done.stderr


def test_tables_hold_contexts_to_the_bit(path, tmp_path):
    recoup.Study.open(tmp_path / "b.db", params=PARAMS).close()
    with recoup.Study.open(path) as study:
        study.export(tmp_path / "t.csv")
        want = kept(study)
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {
        int(row["id"]): {
            key: float(row[f"also_{key}"]) for key in ("context.payload", "context.warm")
        }
        for row in rows
    } == want
    done = program.recoup("study", "import", tmp_path / "b.db", tmp_path / "t.csv")
    assert done.returncode == 0, done.stderr
    with recoup.Study.open(tmp_path / "b.db") as other:
        assert list(kept(other).values()) == list(want.values())
        tell(other, 4)
        assert other.history()[-1]["notes"]["context"] > 0.5  # what was imported counts


@pytest.mark.parametrize(("called", "names"), [("cold", "cold and payload"), ("warm", "payload")])
def test_samples_from_elsewhere_have_the_names_of_the_study(path, tmp_path, called, names):
    """A number that is called otherwise, or that one row is without."""
    table, mine = tmp_path / "a.csv", tmp_path / "b.db"
    with recoup.Study.open(path) as study:
        study.export(table)
    first, *rest = table.read_text().splitlines()
    first = first.replace("also_context.warm", f"also_context.{called}")
    if called == "warm":
        rest[3] = rest[3].rpartition(",")[0] + ","
    table.write_text("\n".join([first, *rest]) + "\n")
    with recoup.Study.open(mine, params=PARAMS, seed=5) as study:
        tell(study, 2)
        told = study.counts()
    done = program.recoup("study", "import", mine, table)
    assert f"hold payload and warm, and this one {names}:" in done.stderr
    with recoup.Study.open(mine) as study:
        assert study.counts() == told


def test_a_fork_has_the_contexts_and_goes_on_with_them(path, tmp_path):
    with recoup.Study.open(path) as study, study.fork(tmp_path / "b.db") as fork:
        assert list(kept(fork).values()) == list(kept(study).values())
        tell(fork, 4)
        assert fork.history()[-1]["notes"]["context"] > 0.5
    with recoup.Study.open(path) as study, study.fork(tmp_path / "c.db", context=False) as fork:
        tell(fork, 4)
        assert "context" not in fork.history()[-1]["notes"]


def test_the_program_takes_them(tmp_path):
    path = tmp_path / "a.db"
    assert not program.recoup("study", "new", path, "--dim", "2").returncode
    program.recoup("study", "ask", path, "-n", "4")
    how = ("--context", "payload=2.5", "--context", "warm=-1")
    done = program.recoup("study", "tell", path, "1", "-3.5", *how)
    assert "context.payload 2.5" in done.stdout
    done = program.recoup("study", "tell", path, "2", "-3.5", "--context", "payload=2.5")
    assert done.returncode
    assert "the same names every time" in done.stderr
    (tmp_path / "r.csv").write_text(
        "id,return,failed,context_payload,context_warm\n2,-1,,0.1,0.2\n3,,stuck,0.3,0.4\n"
    )
    done = program.recoup("study", "tell", path, "--file", tmp_path / "r.csv")
    assert done.returncode == 0, done.stderr
    done = program.recoup("study", "amend", path, "2", "--context", "warm=7")
    assert done.returncode == 0, done.stderr
    with recoup.Study.open(path) as study:
        assert kept(study) == {
            1: {"context.payload": 2.5, "context.warm": -1.0},
            2: {"context.payload": 0.1, "context.warm": 7.0},
            3: {"context.payload": 0.3, "context.warm": 0.4},
        }
    done = program.recoup("study", "tell", path, "4", "1", "--context", "payload")
    assert done.returncode


def test_a_limit_is_not_on_what_is_known_before(tmp_path):
    with pytest.raises(InputError, match="known before"):
        recoup.Study.open(tmp_path / "a.db", params=PARAMS, limits=["context.payload<5"])
    assert not (tmp_path / "a.db").exists()


def test_contexts_and_limits_go_together(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS, limits=["force<50"]) as study:
        for _ in range(16):
            (trial,) = study.ask()
            known = known_before(trial)
            study.tell(trial.id, earned(trial, known), also={"force": 40.0}, context=known)
        assert study.history()[-1]["notes"]["context"] > 0.5


def test_other_methods_keep_contexts_and_do_not_look_at_them(tmp_path):
    found = []
    for context in (True, False):
        how = {"params": PARAMS, "method": "iw-pgpe-ob", "batch": 4}
        with recoup.Study.open(tmp_path / f"{context}.db", **how) as study:
            tell(study, 8, context)
            found.append(means(study))
            assert bool(kept(study)) == context
    assert found[0] == found[1]


def test_a_table_of_trials_has_room_for_few_numbers_of_a_context():
    assert _shown(["context.a", "force"]) == ["context.a", "force"]
    assert _shown(["force", *(f"context.{i}" for i in range(17))]) == ["force"]
