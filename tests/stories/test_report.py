"""Pages about runs and about the reproduction, read by a real browser."""

import json
import re
import shutil
import warnings
from html import unescape
from pathlib import Path

import figure_data
import numpy as np
import pytest
from browser import visit
from program import recoup as program
from sentences import NO_RUN, NO_STUDY_IN
from sketches import sketched

import recoup
from recoup.pictures.curves import Panel, overlaid
from recoup.report import html
from recoup.report.html import measured, number
from recoup.report.overlay import overlay
from recoup.report.reproduction import write_reproduction
from recoup.report.run_page import write_report
from recoup.report.study_page import write_study_report
from recoup.reproduce import reproduce as running
from recoup.reproduce.claims import corrected

POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
    "'unsafe-inline'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'\">"
)
NASTY = '<script>document.title="owned"</script><img src=x onerror="owned()">'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "car"
    recoup.train("mountain-car", "tiw-pgpe-ob", iterations=8, seed=0, out=out)
    return out


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    """A page of made-up figures, those without a simulator."""
    directory = tmp_path_factory.mktemp("reproduction")
    names = ["bounds", "toy-variance", "toy-directions", "toy-returns", "mountain-car", "reach-4"]
    figures = running.chosen_figures(names)
    results = {j.name: figure_data.made_up(j) for j in running.jobs_of(figures, figure_data.TINY)}
    with sketched("svg", "pdf"):  # the page shows neither
        for figure in figures:
            running._finding(figure, figure_data.TINY, results, directory / figure.name)
    return write_reproduction(directory)


class TestWhatAPageMayDo:
    """Whatever a study says, its page runs nothing and asks nobody."""

    TEMPLATES = sorted(Path(html.__file__).parent.glob("templates/*.html"))

    @pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
    def test_every_template_has_the_policy_and_nothing_that_it_forbids(self, template):
        text = template.read_text()
        base = (template.parent / "base.html").read_text()
        assert template.name == "base.html" or text.startswith('{% extends "base.html" %}')
        assert POLICY in base
        assert base.index(POLICY) < min(base.index(tag) for tag in ("<style", "<link", "<title"))
        assert not re.search(r"<script|<iframe|<object|<embed|<form|<base\b", text, re.I)
        assert not re.search(r"\son\w+\s*=|javascript:|@import|url\(", text, re.I)
        sources = re.findall(r"(?:src|href|poster|srcset|action)=\"([^\"]*)", text)
        assert all(source.startswith(("{{", "#", "data:")) for source in sources), sources
        assert not re.search(r"https?:|[\"'(]//", text)

    def test_a_script_that_came_into_a_page_does_not_run(self, tmp_path):
        """As if a text had not been escaped: what the policy is there for."""
        recoup.Study.open(tmp_path / "s.db", dim=2).close()
        page = write_study_report(tmp_path / "s.db")
        text, inside = page.read_text(), NASTY + '<iframe src="data:text/html,x"></iframe>'
        page.write_text(text.replace("</h1>", f"</h1>{inside}"))
        found = visit(page)
        assert found["title"] == "s.db"
        refused = json.dumps(found["complaints"])
        assert "Content Security Policy" in refused
        assert "script-src" in refused
        page.write_text(page.read_text().replace(POLICY, ""))
        assert visit(page)["title"] == "owned"  # so it would have run


