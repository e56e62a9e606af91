import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from waiting import LIMIT, Hands, lives, until, until_gone

from recoup.checks import InputError
from recoup.tasks.engines import cluster
from recoup.tasks.engines.cluster import Cluster
from recoup.tasks.engines.engine import Broken, Job
from recoup.tasks.engines.serial import Serial
from recoup.tasks.own.found import find
from recoup.tasks.own.function import Calls
from recoup.tasks.own.host import How, host_task

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster as Nodes  # noqa: E402  (Ray may be missing)

pytestmark = pytest.mark.slow  # a cluster on this machine takes long to start

SMALL = {"object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def nodes():
    """A cluster of one node with room for two workers; more nodes may be added to it."""
    head = {"num_cpus": 2, "include_dashboard": False, **SMALL}
    made = Nodes(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


@pytest.fixture
def on(nodes):
    """Makes engines on that cluster, and closes them."""
    made = []

    def engine(build, workers=2, **options):
        made.append(Cluster(build, workers, address=nodes.address, **options))
        return made[-1]

    yield engine
    for one in made:
        one.close()
    assert not ray.is_initialized()


def rolled(engine, jobs):
    """Outcomes by id, with as many trials out as the engine takes."""
    jobs, outcomes, out = list(jobs), {}, 0

    def done():
        nonlocal out
        while jobs and out < engine.slots:
            engine.submit(jobs.pop(0))
            out += 1
        for outcome in engine.wait(0.1):
            outcomes[outcome.id] = outcome
            out -= 1
        return not (jobs or out)

    until(done, engine.words)
    return outcomes


def job(i, *theta):
    return Job(i, np.array(theta, float), seed=i)


def test_episodes_are_those_of_the_serial_engine(on):
    task = host_task(find("Pendulum-v1", False), How())
    thetas = np.random.default_rng(0).normal(size=(6, task.dim))
    jobs = [Job(i, theta, seed=100 + i) for i, theta in enumerate(thetas)]
    want = rolled_serially(task.build, jobs)
    got = rolled(on(task.build), jobs)
    assert {i: (one.values, one.steps) for i, one in got.items()} == want
    assert len({values for values, _ in want.values()}) == 6
    assert all(one.seconds > 0 for one in got.values())


def rolled_serially(build, jobs):
    engine = Serial(build)
    for one in jobs:
        engine.submit(one)
    outcomes = engine.wait()
    engine.close()
    return {one.id: (one.values, one.steps) for one in outcomes}


def test_a_function_may_change_its_theta_and_takes_its_seed(on):
    def function(theta, seed):
        theta *= 2
        return [theta.sum(), seed]

    got = rolled(on(Calls(function)), [job(i, i, 1.0) for i in range(5)])
    assert {i: one.values for i, one in got.items()} == {i: (2.0 * i + 2, i) for i in range(5)}


def test_one_that_raises_fails_and_the_next_one_works(on):
    def function(theta):
        if theta[0] < 0:
            raise ValueError("below the floor")
        return theta[0]

    engine = on(Calls(function), 1)
    got = rolled(engine, [job(0, 1.0), job(1, -1.0), job(2, 3.0)])
    assert got[1].failed == "ValueError: below the floor"
    assert 'raise ValueError("below the floor")' in got[1].trace
    assert (got[0].values, got[2].values) == ((1.0,), (3.0,))
    assert engine.wait() == []


def test_whatever_is_raised_or_forked_costs_its_trial_alone(on):
    class Wordless(BaseException):
        def __str__(self):
            raise RuntimeError("no words")

    def function(theta):
        if theta[0] < 0:
            raise Wordless
        if theta[0] > 2:
            os.fork()
        return theta[0]

    got = rolled(on(Calls(function), 1), [job(i, x) for i, x in enumerate([1.0, -1.0, 3.0, 0.5])])
    assert got[1].failed == "Wordless, which cannot be put into words"
    assert [got[i].values for i in (0, 2, 3)] == [(1.0,), (3.0,), (0.5,)]


def test_a_worker_that_is_killed_takes_its_trial_with_it_and_no_other(on, tmp_path, capfd):
    def function(theta):
        if theta[0] < 0:
            (tmp_path / "pid").write_text(str(os.getpid()))
            time.sleep(1000)
        return os.getpid()

    engine = on(Calls(function))
    threading.Thread(target=kill_once_known, args=(tmp_path / "pid",)).start()
    got = rolled(engine, [job(0, -1.0), *(job(i, 1.0) for i in range(1, 20))])
    assert got[0].failed == "its worker was lost: its process has died (killed? out of memory?)"
    assert got[0].seconds > 0
    assert [got[i].failed for i in range(1, 20)] == [None] * 19
    assert engine.slots == 2
    until(lambda: two_work(engine))
    assert engine.words() == "2 of 2 workers ready"
    assert capfd.readouterr().out == ""


def kill_once_known(path):
    os.kill(int(until(lambda: written(path))), signal.SIGKILL)


def two_work(engine):
    """Whether trials, which give the process that they were in, were in more than one."""
    return len({one.values for one in rolled(engine, [job(i, 1.0) for i in range(4)]).values()}) > 1


def test_one_that_hangs_is_given_up_with_all_that_it_has_started(on, tmp_path, monkeypatch):
    hands = Hands(monkeypatch, cluster)

    def function(theta):
        if theta[0] < 0:
            child = subprocess.Popen(["sleep", "1000"])
            (tmp_path / "pids").write_text(f"{os.getpid()} {child.pid}")
            time.sleep(1000)
        return theta[0]

    engine = on(Calls(function), 1, timeout=0.7)
    assert rolled(engine, [job(0, 5.0)])[0].values == (5.0,)
    engine.submit(job(1, -1.0))
    pids = until(lambda: not engine.wait(0) and written(tmp_path / "pids")).split()
    hands.now += 0.6
    assert engine.wait(0) == []
    hands.now += 0.2
    (given_up,) = until(lambda: engine.wait(0))
    assert given_up.failed == "it took longer than 0.7 s"
    assert given_up.seconds == pytest.approx(0.8)
    assert rolled(engine, [job(2, 6.0)])[2].values == (6.0,)
    until_gone(pids)


def written(path):
    """The text of a file, once it has one."""
    return path.exists() and path.read_text()


def test_time_counts_from_when_a_worker_is_ready(on, tmp_path, monkeypatch):
    hands = Hands(monkeypatch, cluster)

    class Slow:
        def __call__(self):
            (tmp_path / "builds").touch()
            while not (tmp_path / "go").exists():
                time.sleep(0.02)
            return Calls(np.sum)()

    engine = on(Slow(), 1, timeout=1.0)
    engine.submit(job(0, 1.0, 2.0))
    until(lambda: not engine.wait(0) and (tmp_path / "builds").exists())
    hands.now += 1000.0
    assert engine.wait(0) == []
    (tmp_path / "go").touch()
    (got,) = until(lambda: engine.wait(0))
    assert got.values == (3.0,)


def test_a_task_that_cannot_be_built_is_broken(on):
    def build():
        raise ImportError("no such simulator")

    sentence = "the task cannot be built: ImportError: no such simulator"
    with pytest.raises(Broken, match=sentence) as broken:
        rolled(on(build), [job(0, 1.0)])
    assert 'raise ImportError("no such simulator")' in broken.value.trace


def test_a_task_that_can_no_longer_be_built_fails_its_trials(on, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PAUSE", 0.1)
    gone = tmp_path / "gone"

    def function(theta):
        if theta[0] < 0:
            gone.touch()
            os._exit(3)
        return theta[0]

    def build():
        if gone.exists():
            raise SystemExit("the licence has run out")
        return Calls(function)()

    engine = on(build, 1)
    got = rolled(engine, [job(0, -1.0), job(1, 1.0)])
    assert got[0].failed == "its worker was lost: its process has died (killed? out of memory?)"
    assert got[1].failed == (
        "its worker could not build the task: SystemExit: the licence has run out"
    )
    assert engine.words() == f"0 of 1 workers ready ({got[1].failed})"
    gone.unlink()
    until(lambda: rolled(engine, [job(2, 1.0)])[2].values == (1.0,))
    assert engine.words() == "1 of 1 workers ready"


def test_closing_ends_every_worker_and_may_be_done_twice(on, tmp_path):
    def function(theta):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(theta[0])
        return 0.0

    engine = on(Calls(function))
    for i in range(2):
        engine.submit(job(i, 1000.0))
    pids = until(
        lambda: not engine.wait(0.1) and len(os.listdir(tmp_path)) == 2 and os.listdir(tmp_path)
    )
    assert all(lives(pid) for pid in pids)
    engine.close()
    until_gone(pids)
    engine.close()
    assert engine.wait() == []


def test_an_engine_may_be_closed_before_it_has_begun(on, monkeypatch):
    """Ray raises where a worker is ended that it has yet to take note of."""

    def kill(*_, **__):
        raise ray.exceptions.RaySystemError("Actor creation cancelled.")

    monkeypatch.setattr(ray, "kill", kill)
    engine = on(Calls(np.sum))
    engine.submit(job(0, 1.0))
    engine.close()
    assert engine.wait() == []
    assert not ray.is_initialized()


def test_nodes_may_come_and_go(nodes, on, tmp_path):
    """A third worker finds room on a node that comes later, and is lost with it."""

    def function(theta):
        place = tmp_path / f"{os.getpid()} {ray.get_runtime_context().get_node_id()}"
        place.touch()
        while theta[0] > 0 and not (tmp_path / "go").exists():
            time.sleep(0.02)
        return 1.0

    engine = on(Calls(function), 3)
    assert all(one.values for one in rolled(engine, [job(i, -1.0) for i in range(6)]).values())
    until(lambda: rolled(engine, [job(0, -1.0)]) and engine.words() == "2 of 3 workers ready")
    node = nodes.add_node(num_cpus=1, **SMALL)
    until(lambda: rolled(engine, [job(0, -1.0)]) and engine.words() == "3 of 3 workers ready")
    for i in range(3):
        engine.submit(job(i, 1.0))
    until(lambda: not engine.wait(0.1) and len(os.listdir(tmp_path)) == 3)
    nodes.remove_node(node)
    (tmp_path / "go").touch()
    got = []
    until(lambda: got.extend(engine.wait(1.0)) or len(got) == 3)
    assert sorted(one.failed or "" for one in got) == [
        "",
        "",
        "its worker was lost: its node has died",
    ]
    got = rolled(engine, [job(i, 1.0) for i in range(6)])
    assert all(one.values == (1.0,) for one in got.values())
    assert engine.words() == "2 of 3 workers ready"


def test_trials_wait_where_there_is_no_room(on):
    engine = on(Calls(np.sum), 1, resources={"resources": {"robot": 1}})
    engine.submit(job(0, 1.0))
    assert engine.wait(0.3) == []
    assert engine.words() == "0 of 1 workers ready"


def test_what_is_printed_goes_to_standard_error_and_a_connection_of_the_user_stays(nodes, capfd):
    ray.init(nodes.address, log_to_driver=True, logging_level="error")
    try:
        engine = Cluster(Calls(says), 1)
        said = ""
        pid = int(rolled(engine, [job(0, 1.0)])[0].values[0])

        def heard():
            nonlocal said
            said += capfd.readouterr().err
            return "from the task" in said and "from its child" in said

        until(heard)
        engine.close()
        until_gone([pid])
        assert ray.is_initialized()
    finally:
        ray.shutdown()
    assert "from the task" not in capfd.readouterr().out


def says(theta):
    """Found by its name in a module that only this process's path leads to."""
    print("from the task", flush=True)
    subprocess.run(["echo", "from its child"])
    return os.getpid()


OWN = (
    f"""
import faulthandler
faulthandler.dump_traceback_later({LIMIT - 60}, exit=True)  # where it stands, if it stands still
"""
    + """
import os, signal, subprocess, sys, threading
import numpy as np
from recoup.tasks.engines.cluster import Cluster
from recoup.tasks.engines.engine import Job
from recoup.tasks.own.function import Calls

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.path.insert(0, "lib")
import robots


def below(pid):
    rows = [line.split() for line in subprocess.check_output(["ps", "-eo", "pid=,ppid="], text=True)
            .splitlines()]
    mine = [int(a) for a, parent in rows if int(parent) == pid]
    return mine + [other for one in mine for other in below(one)]


def handler(*_):
    raise SystemExit(9)


signal.signal(signal.SIGTERM, handler)
engine = Cluster(Calls(robots.walk), 2)
assert signal.getsignal(signal.SIGTERM) is handler
engine.submit(Job(0, np.ones(2), 0))
first = engine.wait()
engine.submit(Job(1, -np.ones(2), 0))
heard = threading.Event()


def interrupt():  # again if it came while Ray was in a callback, which keeps it to itself
    while not heard.wait(0.5):
        os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=interrupt, daemon=True).start()
try:
    engine.wait()
    print("not interrupted")
except KeyboardInterrupt:
    heard.set()
left = below(os.getpid())
engine.close()
engine.close()
import ray
print(first[0].values, ray.is_initialized(), len(left) > 4, *left)
"""
)
ROBOTS = """
import time

def walk(theta):
    print("walking")
    time.sleep(10000 if theta[0] < 0 else 0)
    return theta.sum()
"""


def test_an_instance_of_its_own_ends_with_it(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "robots.py").write_text(ROBOTS)
    (tmp_path / "own.py").write_text(OWN)
    program = [sys.executable, "-W", "error", "own.py"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(2.0,) False True "), done.stdout
    assert done.stdout.count("\n") == 1
    until_gone(done.stdout.split()[3:])


@pytest.fixture
def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


@pytest.fixture
def web_port():
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def silent_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one.getsockname()[1]


@pytest.mark.parametrize("who", ["closed", "web", "silent"])
@pytest.mark.parametrize("how", ["{}", "ray://{}", "auto"])
def test_an_address_where_no_cluster_answers_gets_a_sentence(who, how, request, monkeypatch):
    """Before Ray is asked, which would try for minutes."""

    def tries(*_, **__):
        raise AssertionError("Ray was asked to connect")

    monkeypatch.setattr(ray, "init", tries)
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    where = f"127.0.0.1:{request.getfixturevalue(f'{who}_port')}"
    monkeypatch.setenv("RAY_ADDRESS", where if how == "auto" else "")
    with pytest.raises(InputError, match=f"no Ray cluster answers at .*{where}"):
        Cluster(Calls(np.sum), 2, address=how.format(where))
    assert not ray.is_initialized()


@pytest.mark.parametrize("address", ["here", "host:port", "ray://host", ":1"])
def test_an_address_is_a_host_and_a_port(address):
    with pytest.raises(InputError, match="address must be auto, host:port or ray://host:port"):
        Cluster(Calls(np.sum), 2, address=address)


@pytest.mark.parametrize(
    ("resources", "sentence"),
    [
        ({"num_cpu": 1}, "resources must be one of num_cpus, .* Did you mean 'num_cpus'?"),
        ({"num_cpus": -1}, "resources must be what a Ray actor can reserve: .*negative"),
        ({"num_gpus": "one"}, "resources must be what a Ray actor can reserve: .*num_gpus"),
        (3, "resources must be a mapping"),
    ],
)
def test_resources_are_what_ray_knows(resources, sentence):
    with pytest.raises(InputError, match=sentence):
        Cluster(Calls(np.sum), 2, resources=resources)


def test_this_machine_alone_must_have_what_a_worker_wants():
    here = SimpleNamespace(cluster_resources=lambda: {"CPU": 2.0, "robot": 1.0})
    cluster._check_room(here, {"num_cpus": 2, "resources": {"robot": 1}, "num_gpus": 0})
    with pytest.raises(InputError, match=r"reserve 0.5 GPU, and this machine has 0"):
        cluster._check_room(here, {"num_cpus": 2, "num_gpus": 0.5})
    with pytest.raises(InputError, match=r"reserve 2 robot, and this machine has 1"):
        cluster._check_room(here, {"num_cpus": 2, "resources": {"robot": 2}})


def test_ray_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"needs Ray: pip install 'recoup\[ray\]'"):
        Cluster(Calls(np.sum), 2)
