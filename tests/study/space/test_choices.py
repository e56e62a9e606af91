"""Unordered choices: what stands where the largest of several latent numbers stands."""

import ast
import csv
import io
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import recoup
from scipy.integrate import quad
from scipy.stats import norm
from sentences import MADE_WITH_PARAMS, SAMPLES_THERE

from recoup import Study
from recoup.checks import InputError
from recoup.cli.study_tables import print_trials
from recoup.core.families.full import Full
from recoup.core.families.gaussian import Diagonal
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.fork import forked_words
from recoup.study.exchange.read import read_samples
from recoup.study.space.choices import (
    MARKS,
    chances,
    chosen,
    code,
    drawn_as,
    in_words,
    leading,
    place_of,
    slots,
    standing,
)
from recoup.study.space.parameters import (
    Parameter,
    columns_of,
    parameter,
    parameters_of,
    places_of,
    range_of,
    range_text,
    to_latent,
    to_user,
)
from recoup.study.voice.coordinates import StandardCoordinates

pytestmark = pytest.mark.usefixtures("few_rehearsals")

GRIPPERS = ["soft", "hard", "vacuum"]
MIXED = {"kp": (100, 500), "gripper": GRIPPERS, "fingers": (2, 5, "int"), "mode": ["slow", "fast"]}


def earns(params):
    """Best with the hard gripper, kp = 300; fingers and mode do nothing."""
    return -((params["kp"] / 100 - 3) ** 2) + 1.5 * (params["gripper"] == "hard")


