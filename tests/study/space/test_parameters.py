"""Named parameters: the user's units outside, an unbounded Gaussian inside."""

import sys
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import recoup as program

import recoup
from recoup import Study
from recoup.checks import InputError
from recoup.engine.ways import BOX
from recoup.study.exchange.read import read_samples
from recoup.study.space.parameters import Parameter, parameter, parameters_of, to_latent, to_user

FOUR = [
    Parameter("stiffness", 10, 200, "log"),
    Parameter("damping", -1, 3),
    Parameter("offset"),
    Parameter("gain", scale="log"),
]


@given(st.lists(st.floats(-20, 20), min_size=4, max_size=4))
def test_units_and_latent_values_are_inverse(latent):
    latent = np.array(latent)
    user = to_user(FOUR, latent)
    assert 10 <= user[0] <= 200
    assert -1 <= user[1] <= 3
    assert user[3] > 0
    np.testing.assert_allclose(to_latent(FOUR, user), latent, rtol=1e-6, atol=1e-5)


def test_the_middle_of_the_range_is_latent_zero():
    middle = to_user(FOUR, np.zeros(4))
    np.testing.assert_allclose(middle, [np.sqrt(10 * 200), 1, 0, 1])


def test_a_bound_itself_can_be_reached():
    ends = to_user(FOUR[:2], to_latent(FOUR[:2], np.array([10.0, 3.0])))
    np.testing.assert_allclose(ends, [10, 3], rtol=1e-12)
    np.testing.assert_allclose(to_user(FOUR[:2], np.array([1e9, -1e9])), [200, -1], rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("stiffness=10:200:log", FOUR[0]),
        ("damping=-1:3", FOUR[1]),
        ("offset", FOUR[2]),
        ("gain=::log", FOUR[3]),
    ],
)
def test_parameters_as_they_are_typed(text, want):
    assert parameter(text) == want


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a=1", "takes NAME, NAME=LOW:HIGH"),
        ("=1:2", "takes NAME"),
        ("a=1:2:3:4", "takes NAME"),
        ("a=x:2", "must be numbers"),
        ("a=2:1", "low must lie below high, got 2 and 1"),
        ("a=1:", "has one bound"),
        ("a=0:2:log", "a log scale needs positive bounds, got 0"),
        ("a=1:2:logg", "Did you mean 'log'"),
        ("a=1:inf", "high of a must be a finite number"),
        ("a=-1e308:1e308", "too wide for numbers"),
        ("return=0:1", "'return' cannot name a parameter"),
        ("mean_x", "'mean_x' cannot name a parameter"),
    ],
)
def test_wrong_parameters_get_one_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parameter(text)


@pytest.mark.parametrize(
    "names",
    [
        *(["task_version"], ["family"], ["rho_0"], ["x", "rho_12"], ["x", "std_x"]),
        *(["x", "latent_x"], ["bounds_x", "x"], ["x", "mean_x"], ["latent_x", "latent_latent_x"]),
    ],
    ids=",".join,
)
def test_no_new_parameter_is_called_as_a_column_of_tables_is(tmp_path, names):
    with pytest.raises(InputError, match="cannot name a parameter: tables have such a column"):
        recoup.Study.open(tmp_path / "s.db", params=names)
    assert not (tmp_path / "s.db").exists()


def test_others_that_begin_so_are_names(tmp_path):
    names = ["rho", "rho_x", "latent_x", "bounds_y", "families"]
    with recoup.Study.open(tmp_path / "s.db", params=names, batch=4) as study:
        for trial in study.ask(4):
            study.tell(trial.id, 1.0 * trial.id)
        study.export(tmp_path / "t.csv")
    with recoup.Study.open(tmp_path / "u.db", params=names, batch=4) as again:
        read_samples(again.opened, tmp_path / "t.csv")


