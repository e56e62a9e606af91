"""Methods of the user's: what they have to give is checked, their code is part of a result."""

import importlib
import json
import sys

import numpy as np
import pytest
from program import recoup

from recoup.checks import InputError
from recoup.compare import code
from recoup.compare.arenas import Asking, arena_of
from recoup.compare.comparison import Order, compare, left_of, plan_of
from recoup.compare.entrants import entrant_of
from recoup.compare.run_results import CurveFiles, key_of
from recoup.compare.side_by_side import learn

METHODS = """
import numpy as np

class Climb:
    batch = 1
    def __init__(self, mean, std, seed, settings):
        self.best, self.std, self.rng = mean, std, np.random.default_rng(seed)
    def ask(self):
        return self.draw(self.rng.normal(size=(self.batch, len(self.best))))
    def tell(self, theta, returns):
        self.told = returns
    def mean(self):
        return self.best
    def draw(self, noise):
        return self.best + self.std * noise

class NoBatch(Climb):
    batch = 0

class Half(Climb):
    batch = 2.5

class Flat(Climb):
    def ask(self):
        return self.best

class NanAsk(Climb):
    def ask(self):
        return super().ask() * np.nan

class NanMean(Climb):
    def mean(self):
        return self.best * np.nan

class LongMean(Climb):
    def mean(self):
        return np.zeros(3)

class Few(Climb):
    def draw(self, noise):
        return (self.best + noise)[:1]

class Words(Climb):
    def mean(self):
        return "here"

class Raises(Climb):
    def tell(self, theta, returns):
        raise KeyError("oops")

class Exits(Climb):
    def tell(self, theta, returns):
        raise SystemExit(0)

class Varies(Climb):
    def __init__(self, mean, std, seed, settings):
        super().__init__(mean, std, seed, settings)
        self.batch = 1 + seed % 7

class Silent:
    batch = 1
    def __init__(self, mean, std, seed, settings):
        pass

def nothing(mean, std, seed, settings):
    return None

def stops(mean, std, seed, settings):
    raise SystemExit(3)
"""


@pytest.fixture
def methods(tmp_path, monkeypatch):
    (tmp_path / "own_methods.py").write_text(METHODS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("NoBatch", "batch of own_methods:NoBatch on toy must be a whole number of at least 1"),
        ("Half", r"batch of own_methods:Half on toy must be a whole .*, got 2\.5"),
        ("Flat", r"ask of .* must have shape \[batch, D\] = \[1, 1\], got \[1\]"),
        ("NanAsk", r"ask of own_methods:NanAsk on toy must be finite, got nan at \[0, 0\]"),
        ("NanMean", r"mean of own_methods:NanMean on toy must be finite, got nan"),
        ("LongMean", r"mean of .* must have shape \[D\] = \[1\], got \[3\]"),
        ("Words", "mean of own_methods:Words on toy must be an array of real numbers, got 'here'"),
        ("Few", r"draw of .* must have shape \[n, D\] = \[100, 1\], got \[1, 1\]"),
        ("Varies", "batch of own_methods:Varies on toy must be the same in all runs"),
        ("Silent", "own_methods:Silent on toy must give an object .*; Silent has no ask"),
        ("nothing", "own_methods:nothing on toy must give an object .*; NoneType has no batch"),
    ],
)
def test_what_a_method_gives_is_checked(name, sentence, methods):
    with pytest.raises(InputError, match=sentence):
        learn(arena_of("toy"), entrant_of(f"own_methods:{name}"), 0, [0, 1], [8])


def test_batches_of_runs_that_go_alone_are_held_together(methods):
    (methods / "own_square.py").write_text("def rollout(theta):\n    return -theta @ theta\n")
    task, asking = "own_square:rollout", Asking(dim=1, tests=1)
    order = Order([task], ["own_methods:Varies"], 2, 8, asking=asking)
    with pytest.raises(InputError, match="on own_square:rollout must be the same in all runs"):
        compare(order, methods / "out", workers=1)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Raises", "tell of own_methods:Raises on toy failed: KeyError: 'oops'."),
        ("Exits", "tell of own_methods:Exits on toy failed: SystemExit: 0."),
        ("stops", "own_methods:stops on toy failed: SystemExit: 3."),
    ],
)
def test_what_a_method_raises_is_one_sentence(name, sentence, methods):
    words = f"compare --task toy --method own_methods:{name} --runs 1 --episodes 4 --quiet"
    done = recoup(*words.split(), cwd=methods)
    assert done.returncode == 1
    assert done.stderr == f"recoup: {sentence} (RECOUP_TRACEBACK=1 shows where)\n"


def test_whatever_goes_wrong_names_task_and_method(methods, monkeypatch):
    def wrong(*given):
        raise SystemExit(0)

    monkeypatch.setattr("recoup.compare.work.learn", wrong)
    done = recoup("compare", "--task", "toy", "--method", "snes", "--quiet", cwd=methods)
    assert done.returncode == 1
    assert done.stderr.startswith("recoup: toy by snes failed: SystemExit: 0. ")


def test_a_module_that_cannot_be_imported_is_one_sentence(methods):
    (methods / "ends_at_once.py").write_text("raise SystemExit(0)\n")
    done = recoup("compare", "--task", "toy", "--method", "ends_at_once:Search", cwd=methods)
    assert done.returncode == 2
    assert "ends_at_once:Search cannot be imported: SystemExit: 0." in done.stderr


