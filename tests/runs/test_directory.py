"""Where a run is written: by one process alone, and there wherever the task goes meanwhile."""

import json
import os
import subprocess
import sys
from pathlib import Path

import own_tasks
import pytest
from program import recoup as program
from sentences import AT_WORK, NOT_STORED

import recoup
from recoup.checks import InputError
from recoup.runs.directory import alone_in
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("sketches")

HELPERS = str(Path(own_tasks.__file__).parent)
QUICK = {"horizon": 5, "test_episodes": 2, "episodes": 12, "batch": 4}
WRITTEN = {"study.db", "config.json", "curve.png", "policy.npz", "policies"}


def written(directory):
    return {path.name for path in Path(directory).iterdir()} - {"tensorboard"}


class TestATaskThatChangesTheDirectory:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        """The directory that the program is started in, and has left when it ends."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(HELPERS)
        (tmp_path / "away").mkdir()
        (tmp_path / "model.xml").touch()
        return tmp_path

    def only_here(self, home):
        """Nothing was written where the task has gone."""
        assert list((home / "away").iterdir()) == []
        return True

    @pytest.mark.parametrize("task", [own_tasks.Wanders, own_tasks.Strays])
    def test_a_run_and_all_that_belongs_to_it_lie_where_they_were_asked_for(self, task, home):
        run = recoup.train(task, **QUICK, out="runs/r")
        assert Path.cwd() == home / "away"
        assert self.only_here(home)
        assert written(home / "runs/r") == WRITTEN
        assert run.out == home / "runs/r"
        assert run.study.counts()["ok"] == 12
        run.study.close()

    def test_it_is_resumed_loaded_and_evaluated_there(self, home, monkeypatch):
        recoup.train(own_tasks.Strays, **QUICK, out="r")
        monkeypatch.chdir(home)
        found = recoup.evaluate("r", task=own_tasks.Strays)
        assert found.return_search.episodes == 2
        monkeypatch.chdir(home)
        longer = recoup.resume("r", task=own_tasks.Strays, iterations=5)
        assert longer.finished
        assert self.only_here(home)
        assert json.loads((home / "r" / "config.json").read_text())["iterations"] == 5
        monkeypatch.chdir(home)
        loaded = recoup.load("r", task=own_tasks.Strays)
        loaded.task  # noqa: B018  (makes the environment)
        with loaded.study as study:
            assert study.counts()["ok"] == 20

    def test_a_run_that_is_resumed_goes_on_there(self, home, monkeypatch):
        run = recoup.train(own_tasks.Strays, **QUICK, out="r")
        assert Path.cwd() == home / "away"
        assert recoup.resume(run, iterations=5).finished
        assert self.only_here(home)

    def test_the_program_says_where_as_it_was_told(self, home):
        words = "train own_tasks:Strays --horizon 5 --test-episodes 2 --episodes 12 --batch 4"
        done = program(*words.split(), "--out", "runs/r", "--json", "--quiet")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["run"] == "runs/r"
        assert self.only_here(home)
        done = program("evaluate", "runs/r", "--task", "own_tasks:Strays", "--json")
        assert json.loads(done.stdout)["run"] == "runs/r"
        more = ("--iterations", 4, "--task", "own_tasks:Strays")
        done = program("resume", "runs/r", *more)
        assert "  runs/r/policy.npz" in done.stdout
        assert self.only_here(home)

    def test_the_program_says_how_to_go_on_where_it_is_broken(self, home):
        words = "train own_tasks:LostOnTheWay --horizon 5 --episodes 40 --quiet --out r"
        done = program(*words.split())
        assert done.returncode == 1
        assert "`recoup resume r --task own_tasks:LostOnTheWay` goes on where it was" in done.stderr

    @pytest.mark.parametrize("engine", ["process", pytest.param("ray", marks=pytest.mark.slow)])
    def test_workers_start_where_the_program_was(self, home, engine):
        """Not where making the task has led to: they find the same files."""
        if engine == "ray":
            pytest.importorskip("ray")
        how = {"engine": engine, "workers": 2}
        run = recoup.train(own_tasks.Wanders, **QUICK, **how, warm_up=1, normalize=True, out="r")
        assert Path.cwd() == home / "away"  # the warm-up has led there
        assert run.failed == 0
        assert written(home / "r") == WRITTEN

    def test_films_lie_where_they_were_asked_for(self, home, monkeypatch):
        pytest.importorskip("imageio")
        recoup.train(own_tasks.Strays, **QUICK, out="r")
        monkeypatch.chdir(home)
        done = program("render", "r", "--task", "own_tasks:Strays", "--out", "films")
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["films/policy.mp4", "films/strip.png"]
        assert written(home / "films") == {"policy.mp4", "strip.png"}

    def test_comparisons_too(self, home):
        words = "compare --task own_tasks:Strays --method pgpe --runs 1 --episodes 8 --workers 1"
        done = program(*words.split(), "--horizon", 5, "--test-episodes", 2, "--out", "c")
        assert done.returncode == 0, done.stderr
        assert "  c/compare.html" in done.stdout
        assert (home / "c" / "compare.json").is_file()
        assert self.only_here(home)


def test_a_link_that_is_turned_while_a_run_is_made(tmp_path):
    """Everything lies in the directory that it led to at first."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "now"
    link.symlink_to("one")

    def turn(step):
        if step.iteration == 1:
            link.unlink()
            link.symlink_to("two")

    recoup.train("toy", iterations=2, out=link / "r", progress=turn)
    assert written(tmp_path / "one" / "r") == {"study.db", "config.json", "curve.png"}
    assert list((tmp_path / "two").iterdir()) == []