@pytest.mark.parametrize("params", [np.array(1.0), 5, "x"], ids=repr)
def test_parameters_that_are_no_list_get_one_sentence(tmp_path, params):
    with pytest.raises(InputError, match="params must be a mapping of names to bounds, got"):
        recoup.Study.open(tmp_path / "s.db", params=params)
    recoup.Study.open(tmp_path / "t.db", params=np.array(["x", "y"])).close()


def test_a_file_of_parameters(tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(
        '[stiffness]\nlow = 10\nhigh = 200\nscale = "log"\nstart = 50\nstd = 0.2\n[offset]\n'
    )
    stiffness, offset = parameters_of(path)
    assert stiffness == Parameter("stiffness", 10, 200, "log", 50, 0.2)
    assert offset == Parameter("offset")
    with recoup.Study.open(tmp_path / "s.db", params=[stiffness, offset], std=0.7) as study:
        np.testing.assert_allclose(study.mean_policy, [50, 0])
        np.testing.assert_allclose(study.std, [0.2, 0.7])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("stiffness = 3", r"must be a table, \[stiffness\]"),
        ("[a]\nlo = 1", "Did you mean 'low'"),
        ("[a]\nlow = 'x'\nhigh = 2", "low of a must be a finite number"),
        ("[a]\nlow = 1\nhigh = 2\nstart = 7", r"a must lie in 1\.\.2, got 7"),
        ("[a", "is not TOML"),
        ("", "at least one parameter"),
    ],
)
def test_a_wrong_file_gets_one_sentence(tmp_path, content, sentence):
    (tmp_path / "robot.toml").write_text(content)
    with pytest.raises(ValueError, match=sentence):
        parameters_of(tmp_path / "robot.toml")


class TestTheStudy:
    params = MappingProxyType({"stiffness": (10, 200, "log"), "damping": (-1, 3)})

    def value(self, theta):
        return -((np.log(theta[0]) - 4) ** 2) - theta[1] ** 2

    def test_it_is_the_unnamed_study_in_other_units(self, tmp_path):
        """Same seed: thetas and moves are those of the latent study, densities and all."""
        parameters = [
            Parameter("stiffness", 10, 200, "log", beyond=BOX.beyond),
            Parameter("damping", -1, 3, beyond=BOX.beyond),
        ]
        how = {"batch": 4, "seed": 2, "std": BOX.std, **BOX.settings}
        with (
            recoup.Study.open(tmp_path / "a.db", params=self.params, batch=4, seed=2) as named,
            recoup.Study.open(tmp_path / "b.db", dim=2, **how) as plain,
        ):
            for _ in range(5):
                for mine, other in zip(named.ask(4), plain.ask(4), strict=True):
                    np.testing.assert_array_equal(to_user(parameters, other.theta), mine.theta)
                    assert mine.params == dict(
                        zip(("stiffness", "damping"), mine.theta, strict=True)
                    )
                    for study in (named, plain):
                        study.tell(mine.id, self.value(mine.theta))
            np.testing.assert_array_equal(named.mean, plain.mean)
            np.testing.assert_array_equal(named.std, plain.std)
            np.testing.assert_array_equal(named.mean_policy, to_user(parameters, plain.mean))
            centre = {"stiffness": 40.0, "damping": 0.5}
            here = named.evaluate(centre, 0.8)
            there = plain.evaluate(to_latent(parameters, np.array([40.0, 0.5])), 0.8)
            np.testing.assert_equal(here._asdict(), there._asdict())

    def test_the_start_is_in_the_users_units(self, tmp_path):
        path = tmp_path / "s.db"
        with recoup.Study.open(path, params=self.params, mean=[50, 0], std=0.1) as study:
            np.testing.assert_allclose(study.mean_policy, [50, 0], atol=1e-12)
        recoup.Study.open(path, params=self.params, mean=[50, 0], std=0.1).close()
        with pytest.raises(ValueError, match="was made with mean="):
            recoup.Study.open(path, mean=[60, 0])
        with pytest.raises(ValueError, match="was made with params="):
            recoup.Study.open(path, params={"stiffness": (10, 100), "damping": (-1, 3)})

    def test_wrong_names_and_values_change_nothing(self, tmp_path):
        with recoup.Study.open(tmp_path / "s.db", params=self.params) as study:
            with pytest.raises(ValueError, match="the parameters are stiffness, damping"):
                study.enqueue({"stiffness": 20})
            with pytest.raises(ValueError, match=r"stiffness must lie in 10\.\.200, got 5"):
                study.enqueue([5, 0])
            with pytest.raises(ValueError, match=r"stiffness must lie in 10\.\.200, got 900"):
                study.evaluate([900, 0])
            study.enqueue({"damping": 0.5, "stiffness": 20})
            (trial,) = study.ask()
            np.testing.assert_allclose(trial.theta, [20, 0.5])
        with pytest.raises(ValueError, match="dim is 3, but 2 parameters are named"):
            recoup.Study.open(tmp_path / "t.db", dim=3, params=self.params)
        with pytest.raises(ValueError, match=r"takes None, \(low, high\)"):
            recoup.Study.open(tmp_path / "t.db", params={"a": 3})


