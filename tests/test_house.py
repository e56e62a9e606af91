"""The house: who may import whom, who may look inside a rho, and how large things may be."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import faults

SOURCE = Path(__file__).parent.parent / "src" / "recoup"
CONTRIBUTING = Path(__file__).parent.parent / "CONTRIBUTING.md"
COMMON = ("checks", "notebooks", "outputs")  # what every room may import
ROOMS = {  # room -> rooms it may import, beside those and itself
    **dict.fromkeys(COMMON, ()),
    "core": (),
    "engine": ("core",),
    "store": (),
    "tasks": ("core",),
    "envs": ("tasks",),
    "study": ("engine", "core", "store", "pictures"),
    "pictures": (),
    "runs": ("study", "engine", "tasks", "store", "core", "pictures"),
    "reproduce": ("runs", "engine", "tasks", "core", "pictures"),
    "compare": ("runs", "study", "engine", "tasks", "core", "pictures"),
    "report": ("compare", "reproduce", "runs", "study", "engine", "pictures"),
    "serve": ("report", "runs", "study", "store", "core", "pictures"),
    "cli": (
        "serve",
        "report",
        "compare",
        "reproduce",
        "runs",
        "study",
        "store",
        "engine",
        "tasks",
        "core",
        "pictures",
    ),
}
IN_STUDY = {  # the same inside `study`, the low ones first; `study` itself is its one file
    "text": (),
    "space": ("text",),
    "reader": ("text", "space"),
    "moves": ("space", "reader"),
    "trials": ("text", "space", "reader", "moves"),
    "run": ("reader",),
    "exchange": ("space", "reader", "moves", "trials"),
    "care": ("space", "reader", "moves", "trials", "exchange"),
    "voice": ("text", "space", "reader", "moves"),
    "views": ("text", "space", "reader", "moves", "trials", "run", "exchange", "voice"),
    "study": ("space", "reader", "moves", "trials", "run", "exchange", "care", "voice", "views"),
}
INTO_STUDY = {  # room -> what it may import of `study`
    "runs": ("study", "text", "reader", "run", "views"),
    "report": ("study", "text", "voice", "views"),
    "serve": ("study", "text", "space", "reader", "trials", "run", "exchange", "voice", "views"),
    "cli": (
        "study",
        "text",
        "space",
        "reader.records",
        "trials",
        "run",
        "exchange",
        "care",
        "voice",
        "views",
    ),
}
VERSION_READERS = (
    *("report/html.py", "reproduce/jobs.py", "cli/main.py", "serve/endpoints.py"),
    "serve/openapi.py",
)  # of recoup.__version__
NO_JAX = (
    "store",
    "engine/methods.py",
    "engine/parts.py",
    "engine/episodes.py",
    "core/linalg.py",
    "core/families/table.py",
    "core/families/family.py",
    "core/families/gaussian.py",
    "core/families/full.py",
    "core/families/lowrank.py",
    "core/families/action_policy.py",
    "checks.py",
    "outputs.py",
    "tasks/measured.py",
    "runs/fresh.py",
    "runs/learning.py",
    "runs/train.py",
)
ANY = 15  # lines of 1,000 that may say `Any`: `core/types.py` has a word for most of it
LINES, CLASS_LINES, FUNCTION_LINES, PARAMETERS = 800, 400, 80, 8
REASON = "Longer than others: "  # a file or class that is says why, in its docstring
DOORS = {  # functions of the outside, whose parameters are options: they may have many, and be long
    "cli/compare.py:compare",
    "cli/reproduce_command.py",
    "cli/run_commands.py",
    "cli/serve_command.py",
    "cli/study_commands.py",
    "cli/study_archives.py",
    "cli/train_commands.py:train",
    "cli/train_commands.py:resume",
    "cli/work_command.py:work",
    "engine/estimate.py:estimate",
    "engine/search.py:search",
    "runs/train.py:train",
    "study/study.py:amend",
    "study/study.py:open",
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = ("recoup", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in modules()}


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Modules of ours that a file imports, wherever in it, and the lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name if name in NAMES else str(node.module) for name in whole]
        else:
            continue
        yield from ((name, node.lineno) for name in found if name.split(".")[0] == "recoup")


def room(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def check_goes_down(path):
    mine = room(name_of(path))
    if mine in ("", "__main__"):  # the package itself opens every door
        return
    for name, line in imports(path):
        where = f"{path.relative_to(SOURCE)}:{line}"
        if name == "recoup":
            assert str(path.relative_to(SOURCE)) in VERSION_READERS, f"{where} imports recoup"
            continue
        theirs = room(name)
        allowed = (mine, *COMMON, *ROOMS[mine])
        assert theirs in allowed, f"{where}: {mine} may not import {name}"


def test_every_import_goes_down():
    assert faults(check_goes_down, modules()) == []


def check_parts_of_study(path):
    mine = name_of(path).removeprefix("recoup.").split(".")
    if mine[0] not in ("study", *INTO_STUDY) or mine == ["study"]:
        return
    within = mine[0] == "study"
    allowed = (mine[1], *IN_STUDY[mine[1]]) if within else INTO_STUDY[mine[0]]
    for name, line in imports(path):
        if name.startswith("recoup.study"):
            theirs = name.removeprefix("recoup.study").removeprefix(".")
            where = f"{path.relative_to(SOURCE)}:{line}"
            fits = any(f"{theirs}.".startswith(f"{door}.") for door in allowed)
            assert fits, f"{where}: {'.'.join(mine[: 1 + within])} may not import {name}"


def test_every_import_of_a_part_of_study_is_allowed():
    assert faults(check_parts_of_study, modules()) == []


def test_the_rooms_of_study_are_in_order_and_as_contributing_says():
    found = {name.split(".")[2] for name in NAMES if name.startswith("recoup.study.")}
    assert found == set(IN_STUDY)
    order = list(IN_STUDY)
    for name, below in IN_STUDY.items():
        assert list(below) == [x for x in order[: order.index(name)] if x in below], name
    rows = re.findall(r"^\| `study/(\w+)(?:/|\.py)` \|.*\|(.*)\|$", CONTRIBUTING.read_text(), re.M)
    said = [(name, tuple(filter(None, below.strip().split(", ")))) for name, below in rows]
    assert said == list(IN_STUDY.items())


def test_no_import_closes_a_circle():
    graph = {name: {n for n, _ in imports(path) if n != "recoup"} for name, path in NAMES.items()}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle: {' -> '.join([*way[way.index(name) :], name])}"
        if name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, (*way, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_every_room_is_in_the_rule_and_says_what_it_is_for():
    found = {room(name) for name in NAMES} - {"", "__main__"}
    assert found == set(ROOMS)
    for folder in SOURCE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(folder.read_text()))
        assert text, f"{folder.relative_to(SOURCE)} says nothing"


def test_every_file_of_tests_has_a_name_of_its_own():
    """Pytest knows a file by its name alone, and collects no second one."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_nothing_outside_the_families_looks_inside_a_rho():
    for path in modules():
        if "families" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not re.search(r"\.(eta|tau)\b", line), f"{path}:{number}: {line.strip()}"


