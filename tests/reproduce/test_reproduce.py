"""The reproduction: its numbers against plain NumPy, its files, and going on after a stop."""

import json
import re
import signal
import subprocess
import sys
from functools import cache, partial

import figure_data
import jax
import numpy as np
import pytest
from claim_cases import FIGURES
from program import recoup
from scipy import integrate, stats
from waiting import LIMIT, until

from recoup.checks import InputError
from recoup.reproduce import ORDER
from recoup.reproduce import reproduce as running
from recoup.reproduce.claims import FAILS, HOLDS, OPEN
from recoup.reproduce.figures import direction_figures, episode_figures, gradients, nine
from recoup.reproduce.jobs import FigureJob, JobFiles, run_jobs
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.sizes import SIZES, checkpoints, size_of
from recoup.reproduce.workers import groups, run_in_processes
from recoup.runs.directory import versions
from recoup.tasks.reach.body import import_mujoco


class TestWithoutMuJoCo:
    def test_versions_are_those_that_are_there(self):
        assert list(versions(("recoup", "no-such-package"))) == ["recoup"]

    def test_reaching_is_refused_before_anything_is_measured(self, monkeypatch, tmp_path):
        import_mujoco.cache_clear()
        monkeypatch.setitem(sys.modules, "mujoco.batch", None)
        with pytest.raises(InputError, match="need MuJoCo 4: pip install"):
            running.reproduce(["reach-2"], "quick", tmp_path)
        assert list(tmp_path.iterdir()) == []
        import_mujoco.cache_clear()


def toy_returns(rng, theta):
    """Returns of the toy, step by step, as the paper writes it."""
    state, total = rng.normal(size=theta.shape), np.zeros(theta.shape)
    for t in range(10):
        action = theta * state
        total += 0.9**t * (np.exp(-(state**2) / 2 - action**2 / 2) + 1)
        state = state + action + 0.5 * rng.normal(size=theta.shape)
    return total


def density(theta, eta, tau):
    return np.exp(-(((theta - eta) / tau) ** 2) / 2) / tau


@pytest.mark.slow
class TestGradientsAgainstNumPy:
    PATH = np.array([[0.4, 1.0], [0.2, 0.8], [-0.1, 0.7]])
    TRIALS = 4_000

    @pytest.fixture(scope="class")
    @classmethod
    def ours(cls):
        with jax.enable_x64(True):
            found, weights = gradients._estimates(jax.random.key(0), cls.PATH, 3, cls.TRIALS)
        return dict(zip(gradients.ESTIMATORS, np.moveaxis(found, 1, 0), strict=True)), weights

    @pytest.fixture(scope="class")
    @classmethod
    def plain(cls):
        """The same estimators in plain NumPy: {method: [trials, (eta, tau)]}."""
        rng, found = np.random.default_rng(1), {}
        eta, tau = cls.PATH[-1]
        drawn_by = np.repeat(np.arange(3), 10)
        theta = rng.normal(*cls.PATH[drawn_by].T, size=(cls.TRIALS, 30))
        returns = toy_returns(rng, theta)
        scores = np.stack([(theta - eta) / tau**2, ((theta - eta) ** 2 - tau**2) / tau**3], 2)
        own = density(theta, *cls.PATH[drawn_by].T)
        mixture = np.mean([density(theta, *rho) for rho in cls.PATH], axis=0)
        target = density(theta, eta, tau)
        weights = {"none": np.ones(own.shape), "own": target / own, "balance": target / mixture}
        for name, settings in gradients.ESTIMATORS.items():
            kept = slice(20, 30) if settings["window"] == 1 else slice(0, 30)
            w, r, s = weights[settings["weighting"]][:, kept], returns[:, kept], scores[:, kept]
            w = np.minimum(w ** settings.get("flatten", 1.0), settings.get("truncate", np.inf))
            if settings.get("normalize"):
                w = w / w.mean(1, keepdims=True)
            terms = (w * (r - cls.baseline(settings, w, r, s)))[..., None] * s
            found[name] = terms.mean(1)
        return found

    @staticmethod
    def baseline(settings, w, r, s):
        """One number a trial `[trials, 1]`, or one a sample of it."""
        norms = w**2 * (s**2).sum(2)
        if settings["baseline"] == "none":
            return 0.0
        if settings["baseline"] == "optimal":
            return ((r * norms).sum(1) / norms.sum(1))[:, None]
        b = np.empty(r.shape)
        for half, other in ((0, 1), (1, 0)):
            sums = [(x[:, other::2]).sum(1) for x in (r * norms, norms)]
            b[:, half::2] = (sums[0] / sums[1])[:, None]
        return b

    @pytest.mark.parametrize("method", gradients.ESTIMATORS)
    def test_mean_and_variance_within_four_standard_errors(self, ours, plain, method):
        a, b = ours[0][method], plain[method]
        error = np.sqrt((a.var(0) + b.var(0)) / self.TRIALS)
        assert (np.abs(a.mean(0) - b.mean(0)) < 4 * error).all()
        spread = [((x - x.mean(0)) ** 2).std(0) for x in (a, b)]
        error = np.sqrt((spread[0] ** 2 + spread[1] ** 2) / self.TRIALS)
        assert (np.abs(a.var(0) - b.var(0)) < 4 * error).all()

    def test_without_weights_the_largest_is_one(self, ours):
        largest = dict(zip(gradients.ESTIMATORS, ours[1].T, strict=True))
        assert (largest["niw-pgpe"] == 1).all()
        assert (largest["iw-pgpe"] > 1).any()
        assert (largest["mis-pgpe-ob"] <= 3).all()


