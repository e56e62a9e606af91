"""Code of the user's that raises what it should not, or forks: a trial fails, a run goes on."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import own_tasks
import pytest

import recoup
from recoup.runs.render import render_run
from recoup.tasks.engines.attempt import Raised, attempt, reason, theirs
from recoup.tasks.engines.engine import Broken, Job
from recoup.tasks.engines.processes import Processes
from recoup.tasks.engines.serial import Serial
from recoup.tasks.engines.vectorised import Vectorised
from recoup.tasks.own.found import find
from recoup.tasks.own.host import How, host_task
from recoup.tasks.task import Task

BAD = [  # what is raised, and how it is told
    (own_tasks.Wordless(), "Wordless, which cannot be put into words"),
    (own_tasks.Unusual("the arm is gone"), "Unusual: the arm is gone"),
    (GeneratorExit("over"), "GeneratorExit: over"),
    (SystemExit(3), "SystemExit: 3"),
    (StopIteration(), "StopIteration"),
    (ValueError("lone \udce4"), "ValueError: lone \\udce4"),
]
NAMES = [type(wrong).__name__ for wrong, _ in BAD]
QUICK = {"horizon": 4, "test_episodes": 3, "episodes": 12, "batch": 4}


def build_of(make):
    return host_task(find(make, False), How(horizon=4)).build


def outcomes(engine, jobs):
    """What came of jobs, in the order of their ids."""
    line, found = list(jobs), []
    try:
        while len(found) < len(jobs):
            if line:
                engine.submit(line.pop(0))
            found += engine.wait(60)
    finally:
        engine.close()
    return sorted(found)


@pytest.mark.parametrize(
    "engine", [Serial, partial(Processes, workers=1)], ids=["serial", "process"]
)
@pytest.mark.parametrize(("wrong", "words"), BAD, ids=NAMES)
def test_whatever_is_raised_costs_its_trial_alone(engine, wrong, words):
    jobs = [Job(i, np.zeros(3), seed=i) for i in range(1, 5)]
    found = outcomes(engine(build_of(partial(own_tasks.Raises, wrong))), jobs)
    assert [one.failed for one in found] == [None, None, words, None]


@pytest.mark.parametrize(("wrong", "words"), BAD[:2], ids=NAMES[:2])
def test_a_run_goes_on_without_it(wrong, words, tmp_path):
    run = recoup.train(partial(own_tasks.Raises, wrong), **QUICK, out=tmp_path / "r")
    assert run.finished
    assert run.episodes == 12
    notes = [trial.note for trial in run.study.trials() if trial.status == "failed"]
    assert set(notes) == {words}
    assert run.tests_failed > 0


@pytest.mark.parametrize(("wrong", "words"), BAD, ids=NAMES)
def test_in_a_warm_up_it_is_one_sentence(wrong, words):
    how = {**QUICK, "warm_up": 6, "normalize": True}
    with pytest.raises(Broken) as raised:
        recoup.train(partial(own_tasks.Raises, wrong), **how)
    assert str(raised.value) == f"an episode of the warm-up failed: {words}"


@pytest.mark.parametrize(("wrong", "words"), BAD, ids=NAMES)
def test_while_the_task_is_built_too(wrong, words):
    def make():
        raise wrong

    with pytest.raises(Broken) as raised:
        recoup.train(make, **QUICK)
    assert f"makes no environment: {words}." in str(raised.value)


def test_ctrl_c_is_no_fault_of_the_task():
    def roller(job):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(roller, Job(1, np.zeros(2), 0))


def test_words_may_be_of_a_type_of_their_own():
    class Text(str):
        def split(self, *how):
            raise RuntimeError

    class Odd(Exception):
        def __str__(self):
            return Text("odd")

    assert reason(Odd()) == "Odd, which cannot be put into words"


def test_notes_that_raise_leave_no_traceback_and_do_no_harm():
    class Noted(Exception):
        @property
        def __notes__(self):
            raise RuntimeError

    with pytest.raises(Raised) as raised, theirs():
        raise Noted("x")
    assert (raised.value.words, raised.value.trace) == ("Noted: x", "")


def test_what_cannot_be_closed_is_a_warning(tmp_path, caplog):
    run = recoup.train(own_tasks.Unclosable, **QUICK, out=tmp_path / "r")
    assert run.finished
    assert set(caplog.messages) == {"the task could not be closed: Unusual: the lid is stuck"}


def test_one_that_cannot_be_filmed_is_one_sentence(tmp_path):
    class Blind(own_tasks.Walk):
        def render(self):
            raise own_tasks.Unusual("the lens is dirty")

    recoup.train(own_tasks.Walk, **QUICK, out=tmp_path / "r")
    with (
        pytest.warns(UserWarning, match="Blind is rolled out now"),
        pytest.raises(Broken, match="the episode failed: Unusual: the lens is dirty"),
    ):
        render_run(tmp_path / "r", task=Blind)


def task_of(rollouts):
    return Task("mine", 2, 1, 1, 1.0, rollouts, None, None, traced=False)


class TestManyAtATime:
    """Which of them has raised is found by rolling them out alone."""

    @staticmethod
    def rolled(rollouts, count=4):
        engine = Vectorised(task_of(rollouts), count)
        for i in range(count):
            engine.submit(Job(i, np.full(2, float(i)), seed=i))
        return engine.wait()

    @pytest.mark.parametrize(("wrong", "words"), BAD, ids=NAMES)
    def test_one_that_raises_fails_alone(self, wrong, words):
        def rollouts(keys, theta):
            if (theta[:, 0] == 2).any():
                raise wrong
            return -jnp.sum(theta**2, axis=1)

        found = self.rolled(rollouts)
        assert [one.failed for one in found] == [None, None, words, None]
        assert [one.values for one in found] == [(0.0,), (-2.0,), (), (-18.0,)]

    def test_where_all_raise_the_task_is_broken(self):
        def rollouts(keys, theta):
            raise own_tasks.Unusual("the arm is gone")

        with pytest.raises(Broken, match=r"all 4 trials of a batch failed, .*: the arm is gone"):
            self.rolled(rollouts)
        assert self.rolled(rollouts, 1)[0].failed == "Unusual: the arm is gone"


ROLLED = """
import os, sys
import numpy as np
import own_tasks
from recoup.tasks.engines.engine import Job
from recoup.tasks.engines.processes import Processes
from recoup.tasks.engines.serial import Serial
from recoup.tasks.own.found import find
from recoup.tasks.own.host import How, host_task