@pytest.mark.slow
class TestTheReproductionsPage:
    def test_a_browser_shows_it_without_complaint(self, reproduction, tmp_path):
        found = visit(reproduction)
        assert found["complaints"] == found["broken"] == []
        assert found["outside"] == []
        assert len(found["images"]) == 6
        assert all(width > 500 for width, _ in found["images"])
        assert all(alt for _, alt in found["images"])

    def test_it_fits_a_phone_and_follows_dark_mode(self, reproduction, tmp_path):
        phone = visit(reproduction, width=500)
        assert phone["width"] <= phone["window"]
        dark = visit(reproduction, dark=True)
        assert phone["background"] == "rgb(255, 255, 255)"
        assert max(map(int, dark["background"][4:-1].split(","))) < 60

    def test_every_claim_stands_there_with_its_verdict_in_words(self, reproduction):
        text = reproduction.read_text()
        for path in reproduction.parent.glob("*/claims.json"):
            for claim in json.loads(path.read_text())["claims"]:
                assert f'id="{claim["id"]}"' in text
        assert "does not hold" in text
        assert "What is ours, not the paper" in text
        assert "each with the baseline of the other (cross-fitted)" in text
        assert "mis-pgpe-ob" in text
        assert "bound on the car" in text

    def test_both_verdicts_stand_in_the_table_judged_over_all_claims_on_the_page(
        self, reproduction
    ):
        files = [json.loads(p.read_text()) for p in reproduction.parent.glob("*/claims.json")]
        records = corrected([record for content in files for record in content["claims"]])
        text = reproduction.read_text()
        assert f"of all {len(records)} together" in text
        table = text[text.index('id="verdicts"') :]
        for record in records:
            row = table[: table.index(f'<a href="#{record["id"]}">')].rpartition("<tr>")[2]
            words = re.findall(r"(holds|does not hold|inconclusive)</span>", row)
            assert words == [record["verdict"], record["holm_verdict"]]
        assert any(record["verdict"] != record["holm_verdict"] for record in records)

    def test_what_comes_from_files_is_escaped(self, reproduction, tmp_path):
        copy = tmp_path / "copy"
        (copy / "bounds").mkdir(parents=True)
        for source in (reproduction.parent / "bounds").iterdir():
            (copy / "bounds" / source.name).write_bytes(source.read_bytes())
        claims = json.loads((copy / "bounds" / "claims.json").read_text())
        claims["claims"][0]["says"] = claims["claims"][0]["id"] = NASTY
        (copy / "bounds" / "claims.json").write_text(json.dumps(claims))
        found = visit(write_reproduction(copy))
        assert found["title"] != "owned"
        assert found["complaints"] == found["broken"] == []
        assert len(found["images"]) == 1

    def test_without_figures_there_is_no_page(self, tmp_path):
        with pytest.raises(ValueError, match="holds no figures: run `recoup reproduce` first"):
            write_reproduction(tmp_path)


