"""docs/benchmarks/voice.md says of what a study says what the kept results say; counts by hand."""

import numpy as np
import pytest
from benchmarks import known, voice, voice_tables

NAN = float("nan")


def raw(seed, *, expected, gain=(0.2, 0.1), verdict="go on", true=1.0, **others):
    """A row as `benchmarks.voice` makes it: the spread of returns is 2."""
    return {
        "task": "robot",
        "seed": seed,
        "n": 16,
        "true": true,
        "true_draw": 0.5,
        "top": 3.0,
        "expected": expected,
        "evaluated": (0.4, 0.3, 0.45),
        "forecast": (gain[0], 0.0, 0.15),
        "forecast_draw": (0.0, NAN, NAN),
        "gain": gain[1],
        "gain_draw": 0.1,
        "spread": 2.0,
        "verdict": verdict,
        "best": [(True, False), (False, True), (True, True)],
        "others": [],
        **others,
    }


@pytest.fixture
def told():
    """The truth is held, lies above an even interval, lies above any, and is not said."""
    shifted = [("distribution", 0.5, 1.0, 0.0, -1.0, 1.0, 0.5), ("point", 2.0, 0.0, 0, NAN, NAN, 0)]
    rows = [
        raw(1, expected=(1.0, 0.8, 1.2), verdict="stop", true=2.5, others=shifted),
        raw(1, expected=(0.9, 0.85, 1.3), gain=(0.4, 0.3), others=shifted),
        raw(2, expected=(0.5, 0.4, 0.6)),
        raw(3, expected=(NAN, NAN, NAN), gain=(0.01, 9.0)),
    ]
    return voice_tables.told_of("today", rows)


def test_every_task_has_results():
    assert set(voice_tables.read()) == set(voice.TASKS)


def test_intervals_that_hold_are_counted(told):
    assert [row.held for row in told.rows] == ["001-", "100-", "001-", "-00-"]
    assert voice_tables.held(told.rows, "mean policy") == (1, 3)
    assert voice_tables.even(told.rows, "mean policy") == (0, 3)
    assert voice_tables.held(told.rows, "a draw's gain") == (0, 0)
    assert voice_tables.share(1, 4) == "25 ± 22"
    assert voice_tables.share(0, 0) == "–"
    assert told.best == [8, 8, 12]
    wide = [(0.4 + 0.1 + 0.2) / 6, (0.4 + 0.45 + 0.2) / 6, ((1.5**2 + 0.1**2 + 0.5**2) / 12) ** 0.5]
    assert told.wide["mean policy"] == pytest.approx(wide, rel=1e-4)


def test_what_was_said_over_what_came_is_a_ratio_of_sums(told):
    assert voice_tables.ratio(told.rows) == "–"  # fewer than ten
    rows = [row._replace(seed=i) for i, row in enumerate(4 * told.rows)]
    said, came = np.array([0.2, 0.4, 0.2] * 4), np.array([0.1, 0.3, 0.1] * 4)
    left = [(said.sum() - s) / (came.sum() - c) for s, c in zip(said, came, strict=True)]
    error = (11 / 12 * np.sum((left - np.mean(left)) ** 2)) ** 0.5
    assert voice_tables.ratio(rows) == f"{0.8 / 0.5:.2f} ± {error:.2f} (12)"
    lost = [row._replace(came=-0.001) for row in rows]
    assert voice_tables.ratio(lost).endswith("/ -0.001 of the spread (12)")


def test_regrets_are_told_apart_by_what_was_advised(told):
    assert voice_tables.regret(told.rows, "stop") == "–"
    assert voice_tables.regret(3 * told.rows, "go on").startswith("2 ± 0 (9)")
    three = 3 * told.rows
    assert voice_tables.stops_lower({"robot": told._replace(rows=three)}) == (1, 1)


def test_candidates_are_counted_by_kind_and_shift(told):
    assert told.others == {"distribution 0.5 1": [2, 2, 2], "point 2 0": [2, 0, 0]}
    assert "| distribution | 0.5 | 1 | 100% | 100 ± 0 |" in voice_tables.others_table(
        {"robot": told}
    )


def test_a_task_below_is_named(told):
    words = voice_tables.below({"robot": told})
    assert "Mean policy: robot 33 ± 27" in words
    assert "a draw's gain: none" in words


def test_what_is_kept_is_what_a_study_said(tmp_path, monkeypatch):
    """A real study, up to its first move after 15 results; the same content has the same bytes."""
    monkeypatch.setattr(voice, "COUNTS", (15,))
    rows = voice.rows(("robot", 5))
    place = tmp_path / "kept.json.gz"
    voice_tables.keep(rows, "today", place)
    found = voice_tables.read(place)["robot"]
    (row,) = found.rows
    (said,) = rows
    assert row.said == pytest.approx(said["forecast"][0] / said["spread"], rel=1e-4)
    assert row.came_draw == pytest.approx(said["gain_draw"] / said["spread"], rel=1e-4)
    assert row.regret == pytest.approx(known.MADE_WITH["robot"].top - said["true"], rel=1e-4)
    inside = said["expected"][1] <= said["true"] <= said["expected"][2]
    assert row.held[0] == str(int(inside))
    before = place.read_bytes()
    voice_tables.keep(rows, "today", place)
    assert place.read_bytes() == before
