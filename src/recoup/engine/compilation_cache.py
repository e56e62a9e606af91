"""What JAX compiles for studies and runs is kept in the user's cache directory.

Another process then reads it in place of compiling it again. It is JAX's own persistent cache; here
stand where it lies and when it is used: while a study moves, or a run is made. Nothing is set for
those who only import recoup, or call `recoup.search`: what JAX keeps is their own choice.
"""

import hashlib
import os
import platform
import sys
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

OFF = "RECOUP_NO_CACHE"  # the variable that turns it off
CACHE_BYTES = 2**29  # bytes: above, what was written first is removed
ENTRIES = "*-cache"  # what JAX calls them
DIRECTORY = "jax_compilation_cache_dir"
SECONDS = "jax_persistent_cache_min_compile_time_secs"  # what takes less is not kept
_SETTING = threading.Lock()
_INSIDE: list[float | None] = []  # a row each time: what SECONDS was, None where it was not set
CHECKED = ".checked"  # its time: entries written before are known to be whole


@contextmanager
def kept_compilations() -> Iterator[None]:
    """What is compiled inside is kept for other processes, and read if one of them has kept it.

    JAX's settings are as before afterwards. Where the user has told JAX what to keep, nothing is
    set at all; where the directory cannot be used, everything is compiled as if there were none.
    """
    with _SETTING:
        _enter()
    try:
        yield
    finally:
        with _SETTING:
            _leave()


def _enter() -> None:
    """Tells JAX what to keep: the first of several threads does, for all."""
    place = None
    if not _INSIDE and getattr(jax.config, DIRECTORY) is None:
        place = _prepared(os.environ.get(OFF))
    if place is None:
        _INSIDE.append(None)
        return
    _INSIDE.append(getattr(jax.config, SECONDS))
    jax.config.update(DIRECTORY, str(place))
    if SECONDS.upper() not in os.environ:
        jax.config.update(SECONDS, 0.0)


def _leave() -> None:
    """Sets all back as it was: the last of several threads does."""
    if len(_INSIDE) > 1:
        _INSIDE.remove(None)
        return
    before = _INSIDE.pop()
    if before is not None:
        jax.config.update(SECONDS, before)
        jax.config.update(DIRECTORY, None)
        reset_cache()


@lru_cache(maxsize=4)
def _prepared(off: str | None) -> Path | None:
    """The directory, once it is there and in order; None where it cannot be."""
    place = None if off else cache_directory()
    if place is None:
        return None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and place.stat().st_uid != os.getuid():
            return None  # what lies there is executed: another user's is not
    except OSError:
        return None
    warnings.filterwarnings(  # JAX compiles what it cannot read, and goes on where it cannot write
        "ignore", "Error (reading|writing) persistent compilation cache entry", UserWarning
    )
    for tidy in (_without_torn, _without_oldest):
        with suppress(OSError):  # it cannot be written to, or another process is at it
            tidy(place)
    return place


def cache_directory() -> Path | None:
    """Where compiled programs of this machine lie, in the user's cache directory, if any."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = given if given.is_absolute() else _usual(Path.home())
    except RuntimeError:  # the user has no home
        return None
    return base / "recoup" / "jax" / _machine()


def _usual(home: Path) -> Path:
    """The directory for caches, where no variable names one."""
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    return home / ".cache"


def _machine() -> str:
    """A name for machines that can run each other's programs; a home may be shared by others."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [f"flags: {platform.processor()}"]
    told = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU "))}
    digest = hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest()
    return f"{platform.machine()}-{digest[:8]}"


def _without_torn(place: Path) -> None:
    """Removes entries that are not whole, of processes killed while they wrote: none replaces them.

    Only those written since the last look are looked at.
    """
    stamp = place / CHECKED
    since = stamp.stat().st_mtime if stamp.exists() else 0.0
    for path in place.glob(ENTRIES):
        if path.stat().st_mtime >= since and not _is_whole(path.read_bytes()):
            path.unlink(missing_ok=True)
    stamp.touch()


def _is_whole(entry: bytes) -> bool:
    if entry.startswith(b"\x28\xb5\x2f\xfd"):  # compressed by zstandard, if that is installed
        return True
    try:
        zlib.decompress(entry)
    except zlib.error:
        return False
    return True


def _without_oldest(place: Path) -> None:
    """Removes the oldest entries down to half of what is allowed, once there is more."""
    stats = ((path.stat(), path) for path in place.glob(ENTRIES))
    found = sorted((stat.st_mtime, stat.st_size, path) for stat, path in stats)
    total = sum(size for _, size, _ in found)
    if total <= CACHE_BYTES:
        return
    for _, size, path in found:
        path.unlink(missing_ok=True)
        total -= size
        if total <= CACHE_BYTES // 2:
            return
