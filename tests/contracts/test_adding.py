"""A part or a method is added in two files of code, and works in every door, compiled and not.

In a copy of the package: one function in `core`, one row in `engine/parts.py`, or of a mover in
`engine/ways.py`.
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

most, small.LARGEST = small.LARGEST, 0  # as with a million results
compiled = [study("b.db")] + ([estimated()] if estimates else [])
assert "jax" in sys.modules
for x, y in zip(plain, compiled, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
small.LARGEST = most
run = recoup.train("toy", method, iterations=2, batch=4, out="run", seed=0, **given)
assert run is not None
print("every door")
"""


def added(copy, file, code, table, row, more):
    """In a copy of the package: code in a file of `core`, and a line below a row of a table."""
    home, rows = copy / "core" / file, copy / "engine" / table
    home.write_text((home.read_text() if home.exists() else "") + code)
    text = rows.read_text()
    assert text.count(row) == 1
    rows.write_text(text.replace(row, f"{row}\n{more}"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*PARTS, "mover"])
def test_it_takes_two_files_of_code_and_works_in_every_door(kind, tmp_path):
    copy = tmp_path / "src" / "recoup"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if kind == "mover":
        word, way = "better-half", '    "better-half": way_of_mover(BETTER),'
        added(copy, "rules/better.py", MOVER, "ways.py", "WAYS = {", way)
        table = copy / "engine" / "ways.py"
        first = "from recoup.core.rules.window import Reach, reach_of\n"
        line = "from recoup.core.rules.better import BETTER\n"
        table.write_text(table.read_text().replace(first, line + first))
    else:
        file, code, row, word, more = PARTS[kind]
        added(copy, file, code, "parts.py", row, f'    "{word}": Part("{HOMES[word]}"{more}),')
    (tmp_path / "doors.py").write_text(DOORS)
    done = subprocess.run(
        [sys.executable, "doors.py", kind, word],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout.split("\n")[-2:] == ["every door", ""], done.stderr[-3000:]
