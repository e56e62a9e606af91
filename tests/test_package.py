"""What would be published: its version, contents, lists and papers, and who may publish it."""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from release.contents import wrong_inside
from release.dist import WHEEL_SIZE, checked, members, timeless
from release.licences import ALLOWED, OLD, names, refused, table
from release.newcomer import examples
from release.pythons import TRIED, classified, lowest

import recoup

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
INDEX = re.compile("pypi[.]org|pythonhosted|anaconda[.]org|test[.]pypi", re.I)
PAPERS = ("CITATION.cff", "CODE_OF_CONDUCT.md", "SECURITY.md", "MANIFEST.in", "noxfile.py")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def tracked():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if (ROOT / name).is_file()]


class TestVersion:
    def test_it_is_written_once_and_read_without_an_import(self):
        assert "version" in PROJECT["dynamic"]
        assert "version" not in PROJECT
        where = tomllib.loads(text("pyproject.toml"))["tool"]["setuptools"]["dynamic"]["version"]
        assert where == {"attr": "recoup.__version__"}
        assert f'\n__version__ = "{recoup.__version__}"\n' in text("src/recoup/__init__.py")

    def test_those_who_repeat_it_repeat_this_one(self):
        assert f"\nversion: {recoup.__version__}\n" in text("CITATION.cff")
        assert f"\n  version: {recoup.__version__}\n" in text("recipe/recipe.yaml")
        assert f"*Recoup {recoup.__version__}*" in text("README.md")

    def test_the_tag_that_publishes_it_must_be_this_one(self, tmp_path):
        (step,) = [s for s in WORKFLOW["jobs"]["build"]["steps"] if "TAG" in s.get("env", {})]
        for tag, code in ((f"v{recoup.__version__}", 0), ("v9.9.9", 1)):
            how = {"env": {**os.environ, "TAG": tag}, "cwd": ROOT, "shell": True}
            assert subprocess.run(step["run"], **how).returncode == code


class TestContents:
    @pytest.mark.parametrize(
        "name",
        [
            "recoup/core/theory.py",
            "recoup/py.typed",
            "recoup/serve/page/uplot/uPlot.iife.min.js",
            "src/recoup/report/templates/run.html",
            "recoup-1.0.dist-info/METADATA",
            "src/recoup.egg-info/SOURCES.txt",
            "pyproject.toml",
        ],
    )
    def test_what_belongs_there_may_be_there(self, name):
        assert wrong_inside(name, b"x = 1\n") == ""

    @pytest.mark.parametrize(
        "name",
        [
            "tests/test_import.py",
            "docs/reach.gif",
            "recoup/serve/page/photo.png",
            "recoup/study.db",
            "recoup/__pycache__/checks.cpython-311.pyc",
            "runs/demo/config.json",
            ".env",
        ],
    )
    def test_what_does_not_is_named(self, name):
        assert wrong_inside(name, b"") == "is none of the files that a release is made of"

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            ("-----BEGIN " + "RSA PRIVATE KEY-----", "a private key"),
            ("token = 'gh" + "p_" + 36 * "a" + "'", "a token of a service"),
            ("https://me:" + "word@example.org/", "a password in an address"),
            ("/home" + "/somebody/robot.db", "a path of a home"),
        ],
    )
    def test_a_secret_is_found(self, content, what):
        assert wrong_inside("recoup/core/theory.py", content.encode()) == f"holds {what}"

    def test_no_file_that_goes_along_holds_one(self):
        ours = [name for name in tracked() if name.startswith("src/")]
        assert len(ours) > 400
        assert {name: why for name in ours if (why := wrong_inside(name, read(name)))} == {}

    def test_an_archive_is_the_same_whoever_made_it(self):
        made = [timeless(archive(order, owner), 1_700_000_000) for order, owner in OWNERS]
        assert made[0] == made[1]
        assert dict(members("a.tar.gz", made[0])) == FILES

    @pytest.mark.parametrize(
        ("wheel", "said"),
        [
            ({"recoup/a.py": b"1"}, ""),
            ({"recoup/a.png": b"1"}, "a.png is none of the files"),
            ({"recoup/a.py": os.urandom(WHEEL_SIZE)}, "at most 1,050,000 are wanted"),
        ],
        ids=["as it should be", "a picture", "too much"],
    )
    def test_what_should_not_be_published_ends_the_build(self, wheel, said):
        name = f"recoup-{recoup.__version__}"
        made = {f"{name}-py3-none-any.whl": zipped(wheel), f"{name}.tar.gz": archive("ab", "me")}
        if not said:
            assert checked(made) is None
            return
        with pytest.raises(SystemExit, match=said):
            checked(made)

    def test_another_version_is_not_what_was_asked_for(self):
        with pytest.raises(SystemExit, match="not the wheel and the source of"):
            checked({"recoup-9.9.9-py3-none-any.whl": b"", "recoup-9.9.9.tar.gz": b""})