WAITS = """
import sys
import own_tasks, recoup
from recoup.checks import InputError

class Waits(own_tasks.Walk):
    def __init__(self, **options):
        super().__init__(**options)
        print("made", flush=True)  # first to see its spaces, then to be rolled out
        sys.stdin.readline()

how = {"horizon": 5, "test_episodes": 2, "episodes": 12, "batch": 4}
try:
    recoup.train(Waits, **how, seed=int(sys.argv[2]), out=sys.argv[1])
    print("finished", flush=True)
except InputError as refused:
    print(refused, flush=True)
"""


@pytest.fixture
def trainer():
    """Starts processes that train in a directory and wait wherever their task is made."""
    started = []

    def start(out, seed):
        words = [sys.executable, "-c", WAITS, str(out), str(seed)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        path = os.pathsep.join([HELPERS, *filter(None, [os.environ.get("PYTHONPATH")])])
        one = subprocess.Popen(words, **pipes, env={**os.environ, "PYTHONPATH": path})
        started.append(one)
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def heard(process):
    return process.stdout.readline().strip()


class TestTwoThatTrainIntoOneDirectory:
    @pytest.mark.parametrize("end", ["at work", "finished"])
    def test_the_second_changes_nothing(self, tmp_path, trainer, end):
        """It has looked before the first has begun, and comes to write while that is at work."""
        out = tmp_path / "runs" / "r"
        second = trainer(out, 2)
        assert heard(second) == "made"
        assert not (tmp_path / "runs").exists()
        first = trainer(out, 1)
        assert heard(first) == "made"
        go_on(first)
        assert heard(first) == "made"  # for its first trial: the run has begun
        before = (out / "config.json").read_bytes()
        assert json.loads(before)["seed"] == 1
        if end == "finished":
            go_on(first)
            assert heard(first) == "finished"
        go_on(second)
        words = {"at work": "another process is at work on the run", "finished": "exists already"}
        assert words[end] in heard(second)
        assert second.wait(60) == 0
        assert (out / "config.json").read_bytes() == before
        if end == "at work":
            go_on(first)
            assert heard(first) == "finished"
        assert recoup.load(out).plan.seed == 1
        assert (out / "config.json").read_bytes() == before
        assert written(out) == WRITTEN

    def test_one_that_was_killed_leaves_a_directory_to_go_on_in(self, tmp_path, trainer):
        first = trainer(tmp_path / "r", 1)
        for _ in range(2):
            assert heard(first) == "made"
            go_on(first) if not (tmp_path / "r").exists() else first.kill()
        first.wait(60)
        with pytest.warns(UserWarning, match="task was Waits"):
            run = recoup.resume(tmp_path / "r", task=own_tasks.Walk)
        assert run.finished
        assert run.plan.seed == 1

    def test_one_that_is_made_and_removed_meanwhile_is_made_again(self, tmp_path, monkeypatch):
        """By a process that has failed: a lock on what is gone would be none."""
        import fcntl

        lock, times = fcntl.flock, []

        def late(handle, how):
            if not times:
                (tmp_path / "r").rmdir()
            times.append(handle)
            lock(handle, how)

        monkeypatch.setattr(fcntl, "flock", late)
        made = []
        with alone_in(tmp_path / "r", made):
            assert len(times) == 2
            with pytest.raises(InputError, match="at work"):
                alone_in(tmp_path / "r").__enter__()
        assert (tmp_path / "r").is_dir()


class TestNothingIsLeftOfARunThatDidNotBegin:
    @pytest.mark.parametrize("there", [False, True])
    def test_where_its_study_cannot_be_made(self, tmp_path, monkeypatch, there):
        out = tmp_path / "runs" / "r"
        if there:
            out.mkdir(parents=True)

        def fails(*given):
            assert (out / "config.json").is_file()
            raise OSError("no space left on device")

        monkeypatch.setattr(Study, "create", fails)
        with pytest.raises(OSError, match="no space left"):
            recoup.train("toy", iterations=1, out=out)
        assert out.exists() == there
        assert (tmp_path / "runs").exists() == there
        assert not there or list(out.iterdir()) == []

    @pytest.mark.parametrize(
        "left", [[], ["config.json"], ["config.json.new"], ["config.json", "study.db.1.new"]]
    )
    def test_what_a_kill_has_left_can_be_trained_in(self, tmp_path, left):
        for name in left:
            (tmp_path / name).write_text("{")
        with pytest.raises(InputError, match=r"has no study\.db"):
            recoup.resume(tmp_path)
        assert recoup.train("toy", iterations=1, out=tmp_path).finished
        assert json.loads((tmp_path / "config.json").read_text())["task"] == "toy"


class TestARefusedExtension:
    """Whatever refuses it, the run is afterwards what it was before."""

    @pytest.fixture
    def out(self, tmp_path):
        recoup.train(own_tasks.Walk, **QUICK, out=tmp_path / "r")
        return tmp_path / "r"

    def unchanged(self, out):
        run = recoup.load(out)
        assert run.finished
        assert run.plan.iterations == 3
        assert json.loads((out / "config.json").read_text())["iterations"] == 3
        with run.study as study:
            assert study.store.events("extended") == []
        return True

    def test_by_a_process_that_is_at_work(self, out, tmp_path):
        """A real one, which holds the directory until it is told to end."""
        program_ = (
            "import sys\nfrom pathlib import Path\nfrom recoup.runs.directory import alone_in\n"
            "with alone_in(Path(sys.argv[1])):\n    print('held', flush=True)\n"
            "    sys.stdin.read()\n"
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        other = subprocess.Popen([sys.executable, "-c", program_, str(out)], **pipes)
        try:
            assert heard(other) == "held"
            with pytest.raises(InputError, match=f"{AT_WORK} on the run"):
                recoup.resume(out, iterations=8, task=own_tasks.Walk)
            assert self.unchanged(out)
        finally:
            other.communicate()
        assert recoup.resume(out, iterations=4, task=own_tasks.Walk).plan.iterations == 4

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({}, "name it again to run it"),
            ({"task": own_tasks.Odd}, "."),
            ({"task": own_tasks.Walk, "engine": {"engine": "serial", "workers": 2}}, "is for"),
            ({"task": own_tasks.Walk, "callbacks": [object()]}, "a callback has one of"),
            ({"task": lambda: 1 / 0}, "."),
        ],
    )
    def test_by_what_is_missing_or_does_not_fit(self, out, given, words):
        with pytest.raises(Exception, match=words):
            recoup.resume(out, iterations=8, **given)
        assert self.unchanged(out)

    def test_by_a_part_that_is_missing(self, tmp_path):
        import optax

        out = tmp_path / "part"
        recoup.train("toy", "iw-pgpe-ob", iterations=3, update=optax.adam(0.1), out=out)
        with pytest.raises(InputError, match=NOT_STORED):
            recoup.resume(out, iterations=8)
        assert self.unchanged(out)

    def test_by_an_engine_that_is_for_other_tasks(self, tmp_path):
        recoup.train("toy", iterations=3, out=tmp_path / "toy")
        with pytest.raises(InputError, match="engines are for environments"):
            recoup.resume(tmp_path / "toy", iterations=8, engine={"engine": "process"})
        assert self.unchanged(tmp_path / "toy")

    def test_settings_that_were_not_written_are_written_the_next_time(self, out, monkeypatch):
        """A kill after the study has the new budget, and before `config.json` has."""
        from recoup.runs import train

        def killed(*given):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(train, "note_budget", killed)
            with pytest.raises(KeyboardInterrupt):
                recoup.resume(out, iterations=4, task=own_tasks.Walk)
        assert json.loads((out / "config.json").read_text())["iterations"] == 3
        assert recoup.resume(out, task=own_tasks.Walk).finished
        assert json.loads((out / "config.json").read_text())["iterations"] == 4