def test_the_surface_and_its_gradient_against_numpy():
    surface = gradients._surface(1_000, lambda share: None)
    rng = np.random.default_rng(0)
    for theta in (-1.3, -0.6, 0.2):
        returns = toy_returns(rng, np.full(40_000, theta))
        ours = np.interp(theta, gradients.GRID, surface["mean"])
        error = np.hypot(returns.std() / 200, np.interp(theta, gradients.GRID, surface["stderr"]))
        assert abs(ours - returns.mean()) < 4 * error
    eta, tau, h = -0.3, 0.6, 1e-4
    expected = gradients.expected_return
    slopes = [
        (expected(surface["mean"], eta + h, tau) - expected(surface["mean"], eta - h, tau)) / 2 / h,
        (expected(surface["mean"], eta, tau + h) - expected(surface["mean"], eta, tau - h)) / 2 / h,
    ]
    np.testing.assert_allclose(
        gradients.true_gradient(surface["mean"], eta, tau), slopes, rtol=1e-4
    )


def test_the_path_follows_the_true_gradient():
    with jax.enable_x64(True):
        path, truth = gradients._path(jax.random.key(1), jax.random.key(2))
    steps = np.diff(path, axis=0)
    free = path[1:, 1] > 0.05
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1)[free], 0.1, rtol=1e-9)
    cosine = (steps * truth[:-1]).sum(1) / np.linalg.norm(truth[:-1], axis=1) / 0.1
    np.testing.assert_allclose(cosine[free], 1, rtol=1e-9)
    assert path[0, 1] == 1


@pytest.mark.slow
def test_estimates_are_made_at_the_points_of_the_path(monkeypatch):
    """The unbiased one has the true gradient of its point as its mean, within four errors."""
    monkeypatch.setattr(gradients, "ITERATIONS", 3)
    surface = gradients._surface(2_000, lambda share: None)["mean"]
    found = gradients._variances(0, 3_000, lambda share: None)
    truth = gradients.true_gradient(surface, found["eta"], found["tau"])
    plain = list(gradients.ESTIMATORS).index("pgpe")
    error = np.sqrt(found["variance"][:, plain] / 3_000)
    assert found["mean"].shape == (3, len(gradients.ESTIMATORS), 2)
    assert (np.abs(found["mean"][:, plain] - truth) < 4 * error).all()
    assert (np.abs(found["on_policy"] - truth) < 5 * error * np.sqrt(10 * 3_000 / 10_000)).all()