class TestTheRunsPage:
    def test_a_browser_shows_it_without_complaint(self, run, tmp_path):
        page = write_report([run], tmp_path / "page.html")
        found = visit(page)
        assert found["complaints"] == found["broken"] == []
        assert len(found["images"]) == 3  # curve, distribution, weight by age
        assert all(width > 500 for width, _ in found["images"])
        assert "80\nepisodes" in found["text"].replace("\n\n", "\n")
        assert "of its mean policy, the one to deploy" in found["text"]

    def test_several_runs_share_a_page(self, run, tmp_path):
        other = tmp_path / "other"
        with sketched():
            recoup.train("mountain-car", "tiw-pgpe-ob", iterations=4, seed=1, out=other)
        page = write_report([run, other], tmp_path / "page.html")
        found = visit(page, width=500)
        assert len(found["images"]) == 7  # one of both
        assert found["width"] <= found["window"]
        assert "tiw-pgpe-ob\n2\n40\n" in found["text"]  # narrow: a line each

    @pytest.mark.usefixtures("sketches")
    def test_a_run_that_is_named_twice_is_not_laid_over_itself(self, run, tmp_path):
        text = write_report([run, run], tmp_path / "page.html").read_text()
        assert "over seeds" not in text

    @pytest.mark.usefixtures("sketches")
    def test_it_has_the_numbers_of_the_terminal(self, run, tmp_path):
        """The final test, under that name; the end of the curve is another number."""
        loaded = recoup.load(run)
        text = write_report([run], tmp_path / "page.html").read_text()
        final, policy = (
            measured(found.mean, found.stderr)
            for found in (loaded.return_search, loaded.return_mean_policy)
        )
        tiles = re.findall(r'<div class="tile"><b>(.*?)</b><span>(.*?)</span>', text)
        assert tiles[0] == (final, "expected return of the search distribution (final test)")
        assert tiles[1] == (policy, "of its mean policy, the one to deploy (final test)")

    def test_it_lies_in_the_run_unless_said(self, run):
        done = program("report", run)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(run / "report.html")
        assert (run / "report.html").stat().st_size > 50_000

    @pytest.mark.usefixtures("sketches")
    def test_a_run_that_was_stopped_has_a_page_too(self, tmp_path):
        def stop(step):
            if step.iteration == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            recoup.train("toy", iterations=5, out=tmp_path / "stopped", progress=stop)
        text = write_report([tmp_path / "stopped"]).read_text()
        assert "not finished" in text
        assert "expected return of the search distribution (last point of the curve)" in text
        assert "(final test)</span>" not in text

    def test_what_comes_from_files_is_escaped(self, run, tmp_path):
        evil = self.copy(run, tmp_path / "evil")
        config = json.loads((evil / "config.json").read_text())
        config["task"] = config["settings"]["weighting"] = config["versions"]["jax"] = NASTY
        (evil / "config.json").write_text(json.dumps(config))
        found = visit(write_report([evil]))
        assert found["title"] == "evil"
        assert found["complaints"] == found["broken"] == []
        assert len(found["images"]) == 3

    @pytest.mark.usefixtures("sketches")
    def test_a_run_that_was_carried_over_has_no_config_and_gets_its_page(self, run, tmp_path):
        copy = self.copy(run, tmp_path / "carried")
        (copy / "config.json").unlink()
        page = write_report([copy]).read_text()
        plan = recoup.load(copy).plan
        assert plan.task in page
        assert plan.method in page

    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("config.json", "[1]", "holds no object"),
            ("config.json", "{", "cannot be read"),
            ("study.db", None, "is not a run directory: it has no study.db"),
            ("study.db", "", "is empty, so it holds no study"),
            ("study.db", "a,b\n1,2\n" * 99, "is not a study file"),
        ],
    )
    def test_what_is_not_a_run_gets_one_sentence(self, run, tmp_path, name, content, sentence):
        broken = self.copy(run, tmp_path / "broken")
        if content is None:
            (broken / name).unlink()
        else:
            (broken / name).write_text(content)
        with pytest.raises(ValueError, match=sentence):
            write_report([broken])

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("config.json", lambda text: "{}"),
            ("config.json", lambda text: '{"task": "\\ud800", "settings": 3, "versions": [1]}'),
        ],
    )
    def test_odd_files_make_a_page_too(self, run, tmp_path, name, change):
        odd = self.copy(run, tmp_path / "odd$x^{")
        (odd / name).write_text(change((odd / name).read_text()))
        assert "effective sample size" in write_report([odd]).read_text()

    def test_a_study_of_ones_own_is_no_run(self, run, tmp_path):
        other = self.copy(run, tmp_path / "other")
        for left in other.glob("study.db*"):  # its log too, where the run is still open
            left.unlink()
        recoup.Study.open(other / "study.db", dim=2).close()
        with pytest.raises(ValueError, match=NO_RUN):
            write_report([other])

    def test_ages_say_where_the_weight_came_from(self, run):
        shares = np.array([row["ages"] for row in recoup.load(run).study.history()])
        assert shares.shape == (8, 5)
        np.testing.assert_allclose(shares.sum(1), 1)
        assert shares[0].tolist() == [1, 0, 0, 0, 0]
        assert (shares[:, 4] == 0).all()

    @staticmethod
    def copy(run, to):
        return shutil.copytree(run, to)


@pytest.fixture(scope="module")
def runs():
    how = {"iterations": 2, "horizon": 3}
    made = [recoup.train("toy", "pgpe", seed=seed, **how) for seed in range(3)]
    made.append(recoup.train("toy", "pgpe", seed=3, iterations=1, horizon=3))
    made.append(recoup.train("toy", "pgpe", seed=0, batch=5, **how))
    made.append(recoup.train("toy", "iw-pgpe", seed=0, **how))
    return [*made, recoup.train("mountain-car", "pgpe", seed=0, **how)]