def told(path, trials=36, **settings):
    study = Study.open(path, params=MIXED, batch=6, **settings)
    rng = np.random.default_rng(0)
    for _ in range(trials // 6):
        for trial in study.ask(6):
            study.tell(trial.id, earns(trial.params) + 0.2 * rng.normal())
    return study


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    path = tmp_path_factory.mktemp("choices") / "robot.db"
    told(path).close()
    return path


@pytest.fixture
def study(ready, tmp_path):
    copy = tmp_path / "robot.db"
    copy.write_bytes(ready.read_bytes())
    with Study.open(copy) as found:
        yield found


class TestChances:
    @pytest.mark.parametrize(
        ("mean", "std"),
        [
            ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
            ([1.0, 0.0, -0.5], [1.0, 0.3, 2.0]),
            ([0.2, -1.0, 0.4, 0.1, 0.0], [0.5, 1.5, 0.2, 0.9, 1.0]),
        ],
    )
    def test_of_independent_numbers_are_those_of_quadrature(self, mean, std):
        def density(z, k):
            others = [norm.cdf(z, m, s) for j, (m, s) in enumerate(zip(mean, std, strict=True))
                      if j != k]  # fmt: skip
            return norm.pdf(z, mean[k], std[k]) * np.prod(others)

        want = [quad(density, -15, 15, args=(k,), limit=300)[0] for k in range(len(mean))]
        found = chances(Diagonal(np.array(mean), np.array(std)))
        np.testing.assert_allclose(found, want, atol=4 * 0.5 / 12288**0.5)

    def test_of_two_are_exact(self):
        found = chances(Diagonal(np.array([-0.7]), np.array([0.4])))
        np.testing.assert_allclose(found, [norm.cdf(0.7 / 0.4), norm.sf(0.7 / 0.4)], rtol=1e-12)

    def test_of_correlated_numbers_are_those_of_plain_draws(self):
        factor = np.array([[1.0, 0, 0], [0.9, 0.3, 0], [-0.8, 0.1, 0.5]])
        mean = np.array([0.1, 0.0, 0.2])
        rng = np.random.default_rng(5)
        draws = rng.multivariate_normal(mean, factor @ factor.T, 200_000)
        want = np.mean(draws.max(axis=1, keepdims=True) == draws, axis=0)
        np.testing.assert_allclose(chances(Full(mean, factor)), want, atol=4 * 0.5 / 12288**0.5)

    @pytest.mark.parametrize("n", [3, 4, 7])
    def test_equal_choices_have_equal_chances(self, n):
        np.testing.assert_allclose(chances(Diagonal(np.zeros(n), np.ones(n))), 1 / n, rtol=1e-12)

    def test_are_the_shares_of_what_a_study_asks(self, tmp_path):
        with Study.open(tmp_path / "a.db", params=MIXED, mean={"gripper": "hard"}) as study:
            said = study.snapshot().distribution[1].chances
            trials = study.ask(600)
        shares = {word: np.mean([t.params["gripper"] == word for t in trials]) for word in GRIPPERS}
        assert said["hard"] > 0.6
        for word in GRIPPERS:
            assert abs(said[word] - shares[word]) < 4 * 0.5 / 600**0.5


class TestLatentNumbers:
    @given(st.integers(2, 9), st.data())
    def test_a_choice_and_its_place_are_inverse(self, n, data):
        which = data.draw(st.integers(0, n - 1))
        assert chosen(standing(which, n)) == which
        assert standing(which, n).shape == (slots(n),)
        assert (slots(n) == 1) == (n == 2)

    @given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.data())
    def test_a_choice_that_is_said_leads(self, mean, data):
        if len(mean) == 2:
            mean = mean[:1]
        n = len(mean) if len(mean) > 1 else 2
        which = data.draw(st.integers(0, n - 1))
        found = leading(np.array(mean), which)
        assert chosen(found) == which
        ahead = np.sort(np.abs(mean) if n == 2 else mean)[-1]
        assert np.max(np.abs(found) if n == 2 else found) in (ahead, ahead + 1.0)

    def test_what_models_see_has_mean_0_and_variance_1(self):
        for n in (2, 3, 5):
            codes = code(np.arange(n), n)
            np.testing.assert_allclose(codes.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose((codes**2).mean(axis=0), 1)

    def test_numbers_drawn_as_a_choice_have_the_density_they_have_where_it_stands(self):
        factor = np.array([[1.0, 0, 0], [0.6, 0.5, 0], [0.0, -0.4, 0.9]])
        mean = np.array([0.3, 0.0, -0.2])
        rng = np.random.default_rng(1)
        drawn = [drawn_as(rng, Full(mean, factor), [slice(0, 3)], [1]) for _ in range(3000)]
        assert set(chosen(np.array(drawn))) == {1.0}
        plain = np.random.default_rng(2).multivariate_normal(mean, factor @ factor.T, 200_000)
        plain = plain[plain[:, 1] == plain.max(axis=1)]
        error = plain.std(axis=0) / 3000**0.5
        np.testing.assert_array_less(np.abs(np.mean(drawn, axis=0) - plain.mean(axis=0)), 4 * error)

    def test_a_choice_that_hardly_ever_stands_is_made_to(self):
        rho = Diagonal(np.array([0.0, -90.0, 0.0, 80.0]), np.full(4, 0.1))
        rng = np.random.default_rng(0)
        found = drawn_as(rng, rho, [slice(0, 3), slice(3, 4)], [1, 0])
        assert (chosen(found[:3]), chosen(found[3:])) == (1, 0)

    def test_coordinates_see_the_choice_and_not_how_far_it_is_ahead(self):
        parameters = (Parameter("x"), Parameter("c", choices=("a", "b", "c")))
        seen = StandardCoordinates(
            parameters, Full(np.array([0.5, 1, 0, 0]), np.diag([2.0, 1, 1, 1]))
        )
        near, far = np.array([[1.5, 0.1, 0.2, 0]]), np.array([[1.5, -9.0, 7, 0]])
        np.testing.assert_array_equal(seen.at(near), seen.at(far))
        np.testing.assert_allclose(seen.at(np.array([[0.5, 3.0, 0, 1]])), 0)  # the mean's choice

    def test_a_distribution_is_seen_by_the_moments_of_its_choices(self):
        parameters = (Parameter("x"), Parameter("c", choices=("a", "b", "c")), Parameter("d"))
        factor = np.tril(np.random.default_rng(3).normal(size=(5, 5))) + np.eye(5)
        rho = Full(np.array([0.5, 0.3, 0, -0.4, 1.0]), factor * np.sign(np.diag(factor)))
        centre = Full(np.zeros(5), np.eye(5))
        mean, std = StandardCoordinates(parameters, centre).of(rho)
        noise = np.random.default_rng(4).normal(size=(100_000, 5))
        seen = StandardCoordinates(parameters, centre).at(rho.theta(noise))
        np.testing.assert_allclose(mean[0, 1:4], seen.mean(axis=0)[1:4], atol=0.04)
        np.testing.assert_allclose(std[1:4], seen.std(axis=0)[1:4], atol=0.04)


class TestAsTheyAreGiven:
    def test_typed_listed_mapped_and_in_toml_they_are_the_same(self, tmp_path):
        toml = tmp_path / "p.toml"
        toml.write_text('[gripper]\nchoices = ["soft", "hard"]\n')
        want = Parameter("gripper", choices=("soft", "hard"))
        assert parameter("gripper=soft|hard") == parameter("gripper= soft | hard ") == want
        assert parameters_of(toml) == [want]
        for i, how in enumerate(
            (["soft", "hard"], ("soft", "hard"), {"choices": ["soft", "hard"]})
        ):
            with Study.open(tmp_path / f"{i}.db", params={"gripper": how}) as study:
                assert study.parameters == (want,)
                assert study.dim == 1

    def test_a_move_is_made_of_ten_results_unless_said(self, tmp_path):
        batches = {}
        for name, how in {"a": {"g": GRIPPERS}, "b": {"x": (0, 1)}}.items():
            with Study.open(tmp_path / f"{name}.db", params=how) as study:
                batches[name] = study.batch
        assert batches["a"] == 10 > batches["b"]
        with Study.open(tmp_path / "c.db", params={"g": GRIPPERS}, batch=3) as study:
            assert study.batch == 3

    def test_a_start_has_more_chance(self, tmp_path):
        how = {"gripper": {"choices": GRIPPERS, "start": "vacuum"}, "kp": (0, 1)}
        with Study.open(tmp_path / "a.db", params=how) as study:
            assert study.mean_policy["gripper"] == "vacuum"
            said = study.snapshot().distribution[0].chances
        assert said["vacuum"] > 0.6
        assert said["soft"] == pytest.approx(said["hard"], abs=0.02)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("g=soft|", "must be a text on one line"),
            ("g=|hard", "must be a text on one line"),
            ("g=soft|soft", "two choices of g are the same"),
            ("g=soft| soft", "two choices of g are the same"),
            ("g=a,b|c", r"without \| , = @"),
            ("g=a=b|c", r"without \| , = @"),
            ("g=a@b|c", r"without \| , = @"),
            ("g=a\x1b[31m|b", "must be a text on one line"),
            ("g=a\nb|c", "must be a text on one line"),
            ("g=K\u212a|K\u004b", "are the same"),
            ("g=" + "|".join(f"c{i}" for i in range(51)), "2 to 50 choices, got 51"),
            ("g=" + "x" * 41 + "|y", "at most 40 characters"),
        ],
    )
    def test_bad_choices_get_one_sentence(self, text, sentence):
        with pytest.raises(InputError, match=sentence):
            parameter(text)

    @pytest.mark.parametrize(
        ("how", "sentence"),
        [
            (["soft"], "2 to 50 choices, got 1"),
            ({"choices": []}, "2 to 50 choices, got 0"),
            ({"choices": "soft"}, "list of texts"),
            ({"choices": [4, 6]}, "list of texts"),
            ({"choices": ["a", "b"], "low": 1, "high": 2}, "leave out low"),
            ({"choices": ["a", "b"], "scale": "log"}, "leave out scale"),
            ({"choices": ["a", "b"], "unit": "N"}, "leave out unit"),
            ({"choices": ["a", "b"], "start": "c"}, "g is one of a, b; got 'c'"),
            ({"choices": ["a", "b"], "start": 1}, "must be one of its choices"),
            ({"soft", "hard"}, "or a list of choices"),
            (("a", 3), "must be a finite number"),
        ],
    )
    def test_so_do_other_ways_of_giving_them(self, tmp_path, how, sentence):
        with pytest.raises(InputError, match=sentence):
            Study.open(tmp_path / "a.db", params={"g": how})
        assert not (tmp_path / "a.db").exists()

    def test_a_parameter_under_a_choice_alone_gets_its_sentence(self, tmp_path):
        with pytest.raises(InputError, match="give it always, and ignore it"):
            parameter("pressure=0:1 if gripper=vacuum")
        how = {"gripper": GRIPPERS, "pressure": {"low": 0, "high": 1, "if": "vacuum"}}
        with pytest.raises(InputError, match="give it always, and ignore it"):
            Study.open(tmp_path / "a.db", params=how)

    def test_a_name_that_is_that_of_a_latent_number_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="cannot name a parameter"):
            Study.open(tmp_path / "a.db", params={"g": ["a", "b"], "g=b": None})

    words = st.text(
        st.characters(exclude_categories=("C", "Z"), exclude_characters=MARKS), min_size=1,
        max_size=8,
    )  # fmt: skip

    @given(st.lists(words, min_size=2, max_size=6, unique_by=lambda x: x.casefold()))
    def test_a_range_is_read_as_it_was_written(self, words):
        try:
            p = Parameter("g", choices=tuple(words))
        except InputError:  # some look the same
            return
        assert range_of(range_text(p)) == p.range

    def test_latent_numbers_have_a_place_each(self):
        parameters = [Parameter("x"), Parameter("c", choices=("a", "b", "c")), Parameter("y")]
        assert [p.name for p in columns_of(parameters)] == ["x", "c=a", "c=b", "c=c", "y"]
        assert places_of(parameters) == [slice(0, 1), slice(1, 4), slice(4, 5)]

    @given(st.floats(-20, 20), st.integers(0, 2), st.integers(0, 1))
    def test_units_and_latent_values_are_inverse(self, x, three, two):
        parameters = [
            Parameter("c", choices=("a", "b", "c")),
            Parameter("x", 1, 5),
            Parameter("d", choices=("y", "n")),
        ]
        values = np.array([three, to_user(parameters[1:2], np.array([x]))[0], two])
        np.testing.assert_allclose(to_user(parameters, to_latent(parameters, values)), values)


