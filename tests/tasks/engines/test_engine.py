"""Engines: the same episodes wherever they are rolled out; a fault costs its trial alone."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import gymnasium
import numpy as np
import own_tasks
import pytest
from waiting import LIMIT, Hands, lives, until, until_gone

from recoup.checks import InputError
from recoup.tasks.engines import processes as module
from recoup.tasks.engines.engine import Broken, Job
from recoup.tasks.engines.processes import Processes
from recoup.tasks.engines.serial import Serial
from recoup.tasks.own.environment import episode, episode_seeds
from recoup.tasks.own.found import find
from recoup.tasks.own.host import How, host_task
from recoup.tasks.policies.policy import beginner


def function_build(function, dim=2):
    return host_task(find(function, True), How(dim=dim)).build


def jobs_of(count, dim, first=1):
    rng = np.random.default_rng(5)
    return [Job(first + i, rng.normal(size=dim), 100 + i) for i in range(count)]


def rolled(engine, jobs):
    """Outcomes by trial; each job once, as many out as there are slots."""
    line, out, done = list(reversed(jobs)), 0, {}
    while len(done) < len(jobs):
        while line and out < engine.slots:
            engine.submit(line.pop())
            out += 1
        for outcome in engine.wait(60):
            assert outcome.id not in done
            done[outcome.id] = outcome
            out -= 1
    return done


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """Makes engines of two processes that work in a directory of their own."""
    monkeypatch.chdir(tmp_path)
    made = []

    def make(build, **how):
        made.append(Processes(build, 2, **how))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def test_an_episode_is_what_a_bare_loop_gives():
    task = host_task(find("Pendulum-v1", False), How(discount=0.9, horizon=30))
    theta = np.array([0.3, -1.0, 0.2, 0.1])
    env = gymnasium.make("Pendulum-v1")
    seen, _ = env.reset(seed=7)
    want = 0.0
    for t in range(30):
        push = 2 * np.clip(seen.astype(float) @ theta[:3] + theta[3], -1, 1)
        seen, reward, *_ = env.step(np.array([push], np.float32))
        want += 0.9**t * float(reward)
    roller = task.build()
    assert roller(Job(1, theta, 7)).values == pytest.approx([want], rel=1e-12)
    assert roller(Job(1, theta, 7)).steps == 30
    roller.close()


def test_an_episode_ends_when_it_terminates_or_at_the_horizon():
    env = own_tasks.Walk(noise=0.0)
    value, steps = episode(env, lambda seen: np.array([1.0]), 3, 100, 1.0)
    assert 2 <= steps <= 8  # passes 5
    assert episode(env, lambda seen: np.array([0.0]), 3, 9, 1.0)[1] == 9
    assert value < 0


def test_several_episodes_have_seeds_of_their_own():
    seeds = episode_seeds(41, 5)
    assert seeds[0] == 41
    assert len(set(seeds)) == 5
    assert seeds[:3] == episode_seeds(41, 3)
    task = host_task(find(own_tasks.make_walk, False), How(horizon=5, episodes=3))
    job = Job(1, np.zeros(task.dim), 41)
    got = task.build()(job)
    begin = beginner(task.policy, job.theta)
    want = [episode(own_tasks.Walk(), begin(), seed, 5, 1.0)[0] for seed in seeds[:3]]
    assert got.values == tuple(want)
    assert got.steps == 15


def test_processes_roll_out_the_same_episodes(processes):
    task = host_task(find("Pendulum-v1", False), How(horizon=40))
    jobs = jobs_of(9, task.dim)
    serial = rolled(Serial(task.build), jobs)
    others = rolled(processes(task.build), jobs)
    assert {i: o.values for i, o in serial.items()} == {i: o.values for i, o in others.items()}
    assert all(outcome.steps == 40 and outcome.seconds > 0 for outcome in others.values())


def test_lambdas_and_functions_of_the_main_module_can_be_sent(processes):
    offset = 3.0
    build = function_build(lambda theta: float(theta.sum()) + offset)
    done = rolled(processes(build), [Job(1, np.array([1.0, 2.0]), 0)])
    assert done[1].values == (6.0,)


def test_what_cannot_be_sent_gets_one_sentence(tmp_path):
    with (tmp_path / "x").open("w") as file:
        build = function_build(lambda theta: file.write(str(theta)))
        with pytest.raises(InputError, match="cannot be sent to other processes"):
            Processes(build, 1)


@pytest.mark.parametrize("kind", ["serial", "process"])
def test_one_that_raises_fails_with_its_reason(kind, processes):
    build = function_build(own_tasks.broken)
    engine = Serial(build) if kind == "serial" else processes(build)
    for outcome in rolled(engine, jobs_of(3, 2)).values():
        assert outcome.failed == "RuntimeError: the motor does not answer"
        assert 'raise RuntimeError("the motor does not answer")' in outcome.trace


def test_a_hang_is_ended_and_costs_its_trial_alone(processes, monkeypatch):
    hands = Hands(monkeypatch, module)
    engine = processes(function_build(own_tasks.hangs), timeout=1.0)
    first, *others = jobs_of(8, 2)
    engine.submit(first)
    until(lambda: not engine.wait(0) and Path("hung").exists())
    for job in others:  # by the other worker
        engine.submit(job)
        (outcome,) = until(lambda: engine.wait(0))
        assert (outcome.id, outcome.failed) == (job.id, None)
    hands.now += 0.9
    assert engine.wait(0) == []
    hands.now += 0.2
    (outcome,) = until(lambda: engine.wait(0))
    assert (outcome.id, outcome.failed) == (first.id, "it took longer than 1 s")
    assert rolled(engine, jobs_of(2, 2, first=50)).keys() == {50, 51}  # and goes on


def test_a_worker_that_is_killed_costs_its_trial_alone(processes):
    engine = processes(function_build(own_tasks.dies))
    done = rolled(engine, jobs_of(8, 2))
    failed = [outcome for outcome in done.values() if outcome.failed]
    assert [outcome.failed for outcome in failed] == [
        "its worker was killed (signal 9; out of memory?)"
    ]
    assert rolled(engine, jobs_of(2, 2, first=50)).keys() == {50, 51}  # and goes on


def test_a_worker_that_is_killed_while_idle_is_replaced(processes):
    engine = processes(function_build(own_tasks.slow))
    rolled(engine, jobs_of(2, 2))
    for worker in engine._workers:
        worker.process.kill()
        worker.process.wait()
    done = rolled(engine, jobs_of(4, 2, first=10))
    lost = [outcome for outcome in done.values() if outcome.failed]
    assert len(lost) <= 2
    assert all("killed" in outcome.failed for outcome in lost)


def test_what_a_task_prints_comes_out_on_standard_error(processes, capfd):
    done = rolled(processes(function_build(own_tasks.prints)), jobs_of(4, 2))
    assert all(outcome.failed is None for outcome in done.values())
    said = capfd.readouterr()
    assert said.out == ""
    assert "another, unbuffered" in said.err


def test_close_leaves_no_process_not_even_a_child_of_a_task(processes):
    engine = processes(function_build(own_tasks.forks))
    rolled(engine, jobs_of(4, 2))
    children = [int(path.name.split("-")[1]) for path in Path().glob("child-*")]
    workers = [worker.process.pid for worker in engine._workers]
    assert len(children) == 4
    engine.close()
    until_gone([*children, *workers])


def test_workers_end_with_the_process_that_started_them(tmp_path):
    program = (
        "import os, own_tasks, sys\n"
        "from test_engine import function_build, jobs_of\n"
        "from recoup.tasks.engines.processes import Processes\n"
        "engine = Processes(function_build(own_tasks.hangs), 2)\n"
        "for job in jobs_of(2, 2): engine.submit(job)\n"
        "while not os.path.exists('hung'): engine.wait(0.1)\n"
        "print(*[w.process.pid for w in engine._workers], flush=True)\n"
        "sys.stdin.read()\n"
    )
    here = Path(__file__).parent
    paths = [str(here), str(here.parents[1] / "helpers"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    pipes = {"stdin": pipe, "stdout": pipe, "env": environment, "cwd": tmp_path, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(lives, pids))
        process.send_signal(signal.SIGKILL)
    until_gone(pids)


@pytest.mark.parametrize("wrong", [OSError("no such robot"), SystemExit("no such robot")])
@pytest.mark.parametrize("kind", ["serial", "process"])
def test_a_task_that_cannot_be_built_is_said_at_once(kind, wrong, processes):
    def build():
        raise wrong

    engine = Serial(build) if kind == "serial" else processes(build)
    engine.submit(jobs_of(1, 2)[0])
    with pytest.raises(Broken, match=r"the task cannot be built: .*: no such robot") as raised:
        engine.wait(60)
    assert "no such robot" in raised.value.trace


def test_waiting_ends_when_its_time_is_over(processes):
    engine = processes(function_build(own_tasks.hangs))
    assert engine.wait(0.1) == []  # nothing is out
    engine.submit(jobs_of(1, 2)[0])
    assert engine.wait(0.5) == []


def test_a_large_task_is_sent_without_waiting_for_each_worker(processes, monkeypatch):
    weights = np.ones(10**6)  # 8 MB: more than a pipe holds
    build = function_build(lambda theta: float(weights.sum()))
    with monkeypatch.context() as patch:
        patch.setattr(module, "PROGRAM", "import time; time.sleep(1e4)")
        making = threading.Thread(target=processes, args=(build,), daemon=True)
        making.start()
        making.join(LIMIT)
        assert not making.is_alive()  # though these workers never read anything
    engine = processes(build)
    assert rolled(engine, jobs_of(2, 2))[1].values == (1e6,)
    home = Path(engine._home.name)
    engine.close()
    assert not home.exists()
