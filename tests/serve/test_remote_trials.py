"""Episodes as a server takes them; what is none is refused in a sentence, before it is sent."""

import numpy as np
import pytest

from recoup.checks import InputError
from recoup.core.families.trajectory import Trajectory
from recoup.serve.remote_trials import episode

ROWS = {"features": [[1.0, 2.0]] * 3, "actions": [[1.0]] * 3, "rewards": [1.0, 2.0, 3.0]}


def test_what_lies_after_its_steps_is_not_sent():
    whole = Trajectory(*(np.array(ROWS[key]) for key in ROWS), steps=np.array(2))
    assert episode(whole) == {**{key: rows[:2] for key, rows in ROWS.items()}, "steps": 2}
    assert episode(ROWS) == ROWS


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"features": 1.0}, "must be made of arrays"),
        ({"rewards": None}, "must be made of arrays"),
        ({"features": [[1, 2], [3]]}, "must be made of arrays"),
        ({"steps": np.array([3, 4])}, "steps of a trajectory must be a whole number"),
        ({"steps": [1, 2]}, "steps of a trajectory must be a whole number"),
        ({"steps": 0}, "steps of a trajectory must be a whole number"),
    ],
)
def test_what_is_no_episode_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        episode({**ROWS, **wrong})
