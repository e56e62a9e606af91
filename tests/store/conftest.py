import pytest
from stores import SETTINGS, filled, start

from recoup.store.store import Store


@pytest.fixture
def store(tmp_path):
    made = filled(tmp_path / "robot.db")
    yield made
    made.close()


@pytest.fixture
def memory():
    made = Store.in_memory(SETTINGS, start())
    yield made
    made.close()
