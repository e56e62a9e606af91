"""What is served under which name, and the thread that looks at the files."""

import concurrent.futures
import shutil
from pathlib import Path

import pytest
from waiting import until

import recoup
from recoup.serve import hub as hubs
from recoup.serve.hub import Hub
from recoup.serve.tokens import Door, new_tokens
from recoup.store.errors import Locked
from recoup.study.study import Study


class Loop:
    """An event loop that keeps what it is told."""

    def __init__(self):
        self.heard = []

    def is_closed(self):
        return False

    def call_soon_threadsafe(self, add, change):
        self.heard.append(change.line)


@pytest.fixture
def serving():
    """Hubs of paths, closed at the end."""
    made = []

    def hub(*paths):
        made.append(Hub(paths, Door("127.0.0.1", 80, False, new_tokens()), False))
        return made[-1]

    yield hub
    for one in made:
        one.end()
        one.close()


def study(path):
    Study.open(path, dim=1).close()
    return path


def test_files_that_come_are_served_once_however_many_ask_at_once(serving, tmp_path):
    first = study(tmp_path / "a.db")
    hub = serving(tmp_path)
    for number in range(40):
        shutil.copy(first, tmp_path / f"b{number}.db")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for one in [pool.submit(hub.find) for _ in range(24)]:
            one.result()
    assert sorted(hub.served) == sorted(path.stem for path in tmp_path.glob("*.db"))


def test_a_file_that_is_named_twice_is_served_once(serving, tmp_path, monkeypatch):
    monkeypatch.chdir(study(tmp_path / "a.db").parent)
    (tmp_path / "link.db").symlink_to("a.db")
    hub = serving(Path("a.db"), tmp_path / "a.db", tmp_path / "link.db", tmp_path)
    assert list(hub.served) == ["a"]


def test_a_study_keeps_its_name_beside_a_run(serving, tmp_path):
    study(tmp_path / "arm.db")
    recoup.train("toy", "pgpe", iterations=1, batch=2, seed=0, out=tmp_path / "arm")
    hub = serving(tmp_path)
    assert {name: one.run is None for name, one in hub.served.items()} == {
        "arm": True,
        "arm-2": False,
    }


def test_what_one_may_not_look_into_is_no_study(serving, tmp_path, monkeypatch):
    study(tmp_path / "a.db")
    (tmp_path / "private").mkdir()
    is_file = Path.is_file

    def closed(path):
        if "private" in path.parts[-2:]:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", closed)  # root may look everywhere
    assert list(serving(tmp_path).served) == ["a"]


def test_a_file_that_could_not_be_read_once_is_looked_at_again(serving, tmp_path, monkeypatch):
    monkeypatch.setattr(hubs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(hubs, "AGAIN_SECONDS", 0.01)
    hub, loop = serving(study(tmp_path / "a.db")), Loop()
    one = hub.served["a"]
    one.look()
    looked, looks = one._looked, iter([Locked("it is locked")])

    def at_first_not():
        for wrong in looks:
            raise wrong
        return looked()

    monkeypatch.setattr(one, "_looked", at_first_not)
    hub.start(loop)
    until(lambda: next(looks, None) is None and one.error is None and one._watched is not None)
    with Study.open(tmp_path / "a.db") as other:
        other.ask(3)
    until(lambda: loop.heard and loop.heard[-1]["counts"]["pending"] == 3)


def test_one_in_trouble_holds_up_no_other(serving, tmp_path, monkeypatch):
    monkeypatch.setattr(hubs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(hubs, "AGAIN_SECONDS", 0.01)
    study(tmp_path / "a.db")
    study(tmp_path / "b.db")
    hub, loop, slow = serving(tmp_path), Loop(), concurrent.futures.Future()
    for one in hub.served.values():
        one.look()
    hub.served["a"].error = "it is locked"
    monkeypatch.setattr(hub.served["a"], "look", slow.result)
    hub.start(loop)
    with Study.open(tmp_path / "b.db") as other:
        other.ask(3)
    until(lambda: loop.heard and loop.heard[-1]["counts"]["pending"] == 3)
    slow.set_result(None)
