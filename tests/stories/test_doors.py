"""What does not fit, at every door of a study: one sentence, and nothing is changed."""

import sqlite3

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup.checks import InputError
from recoup.engine.methods import METHODS, settings_of

HUGE = {
    "10^400": 10**400,
    "-10^400": -(10**400),
    "10^5000": 10**5000,
    "2^70": 2**70,
    "in a list": [10**400],
    "in an array": np.array([10**400], dtype=object),
    "infinity": float("inf"),
    "not a number": float("nan"),
}
TEXTS = {
    "a lone surrogate": "\udc80",
    "NUL": "a\0b",
    "long": "x" * 1_000_001,
}
NO_TEXTS = {
    "bytes": b"x",
    "a whole number": 3,
    "2^70": 2**70,
    "10^5000": 10**5000,
    "a number": 0.5,
    "an object": object(),
}
NUMBERS = {
    "open seed": lambda s, new, v: new(dim=2, seed=v),
    "open dim": lambda s, new, v: new(dim=v),
    "open batch": lambda s, new, v: new(dim=2, batch=v),
    "open window": lambda s, new, v: new(dim=2, window=v),
    "open mean": lambda s, new, v: new(dim=2, mean=v),
    "open one mean": lambda s, new, v: new(dim=2, mean=[v, 0.0]),
    "open std": lambda s, new, v: new(dim=2, std=v),
    "open horizon": lambda s, new, v: new(dim=2, method="iw-reinforce-ob", horizon=v),
    "open actions": lambda s, new, v: new(dim=2, method="iw-reinforce-ob", horizon=5, actions=v),
    "open discount": lambda s, new, v: new(dim=2, method="iw-reinforce-ob", horizon=5, discount=v),
    "open whole bound": lambda s, new, v: new(params={"x": (0, v, "int")}),
    "open params": lambda s, new, v: new(params=v),
    "open method": lambda s, new, v: new(dim=2, method=v),
    "open scale": lambda s, new, v: new(params={"x": (0, 1, v)}),
    "open name": lambda s, new, v: new(params=[{"name": v}]),
    "open again": lambda s, new, v: recoup.Study.open(s.store.path, batch=v),
    "open other dim": lambda s, new, v: recoup.Study.open(s.store.path, dim=v),
    "ask": lambda s, new, v: s.ask(v),
    "ask at": lambda s, new, v: s.ask(1, at=v),
    "enqueue": lambda s, new, v: s.enqueue([0.5, v]),
    "tell id": lambda s, new, v: s.tell(v, 1.0),
    "tell ids": lambda s, new, v: s.tell([v], [1.0]),
    "amend id": lambda s, new, v: s.amend(v, 1.5),
    "evaluate mean": lambda s, new, v: s.evaluate(mean=[0.5, v]),
    "evaluate std": lambda s, new, v: s.evaluate(std=v),
    "import theta": lambda s, new, v: s.import_samples([[0.5, v]], [1.0], [0.5, 0.0], 1.0),
    "import mean": lambda s, new, v: s.import_samples([[0.5, 1.0]], [1.0], v, 1.0),
    "fork seed": lambda s, new, v: s.fork(new.path, seed=v),
    "fork batch": lambda s, new, v: s.fork(new.path, batch=v),
    "fork freeze": lambda s, new, v: s.fork(new.path, freeze={"a": v}),
    "replay": lambda s, new, v: s.replay(v),
}
FINITE = {  # doors where a number as large as 2^70 is well
    "ask lease": lambda s, new, v: s.ask(1, lease=v),
    "open bound": lambda s, new, v: new(params={"x": (0, v)}),
    "open log bound": lambda s, new, v: new(params={"x": (1, v, "log")}),
    "open start": lambda s, new, v: new(params=[{"name": "x", "start": v}]),
    "open own std": lambda s, new, v: new(params=[{"name": "x", "std": v}]),
    "tell": lambda s, new, v: s.tell(2, v),
    "tell episodes": lambda s, new, v: s.tell(2, values=[v, 1.0]),
    "tell a list": lambda s, new, v: s.tell([2], [v]),
    "amend": lambda s, new, v: s.amend(1, v),
    "fork bound": lambda s, new, v: s.fork(new.path, params={"a": (0, v)}),
}
WRITTEN = {  # doors of texts
    "note": lambda s, new, v: s.enqueue([0.5, 1.0], note=v),
    "failed": lambda s, new, v: s.tell(2, failed=v),
    "amend failed": lambda s, new, v: s.amend(1, failed=v),
    "drop": lambda s, new, v: s.amend(1, drop=v),
    "why": lambda s, new, v: s.amend(1, 2.5, why=v),
    "why, dry": lambda s, new, v: s.amend(1, 2.5, why=v, dry_run=True),
}
PLACES = {
    "open": lambda s, new, v: recoup.Study.open(v, dim=2),
    "fork": lambda s, new, v: s.fork(v),
    "export": lambda s, new, v: s.export(v),
    "plot": lambda s, new, v: s.plot(v),
    "load": lambda s, new, v: recoup.load(v),
    "resume": lambda s, new, v: recoup.resume(v),
    "load_policy": lambda s, new, v: recoup.load_policy(v),
    "out": lambda s, new, v: recoup.train("toy", iterations=1, out=v),
}
SETTINGS = {  # a method for each number that methods can be set to
    key: method
    for method in reversed(METHODS)
    for key in settings_of(method)
    if isinstance(getattr(METHODS[method], key), (int, float)) or key in ("window", "truncate")
}


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "s.db"
    with recoup.Study.open(path, params={"a": (0, 1), "b": None}, batch=4) as study:
        trials = study.ask(3)
        study.tell(trials[0].id, 1.0)
        yield study