class TestGoingOn:
    def jobs(self, log, stop_at=None):
        def compute(name, tick):
            if name == stop_at:
                raise KeyboardInterrupt
            log.append(name)
            tick(0.5)
            return {"x": np.arange(3.0)}

        return [
            FigureJob(name, {"n": 1}, 2.0, lambda tick, name=name: compute(name, tick))
            for name in ("a/1", "b", "c")
        ]

    def test_what_was_done_is_not_done_again(self, tmp_path):
        log, shown = [], []
        with pytest.raises(KeyboardInterrupt):
            run_jobs(self.jobs(log, stop_at="b"), JobFiles(tmp_path))
        assert log == ["a/1"]
        results = run_jobs(
            self.jobs(log), JobFiles(tmp_path), lambda job, s: shown.append((job, s))
        )
        assert log == ["a/1", "b", "c"]
        assert list(results) == ["a/1", "b", "c"]
        assert sum(seconds for _, seconds in shown) == 4.0  # of the two jobs that were left

    def test_a_damaged_result_is_computed_again(self, tmp_path):
        log, store = [], JobFiles(tmp_path)
        jobs = self.jobs(log)
        run_jobs(jobs, store)
        whole = store.path(jobs[0]).read_bytes()
        for damage in (b"", b"noise", whole[: len(whole) // 2]):
            store.path(jobs[0]).write_bytes(damage)
            assert run_jobs(jobs, store)["a/1"]["x"].tolist() == [0, 1, 2]
        assert log.count("a/1") == 4
        assert log.count("b") == 1

    @pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
    def test_no_flipped_bit_of_a_result_is_taken(self, tmp_path, every):
        """No array is another, none is lost, and nothing is raised."""
        store, job = JobFiles(tmp_path), self.jobs([])[0]
        arrays = {"x": np.arange(3.0), "y": np.array([[1, 2]])}
        store.save(job, arrays)
        content = store.path(job).read_bytes()
        for bit in range(0, 8 * len(content), every):
            wrong = bytearray(content)
            wrong[bit // 8] ^= 1 << bit % 8
            store.path(job).write_bytes(wrong)
            found = store.load(job)
            if found is not None:
                assert found.keys() == arrays.keys(), bit
                for name, array in arrays.items():
                    np.testing.assert_array_equal(found[name], array, strict=True)

    def test_one_of_before_has_no_checksum_of_its_own(self, tmp_path):
        store, job = JobFiles(tmp_path), self.jobs([])[0]
        np.savez(store.path(job), x=np.arange(3.0))
        assert store.load(job)["x"].tolist() == [0, 1, 2]

    def test_other_settings_are_another_result(self, tmp_path):
        store, job = JobFiles(tmp_path), self.jobs([])[0]
        assert store.path(job) != store.path(job._replace(settings={"n": 2}))
        assert store.path(job) == store.path(job._replace(seconds=9.0))

    def test_nothing_half_written_is_left_behind(self, tmp_path):
        store, job = JobFiles(tmp_path), self.jobs([])[0]
        with pytest.raises(ValueError):
            store.save(job, {"x": np.array([object()])})
        assert store.load(job) is None


class TestProcesses:
    @pytest.mark.slow
    def test_they_do_what_is_left_and_give_the_same(self, tmp_path):
        jobs = [*running.theorems.bound_jobs(figure_data.TINY)[1:3], gradients.surface_job(500)]
        alone = run_jobs(jobs, JobFiles(tmp_path / "alone"))
        store, shown = JobFiles(tmp_path / "together"), []
        run_jobs(jobs[:1], store)
        run_in_processes(jobs, store, 2, lambda job, seconds: shown.append(job))
        assert sorted(shown) == sorted(job.name for job in jobs[1:])
        for job in jobs:
            found = store.load(job)
            for key, values in alone[job.name].items():
                np.testing.assert_array_equal(found[key], values)

    def test_a_failing_job_ends_them_all(self, tmp_path, capfd):
        job = FigureJob("broken", {}, 1.0, partial(int, "x"))
        with pytest.raises(RuntimeError, match="a worker ended with status 1"):
            run_in_processes([job], JobFiles(tmp_path), 2, lambda job, seconds: None)
        assert "Error" in capfd.readouterr().err

    def test_jobs_that_differ_in_their_seeds_stay_together(self):
        grouped = groups(running.jobs_of(running.chosen_figures(["reach-4"]), size_of("default")))
        assert [len(group) for group in grouped] == [3] * 6
        jobs = running.jobs_of(running.chosen_figures(["all"]), size_of("quick"))
        assert sum(len(group) for group in groups(jobs)) == len(jobs)


@pytest.fixture(scope="module")
def results():
    jobs = running.jobs_of(running.chosen_figures(["all"]), figure_data.TINY)
    return {job.name: figure_data.made_up(job) for job in jobs}


@pytest.fixture(scope="module", autouse=True)
def _few_episodes():
    """Of made-up policies two episodes are enough; twenty of each would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(episode_figures, "EPISODES", 2)
        patch.setattr(nine, "EPISODES", 2)
        yield


@pytest.fixture(scope="module")
def collected(results):
    """What the figure of a name makes of those results; made once, and looked at by several."""
    return cache(lambda name: running.FIGURES[name].collect(figure_data.TINY, results))


@pytest.mark.parametrize("name", [n for n in ORDER if n not in ("reach-model", "reach-2-strip")])
@pytest.mark.slow
def test_every_figure_is_collected_judged_and_drawn(name, collected, tmp_path):
    figure, data = running.FIGURES[name], collected(name)
    claims = figure.claims(data)
    assert claims
    assert {claim.verdict for claim in claims} <= {HOLDS, FAILS, OPEN}
    for claim in claims:
        assert claim.id.split(".")[0] in (name, "mountain-car-weak")
        assert claim.contrasts
    if not name.endswith("-strip"):
        figure.draw(data).savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_ids_are_unique(collected):
    ids = [
        claim.id
        for figure in running.FIGURES.values()
        if figure.name != "reach-2-strip"
        for claim in figure.claims(collected(figure.name))
    ]
    assert len(ids) == len(set(ids)) > 60


@pytest.mark.slow
def test_figures_made_one_after_the_other_are_judged_together(results, tmp_path):
    for name in ("bounds", "toy-returns"):
        running._finding(running.FIGURES[name], figure_data.TINY, results, tmp_path / name)
        running.correct(tmp_path)
    (tmp_path / "toy-weights").mkdir()
    (tmp_path / "toy-weights" / "claims.json").write_text("{}")  # not one of ours: left alone
    judged = running.correct(tmp_path)
    files = [
        json.loads((tmp_path / n / "claims.json").read_text()) for n in ("bounds", "toy-returns")
    ]
    records = [record for content in files for record in content["claims"]]
    assert {record["id"]: record for record in records} == judged
    assert {record["holm_of"] for record in records} == {len(records)}
    assert all(record["holm_p"] >= record["p"] for record in records)


def test_every_name_is_a_figure_and_sizes_are_as_stated():
    assert set(ORDER) == set(running.FIGURES)
    assert [f.name for f in running.chosen_figures(["reach-9", "bounds"])] == ["bounds", "reach-9"]
    default, paper = size_of("default"), size_of("paper")
    assert (default.toy_runs, default.car_runs, default.reach_runs) == (1000, 300, 30)
    assert (paper.toy_runs, paper.car_runs, paper.reach_runs) == (20, 10, 10)
    assert paper.trials == default.trials == 10_000
    assert all(size.starts >= 20 for size in SIZES.values())
    assert checkpoints(300, (20, 50))[:4] == [0, 15, 20, 30]
    assert len(checkpoints(400)) == 21


def program(*arguments, cwd):
    command = [sys.executable, "-m", "recoup", "reproduce", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=LIMIT)


def stamps(directory, pattern="*"):
    """When each file was last written."""
    return {path: path.stat().st_mtime_ns for path in directory.glob(pattern)}


@pytest.mark.slow
class TestTheProgram:
    """Stopped by Ctrl-C between two jobs, called again, and called once more when all is made."""

    @pytest.fixture(scope="class")
    @staticmethod
    def place(tmp_path_factory):
        return tmp_path_factory.mktemp("reproduction")

    @pytest.fixture(scope="class")
    @staticmethod
    def jobs(place):
        return place / "runs" / "reproduce-quick" / "jobs"

    @pytest.fixture(scope="class")
    @staticmethod
    def stopped(place, jobs):
        """How it ended, what it said, and the times of what it left: `(status, text, {path})`."""
        command = [sys.executable, "-m", "recoup", "reproduce", "toy-directions", "--quick"]
        with subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: list(jobs.glob("*.npz")))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=LIMIT)
        return process.returncode, said, stamps(jobs, "*.npz")

    @pytest.fixture(scope="class")
    @staticmethod
    def done(place, stopped):
        return program("toy-directions", "--quick", cwd=place)

    def test_interrupted_it_says_how_to_go_on_and_does(self, stopped, done, jobs):
        """The second call does only what was left."""
        status, said, left = stopped
        assert status == 130
        assert "stopped; the same command goes on from what lies in runs/reproduce-quick" in said
        assert left
        assert done.returncode == 0, done.stderr
        now = stamps(jobs, "*.npz")
        assert left == {path: now[path] for path in left}
        assert len(now) == 2

    def test_it_makes_a_figure(self, done, jobs):
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "runs/reproduce-quick"
        assert "toy-directions." in done.stdout
        directory = jobs.parent / "toy-directions"
        names = {path.name for path in directory.iterdir()} - {"figure.svg", "figure.pdf"}
        assert names == {"data.npz", "data.json", "claims.json", "figure.png"}
        claims = json.loads((directory / "claims.json").read_text())
        by_id = {claim["id"]: claim for claim in claims["claims"]}
        concentrated = by_id["toy-directions.iw-ob-concentrated"]
        assert concentrated["verdict"] == concentrated["holm_verdict"] == HOLDS
        assert concentrated["holm_of"] == len(by_id) == 4
        assert "judged alone and together" in done.stdout
        assert "toy-directions.iw-ob-concentrated" in done.stdout  # in full, on 80 columns
        assert concentrated["contrasts"][0]["runs"] == 1000
        about = json.loads((directory / "data.json").read_text())
        assert about["size"]["angles"] == 1000

    def test_when_all_is_made_nothing_is_measured(self, done, place, jobs):
        claims = jobs.parent / "toy-directions" / "claims.json"
        before, made = claims.read_text(), stamps(jobs)
        again = recoup("reproduce", "toy-directions", "--quick", "--quiet", cwd=place)
        assert again.returncode == 0
        assert made == stamps(jobs)
        assert before == claims.read_text()
        said = json.loads(
            recoup("reproduce", "toy-directions", "--quick", "--json", cwd=place).stdout
        )
        ids = [claim["id"] for claim in said["figures"]["toy-directions"]]
        assert "toy-directions.iw-ob-concentrated" in ids


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["toy-varience"], "figure must be one of .*Did you mean 'toy-variance'"),
        (["all", "--quick", "--paper"], "give --quick or --paper, not both"),
    ],
)
def test_wrong_use_gets_one_sentence(arguments, sentence, tmp_path):
    done = recoup("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert re.search(sentence, done.stderr)
    assert not (tmp_path / "runs").exists()


class TestClaimsHaveTheirSigns:
    """Results as the paper describes them must make its claims hold, reversed ones must not."""

    RANKS = {  # noqa: RUF012  (the higher, the better where the paper is right)
        "iw-reinforce-ob": 1,
        "tiw-enac": 0,
        "r3": -1,
        "niw-pgpe": 1,
        "pgpe": 2,
        "iw-pgpe": 3,
        "pgpe-ob": 5,
        "niw-pgpe-ob": 6,
        "iw-pgpe-ob": 9,
        "tiw-pgpe-ob": 9.5,
        "mis-pgpe-ob": 9,
    }

    def curves(self, results, gain):
        """Every learning curve rises by `gain(method, share of the budget)`, a little noisy."""
        made = {}
        for name, arrays in results.items():
            made[name] = dict(arrays)
            if "returns" in arrays and len(name.split("/")) == 3:
                shape = arrays["returns"].shape
                noise = 0.01 * np.random.default_rng(len(name)).normal(size=shape)
                share = np.linspace(0, 1, shape[1])
                made[name]["returns"] = noise + gain(name.split("/")[1], share)
        return made

    @pytest.mark.parametrize(
        ("figure", "wanted"),
        [
            ("toy-returns", "best above-pgpe-ob iw-above-niw niw-stays baseline-over-weights"),
            (
                "mountain-car",
                "best ahead-early iw-below-iw-ob others-below-pgpe reinforce-above-enac",
            ),
            ("mountain-car", "baseline-over-weights pgpe-ob-improves"),
            ("reach-2", "improves pgpe-ob-slower niw-ob-falls-behind reinforce-stays"),
            ("reach-4", "best ahead-early improves-throughout"),
            ("reach-9", "truncated-best"),
        ],
    )
    def test_of_learning_curves(self, results, figure, wanted):
        def right(method, share):
            return self.RANKS[method] * share

        def wrong(method, share):
            return -self.RANKS[method] * share

        for gain, verdict in ((right, HOLDS), (wrong, FAILS)):
            drawn = running.FIGURES[figure]
            data = drawn.collect(figure_data.TINY, self.curves(results, gain))
            found = {claim.id: claim.verdict for claim in drawn.claims(data)}
            for name in wanted.split():
                assert found[f"{figure}.{name}"] == verdict, (name, verdict)

    def test_of_variances_and_biases(self, results):
        """Variances ordered as the paper has them; only what is weighed rightly has no bias."""
        names = list(gradients.ESTIMATORS)
        order = ["iw-pgpe-ob", "niw-pgpe-ob", "pgpe-ob", "niw-pgpe", "iw-pgpe", "pgpe"]
        truth = gradients.true_gradient

        def made(order):
            changed = dict(results)
            for start in range(figure_data.TINY.starts):
                arrays = dict(results[f"toy/variance/{start}"])
                exact = truth(results["toy/surface"]["mean"], arrays["eta"], arrays["tau"])
                arrays["mean"] = np.repeat(exact[:, None], len(names), axis=1)
                arrays["variance"] = np.full(arrays["variance"].shape, 50.0)
                for rank, method in enumerate(order):
                    arrays["variance"][:, names.index(method)] = 0.1 * 3.0**rank + 1e-3 * start
                arrays["variance"][..., 1] = 1e-9  # of the standard deviation: not looked at
                for method in ("niw-pgpe", "niw-pgpe-ob"):
                    arrays["mean"][:, names.index(method)] += 5.0 + start
                changed[f"toy/variance/{start}"] = arrays
            drawn = running.FIGURES["toy-variance"]
            claims = drawn.claims(drawn.collect(figure_data.TINY, changed))
            return {claim.id.split(".")[1]: claim for claim in claims}

        right, wrong = made(order), made(order[::-1])
        for name in ("lowest", "iw-above-niw", "reuse-helps", "iw-ob-below-niw-ob", "niw-biased"):
            assert right[name].verdict == HOLDS, name
        for name in ("lowest", "iw-above-niw", "reuse-helps", "baseline-helps-pgpe"):
            assert wrong[name].verdict == FAILS, name
        chance = 0.1 / figure_data.TINY.trials  # taken off a squared bias that is exactly zero
        effect = right["iw-ob-small-bias"].contrasts[0].effect
        assert effect > 0.01
        assert effect < 0.01 + 1e3 * chance

    def test_of_directions(self, results):
        """A fan of estimates to the left of the true gradient has positive angles."""
        surface = results["toy/surface"]["mean"]
        direction = gradients.true_gradient(surface, *direction_figures.POINT)
        turned = np.radians([30.0, 30.0, -120.0])
        turns = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in turned])
        each = np.einsum("mij,j->mi", turns, direction)
        changed = {**results, "toy/directions": {"gradients": each[None], "on_policy": direction}}
        data = running.FIGURES["toy-directions"].collect(figure_data.TINY, changed)
        assert data["niw-pgpe angle"] == pytest.approx([30.0])
        assert data["iw-pgpe-ob angle"] == pytest.approx([-120.0])


@pytest.mark.parametrize("name", [n for n in ORDER if n not in ("reach-model", "reach-2-strip")])
def test_the_made_up_data_of_claims_are_those_that_are_collected(name, collected):
    made, data = FIGURES[name].neutral(), collected(name)
    only_far = {"arm alone"} if name == "reach-2-cost" else set()
    assert set(made) - only_far <= set(data)
    for key in set(made) - only_far:
        assert np.ndim(made[key]) == np.ndim(data[key]), key


@pytest.mark.slow
def test_methods_share_their_seeds_and_runs_keep_their_order():
    starts = []
    for method in ("pgpe", "niw-pgpe"):
        (job,) = learning_jobs("toy", (method,), 3, 1, [0, 1], 2, chunk=3)
        starts.append(job.compute(lambda share: None)["mean"][:, 0])
    np.testing.assert_array_equal(starts[0], starts[1])
    jobs = learning_jobs("toy", ("pgpe",), 6, 2, [0, 2], 0, chunk=2)
    made = {job.name: figure_data.made_up(job) for job in jobs}
    for i, job in enumerate(jobs):
        made[job.name]["returns"] = np.array([[2.0 * i], [2 * i + 1]])
    assert joined(made, "toy", "pgpe").returns[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_theorem_two_is_measured_on_other_samples_than_its_baseline_comes_from():
    """Against plain sums; the two blocks have different optimal baselines here."""
    rng = np.random.default_rng(0)

    def samples(count, level):
        returns, weights = rng.uniform(6, 13, count) + level, rng.uniform(0.2, 2, count)
        scores = [rng.normal(size=count), (returns - 9) * rng.normal(size=count)]
        return returns, weights, np.stack(scores, 1)

    fit, few = samples(4_000, 0.0), samples(400 * 10, 100.0)
    found = running.theorems._summary(fit, {10: few})
    returns, weights, scores = fit
    norms = weights**2 * (scores**2).sum(1)
    b = (returns * norms).sum() / norms.sum()
    assert found["baselines"][2] == pytest.approx(b)
    assert found["curvature"][2] == pytest.approx(norms.mean())
    own = [(returns * weights**2 * s**2).sum() / (weights**2 * s**2).sum() for s in scores.T]
    mean = (returns * weights).sum() / weights.sum()
    returns, weights, scores = few
    choices = {"none": [0, 0], "own": own, "joint": [b, b], "mean": [mean, mean]}
    choices |= {"lower": [0.9 * b, 0.9 * b], "higher": [1.1 * b, 1.1 * b]}
    for name, baselines in choices.items():
        terms = (weights * (returns - np.array(baselines)[:, None])).T * scores
        by_hand = [
            np.var([terms[i : i + 10, k].mean() for i in range(0, 200, 10)], ddof=1)
            for k in range(2)
        ]
        np.testing.assert_allclose(found[f"{name} 10"][0], by_hand, rtol=1e-9)
    assert running.theorems.DISCOUNT == 0.9


def test_a_rare_reward_refutes_theorem_three_as_printed_and_not_by_blocks():
    """Against adaptive quadrature in pieces; the bound is 1 for eta and 2 for tau."""

    def mean(function):
        pieces = [(-20, -3, 1_000.0), (-3, 3, 1.0), (3, 20, 1_000.0)]
        parts = (
            integrate.quad(lambda z, r=r: function(r, z) * stats.norm.pdf(z), low, high)[0]
            for low, high, r in pieces
        )
        return sum(parts)

    blocks = [lambda z: z, lambda z: z**2 - 1]
    weighed = [mean(lambda r, z, s=s: r * s(z) ** 2) for s in blocks]
    squares = [mean(lambda r, z, s=s: s(z) ** 2) for s in blocks]
    joint = sum(weighed) / sum(squares)
    found = running.theorems._rare()
    for i, s in enumerate(blocks):
        for name, b in (("own", weighed[i] / squares[i]), ("joint", joint)):
            without = mean(lambda r, z, s=s: (r * s(z)) ** 2)
            with_b = mean(lambda r, z, s=s, b=b: ((r - b) * s(z)) ** 2)
            wanted = without - with_b - (i + 1)
            assert found[f"rare {name}"][i] == pytest.approx(wanted, rel=1e-3), (i, name)
    assert found["rare joint"][0] < 0 < found["rare own"].min()


def test_a_place_that_cannot_be_written_to_is_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    done = recoup("reproduce", "toy-directions", "--quick", "--out", "file", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be written to" in done.stderr
