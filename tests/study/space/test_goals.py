"""Costs as they are: a study of costs is that of their negatives, to the bit, at every door."""

import csv
import io
import json
import re
import shutil
import sqlite3

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup.checks import InputError
from recoup.engine.methods import Method
from recoup.study.care.verify import check
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.space.goals import MINIMIZE

pytestmark = pytest.mark.usefixtures("few_rehearsals")

PARAMS = {"kp": (10, 400, "log"), "ki": (0.0, 1.0)}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")
QUICK = {
    "recoup": {},
    "mixture": {"method": "mis-pgpe-ob", "batch": 5},
    "failures worth a number": {"failure": -3.0},
    "worst failures": {"method": "mis-pgpe-ob", "batch": 5, "failure": "worst"},
}
SLOW = {
    "no reuse": {"method": "pgpe", "batch": 4},
    "own weights": {"method": "iw-pgpe-ob", "batch": 4},
    "best quarter": {"method": "cem", "batch": 8, "failure": "worst"},
    "exponential": {"method": "rwr", "batch": 8},
    "adam": {"method": "mis-pgpe-ob", "batch": 5, "update": "adam", "epsilon": 0.05},
    "pairs": {"method": "mis-pgpe-ob", "batch": 6, "mirrored": True},
    "a window": {"method": "mis-pgpe-ob", "batch": 5, "window": 2},
}
KINDS = [
    *(pytest.param(how, id=name) for name, how in QUICK.items()),
    *(pytest.param(how, id=name, marks=pytest.mark.slow) for name, how in SLOW.items()),
]


def earned(trial, rng):
    theta = np.array([np.log(trial.params["kp"] / 100), 3 * (trial.params["ki"] - 0.3)])
    return -float(theta @ theta) + 0.1 * float(rng.normal())


def told(path, sign, results=40, **settings):
    """A study of returns (1) or of their negatives (-1): failures, episodes, own choices too."""
    if not isinstance(settings.get("failure", ""), str):
        settings["failure"] = sign * settings["failure"]
    how = {"direction": "minimize"} if sign < 0 else {}
    study = recoup.Study.open(path, params=PARAMS, seed=5, **settings, **how)
    rng = np.random.default_rng(2)
    if not study.method.mirrored:
        study.enqueue({"kp": 90, "ki": 0.5}, "last year's")
    while sum(study.counts().values()) < results:
        for trial in study.ask(4):
            value = earned(trial, rng)
            if trial.id % 9 == 4:
                study.tell(trial.id, failed="slipped")
            elif trial.id % 7 == 1:
                study.tell(trial.id, values=[sign * value, sign * (value - 0.25), sign * value])
            else:
                study.tell(trial.id, sign * value)
    for trial in study.ask(5, at="mean"):
        study.tell(trial.id, sign * earned(trial, rng))
    return study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of returns and one of costs, which nobody writes to."""
    home = tmp_path_factory.mktemp("costs")
    for name, sign in (("returns.db", 1), ("costs.db", -1)):
        told(home / name, sign).close()
    return home


@pytest.fixture
def both(made, tmp_path):
    """Copies of them."""
    one, other = (shutil.copy(made / name, tmp_path) for name in ("returns.db", "costs.db"))
    with recoup.Study.open(one) as one, recoup.Study.open(other) as other:
        yield one, other


def rows(path):
    """Everything that decides a study, in the signs that it was told."""
    with sqlite3.connect(path) as file:
        asked = file.execute("SELECT id, kind, proposal, theta, seed FROM asked").fetchall()
        drew = file.execute("SELECT id, origin, family, numbers FROM proposals").fetchall()
        moves = file.execute("SELECT id, proposal, counted, memory FROM moves").fetchall()
        values = file.execute('SELECT id, status, "return", stderr, episodes FROM told').fetchall()
    return asked, drew, moves, values


def assert_negatives(one, other):
    assert one.keys() == other.keys()
    for key in one:
        a, b = one[key], other[key]
        if key == "direction":
            assert (a, b) == ("maximize", "minimize")
        elif key in ("objective", "expected", "mean", "return", "value") and isinstance(a, float):
            assert a == -b or np.isnan([a, b]).all(), key
        elif key == "remarks":
            assert [row["text"] for row in a] == [row["text"] for row in b]
        elif key.endswith("_at"):
            assert (a is None) == (b is None)  # when it happened: the two were made one by one
        elif key == "interval":
            assert a == [None if end is None else -end for end in b[::-1]]
        elif key == "low" and isinstance(a, float):
            assert a == -other["high"] or np.isnan([a, other["high"]]).all()
        elif key == "high" and isinstance(a, float):
            assert a == -other["low"] or np.isnan([a, other["low"]]).all()
        elif key in ("best", "of_mean") and a is not None:
            assert_negatives(a, b)
        elif key == "batches":
            for x, y in zip(a, b, strict=True):
                assert_negatives(x, y)
        elif key in ("words", "advice", "rests_on"):
            same_in_words(" ".join(a), " ".join(b))
        else:
            assert a == b or (isinstance(a, float) and np.isnan([a, b]).all()), key


def assert_same_snapshots(one, other):
    """All that `snapshot` says, but for times and places."""
    for key in one:
        a, b = one[key], other[key]
        if key.startswith("expected_return") or key == "recommendation":
            assert_negatives(a, b)
        elif key == "last_moves":
            for x, y in zip(a, b, strict=True):
                assert_negatives({**x, "made": None}, {**y, "made": None})
        elif key not in ("version", "path", "dates"):
            assert_negatives({key: a}, {key: b})


def same_in_words(one, other):
    """The same numbers but for signs and the order of intervals' ends; words of its own each."""
    timeless = (re.sub(r"(\d{4}-\d\d-\d\d )?\b\d\d:\d\d\b", "", text) for text in (one, other))
    sizes = [sorted(x.lstrip("-") for x in NUMBER.findall(text)) for text in timeless]
    assert sizes[0] == sizes[1]
    assert "cost" not in re.sub(r"costs?\.db|\(costs: --minimize\)", "", one)
    assert not re.search(r"\breturns?\b(?!\.db)|\bgain", other)


