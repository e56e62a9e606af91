"""Whatever writes a file, against whatever may lie there: only what recoup has made is replaced."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from another_user import as_another_user
from gymnasium import spaces
from program import Done, recoup
from sketches import sketched

from recoup import load, train
from recoup.checks import InputError
from recoup.outputs import BESIDE, SQLITE
from recoup.store.place import COUNT, LOG
from recoup.study.care.verify import check
from recoup.study.study import Study
from recoup.tasks.policies.policy import make_policy
from recoup.tasks.policies.policy_files import save_policy

COMPARED = "compare --task toy --method pgpe --runs 1 --episodes 20 --workers 1 --quiet --out far"
AGAIN = "reproduce toy-directions --quick --workers 1 --quiet --out far"
slow = pytest.mark.slow


class Writer(NamedTuple):
    """What writes: as it is typed ({} is the file), or called in Python; and the file."""

    call: str
    file: str
    kind: str = "output"  # of ours, replaced; a new "study", or "run", which are never


def outputs():
    """Everything that writes a file for people."""
    yield Writer("report a.db --out {}", "p.html")
    yield Writer("report a.db", "a-report.html")
    yield Writer("report run --out {}", "p.html")
    yield Writer("report run", "run/report.html")
    for ending in ("png", "pdf", "svg"):
        yield Writer("study plot a.db --out {}", f"p.{ending}")
    for ending in ("csv", "parquet"):
        yield Writer("study export a.db --out {}", f"p.{ending}")
    yield Writer("study replay a.db --plot {}", "p.png")
    yield Writer("study.plot", "p.png")
    yield Writer("study.export", "p.csv")
    yield Writer("run.plot", "p.png")
    yield Writer("save_policy", "p.npz")
    for file in ("policy.mp4", "strip.png"):
        yield Writer("render run", f"run/{file}")
        yield Writer("render run --out far", f"far/{file}")
    for file in ("compare.json", "compare.md", "compare.html"):
        yield Writer(COMPARED, f"far/{file}")
    for file in ("data.npz", "claims.json", "figure.svg"):
        yield Writer(AGAIN, f"far/toy-directions/{file}")


OUTPUTS = list(outputs())
NEW = [
    Writer("study new {} --dim 2", "p.db", "study"),
    Writer("study fork a.db {}", "p.db", "study"),
    Writer("study check a.db --recover {}", "p.db", "study"),
    Writer("study copy a.db {}", "p.db", "study"),
    Writer("study.fork", "p.db", "study"),
    Writer("train toy --iterations 1 --quiet --out {}", "p", "run"),
]
NAMED = [w for w in [*OUTPUTS, *NEW[:5]] if "{}" in w.call or "." in w.call.split()[0]]


def said(writer):
    words = writer.call.split()[:2] if " " in writer.call else [writer.call]
    return "-".join([*words, Path(writer.file).name])


def run(writer, scene, file=None, force=False):
    """What a writer says, and how it ends; an error of Python's as the program would say it."""
    file = file or writer.file
    if " " in writer.call:
        words = writer.call.format(file).split()
        return recoup(*words, *(["--force"] if force else []), cwd=scene)
    how = {"force": True} if force else {}
    try:
        if writer.call == "save_policy":
            box = spaces.Box(-1, 1, (2,))
            policy = make_policy("linear", {}, box, box, np.zeros((2, 2)), False)
            save_policy(scene / file, policy, np.ones(policy.parameters), **how)
        elif writer.call == "run.plot":
            load(scene / "run").plot(scene / file, **how)
        else:
            with Study.open(scene / "a.db") as study:
                getattr(study, writer.call.partition(".")[2])(scene / file, **how)
    except InputError as wrong:
        return Done(2, "", f"recoup: {wrong}\n")
    return Done(0, "", "")