@pytest.fixture
def new(tmp_path):
    def made(**settings):
        recoup.Study.open(made.path, **settings)

    made.path = tmp_path / "new.db"
    return made


def content(study):
    """Every row of a study."""
    connection = sqlite3.connect(study.store.path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def refused(study, new, door, value):
    """What a door says to a value that it does not take, once nothing has changed by it."""
    before, there = content(study), sorted(new.path.parent.iterdir())
    with pytest.raises(InputError) as wrong:
        door(study, new, value)
    assert content(study) == before
    assert sorted(new.path.parent.iterdir()) == there
    text = str(wrong.value)
    assert text.isprintable()
    assert text.endswith((".", "?"))
    assert len(text) < 600
    return text


@pytest.mark.parametrize("door", NUMBERS.values(), ids=NUMBERS)
def test_a_number_that_does_not_fit_is_refused_in_a_sentence(study, new, door):
    for value in HUGE.values():
        refused(study, new, door, value)


@pytest.mark.parametrize("door", FINITE.values(), ids=FINITE)
def test_a_number_that_floating_point_cannot_hold_is_refused_likewise(study, new, door):
    for name in HUGE.keys() - {"2^70"}:
        refused(study, new, door, HUGE[name])


def test_a_setting_that_does_not_fit_is_refused_likewise(study, new):
    for key, method in SETTINGS.items():
        episode = {"horizon": 5} if METHODS[method].space == "actions" else {}
        settings = {"dim": 2, "method": method, **episode}
        for name in HUGE.keys() - {"2^70"}:
            own = {**settings, key: HUGE[name]}
            refused(study, new, lambda s, new, settings: new(**settings), own)


@pytest.mark.parametrize("door", WRITTEN.values(), ids=WRITTEN)
def test_a_text_that_a_file_cannot_hold_is_refused_likewise(study, new, door):
    for value in (*TEXTS.values(), *NO_TEXTS.values()):
        refused(study, new, door, value)
    study.enqueue([0.5, 1.0], note="this one can")
    assert len(study.ask(2)) == 2
    assert len(study.trials()) == 5  # no row was spoiled


@pytest.mark.parametrize("door", PLACES.values(), ids=PLACES)
def test_what_is_no_name_of_a_file_is_refused_likewise(study, new, door):
    for value in ("a\0b.db", *NO_TEXTS.values()):
        refused(study, new, door, value)


@pytest.mark.parametrize("value", [2**53 + 1, np.int64(2**53 + 1), 2**60 + 1])
def test_a_whole_number_is_kept_to_the_last_digit_or_refused(study, new, value):
    for door in (FINITE["tell"], FINITE["tell episodes"], FINITE["amend"], NUMBERS["enqueue"]):
        assert "loses digits" in refused(study, new, door, value)
    done = program("study", "tell", study.store.path, 2, value)
    assert done.returncode == 2
    assert "loses digits" in done.stderr
    study.tell(2, int(value) - 1)
    assert study.trials()[1].value == int(value) - 1


@pytest.mark.parametrize("high", [2**48, 10**9, 255])
def test_whole_parameters_come_back_as_they_were_given(new, high):
    values = [0, 1, high // 3, high // 2 + 1, high - 1, high, 3**29 % high]
    with recoup.Study.open(new.path, params={"x": (-high, high, "int")}) as study:
        for value in values:
            study.enqueue([value])
        assert [trial.params["x"] for trial in study.ask(len(values))] == values
    printed = program("study", "pending", new.path).stdout
    assert all(f" {value}" in printed for value in values)


def test_bounds_beyond_which_whole_numbers_are_not_exact_are_refused(study, new):
    for low, high in ((0, 2**60), (-(2**49), 5)):
        words = refused(study, new, lambda s, new, v: new(params={"x": v}), (low, high, "int"))
        assert "2^48" in words


HUNDREDS = "9" * 400
COMMANDS = (
    ("new", "--dim", HUNDREDS),
    ("new", "--dim", "2", "--seed", HUNDREDS),
    ("new", "--dim", "2", "--seed", str(2**70)),
    ("new", "--dim", "2", "--batch", str(2**70)),
    ("new", "--dim", "2", "--mean", HUNDREDS),
    ("new", "--dim", "2", "--set", f"prior={HUNDREDS}"),
    ("new", "--dim", "2", "--set", f"window={2**70}"),
    ("new", "--param", f"x=0:{HUNDREDS}"),
    ("new", "--param", f"x=0:{2**60}:int"),
    ("ask", "-n", HUNDREDS),
    ("ask", "-n", str(2**70)),
    ("ask", "--lease", f"{HUNDREDS}d"),
    ("tell", HUNDREDS, "1.0"),
    ("tell", "9" * 5000, "1.0"),
    ("tell", "2", HUNDREDS),
    ("tell", "2", "--failed", "\udc80"),
    ("tell", "2", "--failed", "x" * 1_000_001),
    ("amend", HUNDREDS, "1.5"),
    ("amend", "1", HUNDREDS),
    ("amend", "1", "2.5", "--why", "\udc80"),
    ("amend", "1", "--drop", "\udc80"),
    ("enqueue", "0.5", HUNDREDS),
    ("enqueue", "0.5", "1", "--note", "\udc80"),
    ("enqueue", "a=0.5", "\udc80=1"),
    ("evaluate", "--mean", f"0.5,{HUNDREDS}"),
    ("replay", "--set", f"prior={HUNDREDS}"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:40])
def test_the_command_line_refuses_it_with_one_sentence(study, new, words):
    verb, *rest = words
    before = content(study)
    file = new.path if verb == "new" else study.store.path
    done = program("study", verb, file, *rest)
    assert done.returncode == 2
    assert done.stdout == ""
    sentence = done.stderr.removesuffix("\n")
    assert sentence.startswith("recoup: ")
    assert sentence.isprintable()
    assert len(sentence) < 600
    assert content(study) == before
    assert not new.path.exists()


def test_a_study_in_memory_is_refused(tmp_path, monkeypatch):
    """A file of that name was made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="a study needs one: name a file"):
        recoup.Study.open(":memory:", dim=2)
    assert not list(tmp_path.iterdir())
