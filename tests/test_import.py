"""What `import recoup` does to a process: nothing, but for environments once Gymnasium is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import recoup

PATHS = f"import sys; sys.path.insert(0, {str(Path(recoup.__file__).parents[1])!r}); "
ASIDE = ("gymnasium", "jax", "numpy", "optax", "scipy", "typer")  # what takes a while to import


def said(code, *words):
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_reads_no_arguments_changes_no_setting_and_imports_nothing_slow():
    code = (
        "import os, sys; del sys.argv; before = dict(os.environ); import recoup; "
        f"print(before == dict(os.environ), *({{*{ASIDE}}} & set(sys.modules)))"
    )
    assert said(code) == ["True"]


def test_import_brings_two_modules_of_ours_and_few_others():
    """Of a Python that was started without its site: 40 in 3.11 and 3.12, 23 in 3.13."""
    code = "import sys; before = set(sys.modules); import recoup; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", PATHS + code], capture_output=True)
    found = done.stdout.decode().split()
    assert {name for name in found if name.startswith("recoup")} == {"recoup", "recoup.envs"}
    assert len(found) <= 40


@pytest.mark.parametrize(
    "code",
    [
        "import gymnasium, recoup; env = gymnasium.make('recoup/Toy-v0')",
        "import recoup, gymnasium; env = gymnasium.make('recoup/Toy-v0')",
        "import recoup; from gymnasium import make; env = make('recoup/Toy-v0')",
        "import recoup; from importlib.util import find_spec; find_spec('gymnasium'); "
        "import gymnasium; env = gymnasium.make('recoup/Toy-v0')",
        "import gymnasium; env = gymnasium.make('recoup:recoup/Toy-v0')",
        "from recoup.tasks.registry import make_env; env = make_env('toy')",
        "from recoup.tasks.own.found import find; env = find('recoup/Toy-v0', False).make()",
        "from recoup.tasks.own.found import gym_env; env = gym_env('recoup/Toy-v0')",
    ],
    ids=[
        "after Gymnasium",
        "before it",
        "by a part of it",
        "asked for before",
        "module and id",
        "make_env",
        "a task by its id",
        "a worker's",
    ],
)
def test_environments_are_there_where_they_are_asked_for(code):
    assert said(f"{code}; print(env.spec.id)") == ["recoup/Toy-v0"]


@pytest.mark.parametrize(("word", "threads"), [("study", "1"), ("methods", "None")])
def test_the_program_of_a_study_computes_with_one_thread(monkeypatch, word, threads):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    code = (
        "import os, sys, recoup.__main__ as program; print('numpy' in sys.modules); "
        "import recoup.cli.main as cli; "
        "cli.main = lambda: print(os.environ.get('OPENBLAS_NUM_THREADS')); program.main()"
    )
    assert said(code, word) == ["False", threads]
    assert "OPENBLAS_NUM_THREADS" not in os.environ
