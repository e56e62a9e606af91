"""A disk of a few megabytes that can be filled to its last byte, where this machine lets us."""

import os
import subprocess
from contextlib import contextmanager, suppress

import pytest

SIZE = "2m"


@contextmanager
def small_disk(folder):
    """A folder with a disk of its own; a skip where none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here: that takes root, on Linux")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def full(folder):
    """The same disk without a byte of room."""
    filler = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        with suppress(OSError):
            while True:
                os.write(filler, b"x" * 512)
    finally:
        os.close(filler)
    try:
        yield
    finally:
        (folder / "filler").unlink()
