"""What lies beside the study of a run cannot be written: one warning, and the run goes on."""

import os
import sys
from pathlib import Path

import own_tasks
import pytest
from program import recoup as program

import recoup
from recoup.runs.callbacks import TensorBoard, TrialDone

QUICK = {"horizon": 4, "test_episodes": 3, "batch": 4}
pytestmark = pytest.mark.usefixtures("sketches")


class Stop:
    """Stops a run after so many results."""

    def __init__(self, after):
        self.left = after

    def on_result(self, result):
        self.left -= 1
        return self.left == 0


def stopped(out, after=6):
    run = recoup.train(own_tasks.Walk, episodes=48, **QUICK, callbacks=Stop(after), out=out)
    assert not run.finished


def put_a_file(place):
    place.write_text("mine")


def put_a_link(place):
    place.symlink_to(place.with_name("nowhere") / "nor" / "here")


@pytest.mark.parametrize("put", [put_a_file, put_a_link])
def test_something_in_the_place_of_tensorboard_is_one_warning(put, tmp_path, caplog):
    pytest.importorskip("tensorboardX")
    stopped(tmp_path / "r")
    for file in (tmp_path / "r" / "tensorboard").iterdir():
        file.unlink()
    (tmp_path / "r" / "tensorboard").rmdir()
    put(tmp_path / "r" / "tensorboard")
    run = recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    assert run.finished
    assert run.episodes == 48
    (said,) = caplog.messages
    assert "tensorboard cannot be written (File exists): the run goes on without" in said
    assert (tmp_path / "r" / "curve.png").is_file()


class FillsTheDisk:
    """From the third result on, what is written for TensorBoard meets a full disk."""

    def __init__(self):
        self.results = self.full = 0

    def on_result(self, result):
        self.results += 1
        if self.results == 3:
            for number in os.listdir("/proc/self/fd"):
                if "tfevents" in os.path.realpath(f"/proc/self/fd/{number}"):
                    full = os.open("/dev/full", os.O_WRONLY)
                    os.dup2(full, int(number))
                    os.close(full)
                    self.full += 1


@pytest.mark.skipif(
    not Path("/dev/full").exists() or sys.platform != "linux", reason="no /dev/full"
)
def test_a_disk_that_gets_full_is_one_warning(tmp_path, caplog):
    pytest.importorskip("tensorboardX")
    disk = FillsTheDisk()
    run = recoup.train(own_tasks.Walk, episodes=48, **QUICK, callbacks=disk, out=tmp_path / "r")
    assert disk.full == 1
    assert run.finished
    assert run.episodes == 48
    (said,) = caplog.messages
    assert "(No space left on device): the run goes on without" in said


@pytest.mark.skipif(
    not Path("/dev/full").exists() or sys.platform != "linux", reason="no /dev/full"
)
def test_one_that_is_full_when_the_file_is_closed_too(tmp_path, caplog):
    pytest.importorskip("tensorboardX")
    board, disk = TensorBoard(tmp_path / "t"), FillsTheDisk()
    disk.results = 2
    board.on_result(TrialDone(1, None, {}, 0, 1.0, None, 1, 0.1))  # not yet on disk
    disk.on_result(None)
    board.close()
    board.close()
    board.on_result(TrialDone(1, None, {}, 0, 1.0, None, 1, 0.1))
    assert len(caplog.messages) == 1


def test_what_was_written_before_a_stop_stays(tmp_path):
    pytest.importorskip("tensorboardX")
    stopped(tmp_path / "r")
    recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    files = list((tmp_path / "r" / "tensorboard").iterdir())
    assert len(files) == 2
    assert sum(file.read_bytes().count(b"trial/return") for file in files) == 48


def test_a_tensorboard_that_cannot_be_imported_is_one_warning(tmp_path, caplog, monkeypatch):
    """As with a protobuf of another version, which is no ImportError."""
    package = tmp_path / "path" / "tensorboardX"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise TypeError('Descriptors cannot be created')")
    monkeypatch.syspath_prepend(package.parent)
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboardX"]:
        monkeypatch.delitem(sys.modules, name)
    run = recoup.train(own_tasks.Walk, episodes=8, **QUICK, out=tmp_path / "r")
    assert run.finished
    (said,) = caplog.messages
    assert "tensorboardX cannot be used (TypeError: Descriptors cannot be created)" in said


@pytest.mark.parametrize("name", ["curve.png", "policy.npz"])
def test_a_picture_or_policy_that_cannot_be_written_is_one_warning(name, tmp_path, caplog):
    stopped(tmp_path / "r")
    (tmp_path / "r" / name).unlink(missing_ok=True)
    (tmp_path / "r" / name).mkdir()
    run = recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    assert run.finished
    (said,) = caplog.messages
    assert f"{name} cannot be written (" in said
    assert recoup.load(tmp_path / "r").summary() == run.summary()


def test_settings_that_cannot_be_written_are_one_warning(tmp_path, caplog):
    recoup.train(own_tasks.Walk, episodes=8, **QUICK, out=tmp_path / "r")
    (tmp_path / "r" / "config.json.new").mkdir()
    run = recoup.resume(tmp_path / "r", iterations=3, task=own_tasks.Walk)
    assert (run.finished, run.episodes) == (True, 12)
    assert ["config.json cannot be written" in said for said in caplog.messages] == [True]


def test_the_program_says_it_in_a_line(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    monkeypatch.chdir(tmp_path)
    words = ("train", "toy", "--iterations", "2", "--batch", "4", "--out", "r", "--quiet")
    assert program(*words).returncode == 0
    for file in Path("r/tensorboard").iterdir():
        file.unlink()
    Path("r/tensorboard").rmdir()
    put_a_file(Path("r/tensorboard"))
    done = program("resume", "r", "--iterations", "3", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