class TestDoors:
    def test_a_trial_says_the_word(self, study):
        (trial,) = study.ask()
        assert trial.params["gripper"] in GRIPPERS
        assert trial.theta[1] == GRIPPERS.index(trial.params["gripper"])
        assert f"gripper={trial.params['gripper']}" in repr(trial)
        assert trial.params["gripper"] in trial._repr_html_()
        assert trial.plain()["theta"][1] == trial.params["gripper"]
        assert pickle.loads(pickle.dumps(trial)).params == trial.params

    def test_every_command_says_it(self, study, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.chdir(study.store.path.parent)  # a path is as long as it is
        path = study.store.path.name
        best = study.best[0].params
        for words in (
            ("ask",), ("pending",), ("show",), ("recommend",), ("trials",), ("best",), ("log",),
        ):  # fmt: skip
            done = recoup("study", *words[:1], path, *words[1:])
            assert done.returncode == 0, done.stderr
            assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
            assert words == ("log",) or any(word in done.stdout for word in GRIPPERS)
        shown = json.loads(recoup("study", "best", path, "--json").stdout)
        assert shown["params"] == best
        deployed = json.loads(recoup("study", "recommend", path, "--json").stdout)
        assert deployed["params"]["gripper"] == "hard"
        assert deployed["theta"][1] == "hard"
        assert deployed["best_between"]["gripper"]["hard"] > 0.9
        assert sum(deployed["best_between"]["gripper"].values()) == pytest.approx(1)

    def test_it_can_be_enqueued_by_name_in_order_or_by_place(self, study):
        wanted = {"kp": 300.0, "gripper": "vacuum", "fingers": 3, "mode": "slow"}
        path = study.store.path
        study.enqueue(wanted)
        study.enqueue([300, "vacuum", 3, "slow"])
        study.enqueue(np.array([300.0, 2, 3, 0]))
        typed = [f"{name}={value}" for name, value in wanted.items()]
        assert recoup("study", "enqueue", path, *typed).returncode == 0
        assert recoup("study", "enqueue", path, "300", "vacuum", "3", "slow").returncode == 0
        assert [row["params"]["gripper"] for row in study.queue()] == ["vacuum"] * 5
        for trial in study.ask(5):
            assert trial.kind == "own"
            assert trial.params == pytest.approx(wanted)

    def test_what_is_typed_is_a_word_though_it_looks_like_a_number(self, tmp_path):
        path = tmp_path / "a.db"
        done = recoup("study", "new", path, "--param", "legs=1|0", "--mean", "0")
        assert done.returncode == 0, done.stderr
        with Study.open(path) as study:
            assert study.mean_policy["legs"] == "0"
        assert recoup("study", "enqueue", path, "legs=1").returncode == 0
        assert recoup("study", "enqueue", path, "0").returncode == 0
        with Study.open(path) as study:
            assert [row["params"]["legs"] for row in study.queue()] == ["1", "0"]

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (("enqueue", "300", "sfot", "3", "slow"), "gripper is one of soft, hard, vacuum"),
            (("enqueue", "300", "soft", "3"), "has 4 values"),
            (("predict", "--param", "gripper=sofft"), "Did you mean 'soft'"),
            (("predict", "--param", "kp=soft"), "number"),
            (("evaluate", "--mean", "gripper=9"), "gripper is one of soft, hard, vacuum"),
            (("evaluate", "--mean", "300"), "a value for each of kp, gripper, fingers, mode"),
            (("evaluate", "--std", "gripper=soft"), "std of gripper must be a"),
            (("fork", "new.db", "--freeze", "gripper=x"), "gripper is one of"),
            (
                ("fork", "new.db", "--param", "gripper=soft|hard"),
                "choices of gripper cannot change",
            ),
            (("fork", "new.db", "--param", "kp=a|b"), "kp cannot become a choice"),
            (("fork", "new.db", "--param", "new=a|b"), "say what it was"),
            (("fork", "new.db", "--param", "new=a|b@c"), "new is one of a, b"),
        ],
    )
    def test_what_is_none_is_refused_in_a_sentence(self, study, words, sentence):
        before = study.store.path.read_bytes()
        done = recoup(
            "study", words[0], study.store.path.name, *words[1:], cwd=study.store.path.parent
        )
        assert done.returncode != 0
        assert sentence in " ".join(done.stderr.split())
        assert study.store.path.read_bytes() == before
        assert not (study.store.path.parent / "new.db").exists()

    @pytest.mark.parametrize(
        "value", [None, True, 3, -1, 0.5, float("nan"), [], "", "Soft", 10**400]
    )
    def test_so_it_is_in_python(self, study, value):
        with pytest.raises(InputError, match="gripper is one of soft, hard, vacuum"):
            study.enqueue({"kp": 300, "gripper": value, "fingers": 3, "mode": "slow"})
        with pytest.raises(InputError):
            study.predict({"gripper": value})

    def test_predict_knows_the_better_choice(self, study):
        hard, soft = (study.predict({"kp": 300, "gripper": word}) for word in ("hard", "soft"))
        assert hard.params["gripper"] == "hard"
        assert hard.low < 1.5 < hard.high
        assert not soft.expected > hard.expected

    def test_a_candidate_is_given_by_name(self, study):
        now = study.opened.target(mean={"gripper": "soft"})
        mean, here = study.opened.shown(now)[0], study.mean
        assert chosen(mean[1:4]) == 0
        assert sorted(mean[1:4]) == sorted(here[1:4])  # as far ahead as the other was
        np.testing.assert_array_equal(np.delete(mean, [1, 2, 3]), np.delete(here, [1, 2, 3]))
        std = study.opened.shown(study.opened.target(std={"gripper": 0.5}))[1]
        np.testing.assert_array_equal(std[1:4], 0.5)
        assert (
            study.opened.shown(study.opened.target(std=[1, 0.5, 1, 1]))[1].tolist()[1:4]
            == [0.5] * 3
        )

    def test_what_matters_is_said_of_the_choice_as_a_whole(self, study):
        found = {row.names: row.share for row in study.recommend().matters if len(row.names) == 1}
        assert set(found) == {(name,) for name in MIXED}
        assert found["gripper",] > 5 * found["mode",]

    def test_tables_of_python(self, study):
        table = study.dataframe()
        assert set(table["gripper"]) <= set(GRIPPERS)
        assert study.dataframe(full=True)["mode"].isin(["slow", "fast"]).all()
        assert {trial.params["gripper"] for trial in study} == set(table["gripper"])
        assert "hard" in study._repr_html_()
        array = np.asarray(study.mean_policy)
        assert array.dtype == object
        assert array[1] == "hard"

    def test_pages_and_pictures_can_be_made(self, study, tmp_path):
        from recoup.report.studies_page import write_studies_report
        from recoup.report.study_page import write_study_report

        other = tmp_path / "other.db"
        study.fork(other).close()
        assert "vacuum" in write_study_report(study.store.path).read_text()
        assert "hard" in write_studies_report([study.store.path, other]).read_text()

    def test_settings_of_other_studies_stay_as_they_were(self, tmp_path):
        with Study.open(tmp_path / "a.db", params={"kp": (1, 2)}, method="cem") as study:
            keys = {"name", "low", "high", "scale", "start", "std"}
            assert set(study.settings["params"][0]) == keys

    def test_a_study_is_opened_again_with_the_same_choices_and_no_others(self, study):
        path = study.store.path
        Study.open(path, params=MIXED).close()
        with pytest.raises(InputError, match=MADE_WITH_PARAMS):
            Study.open(path, params={**MIXED, "gripper": ["soft", "hard"]})

    def test_it_is_verified_and_recovered(self, study, tmp_path):
        assert all(verdict.sound for verdict in check(study.store.path))
        study.close()
        found = recover(study.store.path, tmp_path / "new.db")
        assert found.missing == 0
        with Study.open(tmp_path / "new.db") as new:
            assert new.mean_policy["gripper"] == "hard"
            assert len(new) == 36

    def test_two_studies_of_one_seed_ask_the_same(self, tmp_path):
        asked = []
        for name in ("a", "b"):
            with told(tmp_path / f"{name}.db", trials=12) as study:
                asked.append([trial.params for trial in study.ask(5)])
        assert asked[0] == asked[1]