class TestRunsLaidOverEachOther:
    def test_seeds_are_one_line_and_settings_another(self, runs):
        toy, car = overlay(runs)
        assert [panel.title for panel in (toy, car)] == ["toy", "mountain-car"]
        labels = {line.label: len(line.runs) for line in toy.lines}
        assert labels == {"pgpe (batch=10)": 4, "pgpe (batch=5)": 1, "iw-pgpe": 1}
        assert [line.label for line in car.lines] == ["pgpe"]

    def test_policies_are_told_apart_by_their_kind_and_no_number_is_cut(self):
        how = {"episodes": 8, "seed": 0, "batch": 4, "family": "diagonal", "test_episodes": 2}
        runs = [recoup.train("CartPole-v1", policy=policy, **how) for policy in ("linear", "mlp")]
        (panel,) = overlay(runs)
        assert [line.label for line in panel.lines] == [
            "recoup (std=0.4472, policy=linear)",
            "recoup (std=0.2425 to 0.4472, policy=mlp 16-16)",
        ]

    def test_a_long_label_is_wrapped_and_leaves_room_for_the_curves(self):
        line = overlay([recoup.train("toy", "pgpe", iterations=2, horizon=3, seed=0)])[0].lines[0]
        long = line._replace(label="pgpe (" + ", ".join(f"setting {i}=0.125" for i in range(20)))
        figure = overlaid([Panel("toy", [line, long])])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure.draw_without_rendering()
        legend = figure.axes[0].get_legend().get_window_extent()
        assert legend.x1 <= figure.bbox.x1

    def test_what_a_warm_up_has_fitted_is_no_setting(self):
        """It follows from the seed: scales of observations, centres of kernels."""
        how = {"episodes": 8, "batch": 4, "test_episodes": 2, "horizon": 5, "warm_up": 2}
        scaled = [recoup.train("CartPole-v1", seed=s, normalize=True, **how) for s in (0, 1)]
        kernels = {"policy": "kernels", "policy_options": {"size": 4}}
        near = [recoup.train("CartPole-v1", seed=s, **kernels, **how) for s in (0, 1)]
        assert scaled[0].plan.policy != scaled[1].plan.policy
        assert near[0].plan.policy != near[1].plan.policy
        (panel,) = overlay([*scaled, *near])
        assert [len(line.runs) for line in panel.lines] == [2, 2]
        (panel,) = overlay([*scaled[:1], recoup.train("CartPole-v1", **{**how, "warm_up": None})])
        assert [len(line.runs) for line in panel.lines] == [1, 1]

    def test_mean_and_standard_error_are_those_of_numpy(self, runs):
        line = overlay(runs)[0].lines[0]
        assert line.episodes.tolist() == [0, 10]  # as far as all of them went
        values = np.stack([run.curve.mean[:2] for run in runs[:4]])
        np.testing.assert_allclose(line.mean, values.mean(0))
        np.testing.assert_allclose(line.stderr, values.std(0, ddof=1) / 2)
        assert len(line.runs[0][0]) == 3  # each run is drawn to its end

    def test_a_single_run_has_no_error(self, runs):
        line = overlay(runs[-1:])[0].lines[0]
        assert np.isnan(line.stderr).all()
        assert line.end().endswith("one run")

    def test_the_picture_names_them(self, runs):
        figure = overlaid(overlay(runs))
        said = {text.get_text() for axes in figure.axes for text in axes.get_legend().texts}
        assert "pgpe (batch=10), 4 runs" in said
        assert [axes.get_title("left") for axes in figure.axes] == ["toy", "mountain-car"]


