"""What JAX has compiled is kept for later processes, and is never in the way."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

import recoup
from recoup.engine import compilation_cache

pytestmark = pytest.mark.usefixtures("sketches")
SETTINGS = (compilation_cache.DIRECTORY, compilation_cache.SECONDS)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A user's cache directory, empty, in a process that knows of none."""
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(compilation_cache.SECONDS.upper())
    jax.config.update(compilation_cache.DIRECTORY, None)
    jax.config.update(compilation_cache.SECONDS, 1.0)
    reset_cache()
    another_process()
    yield tmp_path / "cache"
    for name, value in before.items():
        jax.config.update(name, value)
    reset_cache()
    another_process()


def another_process():
    """Forgets what one process knows."""
    compilation_cache._prepared.cache_clear()
    jax.clear_caches()


def entries(cache):
    return sorted(cache.rglob("*-cache"))


def run():
    return recoup.train("toy", "pgpe-ob", iterations=1, horizon=3, test_episodes=5)


def test_what_a_run_compiles_is_kept_and_the_settings_are_as_before(cache):
    first = run()
    found = {path: path.stat().st_mtime_ns for path in entries(cache)}
    assert found
    assert [getattr(jax.config, name) for name in SETTINGS] == [None, 1.0]
    another_process()
    again = run()
    assert {path: path.stat().st_mtime_ns for path in entries(cache)} == found
    np.testing.assert_array_equal(again.mean, first.mean)
    assert again.return_search == first.return_search


def test_moves_of_a_study_that_jax_makes_are_kept(cache):
    study = recoup.Study.create(None, settings_of_a_study())
    study.tell([trial.id for trial in study.ask(4)], [1.0, 2.0, 0.0, 1.5])
    assert any("jit_step" in path.name for path in entries(cache))
    assert getattr(jax.config, compilation_cache.DIRECTORY) is None


def settings_of_a_study():
    from recoup.study.reader.settings import resolved

    return resolved({"dim": 2, "method": "mis-pgpe-ob", "update": "adam", "batch": 4})


def test_a_search_of_ones_own_keeps_nothing_and_sets_nothing(cache):
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4, capacity=8)
    search.ask(jax.random.key(1), search.init(jax.random.key(0)))
    jax.jit(lambda x: x + 1)(1.0)
    assert not cache.exists()
    assert getattr(jax.config, compilation_cache.DIRECTORY) is None


def test_after_a_run_nothing_of_the_users_is_kept(cache):
    run()
    found = entries(cache)
    jax.config.update(compilation_cache.SECONDS, 0.0)
    jax.jit(lambda x: x * 3 + 1)(1.0)
    assert entries(cache) == found


def test_a_variable_turns_it_off(cache, monkeypatch):
    monkeypatch.setenv(compilation_cache.OFF, "1")
    assert run().finished
    assert not cache.exists()


def test_what_the_user_has_told_jax_is_respected(cache, tmp_path):
    jax.config.update(compilation_cache.DIRECTORY, str(tmp_path / "mine"))
    jax.config.update(compilation_cache.SECONDS, 0.0)
    assert run().finished
    assert not cache.exists()
    assert entries(tmp_path / "mine")
    assert getattr(jax.config, compilation_cache.DIRECTORY) == str(tmp_path / "mine")


@pytest.mark.slow
def test_garbage_is_compiled_anew_and_replaced(cache):
    first, how = run(), entries(cache)
    for i, path in enumerate(how):
        path.write_bytes((b"garbage", b"", path.read_bytes()[:-9])[i % 3])
    jax.clear_caches()  # the same process: nothing is looked at before it is used
    assert run().return_search == first.return_search
    another_process()
    assert run().return_search == first.return_search
    assert entries(cache) == how
    assert all(zlib.decompress(path.read_bytes()) for path in how)


def test_a_directory_that_cannot_be_made_or_is_anothers_is_left_alone(cache, monkeypatch):
    cache.write_text("a file")
    assert run().finished
    assert cache.read_text() == "a file"
    cache.unlink()
    another_process()
    monkeypatch.setattr(os, "getuid", lambda: cache.parent.stat().st_uid + 1)
    assert run().finished
    assert entries(cache) == []


def test_a_full_disk_is_no_failure(cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jax._src.lru_cache.LRUCache.put", full)
    assert run().finished
    assert entries(cache) == []


def test_the_oldest_entries_go_once_there_are_too_many(cache, monkeypatch):
    monkeypatch.setattr(compilation_cache, "CACHE_BYTES", 100)
    place = compilation_cache.cache_directory()
    place.mkdir(parents=True)
    for i in range(6):
        (place / f"{i}-cache").write_bytes(zlib.compress(bytes(8)) + bytes(9))
        os.utime(place / f"{i}-cache", (i, i))
    each = (place / "0-cache").stat().st_size
    compilation_cache._without_oldest(place)
    assert 6 * each > 100
    left = [path.name for path in entries(cache)]
    assert left == [f"{i}-cache" for i in range(6)][-(50 // each) :]


@pytest.mark.parametrize(
    ("system", "variables", "place"),
    [
        ("linux", {"XDG_CACHE_HOME": "/var/cache"}, "/var/cache"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache"),
        ("linux", {}, "/home/me/.cache"),
        ("darwin", {}, "/home/me/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
    ],
)
def test_it_lies_where_the_system_has_such_things(system, variables, place, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    found = compilation_cache.cache_directory()
    assert found.parent == Path(place) / "recoup" / "jax"
    assert found == compilation_cache.cache_directory()


def test_who_has_no_home_has_no_cache(monkeypatch):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert compilation_cache.cache_directory() is None


@pytest.mark.slow
def test_two_processes_at_once_say_nothing(tmp_path):
    ours = ("JAX_COMPILATION_CACHE_DIR", compilation_cache.SECONDS.upper())
    env = {key: value for key, value in os.environ.items() if key not in ours}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "recoup", "train", "toy", "--iterations", "2", "--quiet"]
    both = [
        subprocess.Popen([*words, "--out", str(tmp_path / name)], env=env, stderr=subprocess.PIPE)
        for name in ("one", "other")
    ]
    assert [one.communicate()[1] for one in both] == [b"", b""]
    assert [one.returncode for one in both] == [0, 0]
    assert entries(tmp_path / "cache")
    found = [recoup.load(tmp_path / name).return_search for name in ("one", "other")]
    assert found[0] == found[1]