def test_nothing_outside_the_store_knows_sql():
    statement = re.compile(r"sqlite3|\b(SELECT|INSERT|DELETE|UPDATE|PRAGMA) ")
    for path in modules():
        if path.relative_to(SOURCE).parts[0] == "store":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not statement.search(line), f"{path}:{number}: {line.strip()}"


@pytest.mark.parametrize("start", NO_JAX)
def test_what_asking_and_telling_need_imports_no_jax(start):
    for path in modules():
        if str(path.relative_to(SOURCE)).startswith(start):
            body = ast.parse(path.read_text()).body
            names = [alias.name for n in body if isinstance(n, ast.Import) for alias in n.names]
            names += [str(n.module) for n in body if isinstance(n, ast.ImportFrom)]
            assert not {"jax", "optax"} & {name.split(".")[0] for name in names}, path


def test_a_study_is_asked_and_told_without_jax(tmp_path):
    import subprocess
    import sys

    program = (
        "import sys\nfrom recoup import Study\n"
        "with Study.open('s.db', dim=2, batch=5, family='full') as study:\n"
        "    trials = study.ask(3)\n    study.tell(trials[0].id, 1.0)\n    study.pending()\n"
        "assert 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_few_lines_say_any():
    lines = [line for path in modules() for line in path.read_text().splitlines()]
    found = sum(bool(re.search(r"\bAny\b", line)) for line in lines)
    assert 1000 * found < ANY * len(lines), f"{found} of {len(lines)} lines say Any"


def check_length(path):
    """A file or class beyond the limit gives its reason; a function has none."""
    text, where = path.read_text(), str(path.relative_to(SOURCE))
    tree = ast.parse(text)
    reason = REASON in (ast.get_docstring(tree) or "")
    assert reason or len(text.splitlines()) <= LINES, f"{where} has {len(text.splitlines())} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            size = node.end_lineno - node.lineno + 1
            reason = REASON in (ast.get_docstring(node) or "")
            assert reason or size <= CLASS_LINES, f"{where}: {node.name} has {size} lines"
        elif isinstance(node, ast.FunctionDef):
            if {where, f"{where}:{node.name}"} & DOORS:
                continue
            check_function(where, node)


def test_nothing_grows_too_long():
    assert faults(check_length, modules()) == []


def check_function(where: str, node: ast.FunctionDef) -> None:
    """A factory's inner functions are counted by themselves, so is a docstring."""
    inner = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n is not node]
    lines = set(range(node.body[0].lineno, node.end_lineno + 1))
    for one in inner:
        lines -= set(range(one.lineno, one.end_lineno + 1))
    if ast.get_docstring(node):
        lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    assert len(lines) <= FUNCTION_LINES, f"{where}:{node.lineno} {node.name} has {len(lines)} lines"
    arguments = [
        a for a in (*node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")
    ]
    count = len(arguments)
    assert count <= PARAMETERS, f"{where}:{node.lineno} {node.name} takes {count} parameters"