def contents(scene):
    """Every name below a directory, and what it is; SQLite's shared memory is not looked at."""
    found = {}
    for path in sorted(scene.rglob("*")):
        name = str(path.relative_to(scene))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = None
        elif not name.endswith("-shm"):
            found[name] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study, another, a run, and directories that are ours."""
    home = tmp_path_factory.mktemp("writes")
    for name in ("a.db", "b.db"):
        with Study.open(home / name, params={"gain": (1, 100, "log")}, batch=2) as study:
            for trial in study.ask(4):
                study.tell(trial.id, -trial.params["gain"])
    with sketched():
        train("mountain-car", "pgpe-ob", iterations=1, seed=0, out=home / "run")
    for folder in ("results", "jobs", "toy-directions"):
        (home / "far" / folder).mkdir(parents=True)
    return home


@pytest.fixture
def scene(made, tmp_path):
    """A copy of them, and the study open: its log lies beside it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    with Study.open(tmp_path / "a.db") as study:
        study.tell(study.ask()[0].id, -5.0)
        assert all((tmp_path / f"a.db{ending}").exists() for ending in (LOG, COUNT))
        yield tmp_path
    assert all(part.sound for part in check(tmp_path / "a.db"))


def other_study(scene, path):
    shutil.copy(scene / "b.db", path)


def hard_link(scene, path):
    os.link(scene / "a.db", path)


def link(scene, path):
    path.symlink_to(scene / "a.db")


def link_to_the_log(scene, path):
    path.symlink_to(scene / "a.db-wal")


def directory(scene, path):
    path.mkdir()
    (path / "config.json").write_text('{"mine": true}')


def text(scene, path):
    path.write_text("id,kind,mine\n1,2,3\n")


def link_to_nowhere(scene, path):
    path.symlink_to(scene / "nowhere.html")


def link_to_itself(scene, path):
    path.symlink_to(path)


STUDY, FILE, NOWHERE = (
    "exists already",
    "is a file: name a directory",
    "is a link that leads nowhere",
)
OBSTACLES = {  # what lies there, and what is said of it by kind of writer
    other_study: ("is a study, which nothing is written over", STUDY, FILE),
    hard_link: ("is the study itself|is a study, which nothing", STUDY, FILE),
    link: ("is the study itself|is a study, which nothing", STUDY, FILE),
    link_to_the_log: ("is the name of what lies beside a study", STUDY, FILE),
    directory: ("is a directory: name a file in it", STUDY, "exists already and holds other"),
    text: ("is not one that recoup has made", STUDY, FILE),
    link_to_nowhere: (NOWHERE,) * 3,
    link_to_itself: ("leads back to itself",) * 3,
}


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda obstacle: obstacle.__name__)
@pytest.mark.parametrize("writer", [*OUTPUTS, *NEW], ids=said)
def test_nothing_is_written_over_what_recoup_has_not_made(writer, obstacle, scene):
    """One sentence, status 2, and every byte as before; by force no study either."""
    sentences = dict(zip(("output", "study", "run"), OBSTACLES[obstacle], strict=True))
    obstacle(scene, scene / writer.file)
    before = contents(scene)
    forced = [True] if writer.kind == "output" and obstacle is not text else []
    for force in (False, *forced):
        done = run(writer, scene, force=force)
        assert done.returncode == 2, done
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert Path(writer.file).name in done.stderr
        assert any(words in done.stderr for words in sentences[writer.kind].split("|")), done
        assert contents(scene) == before


@pytest.mark.parametrize("name", ["b.db", *(f"a.db{end}" for end in BESIDE), "c.db-wal", "p.txt"])
@pytest.mark.parametrize("writer", NAMED, ids=said)
def test_no_file_gets_a_name_that_does_not_fit(writer, name, scene):
    """Neither that of another study, nor of what lies beside one, nor an ending of others'."""
    if writer.kind == "study" and name == "p.txt":
        pytest.skip("a study may have any name")
    before = contents(scene)
    for force in (False, True) if writer.kind == "output" else (False,):
        done = run(writer, scene, name, force)
        assert done.returncode == 2, done
        assert name in done.stderr
        assert done.stderr.count("\n") == 1
        assert contents(scene) == before


