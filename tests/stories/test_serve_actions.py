"""A study that explores in actions, served: episodes are told over HTTP as in the library."""

import numpy as np
import pytest
from calls import Calls
from serving import Server
from waiting import until

import recoup
from recoup.study.study import Study

ONE = "/v1/studies/walk"
HOW = {"dim": 4, "actions": 2, "horizon": 5, "method": "iw-reinforce-ob", "batch": 3, "seed": 1}


def episode(i, steps=4):
    """An episode that ended early: what lies after is nothing."""
    rng = np.random.default_rng(i)
    rows = [rng.normal(size=shape) for shape in ((5, 2), (5, 2), (5,))]
    for one in rows:
        one[steps:] = np.nan
    return recoup.Trajectory(*rows, steps)


@pytest.fixture
def server(tmp_path):
    Study.open(tmp_path / "walk.db", **HOW).close()
    with Server(tmp_path, tmp_path / "walk.db") as started:
        yield started


def test_the_distribution_moves_as_that_of_the_library_does(server, tmp_path):
    with (
        recoup.connect(server.address) as there,
        Study.open(tmp_path / "here.db", **HOW) as here,
    ):
        assert there.facts()["space"] == "actions"
        for i in range(6):
            (asked,), (trial,) = there.ask(), here.ask(1)
            assert asked.id == trial.id
            np.testing.assert_array_equal(asked.std, trial.std)
            np.testing.assert_array_equal(asked.theta, trial.theta)
            there.tell(asked.id, trajectory=episode(i))
            here.tell(trial.id, trajectory=episode(i))
            until(lambda done=(i + 1) // 3: there.facts()["moves"] == done)  # `ask` waits 2 s
        assert [one.value for one in there.trials()] == [one.value for one in here]
    server.stop()
    with Study.open(tmp_path / "walk.db") as found, Study.open(tmp_path / "here.db") as wanted:
        assert len(found.distributions()) == 3
        np.testing.assert_array_equal(found.mean, wanted.mean)


def test_several_are_told_at_once_and_put_right(server):
    with recoup.connect(server.address) as study:
        ids = [trial.id for trial in study.ask(2)]
        study.tell(ids, trajectory=[episode(1), episode(2)])
        before = study.trials()[0].value
        study.amend(1, trajectory=episode(3), why="the wrong log")
        assert study.trials()[0].value != before
        study.amend(1, trajectory="before")
        assert study.trials()[0].value == before
        study.tell(1, trajectory=episode(1))  # told again, it changes nothing
        with pytest.raises(recoup.InputError, match="told"):
            study.tell(1, trajectory=episode(4))


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"return": 1.0}, "this method explores in action space: tell a `trajectory=...`"),
        ({"trajectory": {"features": [], "actions": []}}, "needs the field 'rewards'"),
        (
            {"trajectory": {"features": [[1]], "actions": [[1, 1]], "rewards": [1]}},
            "features of a trajectory must have shape",
        ),
        (
            {"trajectory": {"features": [[1, 1]], "actions": [[1, 1], [1]], "rewards": [1]}},
            "must be made of arrays of numbers",
        ),
        (
            {
                "trajectory": {
                    "features": [[1, 1]],
                    "actions": [[1, 1]],
                    "rewards": [1],
                    "steps": 2,
                }
            },
            "steps of a trajectory must be a whole number in 1..1",
        ),
    ],
)
def test_what_is_no_episode_is_refused_in_a_sentence(server, told, sentence):
    calls = Calls(server)
    calls.post(f"{ONE}/ask", {})
    answered = calls.post(f"{ONE}/trials/1/tell", told)
    assert answered.status == 422
    assert sentence in answered.said["detail"]
    assert calls.get(ONE).said["counts"]["pending"] == 1


def test_a_study_of_parameters_takes_no_episode(tmp_path):
    with Study.open(tmp_path / "walk.db", dim=2) as study:
        study.ask(1)
    with Server(tmp_path, tmp_path / "walk.db") as server:
        body = {"trajectory": {"features": [[1]], "actions": [[1]], "rewards": [1]}}
        answered = Calls(server).post(f"{ONE}/trials/1/tell", body)
        assert answered.status == 422
        assert "a trajectory is for methods that explore in action space" in answered.said["detail"]
