"""What `make bench` runs can be run, and says what it has measured."""

import inspect

import pytest
from benchmarks import start_up
from benchmarks.__main__ import ALL


@pytest.mark.parametrize("module", ALL, ids=lambda x: x.__name__)
def test_a_benchmark_runs_without_being_told_anything(module):
    inspect.signature(module.main).bind()


def test_seconds_are_said_with_and_without_those_of_another_checkout():
    assert start_up.beside(now=0.5) == "0.50 s"
    assert start_up.beside(now=0.5, before=0.75) == "0.50 s; 1.50 times as much before"