task = host_task(find(getattr(own_tasks, sys.argv[1]), False), How(horizon=5))
engine = Serial(task.build) if sys.argv[2] == "serial" else Processes(task.build, 1)
for i in range(3):
    engine.submit(Job(i, np.zeros(task.dim), i))
    (found,) = engine.wait(120)
    os.write(1, f"{found.id} {found.failed} {found.steps}\\n".encode())
engine.close()
"""
RUN = """
import os, sys
import own_tasks, recoup

how = {"engine": "process", "workers": 2} if sys.argv[2] == "process" else {}
task = getattr(own_tasks, sys.argv[1])
how |= {"warm_up": 2, "normalize": True, "horizon": 5, "test_episodes": 2}
run = recoup.train(task, episodes=8, batch=4, out="r", **how)
os.write(1, f"{run.study.counts()['ok']} {run.finished}\\n".encode())
"""


def output_of(program, *words, cwd):
    """What all processes of a program say, on either stream."""
    helpers = str(Path(own_tasks.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([helpers, *sys.path])}
    command = [sys.executable, "-c", program, *words]
    streams = {"capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, cwd=cwd, env=environment, **streams)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("engine", ["serial", "process"])
@pytest.mark.parametrize("task", ["Forking", "Leaving", "forks_while_built"])
def test_what_a_task_forks_does_not_come_out(task, engine, tmp_path):
    """One process goes on; of an episode of five steps 2^5 would come back."""
    out, err = output_of(ROLLED, task, engine, cwd=tmp_path)
    assert out == "0 None 5\n1 None 5\n2 None 5\n"
    said = err.count("came back from it, and was ended")
    assert said == 0 if task == "Leaving" else 1 <= said <= 2  # once in every process


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "process"])
@pytest.mark.parametrize("task", ["Forking", "Leaving"])
def test_one_process_tells_a_run(task, engine, tmp_path):
    assert output_of(RUN, task, engine, cwd=tmp_path)[0] == "8 True\n"
    with recoup.Study.open(tmp_path / "r" / "study.db") as study:
        assert [trial.status for trial in study.trials()] == ["ok"] * 8


def test_what_a_callback_forks_does_not_go_on_either(tmp_path):
    program = (
        "import os\nfrom recoup.runs.callbacks import say\n"
        "class Forks:\n    def on_move(self, step): os.fork()\n"
        "say([Forks()], 'on_move', None)\nos.write(1, b'once ')\n"
    )
    assert output_of(program, cwd=tmp_path)[0] == "once "