def with_marks(writers):
    """The writers; those whose work is long with one file each, and marked."""
    long = {}
    for writer in writers:
        if writer.call in (COMPARED, AGAIN) or writer.call.startswith("render"):
            long.setdefault(writer.call, pytest.param(writer, marks=slow, id=said(writer)))
        else:
            yield writer
    yield from long.values()


@pytest.fixture
def drawn(writer):
    """Pictures are rendered where some are no PNG, which says whose it is; else they are pixels."""
    with nullcontext() if writer.call.startswith(("study plot", "reproduce")) else sketched():
        yield


@pytest.mark.parametrize("writer", list(with_marks(OUTPUTS)), ids=said)
def test_an_older_one_of_ours_is_replaced_and_others_by_force(writer, scene, drawn):
    file, before = scene / writer.file, contents(scene)
    assert run(writer, scene).returncode == 0
    first, number = contents(scene), file.stat().st_ino
    shutil.copymode(scene / "a.db", file)
    file.chmod(0o640)
    done = run(writer, scene)
    assert done.returncode == 0, done.stderr
    assert file.stat().st_ino != number, "it was not written again"
    assert file.stat().st_mode & 0o777 == 0o640
    assert contents(scene).keys() == first.keys()
    text(scene, file)
    assert run(writer, scene).returncode == 2
    assert run(writer, scene, force=True).returncode == 0
    after = contents(scene)
    assert after.keys() == first.keys()
    for name in before:
        assert after[name] == before[name], name
    assert file.read_bytes() != b"id,kind,mine\n1,2,3\n"


def test_a_link_to_an_older_page_stays_one(scene, sketches):
    assert recoup("report", "a.db", "--out", "old.html", cwd=scene).returncode == 0
    (scene / "old.html").write_bytes((scene / "old.html").read_bytes() + b"\n")
    old = (scene / "old.html").read_bytes()
    (scene / "newest.html").symlink_to("old.html")
    assert recoup("report", "a.db", "--out", "newest.html", cwd=scene).returncode == 0
    assert (scene / "newest.html").is_symlink()
    assert (scene / "old.html").read_bytes() != old


def test_a_page_made_before_pages_had_a_mark_is_ours(scene, sketches):
    assert recoup("report", "a.db", cwd=scene).returncode == 0
    page = scene / "a-report.html"
    lines = page.read_text().splitlines(keepends=True)
    page.write_text("".join(line for line in lines if "generator" not in line))
    assert recoup("report", "a.db", cwd=scene).returncode == 0
    assert "generator" in page.read_text()