OWNERS = (("ab", "me"), ("ba", "you"))
FILES = {"src/recoup/one.py": b"1", "src/recoup/two.py": b"2"}


def read(name):
    return (ROOT / name).read_bytes()


def zipped(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return made.getvalue()


def archive(order, owner):
    """A source archive of two files, packed in an order by somebody."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for letter in order:
            name, content = list(FILES.items())["ab".index(letter)]
            member = tarfile.TarInfo(f"recoup-1.0/{name}")
            member.size, member.uname, member.mtime = len(content), owner, len(owner)
            packed.addfile(member, io.BytesIO(content))
    return made.getvalue()


class TestLicences:
    def test_ours_are_among_those_we_allow(self):
        assert set(names(PROJECT["license"])) == {"Apache-2.0", "MIT"}
        assert set(names(PROJECT["license"])) | set(OLD.values()) <= ALLOWED
        assert "MIT" in text("src/recoup/serve/page/uplot/LICENSE")

    @pytest.mark.parametrize(
        ("said", "allowed"),
        [
            ("MIT", True),
            ("BSD-3-Clause AND (MIT OR Zlib)", True),
            ("Apache Software License; BSD License", True),
            ("GPL-3.0-or-later", False),
            ("MIT AND GPL-3.0-or-later", False),
            ("UNKNOWN", False),
        ],
    )
    def test_another_ends_the_build(self, said, allowed):
        row = {"Name": "other", "Version": "1.0", "License": said}
        assert refused([row]) == ([] if allowed else [f"other 1.0: {said}"])

    def test_what_lies_in_the_wheel_is_listed_too(self):
        rows = [{"Name": "jax", "Version": "1", "License": "Apache Software License"}]
        assert table(rows).splitlines() == ["jax 1: Apache-2.0", "uPlot (inside of recoup): MIT"]


class TestNeeds:
    def test_the_lowest_versions_are_those_of_the_project(self):
        assert len(lowest()) == len(PROJECT["dependencies"])
        assert all(re.fullmatch(r"[\w-]+==[\d.]+", row) for row in lowest())
        assert "starlette==1.10" in lowest("serve")

    def test_the_recipe_wants_the_same(self):
        wanted = yaml.safe_load(text("recipe/recipe.yaml"))["requirements"]["run"][1:]
        theirs = [row.replace(" ", "").replace("matplotlib-base", "matplotlib") for row in wanted]
        assert theirs == PROJECT["dependencies"]

    def test_classifiers_name_pythons_that_have_a_room(self):
        assert set(classified()) <= set(TRIED)
        assert min(TRIED, key=lambda v: int(v.split(".")[1])) == PROJECT["requires-python"][2:]

    def test_the_newcomer_types_what_the_readme_says(self):
        programs, commands = examples(text("README.md"))
        assert [command.split()[1] for command in commands][:3] == ["study"] * 3
        assert any("recoup train CartPole-v1" in command for command in commands)
        assert len(programs) == 1


class TestPublishing:
    def test_every_action_is_pinned_by_its_commit(self):
        used = re.findall(r"uses: (\S+)(.*)", text(".github/workflows/release.yml"))
        assert len(used) == 8
        for action, version in used:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", version), action

    def test_only_a_tag_starts_it_and_each_job_may_do_little(self):
        assert WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}  # YAML reads `on` so
        assert WORKFLOW["permissions"] == {}
        rights = {name: job["permissions"] for name, job in WORKFLOW["jobs"].items()}
        assert rights == {
            "build": {"contents": "read"},
            "attest": {"id-token": "write", "attestations": "write"},
            "publish": {"id-token": "write"},
        }
        assert WORKFLOW["jobs"]["publish"]["environment"] == "release"
        assert "secrets." not in text(".github/workflows/release.yml")

    def test_who_publishes_runs_no_code_of_the_repository(self):
        for name in ("attest", "publish"):
            steps = WORKFLOW["jobs"][name]["steps"]
            assert not any("run" in step or "checkout" in step["uses"] for step in steps)


class TestPapers:
    def test_each_is_there_and_says_something(self):
        assert all(len(text(name).splitlines()) > 1 for name in PAPERS)

    def test_no_address_of_an_index_is_written_down(self):
        ours = [
            name for name in tracked() if name.endswith((".py", ".md", ".toml", ".txt", ".yml"))
        ]
        ours += ["recipe/recipe.yaml", "Makefile", "CITATION.cff"]
        found = {name for name in ours if INDEX.search(text(name))}
        assert found <= {"tests/test_package.py"}

    def test_the_citation_names_the_paper_and_our_licence(self):
        cited = yaml.safe_load(text("CITATION.cff"))
        (paper,) = cited["references"]
        assert paper["title"].lower() in text("README.md").lower()
        assert cited["license"] == names(PROJECT["license"])[0]  # a list would mean "or"
        assert cited["abstract"] == PROJECT["description"]
        assert cited["keywords"] == PROJECT["keywords"]

    def test_pre_commit_runs_what_make_lint_runs_and_fetches_nothing(self):
        (ours,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
        assert ours["repo"] == "local"
        assert {hook["language"] for hook in ours["hooks"]} == {"system"}
        lint = re.search(r"^lint: installed\n((?:\t.+\n)+)", text("Makefile"), re.M)
        commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in lint[1].splitlines()]
        assert [hook["entry"] for hook in ours["hooks"]] == commands

    @pytest.mark.parametrize("name", ["bug", "wish", "words"])
    def test_a_template_asks_for_something(self, name):
        asked = yaml.safe_load(text(f".github/ISSUE_TEMPLATE/{name}.yml"))
        assert {"name", "description", "body"} <= set(asked)
        fields = [field for field in asked["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields)
        assert any(field.get("validations", {}).get("required") for field in fields)

    def test_what_breaks_stands_first_in_what_changed(self):
        first = text("CHANGELOG.md").split("\n## ")[1].split("\n### ")[1]
        assert first.startswith("What breaks, and how to mend it\n")


TOOLS = ROOT / ".venv-release/bin/python"
TWICE = """
import sys
from pathlib import Path
from release.dist import built, checked

first, second = built("1700000000"), built("1700000000")
assert first == second, "two builds differ"
checked(first)
for name, content in first.items():
    (Path(sys.argv[1]) / name).write_bytes(content)
"""


@pytest.mark.slow
@pytest.mark.skipif(not TOOLS.exists(), reason="`make dist` has not installed what builds")
def test_two_builds_are_equal_and_the_wheel_works_alone(tmp_path):
    tracked()
    done = subprocess.run([TOOLS, "-c", TWICE, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    code = "import recoup; print(recoup.__file__); print(recoup.METHODS and recoup.__version__)"
    how = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(tmp_path)}}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **how)
    assert done.stdout.split() == [str(tmp_path / "recoup/__init__.py"), recoup.__version__]