def test_a_method_may_be_told_of_failures(methods):
    with open(methods / "own_takes.py", "w") as file:
        file.write("from own_methods import Climb\n")
        file.write("TOLD = []\n")
        file.write("class Takes(Climb):\n    failures = True\n    batch = 2\n")
        file.write("    def tell(self, theta, returns):\n        TOLD.extend(returns)\n")
        file.write("def half(theta, seed):\n    return -1.0 if theta[0] > 0 else float('nan')\n")
    arena = arena_of("own_takes:half", Asking(dim=1, tests=2))
    (curve,) = learn(arena, entrant_of("own_takes:Takes"), 0, [0], [12])
    told = sys.modules["own_takes"].TOLD
    assert len(told) == 12
    assert np.isnan(told).sum() == curve.failed > 0


PARTS = """
import recoup

@recoup.needs("own")
def again(d):
    return d.target - d.own

@recoup.needs("own")
def half(d):
    return 0.5 * (d.target - d.own)

NUMBER = 3

def rollout(theta, seed):
    return -float(((theta - 1) ** 2).sum())
"""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    (tmp_path / "own_parts_here.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("task", ["toy", "bounded-bowl-3"])
def test_a_method_of_ours_takes_a_part_of_the_users(task, parts):
    """The paper's weights, written again, give the paper's curve; others another one."""
    arena = arena_of(task, Asking(tests=2))

    def curve(weighting):
        entrant = entrant_of(f"iw-pgpe:batch=4,weighting={weighting}")
        return learn(arena, entrant, 0, [1], [24])[0].policy

    own, again, half = map(curve, ("own", "own_parts_here:again", "own_parts_here:half"))
    np.testing.assert_allclose(again, own, rtol=1e-6)
    assert abs(half[-1] - own[-1]) > 1e-3 * abs(own[-1])


def test_a_part_of_the_users_takes_part_on_a_function_of_theirs(parts):
    arena = arena_of("own_parts_here:rollout", Asking(dim=2, tests=2))
    entrant = entrant_of("iw-pgpe:batch=4,weighting=own_parts_here:half")
    first, last = learn(arena, entrant, 0, [1], [24])[0].policy
    assert last > first


def test_the_code_of_a_part_is_part_of_a_result(parts):
    arena, texts = arena_of("sphere-10"), ("own", "own_parts_here:again", "own_parts_here:half")
    entrants = [entrant_of(f"iw-pgpe:weighting={text}") for text in texts]
    keys = [json.dumps(key_of(arena, one, 0, 0, [12]).depends) for one in entrants]
    assert len(set(keys)) == 3
    assert entrants[1].code.endswith(code.own_code("own_parts_here:again"))
    assert code.own_code("own_parts_here:again")


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("weighting=nowhere:half", "the part nowhere:half cannot be imported"),
        ("weighting=own_parts_here:nothing", "the part own_parts_here:nothing cannot be imported"),
        ("weighting=own_parts_here:NUMBER", "weighting must be"),
        ("epsilon=own_parts_here:half", "epsilon must be"),
    ],
)
def test_a_part_that_is_none_is_one_sentence(part, sentence, parts):
    with pytest.raises(InputError, match=sentence):
        entrant_of(f"iw-pgpe:{part}")


RUNS = "from {helper} import K\n\ndef rollout(theta, seed):\n    return -K * theta @ theta\n"


@pytest.fixture
def bumpy(tmp_path, monkeypatch):
    """A task that changes its own file while it is rolled out."""
    (tmp_path / "own_bumpy.py").write_text(
        "from pathlib import Path\n\n"
        "def rollout(theta, seed):\n"
        "    Path(__file__).write_text(Path(__file__).read_text() + '# more\\n')\n"
        "    return -float((theta**2).sum())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_results_are_kept_under_the_code_that_made_them(bumpy, tmp_path):
    asking = Asking(dim=2, tests=2)
    order = Order(["own_bumpy:rollout"], ["snes"], runs=1, episodes=12, asking=asking)
    before = key_of(arena_of("own_bumpy:rollout", asking), entrant_of("snes"), 0, 0, [12])
    compare(order, tmp_path / "out", workers=1)
    assert len(plan_of(order).arenas) == 1
    after = key_of(arena_of("own_bumpy:rollout", asking), entrant_of("snes"), 0, 0, [12])
    assert before == after
    assert left_of(plan_of(order), CurveFiles(tmp_path / "out")) == []
    del sys.modules["own_bumpy"]  # as in the next process, which imports what the file says now
    importlib.invalidate_caches()
    assert len(left_of(plan_of(order), CurveFiles(tmp_path / "out"))) == 1


def digest_of(folder, name, monkeypatch):
    """The digest of a module as a new process would make it."""
    monkeypatch.syspath_prepend(folder)
    importlib.import_module(name)
    code._of_module.cache_clear()
    return code.own_code(f"{name}:rollout")


def test_a_changed_module_beside_the_users_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "own_uses.py").write_text(RUNS.format(helper="own_helped.inner"))
    (tmp_path / "own_helped").mkdir()
    files = {
        "own_helped/__init__.py": "",
        "own_helped/inner.py": "from .deep import K\n",
        "own_helped/deep.py": "K = 1.0\n",
        "own_unused.py": "K = 2.0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = digest_of(tmp_path, "own_uses", monkeypatch)
    assert found == digest_of(tmp_path, "own_uses", monkeypatch) != ""
    (tmp_path / "own_unused.py").write_text("K = 3.0\n")
    assert digest_of(tmp_path, "own_uses", monkeypatch) == found
    for name in ("own_helped/__init__.py", "own_helped/inner.py", "own_helped/deep.py"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "L = 1\n")
        changed = digest_of(tmp_path, "own_uses", monkeypatch)
        assert changed != found, name
        found = changed


def test_an_installed_module_is_not_followed_into_others():
    import optuna.samplers  # which imports NumPy, beside it

    files = code._with_imports(code.Path(optuna.samplers.__file__).resolve(), "optuna.samplers")
    assert len(files) > 1
    assert all(name.startswith("optuna/") for name in files)
