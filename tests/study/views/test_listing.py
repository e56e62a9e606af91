"""Large studies are listed without work that grows row by row."""

import numpy as np
import pytest

from recoup.__main__ import main
from recoup.store import codec
from recoup.study.exchange.tables import rows_of
from recoup.study.space.parameters import to_user
from recoup.study.study import Study
from recoup.study.views.listing import trials as listed

LOOKS = {
    "trials": lambda study: study.trials(),
    "waiting": lambda study: study.waiting(),
    "pending": lambda study: study.pending(),
    "export": lambda study: list(rows_of(study.opened)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_bounds_are_undone_for_many_trials_at_once(tmp_path, monkeypatch, look):
    calls = []

    def counted(parameters, latent):
        calls.append(latent.size)
        return to_user(parameters, latent)

    with Study.open(tmp_path / "s.db", params={"a": (0, 1), "b": (1, 9)}, batch=999) as study:
        trials = study.ask(300)
        study.tell([t.id for t in trials[:150]], [float(t.theta[0]) for t in trials[:150]])
        monkeypatch.setattr("recoup.study.reader.opened.to_user", counted)
        LOOKS[look](study)
        assert sum(calls) >= 2 * 150
        assert len(calls) <= 2
        np.testing.assert_allclose([t.theta for t in study.trials()], [t.theta for t in trials])


def test_the_last_trials_are_read_without_the_others(tmp_path, monkeypatch, capsys):
    with Study.open(tmp_path / "s.db", dim=2, batch=999) as study:
        study.ask(300)
        assert [t.id for t in listed(study.opened, 297)] == [298, 299, 300]
    read, asked_of = [], codec.asked_of
    monkeypatch.setattr(codec, "asked_of", lambda row: read.append(row) or asked_of(row))
    monkeypatch.setattr(
        "sys.argv", ["recoup", "study", "trials", f"{tmp_path}/s.db", "--last", "3"]
    )
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "The newest 3 of 300 trials" in capsys.readouterr().out
    assert len(read) < 10