class TestTheStudysPage:
    @pytest.fixture
    def study(self, tmp_path):
        path = tmp_path / "robot.db"
        names = {"gain": (1, 100, "log"), NASTY: (0, 1)}
        with recoup.Study.open(path, params=names, batch=4) as made:
            for trial in made.ask(9):
                made.tell(trial.id, -abs(float(trial.theta[1]) - 0.5))
            made.tell(made.ask()[0].id, failed=NASTY)
        return path

    def test_the_values_to_deploy_come_first(self, study):
        found = visit(write_study_report(study))
        with recoup.Study.open(study) as made:
            policy, moves = made.mean_policy, len(made.history())
        assert moves == 2
        text = found["text"]
        assert text.index("To deploy") < text.index(f"{policy['gain']:.5g}")
        assert text.index(f"{policy['gain']:.5g}") < text.index("How it fares")
        assert "After 2 moves. The mean policy is the one to deploy." in text
        assert "0 pending, 9 ok, 1 failed" in text
        assert len(found["images"]) == 1

    @pytest.mark.usefixtures("sketches")
    def test_what_each_parameter_explains_stands_beside_it(self, study):
        text = write_study_report(study).read_text()
        with recoup.Study.open(study) as made:
            alone = [row for row in made.recommend().matters if len(row.names) == 1]
        shares = {
            f"{row.share:.0%} ± {max(row.stderr, 0.01):.0%}" if row.stderr < 0.28 else "not known"
            for row in alone
        }
        assert len(alone) == 2
        assert all(f'data-head="explains" class="number">{share}</td>' in text for share in shares)
        assert "Explains: the share of what the returns vary by" in text

    def test_a_browser_shows_it_without_complaint(self, study, tmp_path):
        page = write_study_report(study, tmp_path / "pages" / "p.html")
        found = visit(page, width=500)
        assert found["complaints"] == found["broken"] == found["outside"] == []
        assert found["title"] == "robot.db"
        assert NASTY in found["text"]
        assert found["width"] <= found["window"]

    @pytest.mark.usefixtures("sketches")
    def test_all_digits_can_be_copied(self, study):
        text = write_study_report(study).read_text()
        plain = unescape(re.search(r"<pre>(.*?)</pre>", text, re.S)[1])
        with recoup.Study.open(study) as made:
            assert json.loads(plain) == made.mean_policy

    def test_a_choice_that_stands_first_leaves_the_others_their_columns(self, tmp_path):
        with recoup.Study.open(
            tmp_path / "g.db", params={"grip": ["a", "b"], "kp": (1, 2)}
        ) as study:
            row = study.snapshot().distribution[1]
        page = write_study_report(tmp_path / "g.db").read_text()
        assert '<th class="number">−1 std</th><th class="number">+1 std</th>' in page
        assert f"{row.low:.5g}" in page

    def test_a_study_that_has_not_begun_has_one_too(self, tmp_path):
        recoup.Study.open(tmp_path / "new.db", dim=60).close()
        text = write_study_report(tmp_path / "new.db").read_text()
        assert "The distribution has not moved yet" in text
        assert "10 more parameters stand below" in text
        assert (tmp_path / "new-report.html").is_file()

    def test_the_study_is_never_written_over(self, study):
        with pytest.raises(ValueError, match="is the study itself: name a file"):
            write_study_report(study, study)
        with pytest.raises(ValueError, match=NO_STUDY_IN):
            write_study_report(study.with_name("other.db"))

    @pytest.mark.slow
    def test_a_run_that_explores_in_actions_has_one(self, tmp_path):
        how = {"iterations": 2, "horizon": 5, "out": tmp_path / "run"}
        with sketched():
            recoup.train("mountain-car", "iw-reinforce-ob", **how)
        text = write_study_report(tmp_path / "run" / "study.db").read_text()
        assert "theta_11" in text
        assert "+1 std" not in text


def test_the_newest_batch_comes_first():
    from recoup.study.moves.study_move import _ages

    weights = np.array([1.0, 1.0, 3.0, 3.0, 6.0, 6.0])
    assert _ages(weights, 2) == [0.6, 0.4, 0, 0, 0]  # one batch, then the two before it
    assert _ages(weights[:2], 2) == [1, 0, 0, 0, 0]
    assert _ages(np.arange(1.0, 32.0), 1) == [x / 496 for x in (31, 59, 175, 230, 1)]
    assert _ages(np.zeros(2), 2) == [0] * 5


@pytest.mark.parametrize("settings", [{}, {"mirrored": True}], ids=["alone", "pairs"])
def test_the_ages_of_a_move_are_in_its_batches(settings):
    """Without a weight that differs, shares are those of the batches themselves."""
    run = recoup.train("toy", "niw-pgpe", iterations=4, seed=0, **settings)
    want = [[1, 0], [1 / 2, 1 / 2], [1 / 3, 2 / 3], [1 / 4, 2 / 4]]
    np.testing.assert_allclose(run.ages[:, :2], want)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (1234567, "1,234,567"),
        (0.00123, "0.00123"),
        (12.345, "12.35"),
        (15.0, "15"),
        ("x", "x"),
    ],
)
def test_numbers_as_people_write_them(value, text):
    assert number(value) == text


def test_a_mean_has_the_digits_that_its_error_allows():
    assert measured(6.00123, 0.4012) == "6.0 ± 0.4"
    assert measured(-0.4601, 0.0123) == "-0.460 ± 0.012"
    assert measured(1234.4, 31.0) == "1234 ± 31"
    assert measured(0.5, 0.0) == "0.50 ± 0.00"
    assert measured(6.833432, 3e-16) == "6.83 ± 0.00"
    assert measured(0.0, 0.0) == "0.00 ± 0.00"


def test_no_line_ends_between_a_number_and_its_unit():
    text = '<td title="5 %">95 %: 5 cm, 3 s, 4 sets</td><code>a 5 % b</code><pre>7 %</pre>'
    shown = re.sub(r"(?<=5) (?=%:|cm)|(?<=3) (?=s)", "\xa0", text)
    assert html._unbroken(text) == shown
    assert shown.count("\xa0") == 3
