"""docs/reproduction.md is made from the files of a reproduction, with both verdicts."""

import importlib.util
import sys
from pathlib import Path

import figure_data
import pytest

from recoup.reproduce import reproduce as running
from recoup.reproduce.claims import FAILS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generator(monkeypatch, tmp_path):
    path = ROOT / "benchmarks" / "reproduction.py"
    spec = importlib.util.spec_from_file_location("reproduction_doc", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "reproduction_doc", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    return module


@pytest.mark.slow
def test_every_claim_has_a_row_with_both_verdicts(generator, tmp_path):
    figures = running.chosen_figures(["bounds", "toy-returns", "reach-4"])
    jobs = running.jobs_of(figures, figure_data.TINY)
    results = {job.name: figure_data.made_up(job) for job in jobs}
    for figure in figures:
        running._finding(figure, figure_data.TINY, results, tmp_path / figure.name)
    judged = running.correct(tmp_path)
    generator.main(tmp_path, "A machine.")
    text = (tmp_path / "docs" / "reproduction.md").read_text()
    table = (tmp_path / "docs" / "lookup" / "verdicts.md").read_text()
    rows = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    for id_, record in judged.items():
        words = (generator.MARKS[record[key]] for key in ("verdict", "holm_verdict"))
        assert f"| {' | '.join(words)} | {record['p']:.2g} |" in rows[id_]
        assert (f"- `{id_}`" in text) == (record["verdict"] == FAILS)
    for word in (
        "What is ours",
        "one method goes on to 90 with nine",
        "marked as a guess",
        "benchmarks/paper.md",
    ):
        assert word in text
