import jax
import pytest


@pytest.fixture
def x64():
    """float64 for one test, through the context that users have."""
    with jax.enable_x64(True):
        yield