class TestForks:
    def test_a_frozen_choice_keeps_the_results_with_it(self, study, tmp_path):
        with_it = [trial for trial in study if trial.params["gripper"] == "hard"]
        with study.fork(tmp_path / "new.db", freeze={"gripper": "hard"}) as new:
            assert new.names == ("kp", "fingers", "mode")
            assert sorted(t.value for t in new) == sorted(t.value for t in with_it)
            kept = {t.value: t.params for t in new}
            for trial in with_it:
                rest = {k: v for k, v in trial.params.items() if k != "gripper"}
                assert kept[trial.value] == pytest.approx(rest)
            new.tell(new.ask()[0].id, 0.5)
            words = forked_words(new.opened, "robot.db")
        assert f"{len(with_it)} that were drawn had what is frozen and count" in words
        assert f"{36 - len(with_it)} stood elsewhere and are left out" in words

    def test_what_drew_the_others_is_given_the_latent_numbers(self, study, tmp_path):
        rows = {r.value: a for a, r in _pairs(study)}
        with study.fork(tmp_path / "new.db", freeze={"gripper": "hard"}) as new:
            for asked, result in _pairs(new):
                old = rows[result.value]
                rho = study.opened.rho(study.store.proposal(old.proposal).numbers)
                joint = rho.factor @ rho.factor.T
                kept, gone = [0, 4, 5], [1, 2, 3]
                gain = joint[np.ix_(kept, gone)] @ np.linalg.inv(joint[np.ix_(gone, gone)])
                mean = rho.mean[kept] + gain @ (old.theta[gone] - rho.mean[gone])
                found = new.opened.rho(new.store.proposal(asked.proposal).numbers)
                np.testing.assert_allclose(found.mean, mean, rtol=1e-8, atol=1e-10)

    def test_a_choice_can_be_added_with_what_it_was(self, study, tmp_path):
        with study.fork(tmp_path / "new.db", params=["surface=wood|steel@steel"]) as new:
            assert new.mean_policy["surface"] == "steel"
            assert {trial.params["surface"] for trial in new} == {"steel"}
            assert len(new) == 36

    def test_one_more_to_choose_from_takes_two_forks_as_the_refusal_says(self, study, tmp_path):
        more = {"gripper": ["soft", "hard", "vacuum", "magnet"]}
        with pytest.raises(InputError, match="freeze it in a fork, and give it with others in a"):
            study.fork(tmp_path / "new.db", params=more)
        hard = study.fork(tmp_path / "hard.db", freeze={"gripper": "hard"})
        with hard, hard.fork(tmp_path / "new.db", params=more) as new:
            assert new.mean_policy["gripper"] == "hard"
            assert len(new) == len(hard) > 0
            assert "magnet" in {trial.params["gripper"] for trial in new.ask(40)}

    @pytest.mark.parametrize(
        ("params", "said"),
        [
            ({"surface": ["wood", "steel"]}, "{'choices': ['wood', 'steel'], 'was': 'wood'}"),
            ({"friction": (0, 1)}, "{'low': 0, 'high': 1, 'was': 0.3}"),
        ],
    )
    def test_what_it_was_is_said_as_python_takes_it(self, study, tmp_path, params, said):
        (name,) = params
        with pytest.raises(InputError) as raised:
            study.fork(tmp_path / "new.db", params=params)
        assert f"in Python {said}" in str(raised.value)
        with study.fork(tmp_path / "new.db", params={name: ast.literal_eval(said)}) as new:
            assert name in new.names

    def test_other_bounds_keep_choices_and_densities(self, study, tmp_path):
        before = {trial.value: trial.params for trial in study}
        with study.fork(tmp_path / "new.db", params=["kp=50:900"]) as new:
            assert {trial.value: trial.params["gripper"] for trial in new} == {
                value: params["gripper"] for value, params in before.items()
            }
            assert new.mean_policy["gripper"] == "hard"
            for trial in new.ask(6):
                new.tell(trial.id, earns(trial.params))

    def test_it_starts_where_it_is_told_to(self, study, tmp_path):
        done = recoup(
            "study", "fork", "robot.db", "new.db", "--mean", "gripper=vacuum,kp=200", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        with Study.open(tmp_path / "new.db") as new:
            assert new.mean_policy["gripper"] == "vacuum"
            assert new.mean_policy["kp"] == pytest.approx(200)

    def test_a_renamed_one_keeps_all(self, study, tmp_path):
        with study.fork(tmp_path / "new.db", rename={"gripper": "hand"}) as new:
            assert new.mean_policy["hand"] == "hard"
            np.testing.assert_array_equal(new.mean, study.mean)


def _pairs(study):
    class Row:
        def __init__(self, value):
            self.value = value

    return [(asked, Row(result.told.value)) for asked, result in study.store.trials()]


class TestTables:
    @pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
    def test_an_export_comes_back_to_the_last_bit(self, study, tmp_path, name):
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow")
        study.export(tmp_path / name)
        with Study.open(tmp_path / "new.db", params=MIXED, batch=6) as new:
            samples = read_samples(new.opened, tmp_path / name)
            found = new.opened and _import(new, samples)
            assert found.samples == 36
            old, here = (np.array([a.theta for a, _ in s.store.trials()]) for s in (study, new))
            np.testing.assert_array_equal(old, here)
            assert [t.params for t in new] == [t.params for t in study]
            with pytest.raises(InputError, match="in the study already"):
                _import(new, read_samples(new.opened, tmp_path / name))

    def test_its_columns_are_words_and_latent_numbers(self, study, tmp_path):
        study.export(tmp_path / "all.csv")
        with (tmp_path / "all.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert {row["gripper"] for row in rows} <= set(GRIPPERS)
        assert {row["bounds_gripper"] for row in rows} == {"soft|hard|vacuum"}
        for row in rows:
            latent = [float(row[f"latent_gripper={word}"]) for word in GRIPPERS]
            assert GRIPPERS[int(np.argmax(latent))] == row["gripper"]
            assert (float(row["latent_mode=fast"]) > 0) == (row["mode"] == "fast")

    def test_a_study_is_imported_as_it_is(self, study, tmp_path):
        with Study.open(tmp_path / "new.db", params=MIXED, batch=6) as new:
            assert _import(new, read_samples(new.opened, study.store.path)).samples == 36

    def test_one_of_other_choices_is_not(self, study, tmp_path):
        other = {**MIXED, "gripper": ["soft", "hard", "magnet"]}
        with (
            Study.open(tmp_path / "new.db", params=other) as new,
            pytest.raises(InputError, match=r"gripper \(soft, hard, vacuum\)"),
        ):
            read_samples(new.opened, study.store.path)

    def test_a_table_of_somebodys_own_has_the_words(self, tmp_path):
        table = tmp_path / "mine.csv"
        rows = ["kp,gripper,fingers,mode,return"]
        rows += [f"{100 + 20 * i},{GRIPPERS[i % 3]},{2 + i % 4},fast,{i}" for i in range(15)]
        rows += ["150,soft,3,slow,1"]
        table.write_text("\n".join(rows))
        with Study.open(tmp_path / "new.db", params=MIXED) as new:
            assert recoup("study", "import", new.store.path, table).returncode == 0
            assert [t.params["gripper"] for t in new][:3] == GRIPPERS
            again = recoup("study", "import", new.store.path, table)
            assert "in the study already" in again.stderr
            table.write_text("\n".join([*rows, "1e2,sofft,2,slow,3"]))
            wrong = recoup("study", "import", new.store.path, table)
        assert "line 18 of" in wrong.stderr
        assert "gripper is one of soft, hard, vacuum" in " ".join(wrong.stderr.split())

    @pytest.mark.parametrize("drew", ["kp=150,gripper=hard,fingers=3,mode=fast", "150,hard,3,fast"])
    def test_what_drew_a_table_is_typed_by_words(self, tmp_path, drew):
        """As `evaluate --mean` takes it: by name, or in order."""
        table = tmp_path / "mine.csv"
        table.write_text("kp,gripper,fingers,mode,return\n150,soft,3,slow,1\n160,hard,3,fast,2\n")
        with Study.open(tmp_path / "new.db", params=MIXED) as new:
            words = ["study", "import", new.store.path, table, "--mean", drew]
            done = recoup(*words, "--std", "kp=1,gripper=0.5,fingers=1,mode=2")
            assert (done.returncode, done.stderr) == (0, "")
            mean, std = new.opened.shown(new.store.proposals()[1].numbers)
            wanted = new.opened.target({"kp": 150, "gripper": "hard", "fingers": 3, "mode": "fast"})
            np.testing.assert_allclose(mean, new.opened.shown(wanted)[0])
            assert std.tolist() == [1, 0.5, 0.5, 0.5, 1, 2]
            wrong = recoup(*words[:-1], drew.replace("hard", "hrad"), "--std", 1)
        assert wrong.returncode == 2
        assert "gripper is one of soft, hard, vacuum; got 'hrad'." in wrong.stderr

    def test_python_takes_words_and_places(self, tmp_path):
        rows = [
            [200.0 + i, GRIPPERS[i % 3], 2 + i % 3, "slow" if i % 2 else "fast"] for i in range(9)
        ]
        places = np.array([[r[0], GRIPPERS.index(r[1]), r[2], r[3] == "fast"] for r in rows], float)
        found = []
        for name, theta in (("a", rows), ("b", places)):
            with Study.open(tmp_path / f"{name}.db", params=MIXED) as study:
                study.import_samples(theta, np.arange(9.0))
                found.append([t.params for t in study])
        assert found[0] == found[1]
        assert found[0][1]["gripper"] == "hard"

    def test_a_table_that_comes_again_in_another_order_is_known(self, tmp_path):
        """Of what was tried more than once, too: only its return says which row is which."""
        rows = [["soft", 1.0], ["soft", 2.0], ["hard", 1.0], ["hard", np.nan], ["soft", 2.0]]
        words, returns = [[word] for word, _ in rows], [value for _, value in rows]
        drew = {"mean": 0.0, "std": 1.0}
        with Study.open(tmp_path / "a.db", params={"grip": ["soft", "hard"]}) as study:
            assert study.import_samples(words, returns, **drew).samples == 4
            for order in ([4, 3, 2, 1, 0], [1, 2], [2, 0, 4]):
                again = [words[i] for i in order], [returns[i] for i in order]
                with pytest.raises(InputError, match=SAMPLES_THERE):
                    study.import_samples(*again, **drew)
            more = study.import_samples([["soft"], *words], [3.0, *returns], **drew)
            assert (more.samples, more.again) == (1, 5)

    def test_samples_of_a_known_distribution_are_weighed_exactly(self, tmp_path):
        """The mean return of another distribution, of a return that the choice alone makes."""
        n, mean, std = 4000, np.array([0.0, 0.5, 0.0, -0.5]), np.ones(4)
        rng = np.random.default_rng(11)
        z = rng.normal(mean, std, (n, 4))
        theta = [[x, "abc"[k]] for x, k in zip(z[:, 0], np.argmax(z[:, 1:], axis=1), strict=True)]
        value = {"a": 0.0, "b": 1.0, "c": 3.0}
        returns = [value[word] for _, word in theta]
        params = {"x": None, "choice": ["a", "b", "c"]}
        target = np.array([-0.5, 0.0, 0.7])
        with Study.open(tmp_path / "a.db", params=params, family="diagonal", seed=1) as study:
            study.import_samples(theta, returns, mean, std)
            block = study.opened.start(np.append(0.0, target), np.ones(4))
            latent = np.array([asked.theta for asked, _ in study.store.trials()])
        assert block.shape == (8,)
        logs = norm.logpdf(latent[:, 1:], target).sum(1) - norm.logpdf(latent[:, 1:], mean[1:]).sum(
            1
        )
        weighed = np.exp(logs) * np.array(returns)
        share = [quad(_standing, -12, 12, args=(target, k))[0] for k in range(3)]
        want = share[1] + 3 * share[2]
        assert abs(weighed.mean() - want) < 4 * weighed.std() / n**0.5


def _standing(z, mean, k):
    """The density of z at which number k, of unit variance, stands at z above all others."""
    return norm.pdf(z - mean[k]) * np.prod(norm.cdf(z - np.delete(mean, k)))


def _import(study, samples):
    from recoup.study.exchange.samples import import_samples

    return import_samples(study.opened, samples)


class TestWords:
    def test_shares_are_named_largest_first(self):
        assert in_words({"soft": 0.07, "hard": 0.93}) == "hard 93 %, soft 7 %"
        assert in_words({"a": 1.0, "b": 0.0}) == "a over 99 %"
        many = {f"c{i}": 0.1 for i in range(10)}
        assert in_words(many) == "c0 10 %, c1 10 %, c2 10 %, 7 others 70 %"

    def test_a_place_is_a_whole_number(self):
        assert place_of("g", ("a", "b"), 1.0) == 1.0
        with pytest.raises(InputError, match="or its place from 0"):
            place_of("g", ("a", "b"), 1.5)


def test_a_choice_that_does_something_is_found(ready):
    with Study.open(ready, read_only=True) as study:
        assert study.mean_policy["gripper"] == "hard"
        found = study.recommend()
        assert found.params["gripper"] == "hard"
        assert "mode" in found.words
        now = study.snapshot()
        assert now.dim == 4
        assert now.plain()["distribution"][1]["chances"]["hard"] > 0.5


def test_nothing_but_choices_can_be_searched(tmp_path):
    params = {"gripper": ["soft", "hard"], "shape": ["round", "flat", "long"]}
    with Study.open(tmp_path / "a.db", params=params, batch=6) as study:
        for _ in range(5):
            for trial in study.ask(6):
                value = (trial.params["gripper"] == "hard") + 0.5 * (
                    trial.params["shape"] == "flat"
                )
                study.tell(trial.id, value + 0.1 * np.sin(trial.id))
        found = study.recommend()
        assert found.params == {"gripper": "hard", "shape": "flat"}
        assert np.isnan(found.low).all()
        assert found.choices["gripper"]["hard"] > 0.9
        assert not study.predict({"gripper": "soft"}).expected > found.expected
        study.plot(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("limits", "within"),
    [
        ([], True),
        (["force<50"], True),
        (["force<17"], False),
        (["force<9"], True),  # what stands breaks it too
        (["force<9", "room>-17"], False),
    ],
)
def test_a_choice_that_is_hardly_the_best_is_not_deployed_without_a_word(limits, within, tmp_path):
    """And nothing stops with it, unless the better one breaks a limit that what stands keeps."""
    params = {"kp": (0, 1), "grip": {"choices": ["soft", "hard"], "start": "soft"}}
    path = tmp_path / "grip.db"
    study = Study.open(path, params=params, batch=40, limits=limits or None)
    for trial in study.ask(24):
        better = 3.0 * (trial.params["grip"] == "hard")
        force = 10.0 + trial.params["kp"] + 5 * better
        also = {"force": force, "room": -force} if limits else None
        study.tell(trial.id, better - trial.params["kp"] + trial.id % 3 / 10, also=also)
    found = study.recommend()
    assert (study.mean_policy["grip"], found.choices["grip"]["soft"] < 0.025) == ("soft", True)
    said = "Its grip is soft, and hard should be better while the others" in found.words
    assert (said or found.params["grip"] == "hard") == within
    assert found.params["grip"] == ("hard" if limits in ([], ["force<50"]) else "soft")
    assert not within or found.verdict == "go on"
    assert (", though it is not sure enough to keep force<9: `pre" in found.words) == (
        limits == ["force<9"]
    )
    better, now = (study.predict({"grip": word}).expected for word in ("hard", "soft"))
    assert better > now + 1


def test_a_better_choice_is_said_though_it_is_not_sure_to_keep_a_limit(tmp_path):
    """So few results had it that they do not say so: that is no reason to keep silent."""
    params = {"kp": (0, 1), "grip": {"choices": ["soft", "hard"], "start": "soft"}}
    rng = np.random.default_rng(0)
    with Study.open(tmp_path / "a.db", params=params, batch=99, limits=["force<50"]) as study:
        for i in range(24):
            hard = i % 8 == 0
            study.enqueue({"kp": float(rng.uniform(0.3, 0.7)), "grip": ["soft", "hard"][hard]})
            force = 44 + 3 * hard + rng.normal()
            study.tell(study.ask()[0].id, 9.0 * hard + 0.1 * rng.normal(), also={"force": force})
        (kept,) = study.predict({"grip": "hard"}).limits
        assert kept.chance < 0.95 < kept.high
        assert (
            "hard should be better while the others stay, though it is not sure enough to keep "
            "force<50: `predict`" in study.recommend().words
        )


def test_a_csv_for_programs_has_choices_that_look_like_formulas_behind_a_mark(tmp_path, capsys):
    """As the documents say of any CSV; JSON has them as they are."""
    with Study.open(tmp_path / "a.db", params={"spin": ["-1", "+1"]}, batch=4) as study:
        trials = study.ask(2)
        print_trials(study, trials, "csv")
        printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [row["spin"] for row in printed] == [f"'{t.params['spin']}" for t in trials]
        print_trials(study, trials, "json")
        rows = json.loads(capsys.readouterr().out)
        assert [row["params"]["spin"] for row in rows] == [t.params["spin"] for t in trials]