@pytest.mark.parametrize("call", [COMPARED, AGAIN])
def test_a_directory_of_the_users_becomes_none_of_ours(tmp_path, call):
    (tmp_path / "far").mkdir()
    text(tmp_path, tmp_path / "far" / "mine.txt")
    before = contents(tmp_path)
    done = recoup(*call.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "far holds something else than a" in done.stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture_of_the_users_own_is_not_ours(scene, ending):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().set_title("recoup")
    figure.savefig(scene / f"p.{ending}")
    before = contents(scene)
    done = recoup("study", "plot", "a.db", "--out", f"p.{ending}", cwd=scene)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert contents(scene) == before


def test_a_table_with_a_column_of_the_users_is_theirs(scene):
    with Study.open(scene / "a.db") as study:
        study.export(scene / "t.csv")
        lines = (scene / "t.csv").read_text().splitlines()
        (scene / "t.csv").write_text("\n".join(f"{line},mine" for line in lines))
        with pytest.raises(InputError, match="is not one that recoup has made"):
            study.export(scene / "t.csv")


def test_an_export_has_the_ending_of_its_format(scene):
    words = ("study", "export", "a.db", "--format", "parquet", "--out", "t.csv")
    done = recoup(*words, cwd=scene)
    assert (done.returncode, (scene / "t.csv").exists()) == (2, False)
    assert "t.csv must end in .parquet or .pq" in done.stderr


def test_a_new_study_removes_no_study_that_is_called_like_its_count(tmp_path):
    Study.open(tmp_path / "other", dim=2).close()
    (tmp_path / "other").rename(tmp_path / "step-count")
    before = contents(tmp_path)
    done = recoup("study", "new", "step", "--dim", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "step-count lies where the new study keeps its count" in done.stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("other", [b"notes of somebody's own, some lines", SQLITE * 99])
def test_a_study_that_is_used_leaves_what_is_called_like_its_count(tmp_path, other):
    with Study.open(tmp_path / "step", dim=2, batch=2) as study:
        trials = study.ask(4)
    (tmp_path / "step-count").write_bytes(other)
    with Study.open(tmp_path / "step") as study:
        for trial in trials:
            study.tell(trial.id, 1.0)
        assert len(study.history()) == 2
    assert contents(tmp_path)["step-count"] == other
    assert all(part.sound for part in check(tmp_path / "step"))


def test_a_link_to_a_file_of_another_kind_is_not_ours(scene):
    (scene / "notes.txt").write_text("mine")
    for writer in OUTPUTS[:12]:
        if "{}" in writer.call:
            (scene / writer.file).unlink(missing_ok=True)
            (scene / writer.file).symlink_to("notes.txt")
            done = run(writer, scene)
            assert done.returncode == 2, writer
            assert "is not one that recoup has made" in done.stderr
    assert (scene / "notes.txt").read_text() == "mine"


def test_a_killed_export_is_cleared_by_the_next(scene):
    program = (
        "import os, signal\nfrom recoup.study.exchange import tables\n"
        "from recoup.study.study import Study\n"
        "def killed(study, file):\n"
        "    file.write('id,kind')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "tables.write_csv = killed\n"
        "Study.open('a.db').export('x.csv')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=scene, timeout=300)
    assert done.returncode == -9
    (left,) = scene.glob("x.csv*")
    assert left.name.endswith(".new")
    (scene / f"x.csv.{os.getpid()}0.new").mkdir()  # none of ours
    assert recoup("study", "export", "a.db", "--out", "x.csv", cwd=scene).returncode == 0
    assert not left.exists()
    assert (scene / f"x.csv.{os.getpid()}0.new").is_dir()


READ_ONLY = """
import json, os, sys
sys.path[:0] = json.loads(sys.argv[3])
from pathlib import Path
import test_writes as writes
home, warm = Path(sys.argv[1]), Path(sys.argv[2])
writers = [*writes.OUTPUTS, *writes.NEW]
for writer in writers:  # what they need is imported by a refusal, while it can be
    assert writes.run(writer, warm).returncode == 2, writer
if os.getuid() == 0:
    os.setuid(65534)
print(json.dumps([writes.run(writer, home) for writer in writers]))
"""


@as_another_user
def test_a_directory_that_is_read_only_stays_as_it_is(made, tmp_path):
    """As another user, for root writes anywhere; pytest's directories are closed to them."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for writer in [*OUTPUTS, *NEW]:
        (tmp_path / writer.file).write_text("mine")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        shutil.copytree(made, home, dirs_exist_ok=True)
        folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        before = contents(home)
        search = json.dumps([str(Path(__file__).parent), *sys.path])
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, place, str(tmp_path), search],
            capture_output=True,
            text=True,
            timeout=600,
        )
        after = contents(home)
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert after == before
    for writer, ended in zip([*OUTPUTS, *NEW], json.loads(done.stdout), strict=True):
        status, _, words = ended
        assert status == 2, (writer, ended)
        assert words.count("\n") == 1, (writer, ended)
        assert "read-only" in words or "cannot be written" in words, (writer, ended)


def test_what_lies_beside_a_study_is_known_by_its_name():
    assert {LOG, COUNT} <= set(BESIDE)
    assert len(SQLITE) == 16
