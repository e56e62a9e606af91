"""A part of the user's that is another of the same name: it is noticed before it makes a move."""

import jax.numpy as jnp
import numpy as np
import pytest
from own_families import ROUND_MOVING, rounded, stretched_round

import recoup
from recoup.study.moves import settling
from recoup.study.study import Study

BATCH = 6


def mover(length, window=None):
    def step(xp, seen, rho, drift):
        drift = 0.5 * drift + length * (seen.weights * seen.valid) @ seen.theta / 100
        return rho.stretched(xp, drift, 0 * drift, 1e-3), drift

    return recoup.Mover("mine", step, init=lambda xp, rho: xp.zeros_like(rho.mean), window=window)


def baseline(share):
    def mine(earned, scores):
        return share * jnp.max(jnp.where(earned.valid, earned.returns, -jnp.inf))

    return mine


def weighting(power):
    def mine(d):
        return power * (d.target - d.mixture)

    return mine


def update(length):
    def step(estimate, rho, memory):
        here = estimate(rho)
        size = jnp.sqrt(sum(jnp.sum(g**2) for g in here.gradient))
        eta, tau = (x + length * g / size for x, g in zip(rho, here.gradient, strict=True))
        return type(rho)(eta, jnp.maximum(tau, 0.05)), memory + 1, here

    return recoup.Update(init=lambda rho: jnp.zeros(()), step=step)


def utility(power):
    def mine(xp, omega, returns):
        return omega * (1 + returns) ** power

    return mine


def family(wider):
    def stretched(rho, delta, log, least):
        return stretched_round(rho, delta, wider * log, least)

    return rounded(**{**ROUND_MOVING, "stretched": stretched})


PARTS = {  # the part, another of its name, what is called for beside it, and how it is named
    "mover": ({"method": mover(1.0)}, {"method": mover(-1.0)}, None, "method=mine"),
    "window": ({"method": mover(1.0, 1)}, {"method": mover(2.0, 1)}, None, "method=mine"),
    "baseline": ({"baseline": baseline(0.0)}, {"baseline": baseline(2.0)}, "mis-pgpe-ob", None),
    "weighting": (
        {"weighting": weighting(1.0)},
        {"weighting": weighting(0.2)},
        "mis-pgpe-ob",
        None,
    ),
    "update": ({"update": update(0.1)}, {"update": update(0.4)}, "mis-pgpe-ob", "update=Update"),
    "utility": ({"utility": utility(1.0)}, {"utility": utility(4.0)}, "cem", None),
    "family": ({"family": family(1.0)}, {"family": family(0.5)}, "recoup", "family=round"),
}
EACH = pytest.mark.parametrize("case", PARTS)


def told(study, batches=1):
    for _ in range(batches):
        for trial in study.ask(BATCH):
            study.tell(trial.id, -float(np.sum((trial.theta - [1.0, -2.0]) ** 2)))


def made(path, case, batches=2):
    """A study by a part; what is given to go on with it, and with another, and its name."""
    part, other, method, name = PARTS[case]
    how = {"method": method} if method else {}
    with Study.open(path, dim=2, batch=BATCH, **how, **part) as study:
        told(study, batches)
    return part, other, name or f"{case}=mine"


@EACH
def test_the_same_part_goes_on_without_a_word(tmp_path, case):
    part, _, _ = made(tmp_path / "s.db", case)
    for _ in range(2):
        with Study.open(tmp_path / "s.db", **part) as study:
            told(study)
            assert study.amend(2, 1.0 + len(study)).moves == list(
                range(1, len(study.history()) + 1)
            )
    with Study.open(tmp_path / "s.db", **part) as study:
        told(study)


