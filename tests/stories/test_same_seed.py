"""The same seed gives the same run within a minor version, as docs/lookup/versions.md promises.

What the first moves of the default method came to is written down, by minor version. Whoever
changes them on purpose writes a new minor version, its numbers here, and a line in CHANGELOG.
"""

import numpy as np

import recoup

CAME = {  # version -> the mean policy, kp and kd, after 12 and after 24 trials
    "0.2": [(34.2107244, 0.170403304), (50.2964554, 0.458216425)],
}


def earned(kp, kd):
    return -abs(kp - 60) / 20 - (kd - 0.7) ** 2


def test_the_first_moves_are_those_of_this_minor_version(tmp_path):
    found = []
    params = {"kp": (1, 200, "log"), "kd": (0, 5)}
    with recoup.Study.open(tmp_path / "gains.db", params=params, seed=0) as study:
        for _ in CAME["0.2"]:
            for _ in range(12):
                trial = study.ask()[0]
                study.tell(trial.id, earned(**trial.params))
            found.append(tuple(study.mean_policy.values()))
    came = CAME[".".join(recoup.__version__.split(".")[:2])]
    np.testing.assert_allclose(found, came, rtol=1e-6)
