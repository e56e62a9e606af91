"""What is added in two files of code works in every door, compiled and not.

In a copy of the package, as CONTRIBUTING says: a part is one function in `core` and one row in
`engine/parts.py`, a mover has its row in `engine/ways.py`; a family is one file and one row of
`core/families/table.py`, a task one file and one row of `tasks/registry.py`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT

import recoup

PACKAGE = Path(recoup.__file__).parent
HELPERS = Path(__file__).parent.parent / "helpers"

WEIGHTING = '''

@needs(OWN, MIXTURE)
def halfway_ratio(d: LogDensities) -> Array:
    """The geometric mean of the paper's weights and the balance heuristic's."""
    return d.target - 0.5 * (d.own + d.mixture)
'''
BASELINE = '''

@relative
def largest(earned: Earned, scores: Scores) -> Array:
    """The largest return."""
    xp = namespace(earned.returns)
    return xp.max(xp.where(earned.valid, earned.returns, -xp.inf))
'''
UTILITY = '''

def upper_half() -> Utility:
    """u is how far a return lies above the middle between the worst and the best."""
    return lambda xp, omega, returns: xp.maximum(returns + 0.5, 0.0)
'''
MOVER = '''"""A step to the mean of the better half, by weight."""

from recoup.core.arrays import quantiles
from recoup.core.movers import Mover


def _step(xp, seen, rho, drift):
    (level,) = quantiles(xp, seen.returns, seen.valid, (0.5,))
    part = xp.where(seen.valid & (seen.returns >= level), seen.weights, 0.0)
    z = rho.whitened(xp, seen.theta)
    drift = 0.2 * drift + 0.8 * (part @ z) / xp.maximum(xp.sum(part), 1e-9)
    return rho.stretched(xp, drift, -0.1 + 0 * drift, 1e-3), drift


BETTER = Mover("better-half", _step, init=lambda xp, rho: xp.zeros_like(rho.mean), window=2)
'''
PARTS = {  # file of core, what is added to it, and the row; what a method is given
    "weighting": ("weights.py", WEIGHTING, '"none": Part("weights:unit_ratio"),', "halfway", ""),
    "baseline": ("baselines.py", BASELINE, '"none": Part("baselines:none"),', "largest", ""),
    "utility": (
        "rules/classics.py",
        UTILITY,
        '"elite": Part("rules.classics:elite", ("elite",), made=True),',
        "upper-half",
        ", made=True",
    ),
}
FILES = {  # of the package: the new one, the table, and lines with what is added below them
    "family": (
        Path("core/families/round.py"),
        "core/families/table.py",
        (
            "from recoup.core.families.action_policy import Policy",
            "from recoup.core.families.round import Round, round_gaussian",
        ),
        ("FAMILIES = {", '    "round": Ours(Round, round_gaussian),'),
    ),
    "task": (
        Path("tasks/rail.py"),
        "tasks/registry.py",
        (
            "    for row in (",
            """        TaskRow(
            "rail",
            "a cart on a rail, to be pushed to a mark; 2 parameters",
            "recoup.tasks.rail:rail",
            horizon=5,
            discount=0.9,
            batch=6,
            env_id="recoup/Rail-v0",
            random=False,
        ),""",
        ),
    ),
}
HOMES = {
    "halfway": "weights:halfway_ratio",
    "largest": "baselines:largest",
    "upper-half": "rules.classics:upper_half",
}
DOORS = """
import sys
import numpy as np
import recoup

kind, word = sys.argv[1:3]
method = {"utility": "cem", "mover": word}.get(kind, "iw-pgpe-ob")
given = {} if kind == "mover" else {kind: word}
estimates = kind in ("weighting", "baseline")


def told(study):
    for _ in range(3):
        trials = study.ask(6)
        study.tell([t.id for t in trials], [float(-((t.theta - 1) ** 2).sum()) for t in trials])
    assert study.diagnostics()["moves"] == 3
    return np.concatenate([study.mean, study.std])


def estimated():
    rng = np.random.default_rng(0)
    theta, drew = rng.normal(size=(20, 2)), np.arange(20) // 10
    how = {"proposals": ([[0.0, 0.0], [0.1, 0.2]], [[1.0, 1.0], [1.2, 0.9]]), "proposal": drew}
    e = recoup.estimate(theta, -np.sum(theta**2, 1), target=([0.2] * 2, [0.8] * 2), **how, **given)
    assert np.isfinite(e.interval()).all()
    return np.concatenate([e.mean_gradient, e.std_gradient, e.weights])


def study(name):
    with recoup.Study.open(name, dim=2, batch=6, method=method, seed=1, **given) as found:
        return told(found)


plain = [study("a.db")] + ([estimated()] if estimates else [])
assert "jax" not in sys.modules, "it was compiled"
from recoup.engine import plain as small

most, small.NUMPY_NUMBERS = small.NUMPY_NUMBERS, 0  # as with a million results
compiled = [study("b.db")] + ([estimated()] if estimates else [])
assert "jax" in sys.modules
for x, y in zip(plain, compiled, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
small.NUMPY_NUMBERS = most
run = recoup.train("toy", method, iterations=2, batch=4, out="run", seed=0, **given)
assert run is not None
print("every door")
"""


def added(copy, file, code, table, row, more):
    """In a copy of the package: code in a file of `core`, and a line below a row of a table."""
    home = copy / "core" / file
    home.write_text((home.read_text() if home.exists() else "") + code)
    below(copy / "engine" / table, (row, more))


def below(file, *lines):
    """In a file, each of the new lines below the one that it is given with."""
    text = file.read_text()
    for line, new in lines:
        assert text.count(line) == 1
        text = text.replace(line, f"{line}\n{new}")
    file.write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*PARTS, "mover"])
def test_it_takes_two_files_of_code_and_works_in_every_door(kind, tmp_path):
    copy = tmp_path / "src" / "recoup"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if kind == "mover":
        word, way = "better-half", '    "better-half": way_of_mover(BETTER),'
        added(copy, "rules/better.py", MOVER, "ways.py", "WAYS = {", way)
        line = "from recoup.core.rules.better import BETTER"
        below(
            copy / "engine" / "ways.py",
            ("from recoup.core.movers import Mover, as_mover, is_mover", line),
        )
    else:
        file, code, row, word, more = PARTS[kind]
        added(copy, file, code, "parts.py", row, f'    "{word}": Part("{HOMES[word]}"{more}),')
    (tmp_path / "doors.py").write_text(DOORS)
    walk_through(tmp_path, "doors.py", kind, word)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_a_family_or_a_task_is_one_file_and_one_row(kind, tmp_path):
    copy = tmp_path / "src" / "recoup"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file, table, *rows = FILES[kind]
    shutil.copy(HELPERS / "adding" / file.name, copy / file)
    below(copy / table, *rows)
    walk_through(tmp_path, HELPERS / "adding" / f"{kind}_doors.py")


def walk_through(folder, *words):
    """A program that ends with "every door", where the copy is the package."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{HELPERS}"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout.split("\n")[-2:] == ["every door", ""], done.stderr[-3000:]
