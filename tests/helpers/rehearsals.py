"""Forecasts of fewer rehearsals: nothing else that is said rests on them, and they take longest."""

import contextlib
from unittest import mock

from recoup.study.voice import rehearsal


@contextlib.contextmanager
def few(draws=4):
    """Forecasts of so many rehearsals: they hold together as those of many do."""
    with mock.patch.object(rehearsal, "DRAWS", ((float("inf"), draws),)):
        yield
