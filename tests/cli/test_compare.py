"""`recoup compare` as it is typed."""

import json
import re
from pathlib import Path

import pytest
from browser import visit
from program import recoup

from recoup.tasks.suite import GYM_TASKS, LISTS

DOC = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
TYPED = (
    "compare --task mountain-car --method iw-pgpe-ob --method cma-es --method snes --runs 5 "
    "--episodes 100"
)
OWN_METHOD = re.search(r"```python\n(class Climb.*?|import numpy.*?)```", DOC, re.S)[1]


@pytest.mark.slow
def test_the_command_of_the_docs_works_as_typed(tmp_path):
    done = recoup(*TYPED.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mountain-car, 12 parameters, 5 runs" in done.stdout
    out = tmp_path / "runs" / "compare"
    assert {"compare.html", "compare.json", "compare.md", "curves", "results"} == {
        path.name for path in out.iterdir()
    }
    assert (out / "curves" / "mountain-car.png").stat().st_size > 10_000
    text = (out / "compare.md").read_text()
    assert "| iw-pgpe-ob |" in text
    assert "| cma-es |" in text
    page = (out / "compare.html").read_text()
    assert "data:image/png" in page
    again = recoup(*TYPED.split(), "--json", cwd=tmp_path)
    assert again.returncode == 0
    said = json.loads(again.stdout)
    assert [row["method"] for row in said["tasks"][0]["methods"]] == [
        "iw-pgpe-ob",
        "cma-es",
        "snes",
    ]
    assert said["checkpoints"] == [12, 25, 50, 100]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 420])
def test_the_page_is_whole_in_a_browser(width, tmp_path):
    words = "compare --task toy --task sphere-10 --method pgpe --method snes --runs 2 --episodes 20"
    assert recoup(*words.split(), "--quiet", cwd=tmp_path).returncode == 0
    found = visit(tmp_path / "runs" / "compare" / "compare.html", width=width)
    assert found["broken"] == found["complaints"] == found["outside"] == []
    assert len(found["images"]) == 2
    assert found["width"] <= found["window"]
    assert "2 methods on 2 tasks" in found["text"]


def test_a_function_of_the_users(tmp_path):
    (tmp_path / "my_robot.py").write_text(
        "def rollout(theta, seed):\n    return -float((theta**2).sum()) + seed % 7 * 0.01\n"
    )
    words = "compare --task my_robot:rollout --dim 3 --method snes --method cma-es --runs 2"
    done = recoup(*words.split(), "--episodes", "30", "--quiet", "--workers", "1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    said = json.loads((tmp_path / "runs" / "compare" / "compare.json").read_text())
    assert said["tasks"][0]["methods"][0]["search"]["mean"][-1] > -3


def test_a_method_of_the_users(tmp_path):
    (tmp_path / "my_search.py").write_text(OWN_METHOD)
    words = "compare --task sphere-10 --method my_search:Climb:step=0.1 --runs 2 --episodes 60"
    done = recoup(*words.split(), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["tasks"][0]["methods"]
    assert row["method"] == "my_search:Climb:step=0.1"
    assert row["policy"]["mean"][-1] > row["policy"]["mean"][0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--task mountain-cart --method snes", "Did you mean 'mountain-car'?"),
        ("--task toy@x --method snes", "written task@factor"),
        ("--task toy --method snez", "Did you mean 'snes'?"),
        ("--task toy --method snes:lr=1", "'lr' is not a setting of snes"),
        ("--task toy --method snes --runs 0", "runs must be a whole number of at least 1"),
        ("--task toy --method snes --episodes 0", "episodes must be a whole number"),
        ("--task toy --method snes --episodes 50 --checkpoints 60", "within the 50 episodes"),
        ("--task toy --method snes --checkpoints a,b", "whole numbers separated by commas"),
        ("--task toy --method snes --against cma-es", "against must be one of snes"),
        ("--task toy --method snes --std-factor 0", "std_factor must be above 0"),
        ("--task toy --method snes --workers 0", "workers must be a whole number"),
        ("--task toy --method iw-reinforce-ob", "explores in action space"),
        ("--task toy --method snes:popsize=2.5", "popsize of snes must be a whole number"),
        ("--task toy --method snes --target nan", "target must be finite, got nan"),
        (
            "--task toy --method snes --seed 9999999999999999999999",
            "seed must be at most 4294967295",
        ),
        ("--task toy --method snes --dim 3", "toy has parameters of its own: leave --dim out"),
        ("--task hopper --method snes --dim 3", "hopper has parameters of its own"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(words, sentence, tmp_path):
    done = recoup("compare", *words.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "compare.md").write_text("my notes")
    words = "compare --task toy --method snes --runs 1 --episodes 4 --out mine"
    done = recoup(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "mine holds something else" in done.stderr
    assert (tmp_path / "mine" / "compare.md").read_text() == "my notes"


def test_help_has_examples():
    done = recoup("compare", "--help")
    assert done.returncode == 0
    assert "--task mountain-car --method recoup" in done.stdout
    for name in (*GYM_TASKS, *LISTS):
        assert name in done.stdout


def test_one_run_is_not_several(tmp_path):
    words = "compare --task toy --method snes --runs 1 --episodes 8 --checkpoints 2"
    first, again = (recoup(*words.split(), cwd=tmp_path) for _ in range(2))
    assert first.stderr.startswith("one run to make: roughly ")
    assert again.stderr.startswith("the one run lies there already")
    more = recoup(*words.replace("--runs 1", "--runs 2").split(), cwd=tmp_path)
    assert more.stderr.startswith("one run to make (1 lies there already): ")
    last = recoup(*words.replace("--runs 1", "--runs 2").split(), cwd=tmp_path)
    assert last.stderr.startswith("all 2 runs lie there already")
    assert "One run of each method" not in (tmp_path / "runs/compare/compare.md").read_text()
    assert "snes has batches of 4 episodes: its start stands under @2." in last.stdout