def test_many_parameters_are_made_and_opened_all_at_once(tmp_path):
    """A million took 43 and 4.6 s, with as many checks of one number as there are parameters.

    Where JAX is there, arrays are looked at for its tracers too.
    """
    import_module("jax")
    few, many = (
        (calls(made, tmp_path / f"{dim}.db", dim), calls(opened, tmp_path / f"{dim}.db", dim))
        for dim in (10, 3000)
    )
    assert all(later < first + 500 for first, later in zip(few, many, strict=True)), (few, many)


def made(path, dim):
    recoup.Study.open(path, dim=dim).close()


def opened(path, dim):
    with recoup.Study.open(path) as study:
        assert study.dim == dim


def calls(function, *arguments):
    """How many functions our code calls in a call, those of C among them."""
    count, ours = 0, str(Path(recoup.__file__).parent)

    def seen(frame, event, _):
        nonlocal count
        count += event in ("call", "c_call") and frame.f_code.co_filename.startswith(ours)

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return count


class TestNames:
    """Names that tables and people would take for each other."""

    @pytest.mark.parametrize("name", [" a", "a ", "\u2003a", "a\xa0"])
    def test_white_space_around_a_name_is_refused(self, tmp_path, name):
        with pytest.raises(InputError, match="name"):
            Study.open(tmp_path / "s.db", params={name: (0, 1), "a": (0, 1)})
        toml = tmp_path / "p.toml"
        toml.write_text(f'["{name}"]\nlow = 0\nhigh = 1\n', encoding="utf-8")
        with pytest.raises(InputError, match="name"):
            Study.open(tmp_path / "s.db", params=parameters_of(toml))
        assert not (tmp_path / "s.db").exists()

    def test_names_that_look_the_same_are_refused(self, tmp_path):
        with pytest.raises(InputError, match="look the same"):
            Study.open(tmp_path / "s.db", params={"caf\u00e9": None, "cafe\u0301": None})
        with Study.open(tmp_path / "s.db", params={"a": None, "A": None}) as study:
            study.enqueue({"a": 1.0, "A": 2.0})
            (trial,) = study.ask()
            study.tell(trial.id, 1.0)
            study.export(tmp_path / "t.csv")
        assert trial.params == {"a": 1.0, "A": 2.0}

    @pytest.mark.parametrize("head", ["a, a,return", "a,a,return"])
    def test_two_columns_of_one_name_are_refused(self, tmp_path, head):
        (tmp_path / "t.csv").write_text(f"{head}\n0.5,0.6,1.0\n")
        study = Study.open(tmp_path / "s.db", params={"a": (0, 1)})
        with study, pytest.raises(InputError, match="two columns that are called 'a'"):
            read_samples(study.opened, tmp_path / "t.csv")
        (tmp_path / "r.csv").write_text("id,return, return\n1,0.5,0.6\n")
        done = program("study", "tell", tmp_path / "s.db", "--file", tmp_path / "r.csv")
        assert done.returncode == 2
        assert "two columns that are called 'return'" in done.stderr