@EACH
def test_another_part_of_the_name_is_warned_of_once_and_amends_nothing(tmp_path, case):
    part, other, name = made(tmp_path / "s.db", case)
    with Study.open(tmp_path / "s.db", **other) as study:
        trials, before = study.ask(BATCH), study.mean
        for trial in trials[:-1]:
            study.tell(trial.id, 1.0 * trial.id)
        words = f"the {name} that was given is not the one that made move 2 of .*`fork`"
        with pytest.warns(UserWarning, match=words):
            study.tell(trials[-1].id, 2.0)
        assert not np.array_equal(study.mean, before)
        told(study)
        assert study.amend(study.ask()[0].id - 1, 3.0).moves == [4]  # its own
        for dry in (True, False):
            words = f"not amended: the {name} that was given .* move [12] of"  # 1 may not show it
            with pytest.raises(recoup.InputError, match=words):
                study.amend(1, 3.0, dry_run=dry)
        assert study.trials()[0].value != 3.0
        with study.fork(tmp_path / "fork.db") as fork:
            told(fork)
            fork.amend(1, 3.0)
    with Study.open(tmp_path / "s.db", **other) as study:  # the newest is its own by now
        told(study)
        with pytest.raises(recoup.InputError, match="not amended"):
            study.amend(BATCH + 1, 3.0)
    assert part.keys() == other.keys()


def test_a_move_that_waits_is_not_made_by_another_as_the_study_is_opened(tmp_path):
    path = tmp_path / "s.db"
    part, other, _ = made(path, "mover")
    with Study.open(path) as study:
        told(study)
    with pytest.warns(UserWarning, match="is not the one that made move 2"):
        study = Study.open(path, **other)
    with study:
        assert len(study.history()) == 2
    with Study.open(path, **part) as study:
        assert len(study.history()) == 3


def test_what_is_ours_is_not_looked_at_nor_what_is_read_or_new(tmp_path, monkeypatch):
    looked = []
    found = settling.apart
    monkeypatch.setattr(settling, "apart", lambda *x: looked.append(1) or found(*x))
    with Study.open(tmp_path / "ours.db", dim=2, batch=BATCH) as study:
        told(study, 2)
    with Study.open(tmp_path / "ours.db") as study:
        told(study)
    part, other, _ = made(tmp_path / "s.db", "mover")
    with Study.open(tmp_path / "s.db") as study:
        told(study)
    with Study.open(tmp_path / "s.db", **other, read_only=True) as study:
        assert study.until_move() == 0
    assert not looked
    with Study.open(tmp_path / "s.db", **part) as study:
        told(study, 2)
        assert len(study.history()) == 5
    assert looked == [1]


def test_a_move_that_cannot_be_made_again_does_not_stand_in_the_way(tmp_path):
    path = tmp_path / "s.db"
    made(path, "mover")
    longer = mover(1.0)._replace(init=lambda xp, rho: xp.zeros(7))
    with Study.open(path, method=longer) as study:
        assert len(study.history()) == 2
        with pytest.raises(recoup.InputError, match="another structure"):
            told(study)


def test_nor_does_a_part_that_fails_with_whatever_it_is_until_it_has_to_move(tmp_path):
    def fails(xp, seen, rho, memory):
        raise LookupError("no such gain")

    path = tmp_path / "s.db"
    made(path, "mover")
    with Study.open(path, method=mover(1.0)._replace(step=fails)) as study:
        assert len(study.history()) == 2
        with pytest.raises(LookupError, match="no such gain"):
            told(study)


def test_a_run_that_is_resumed_with_another_part_says_so(tmp_path):
    how = {"batch": 4, "out": tmp_path / "run", "seed": 1}
    recoup.train("toy", mover(1.0), iterations=2, **how)
    recoup.resume(tmp_path / "run", iterations=3, method=mover(1.0))
    with pytest.warns(UserWarning, match="method=mine that was given is not the one that made mov"):
        recoup.resume(tmp_path / "run", iterations=4, method=mover(-1.0))
    run = recoup.load(tmp_path / "run", method=mover(-1.0))
    with run.study as study, pytest.raises(recoup.InputError, match="trial 1 was not amended"):
        study.amend(1, 3.0)
