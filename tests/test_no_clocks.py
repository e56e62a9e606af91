"""No test looks at a clock: what it finds may not depend on how fast or busy the machine is.

A test asserts the cause (what is imported, how often something is called), or waits for an event
with `waiting.until`; how long things take is for `benchmarks/` to print.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import faults

TESTS = Path(__file__).parent
LEAST = 60.0  # seconds: a shorter limit is a guess at how fast the machine is
READINGS = {  # names that are clocks wherever they stand
    *("monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime", "time_ns"),
    *("monotonic_ns", "perf_counter_ns", "process_time_ns", "thread_time_ns", "clock_gettime_ns"),
    *("getrusage", "wait3", "wait4", "default_timer", "utcnow", "cpu_times", "timeit"),
}
OF_MODULES = {("time", "time"), ("os", "times"), ("datetime", "now"), ("datetime", "today")}
MODULES = {"resource", "timeit", "psutil", "pytest_benchmark"}  # made for nothing else
PROGRAM = re.compile(rf"\b({'|'.join(sorted(READINGS))}|time\.time|os\.times)\b *\(")  # in a string
WAITING = ("helpers/waiting.py",)  # has the one deadline
ENDLESS = "what hangs, or waits to be told to go on, does so in a process of its own"
SETTING = "the limit is a setting of the engine, whose clock the test sets"
GIVES_UP = "it wants to see that nothing comes"
CLUSTER = "tasks/engines/test_cluster.py"
POLL = "it looks again until a process has ended"
ALLOWED = {  # file: function -> why it may sleep, or wait for less
    "cli/test_study_commands.py: killed": "when the kill comes does not matter",
    "helpers/own_tasks.py: forks": ENDLESS,
    "helpers/own_tasks.py: hangs": ENDLESS,
    "helpers/own_tasks.py: held": ENDLESS,
    "helpers/own_tasks.py: slow": "others are faster; nothing is said of the order",
    "helpers/own_tasks.py: slow_first": "others are faster; nothing is said of the order",
    "helpers/stress.py: amender": "a person takes a while",
    "helpers/stress.py: earned": "a rollout takes a while",
    "helpers/stress.py: forker": "a person takes a while",
    "helpers/stress.py: worker": "a rollout takes a while",
    "helpers/study_worker.py: work": "kills come between two results, or while it waits for one",
    "study/test_study.py: test_thirty_kills_at_random_moments_change_nothing": "a random moment",
    f"{CLUSTER}: rolled": POLL,
    f"{CLUSTER}: test_a_worker_that_is_killed_takes_its_trial_with_it_and_no_other": (ENDLESS),
    f"{CLUSTER}: test_closing_ends_every_worker_and_may_be_done_twice": ENDLESS,
    f"{CLUSTER}: test_nodes_may_come_and_go": ENDLESS,
    f"{CLUSTER}: test_one_that_hangs_is_given_up_with_all_that_it_has_started": SETTING,
    f"{CLUSTER}: test_time_counts_from_when_a_worker_is_ready": SETTING,
    f"{CLUSTER}: test_trials_wait_where_there_is_no_room": GIVES_UP,
    "tasks/engines/test_engine.py: test_a_hang_is_ended_and_costs_its_trial_alone": SETTING,
    "tasks/engines/test_engine.py: test_waiting_ends_when_its_time_is_over": GIVES_UP,
}


def files() -> list[Path]:
    return sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))


def name_of(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()


def readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a clock is read or imported, also in programs that are written as strings."""
    aliases = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found = [a.name for a in names if a.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module=module, names=names):
                clocks = {name for home, name in OF_MODULES if home == module} | READINGS
                wrong = [a.name for a in names if a.name in clocks or module in MODULES]
                found = [f"{module}.{name}" for name in wrong]
            case ast.Attribute(attr=attr, value=value, ctx=ast.Load()):
                base = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
                ours = attr in READINGS or (aliases.get(base, base), attr) in OF_MODULES
                found = [attr] if ours else []
            case ast.Constant(value=str(text)):
                found = [match[0] for match in PROGRAM.finditer(text)]
            case _:
                found = []
        yield from ((node.lineno, name) for name in found)


def waits(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where something is slept for, or waited for with a limit that a busy machine may pass."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = called or getattr(node.func, "id", "")
        words = {word.arg: word.value for word in node.keywords}
        limits = [words["timeout"]] if "timeout" in words else []
        if called in ("wait", "join"):
            limits += node.args
        short = [ast.unparse(limit) for limit in limits if 0 < _seconds(limit) < LEAST]
        if called == "sleep":
            yield node.lineno, "sleep"
        if _seconds(words.get("deadline")) > 0:  # of Hypothesis
            yield node.lineno, "a deadline"
        yield from ((node.lineno, f"{called} with a limit of {limit} s") for limit in short)


def _seconds(node: ast.expr | None) -> float:
    """The number that is written there; a limit that has a name is as long as it should be."""
    number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if number else 0.0


def within(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """What stands in a file, by the name of the function or class."""
    yield from ((getattr(node, "name", ""), node) for node in tree.body)


def check_clocks(path):
    if name_of(path) not in WAITING:
        found = [f"{name_of(path)}:{line}: {name}" for line, name in readings(parsed(path))]
        assert not found, f"assert the cause, or wait with `waiting.until`: {found}"


def test_no_test_reads_a_clock():
    assert faults(check_clocks, files()) == []


def check_hopes(path):
    if name_of(path) in WAITING:
        return
    for name, node in within(parsed(path)):
        if f"{name_of(path)}: {name}" not in ALLOWED:
            found = [f"{name_of(path)}:{line}: {what}" for line, what in waits(node)]
            assert not found, f"wait with `waiting.until`, or say in ALLOWED why not: {found}"


def test_no_test_hopes_that_something_has_happened_meanwhile():
    assert faults(check_hopes, files()) == []


def test_every_exception_is_needed():
    used = {
        f"{name_of(path)}: {name}"
        for path in files()
        for name, node in within(parsed(path))
        if list(waits(node))
    }
    assert set(ALLOWED) <= used


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.mark.parametrize(
    "program",
    [
        "import time\nassert time.time() - began < 2",
        "import time as t\nassert t.time() - began < 2",
        "import time\nclock = time.monotonic\nassert clock() < 2",
        "from time import perf_counter as now",
        "from time import time",
        "import resource",
        "import os\nassert os.times().user < 2",
        "from datetime import datetime\nassert datetime.now() > then",
        "import datetime\nassert datetime.datetime.now() > then",
        "PROGRAM = 'import time; print(time.process_time() < 2)'",
        "took = timeit.timeit(f)",
    ],
)
def test_a_clock_is_found_wherever_it_is_read(program):
    assert list(readings(ast.parse(program)))


@pytest.mark.parametrize(
    "program",
    [
        "time.sleep(0.1)",
        "sleep(2)",
        "subprocess.run(command, timeout=30)",
        "event.wait(5)",
        "thread.join(1.5)",
        "queue.get(timeout=2)",
        "settings(deadline=200)",
    ],
)
def test_a_short_wait_is_found(program):
    assert list(waits(ast.parse(program)))


@pytest.mark.parametrize(
    "program",
    [
        "', '.join(words)",
        "thread.join()",
        "process.wait(LIMIT)",
        "run(timeout=600)",
        "settings(deadline=None)",
    ],
)
def test_a_long_wait_is_none(program):
    assert not list(waits(ast.parse(program)))
    assert not list(readings(ast.parse(program)))