@pytest.mark.parametrize("how", KINDS)
def test_trials_and_moves_are_the_same_to_the_bit_and_every_number_is_the_negative(tmp_path, how):
    with (
        told(tmp_path / "a.db", 1, **how) as one,
        told(tmp_path / "b.db", -1, **how) as other,
    ):
        assert len(one.history()) > 2
        a, b = rows(one.store.path), rows(other.store.path)
        assert a[:3] == b[:3]
        for x, y in zip(a[3], b[3], strict=True):
            assert (x[:2], x[3:]) == (y[:2], y[3:])
            assert x[2] is y[2] is None or x[2] == -y[2]
        for x, y in zip(one.history(), other.history(), strict=True):
            assert_negatives(x, y)
        if not one.method.mirrored:
            assert_negatives(one.evaluate()._asdict(), other.evaluate()._asdict())
        assert_negatives(one.recommend().plain(), other.recommend().plain())
        assert_negatives(one.diagnostics(), other.diagnostics())
        assert_same_snapshots(one.snapshot().plain(), other.snapshot().plain())
        assert one.best[0].id == other.best[0].id
        assert one.best[1] == -other.best[1]
        assert other.method.failure == other.settings["failure"]
        assert all(verdict.sound for verdict in check(other.store.path))


def episode(trial, rng, sign):
    features = rng.normal(size=(5, 2))
    actions = features @ trial.theta[:, None] + trial.std * rng.normal(size=(5, 1))
    rewards = sign * (-(actions[:, 0] ** 2) - 0.1 + features[:, 0])
    return recoup.Trajectory(features, actions, rewards, 5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["iw-reinforce-ob", "tiw-enac", "r3"])
def test_so_are_those_that_explore_in_actions(tmp_path, method):
    studies = []
    for sign, name in ((1, "a.db"), (-1, "b.db")):
        how = {"direction": "minimize"} if sign < 0 else {}
        study = recoup.Study.open(
            tmp_path / name, dim=2, method=method, batch=4, horizon=5, mean=0.3, seed=1, **how
        )
        rng = np.random.default_rng(4)
        for _ in range(12):
            (trial,) = study.ask()
            study.tell(trial.id, trajectory=episode(trial, rng, sign))
        studies.append(study)
    one, other = studies
    assert rows(one.store.path)[:3] == rows(other.store.path)[:3]
    for x, y in zip(one.history(), other.history(), strict=True):
        assert_negatives(x, y)


def test_what_python_shows_is_of_costs(both):
    one, other = both
    for a, b in zip(one, other, strict=True):
        assert (a.value is None) == (b.value is None)
        assert a.value is None or a.value == -b.value
        assert (a.stderr, a.episodes, a.direction) == (b.stderr, b.episodes, "maximize")
        same_in_words(a._repr_html_(), b._repr_html_())
    assert "smaller is better" in repr(other)
    assert "Expected cost" in other.evaluate()._repr_html_()
    same_in_words(
        one._repr_html_().replace(str(one.store.path), ""),
        other._repr_html_().replace(str(other.store.path), ""),
    )


