"""Films of policies. Without OpenGL the reaching ones are skipped, unless it must be there."""

import csv
import json
import os
import subprocess
import sys

import gymnasium
import imageio.v3 as imageio
import jax
import numpy as np
import pytest
from matplotlib.image import imread
from sentences import NO_STUDY_FILE
from waiting import LIMIT

import recoup
from recoup.pictures.film import Film, film, film_strip
from recoup.runs.render import render_run
from recoup.store.codec import of_proposal
from recoup.store.rows import Proposal
from recoup.store.store import OVER, Store
from recoup.tasks.registry import make_env, make_task

pytestmark = pytest.mark.filterwarnings(  # reading a video forks, and leaves its pipes open
    "ignore::ResourceWarning",
    "ignore:os.fork:RuntimeWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


@pytest.fixture(scope="module")
def gl():
    """Skips without OpenGL; with RECOUP_REQUIRE_GL set, fails instead."""
    env = make_env("reach-2", "rgb_array")
    env.reset(seed=0)
    try:
        env.render()
    except ValueError as reason:
        if os.environ.get("RECOUP_REQUIRE_GL"):
            raise
        pytest.skip(str(reason))
    finally:
        env.close()


@pytest.fixture(scope="module")
def car_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "car"
    recoup.train("mountain-car", "pgpe-ob", iterations=2, seed=0, out=out)
    return out


@pytest.fixture(scope="module")
def reach_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "reach"
    recoup.train("reach-2", "pgpe-ob", iterations=1, seed=0, horizon=12, out=out)
    return out


def frames_of(path):
    return imageio.imread(path, plugin="FFMPEG")


def test_a_car_is_filmed(car_run):
    written = render_run(car_run, steps=[0, 20, 40])
    assert sorted(path.name for path in written.values()) == ["policy.mp4", "strip.png"]
    video = frames_of(written["video"])
    assert video.shape == (41, 360, 480, 3)
    assert np.abs(video[0].astype(int) - video[20]).max() > 50  # the car has moved
    strip = imread(written["strip"])
    assert strip.shape[1] > 3 * 250


def test_the_film_is_the_episode_of_the_mean_policy(car_run):
    task, theta = make_task("mountain-car"), recoup.load(car_run).mean
    env = make_env("mountain-car", "rgb_array")
    shot = film(env, lambda seen: task.act(np.array(theta), seen))
    with jax.enable_x64(True):
        want = task.rollouts(jax.random.split(jax.random.key(0), 1), np.array([theta]))[0]
    assert shot.rewards @ 0.95 ** np.arange(40) == pytest.approx(float(want))
    assert shot.captions[:2] == ["step 0", "step 1"]


class Countdown(gymnasium.Env):
    """Somebody else's environment: ends by itself after three steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012
    observation_space = action_space = gymnasium.spaces.Discrete(4)
    render_mode = "rgb_array"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 3
        return self.left, {}

    def step(self, action):
        self.left -= 1
        return self.left, float(action), self.left == 0, False, {}

    def render(self):
        return np.full((8, 8, 3), self.left, np.uint8)


def test_any_gymnasium_environment_can_be_filmed():
    shot = film(Countdown(), lambda seen: seen)
    assert shot.frames[:, 0, 0, 0].tolist() == [3, 2, 1, 0]
    assert shot.rewards.tolist() == [3, 2, 1]
    assert shot.fps == 7
    with pytest.raises(ValueError, match="rgb_array"):
        film(make_env("mountain-car"), lambda seen: np.zeros(1))


@pytest.mark.slow
def test_a_reaching_run_is_filmed_and_measured(gl, reach_run, tmp_path):
    written = render_run(reach_run, out=tmp_path / "pictures")
    assert frames_of(written["video"]).shape == (13, 480, 640, 3)
    rows = list(csv.DictReader(written["steps"].read_text().splitlines()))
    assert len(rows) == 20 * 12
    assert list(rows[0]) == ["episode", "step", "distance_m", "control_cost"]
    distance = np.array([float(row["distance_m"]) for row in rows]).reshape(20, 12)
    assert (distance > 0).all()
    assert (distance < 2).all()
    assert imread(written["steps_plot"]).shape[0] > 300


def test_the_picture_shows_the_target_and_the_arm(gl):
    env = make_env("reach-2", "rgb_array", noise=0.0)
    env.reset(seed=0)
    hanging = env.render().astype(int)
    red = (hanging[..., 0] > 150) & (hanging[..., 1] < 110) & (hanging[..., 2] < 110)
    assert red.sum() > 50
    for _ in range(20):
        env.step(np.zeros(2))
    raised = env.render().astype(int)
    assert (np.abs(raised - hanging).max(-1) > 30).mean() > 0.01
    env.close()


def test_env_checker_renders_without_a_complaint(gl, recwarn):
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("recoup/Reach-v0", joints=2, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    assert env.unwrapped.render().shape == (480, 640, 3)
    env.close()


def test_wrong_steps_write_nothing(car_run, tmp_path):
    with pytest.raises(ValueError, match=r"must lie in 0\.\.40, got 41"):
        render_run(car_run, steps=[0, 41], out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_strip_outside_the_episode_gets_one_sentence():
    captions = ["step 0", "step 1", "step 2"]
    shot = Film(np.zeros((3, 4, 4, 3), np.uint8), np.zeros(2), captions, 10, np.arange(3))
    with pytest.raises(ValueError, match=r"must lie in 0\.\.2, got 7"):
        film_strip(shot, "", [0, 7])


def test_what_is_not_a_run_gets_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"is not a run directory: it has no study\.db"):
        render_run(tmp_path)
    (tmp_path / "study.db").write_bytes(b"noise" * 1000)
    with pytest.raises(ValueError, match=NO_STUDY_FILE):
        render_run(tmp_path)


@pytest.mark.parametrize(
    ("mean", "sentence"),
    [([1.0, 2.0], r"study\.db is damaged"), ([np.nan] * 12, "finite")],
)
def test_a_policy_that_does_not_fit_is_refused(car_run, tmp_path, mean, sentence):
    (tmp_path / "study.db").write_bytes((car_run / "study.db").read_bytes())
    numbers = np.concatenate([mean, np.ones(len(mean))])
    rows = [Proposal(number, "move", "diagonal", numbers) for number in range(3)]
    store = Store.open(tmp_path / "study.db")
    with store.writing():
        store._file.insert("proposals", map(of_proposal, rows), OVER)
    store.close()
    with pytest.raises(ValueError, match=sentence):
        render_run(tmp_path)


def test_a_place_that_cannot_be_written_to_is_refused_first(car_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written to: name another directory"):
        render_run(car_run, out=tmp_path / "file" / "below")


def recoup_program(*arguments, **environment):
    command = [sys.executable, "-m", "recoup", *map(str, arguments)]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=LIMIT)


def test_without_opengl_one_sentence_names_the_packages(reach_run):
    done = recoup_program("render", reach_run, MUJOCO_GL="disabled")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri" in done.stderr
    assert not (reach_run / "policy.mp4").exists()


@pytest.mark.slow
def test_the_program_films_a_run(car_run, tmp_path):
    done = recoup_program("render", car_run, "--out", tmp_path, "--steps", "0,10,40")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "policy.mp4"), str(tmp_path / "strip.png")]
    assert (tmp_path / "policy.mp4").stat().st_size > 1000
    words = ("--out", tmp_path, "--steps", "0,10,40", "--json")
    said = json.loads(recoup_program("render", car_run, *words).stdout)
    assert str(tmp_path / "policy.mp4") in said.values()


def test_a_task_without_a_picture_says_that_alone(recwarn):
    """Gymnasium would warn of it first."""
    with pytest.raises(ValueError, match="is not one of toy's; it has none: it has no picture"):
        make_env("toy", "rgb_array")
    assert not recwarn.list
