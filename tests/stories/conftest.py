"""What pages of a server are tested with."""

import pytest
from browser import browsing
from pages import robot_served


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture
def server(tmp_path):
    """A study of a gripper that is served."""
    with robot_served(tmp_path) as started:
        yield started