COMMANDS = {
    "show": ["show"],
    "recommend": ["recommend"],
    "evaluate": ["evaluate"],
    "evaluate one": ["evaluate", "--mean", "100,0.3", "--std", "0.5"],
    "replay": ["replay", "--method", "mis-pgpe-ob"],
    "amend": ["amend", "3", "--drop", "loose", "--dry-run"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_what_commands_print_is_of_costs(both, words):
    one, other = (
        program("study", words[0], study.store.path.name, *words[1:], cwd=study.store.path.parent)
        for study in both
    )
    assert one.returncode == other.returncode == 0
    same_in_words(one.stdout, other.stdout)


def test_new_tell_and_show_say_which_way_is_better(tmp_path):
    made = program("study", "new", "a.db", "--dim", 2, cwd=tmp_path).stdout
    assert made == "a.db\nTell returns: larger is better.\n"
    made = program("study", "new", "b.db", "--dim", 2, "--minimize", cwd=tmp_path).stdout
    assert made == "b.db\nTell costs: smaller is better.\n"
    for name, better in (("a.db", "larger is better"), ("b.db", "smaller is better")):
        program("study", "ask", name, "-n", 3, cwd=tmp_path)
        said = program("study", "tell", name, 1, "2.5", cwd=tmp_path).stdout
        assert said.startswith(f"Trial 1: 2.5 ({better}).\n")
        (tmp_path / "r.csv").write_text("id,return\n2,1.5\n3,2\n")
        said = program("study", "tell", name, "--file", "r.csv", cwd=tmp_path).stdout
        assert said.startswith(f"2 results told ({better}).\n")
        assert better in program("study", "show", name, cwd=tmp_path).stdout
    with recoup.Study.open(tmp_path / "a.db") as a, recoup.Study.open(tmp_path / "b.db") as b:
        assert (a.best[0].id, b.best[0].id) == (1, 2)


def test_sentences_about_what_is_told_speak_of_costs(tmp_path):
    with recoup.Study.open(tmp_path / "b.db", dim=1, direction="minimize") as study:
        study.ask(1)
        with pytest.raises(InputError, match="a cost must be finite"):
            study.tell(1, float("nan"))
        with pytest.raises(InputError, match="has no cost yet"):
            study.recommend()


def test_the_page_and_the_picture_are_of_costs(both):
    from recoup.report.study_page import write_study_report
    from recoup.study.views.plot_data import portrait

    one, other = both
    texts = []
    for study in both:
        page = write_study_report(study.store.path).read_text()
        page = re.sub(r"<svg.*?</svg>|<img[^>]*>|<style.*?</style>", "", page, flags=re.S)
        texts.append(re.sub(r"<[^>]+>|returns(-report)?\.db|costs\.db", " ", page))
    assert "smaller is better" in texts[1]
    assert not re.search(r"\bgain", texts[1])
    a, b = portrait(one.opened), portrait(other.opened)
    np.testing.assert_array_equal(a.returns, -b.returns)
    np.testing.assert_array_equal(a.low, -b.high)
    assert (a.noun, b.noun) == ("return", "cost")
    labels = [axes.get_ylabel() for axes in other.plot().axes]
    assert "cost" in labels
    assert "return" not in labels


def table(path):
    done = program("study", "export", path)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_prediction_is_of_costs(both):
    one, other = (study.predict({"kp": 95}) for study in both)
    assert np.isfinite(one.expected)
    assert_negatives(one.plain(), other.plain())
    assert both[0].recommend().matters == both[1].recommend().matters


def test_a_table_holds_what_was_told_and_says_that_it_is_costs(both):
    one, other = (table(study.store.path) for study in both)
    for a, b in zip(one, other, strict=True):
        assert b.pop("study_direction") == "minimize"
        for row in (a, b):
            del row["asked_at"], row["told_at"]
        if a["status"] == "ok":
            assert float(a.pop("return")) == -float(b.pop("return"))
        assert a == b


def test_a_fork_of_costs_is_one_of_costs_and_goes_on_alike(both, tmp_path):
    forks = [
        study.fork(tmp_path / f"fork{i}.db", method="mis-pgpe-ob", batch=3)
        for i, study in enumerate(both)
    ]
    for fork, sign in zip(forks, (1, -1), strict=True):
        for trial in fork.ask(6):
            fork.tell(trial.id, sign * trial.params["ki"])
    one, other = forks
    assert other.opened.goal is MINIMIZE
    assert rows(one.store.path)[:3] == rows(other.store.path)[:3]
    assert_negatives(one.history()[-1], other.history()[-1])


def test_what_failing_is_worth_is_said_anew_where_the_direction_is(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, failure=-20.0) as study:
        with pytest.raises(InputError, match=r"failing is worth -20 .* \(failure=20, or avoid\)"):
            study.fork(tmp_path / "b.db", direction="minimize")
        with study.fork(tmp_path / "b.db", direction="minimize", failure=20.0) as fork:
            assert fork.settings["failure"] == 20.0


@pytest.mark.parametrize("name", ["old.db", "old.csv"])
def test_a_late_result_comes_to_a_fork_that_takes_returns_as_costs_as_they_are(tmp_path, name):
    """None is the negative of what was told, and none of those that are there is called wrong."""
    with recoup.Study.open(tmp_path / "old.db", dim=2, batch=4) as old:
        trials = old.ask(8)
        for trial in trials[:6]:
            old.tell(trial.id, 1.0 + trial.id)
        old.tell(trials[6].id, failed="it fell")
        fork = old.fork(tmp_path / "new.db", direction="minimize")
        old.tell(trials[7].id, 5.0)
        old.amend(2, 9.0)
        old.export(tmp_path / "old.csv")
    with fork:
        found = import_samples(fork.opened, read_samples(fork.opened, tmp_path / name))
        assert (found.samples, found.again, found.amend) == (1, 7, (2,))
        assert "told as returns, and are taken as costs as they are" in found.words
        assert "negative" not in found.words
        assert [trial.value for trial in fork][-1] == 5.0
        coming = read_samples(fork.opened, tmp_path / name)
        with pytest.raises(InputError, match="Trial 2 has another result there"):
            import_samples(fork.opened, coming)
        fork.tell(fork.ask(1)[0].id, 7.0)
    with recoup.Study.open(tmp_path / "old.db") as old:
        import_samples(old.opened, read_samples(old.opened, tmp_path / "new.db"))
        assert [trial.value for trial in old][-1] == 7.0


def test_returns_that_were_costs_all_along_are_forked_into_costs(both, tmp_path):
    one, other = both
    with one.fork(tmp_path / "c.db", direction="minimize") as fork:
        assert fork.opened.goal is MINIMIZE
        assert fork.best[1] == min(trial.value for trial in one if trial.value is not None)
        assert fork.store.last_move().memory is None  # which was of returns
    said = program("study", "fork", other.store.path, tmp_path / "d.db", "--maximize")
    assert "larger is better" in said.stdout
    with recoup.Study.open(tmp_path / "d.db", direction="maximize") as fork:
        assert fork.best[1] == max(trial.value for trial in other if trial.value is not None)


def test_another_method_replayed_values_failures_as_they_are_told(both):
    one, other = both
    for a, b in zip(
        one.replay("mis-pgpe-ob", failure=-4.0),
        other.replay("mis-pgpe-ob", failure=4.0),
        strict=True,
    ):
        np.testing.assert_array_equal(a.mean, b.mean)
        assert_negatives(a.info, b.info)


def test_a_fork_takes_over_what_failing_costs(tmp_path):
    with (
        told(tmp_path / "a.db", 1, failure=-3.0) as one,
        told(tmp_path / "b.db", -1, failure=-3.0) as other,
        one.fork(tmp_path / "c.db", method="mis-pgpe-ob") as first,
        other.fork(tmp_path / "d.db", method="mis-pgpe-ob") as second,
        other.fork(tmp_path / "e.db", batch=7) as third,
    ):
        assert (first.settings["failure"], second.settings["failure"]) == (-3.0, 3.0)
        assert third.settings["failure"] == 3.0
        assert first.opened.method.failure == second.opened.method.failure == -3.0


def test_samples_of_the_other_direction_are_turned_and_that_is_said(both, tmp_path):
    one, other = both
    (tmp_path / "r.csv").write_text(program("study", "export", one.store.path).stdout)
    for i, source in enumerate((one.store.path, tmp_path / "r.csv")):
        path = tmp_path / f"new{i}.db"
        recoup.Study.open(path, params=PARAMS, direction="minimize").close()
        said = program("study", "import", path, source).stdout
        assert "told as returns (larger is better): each is the negative here" in said
        with recoup.Study.open(path) as study:
            found = sorted(trial.value for trial in study if trial.value is not None)
        told_ = [t.value for t in other if t.value is not None and t.proposal is not None]
        np.testing.assert_allclose(found, sorted(told_), rtol=1e-12)
    with recoup.Study.open(tmp_path / "back.db", params=PARAMS) as back:
        back.close()
    said = program("study", "import", tmp_path / "back.db", other.store.path).stdout
    assert "told as costs (smaller is better)" in said


def test_tables_of_costs_and_those_of_nobody_are_taken_as_they_are(both, tmp_path):
    _, other = both
    (tmp_path / "c.csv").write_text(program("study", "export", other.store.path).stdout)
    (tmp_path / "o.csv").write_text("kp,ki,return\n100,0.3,1.5\n120,0.4,2.5\n90,0.2,0.5\n")
    recoup.Study.open(tmp_path / "new.db", params=PARAMS, direction="minimize").close()
    for name in ("c.csv", "o.csv"):
        said = program("study", "import", "new.db", name, cwd=tmp_path).stdout
        assert "negative" not in said
    with recoup.Study.open(tmp_path / "new.db") as study:
        values = [trial.value for trial in study if trial.value is not None]
    assert 2.5 in values
    assert {t.value for t in other if t.kind == "drawn"} <= {*values, None}
    wrong = (tmp_path / "c.csv").read_text().replace("minimize", "sideways", 1)
    (tmp_path / "w.csv").write_text(wrong)
    said = program("study", "import", "new.db", "w.csv", cwd=tmp_path)
    assert said.returncode == 2
    assert "study_direction must be maximize or minimize, the same in all rows" in said.stderr


def test_amending_and_recovering_keep_costs(both, tmp_path):
    one, other = both
    same_in_words(one.amend(2, 0.5).words, other.amend(2, -0.5).words)
    assert rows(one.store.path)[1:3] == rows(other.store.path)[1:3]
    said = program("study", "check", other.store.path, "--recover", tmp_path / "saved.db")
    assert said.returncode == 0
    with recoup.Study.open(tmp_path / "saved.db", direction="minimize") as saved:
        assert saved.best[1] == other.best[1]
        assert all(verdict.sound for verdict in check(saved.store.path))


def test_the_two_directions_are_not_confused(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, direction="maximize") as study:
        assert "goal" not in study.settings
    recoup.Study.open(tmp_path / "a.db", direction="maximize").close()
    with pytest.raises(InputError, match="holds returns: larger is better"):
        recoup.Study.open(tmp_path / "a.db", direction="minimize")
    with pytest.raises(InputError, match="Did you mean 'minimize'"):
        recoup.Study.open(tmp_path / "b.db", dim=2, direction="minimise")
    with recoup.Study.open(
        tmp_path / "c.db", dim=2, method="mis-pgpe-ob", direction="gradient"
    ) as study:
        assert study.settings["direction"] == "gradient"
        assert study.opened.sign == 1.0
    recoup.Study.open(tmp_path / "c.db", direction="gradient").close()


def to_the_best(rho, samples, earned):
    """From the mean to the best sample so far, as a direction of one's own."""
    import jax.numpy as jnp

    best = jnp.argmax(jnp.where(earned.valid, earned.returns, -jnp.inf))
    where = samples.reshape(-1, samples.shape[-1])[best]
    return type(rho)(where - rho.mean, jnp.zeros_like(rho.std)), 0.0


def test_costs_go_with_a_direction_of_ones_own(tmp_path):
    row = Method("mine", weighting="balance", direction=to_the_best)
    for sign, name in ((1, "a.db"), (-1, "b.db")):
        how = {"direction": "minimize"} if sign < 0 else {}
        with recoup.Study.open(tmp_path / name, dim=2, method=row, batch=4, **how) as study:
            for trial in study.ask(4):
                study.tell(trial.id, sign * float(np.sum(trial.theta)))
    with (
        recoup.Study.open(tmp_path / "a.db", direction=to_the_best) as one,
        recoup.Study.open(tmp_path / "b.db", direction=to_the_best) as other,
    ):
        assert len(other.history()) == 1
        assert (one.opened.sign, other.opened.sign) == (1.0, -1.0)
        np.testing.assert_array_equal(one.mean, other.mean)
        assert one.mean.sum() > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: recoup.train("toy", episodes=10, direction="minimize"),
        lambda: recoup.search("mis-pgpe-ob", dim=2, batch=4, direction="minimize"),
    ],
)
def test_where_only_returns_are_taken_a_sentence_says_so(call):
    with pytest.raises(InputError, match="larger is better, so leave it out and give returns"):
        call()


def test_json_of_a_study_says_which_way_is_better(both):
    for study, word in zip(both, ("maximize", "minimize"), strict=True):
        for command in ("show", "recommend", "evaluate"):
            said = program("study", command, study.store.path, "--json").stdout
            assert json.loads(said)["direction"] == word
