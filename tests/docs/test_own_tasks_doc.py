"""`docs/own-tasks.md`: its scripts run, and are as short as it says."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from recoup.tasks.own.found import REGISTERED

PAGE = (Path(__file__).parents[2] / "docs" / "own-tasks.md").read_text()
SCRIPTS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.S))


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Loggers that note what they are given, where those of the examples are not installed."""
    monkeypatch.chdir(tmp_path)
    heard = []
    for name in ("wandb", "mlflow"):
        calls = {
            call: lambda *given, call=call, **more: heard.append((call, given, more))
            for call in ("init", "log", "save", "log_metrics")
        }
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**calls))
    before = dict(REGISTERED)
    yield heard
    REGISTERED.clear()
    REGISTERED.update(before)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_of_the_page_run(name, elsewhere, tmp_path, capsys):
    (tmp_path / name).write_text(SCRIPTS[name])
    runpy.run_path(str(tmp_path / name), run_name="__main__")
    assert capsys.readouterr().out.strip()
    if name == "listening.py":
        calls = [call for call, _, _ in elsewhere]
        assert calls.count("log") == 24
        assert calls.count("log_metrics") == 6
        assert calls.count("save") == 1


def test_the_common_case_takes_ten_lines():
    lines = [line for line in SCRIPTS["common.py"].splitlines() if line.strip()]
    assert len(lines) <= 10


def test_every_option_that_the_page_names_is_one(capsys):
    from program import recoup

    shown = "".join(
        recoup(command, "--help").stdout for command in ("train", "evaluate", "export-policy")
    )
    for option in set(re.findall(r"--[a-z][a-z-]+", PAGE)):
        assert option in shown, option
