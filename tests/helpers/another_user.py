"""Tests that root runs as another user, since root may write anywhere."""

import os
from pathlib import Path

import pytest


def is_closed(place):
    """Whether other users cannot read what lies below a place."""
    return any(not parent.stat().st_mode & 0o001 for parent in Path(place).resolve().parents)


as_another_user = pytest.mark.skipif(
    os.getuid() == 0 and is_closed(__file__),
    reason="this clone lies in a directory that is closed to other users",
)
