"""Each package of each extra, taken away in turn: what needs it says how to install that extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import own_tasks
import pytest
from packaging.requirements import Requirement
from program import recoup as program

import recoup
from recoup.pictures.film import Film, write_video
from recoup.tasks.policies.export import export_policy

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
EXTRAS = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
OF_OURS = {"dev", "all", "docs"}  # what people need who work on Recoup itself
IMPORTED = {"mujoco-mjx": "mujoco.mjx", "imageio-ffmpeg": "imageio_ffmpeg"}
PEERS = {
    "cma": "cma-es",
    "cmaes": "lra-cma-es",
    "evosax": "snes",
    "optuna": "optuna-tpe",
    "botorch": "botorch-qlognei",
    "nevergrad": "nevergrad-tbpsa",
    "smac": "smac",
    "torch": "optuna-gp",
}
QUICK = {"method": "pgpe", "episodes": 8, "batch": 4, "horizon": 5, "test_episodes": 2}
WITHOUT = "import sys; sys.modules[sys.argv.pop()] = None; "
PROGRAM = WITHOUT + "from recoup.cli.main import main; main()"
LEARNING = WITHOUT + "import recoup; recoup.train('reach-2', episodes=4)"


def packages():
    """Every package that an extra brings, as it is imported, with the extra; once each."""
    for extra, needs in EXTRAS.items():
        for need in () if extra in OF_OURS else needs:
            name = Requirement(need).name
            if name != "recoup":
                yield IMPORTED.get(name, name), extra


def hidden(name, monkeypatch):
    """Takes a package away, with all of it that was imported already."""
    parent, _, part = name.rpartition(".")
    if parent in sys.modules:
        monkeypatch.delattr(sys.modules[parent], part, raising=False)
    loaded = [module for module in sys.modules if module.startswith(f"{name}.")]
    for module in (name, *loaded):
        monkeypatch.setitem(sys.modules, module, None)


def raised(call, *given, **more):
    """What a call says that is refused."""
    with pytest.raises(recoup.InputError) as said:
        call(*given, **more)
    return str(said.value)


def printed(*words, cwd):
    """What the program says that ends with the code for wrong use: one line."""
    done = program(*words, cwd=cwd)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def alone(code, *words, cwd, status):
    """What a new process says last: what was made with a package before is not there."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    return done.stderr.splitlines()[-1]


def reaching(place, package):
    words = ("train", "reach-2", "--episodes", "4", "--out", "r")
    yield alone(PROGRAM, *words, package, cwd=place, status=2)
    yield alone(LEARNING, package, cwd=place, status=1)


def on_a_gpu(place, package):
    from recoup.tasks.reach.mjx import import_mjx

    yield raised(import_mjx)


def on_a_cluster(place, package):
    words = ("--engine", "ray", "--episodes", 8, "--horizon", 5, "--out", "r")
    yield printed("train", "own_tasks:Walk", *words, cwd=place)
    yield raised(recoup.train, own_tasks.Walk, **QUICK, engine="ray")


def events(place, package):
    yield raised(recoup.TensorBoard, place / "events")
    assert recoup.train(own_tasks.Walk, **QUICK, out=place / "r").finished  # a run goes without


def tables(place, package):
    with recoup.Study.open(place / "s.db", params={"kp": (1, 200)}) as study:
        study.tell(study.ask()[0].id, 1.0)
        yield raised(study.export, place / "t.parquet")
    yield printed("study", "export", "s.db", "--out", "t.parquet", cwd=place)
    (place / "u.parquet").write_bytes(b"PAR1")
    yield printed("study", "import", "s.db", "u.parquet", cwd=place)


def policies(place, package):
    run = recoup.train(own_tasks.Walk, **QUICK, out=place / "r")
    yield raised(export_policy, run.learned_policy(), place / "p.onnx")
    yield printed("export-policy", "r", "--onnx", cwd=place)


def pages(place, package):
    recoup.Study.open(place / "s.db", dim=2).close()
    yield alone(PROGRAM, "serve", "s.db", "--port", "0", package, cwd=place, status=2)


def films(place, package):
    frames = np.zeros((2, 16, 16, 3), np.uint8)
    shot = Film(frames, np.zeros(1), ["", ""], 1, np.arange(2))
    yield raised(write_video, shot, place / "film.mp4")


def pictures(place, package):
    recoup.train("CartPole-v1", **{**QUICK, "horizon": None}, out=place / "r")
    yield printed("render", "r", cwd=place)


def comparisons(place, package):
    how = ("--runs", 2, "--episodes", 12, "--out", "compared")
    yield printed("compare", "--task", "sphere-10", "--method", PEERS[package], *how, cwd=place)


NEEDS = {
    "mujoco": reaching,
    "mujoco.mjx": on_a_gpu,
    "ray": on_a_cluster,
    "tensorboardX": events,
    "pyarrow": tables,
    "onnx": policies,
    "starlette": pages,
    "uvicorn": pages,
    "imageio": films,
    "imageio_ffmpeg": films,
    "pygame": pictures,
    **dict.fromkeys(PEERS, comparisons),
}


def test_every_package_of_an_extra_is_taken_away():
    assert {name for name, _ in packages()} == set(NEEDS)


@pytest.mark.usefixtures("sketches")
@pytest.mark.parametrize(("package", "extra"), list(packages()))
def test_what_needs_it_says_what_to_install(package, extra, tmp_path, monkeypatch):
    hidden(package, monkeypatch)
    said = list(NEEDS[package](tmp_path, package))
    assert said
    for sentence in said:
        assert f"pip install 'recoup[{extra}]'" in sentence, sentence
        assert "\n" not in sentence.strip()


def test_the_pages_name_the_extras_that_there_are():
    named = set()
    root = PYPROJECT.parent
    for page in (root / "README.md", *(root / "docs").rglob("*.md")):
        for found in re.findall(r"(?:recoup|\.)\[([a-z,-]+)\]'", page.read_text()):
            named |= set(found.split(","))
    assert named <= set(EXTRAS)
    assert len(named) >= 3
