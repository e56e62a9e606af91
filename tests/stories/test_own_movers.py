"""A method of a user's that is one mover: in a search, a study, a run and a comparison."""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from own_families import ROUND_MOVING, Round, rounded
from waiting import LIMIT

import recoup
from recoup.compare.entrants import batch_of, entrant_of
from recoup.core.families.full import Full, full_gaussian
from recoup.engine import plain
from recoup.engine.methods import METHODS, Method, known_method

TOP = np.array([1.0, -0.5, 0.3])


class Memory(NamedTuple):
    drift: Any
    beside: Any  # a mapping with a tuple in it


@dataclass(frozen=True)
class Momentum:
    """Along (1/n) sum w R s of the diagonal Gaussian, by a length that is given, with momentum.

    Written out here once more: nothing of the package computes a score or a norm.
    """

    keep: float = 0.0
    length: float = 0.1
    name: str = "momentum"
    window: int | None = None

    def init(self, xp, rho):
        return Memory(xp.zeros(2 * rho.mean.shape[0]), {"n": (xp.zeros(()), None)})

    def step(self, xp, seen, rho, memory):
        away = seen.theta - rho.mean
        by_std = (away**2 - rho.std**2) / rho.std**3
        scores = xp.concatenate([away / rho.std**2, by_std], axis=1)
        worth = xp.where(seen.valid, seen.weights * seen.returns, 0.0)
        gradient = worth @ scores / xp.maximum(xp.sum(seen.valid), 1)
        drift = self.keep * memory.drift + gradient / xp.sqrt(xp.sum(gradient**2))
        mean, std = xp.split(xp.concatenate([rho.mean, rho.std]) + self.length * drift, 2)
        later = Memory(drift, {"n": (memory.beside["n"][0] + 1, None)})
        return type(rho)(mean, xp.maximum(std, 0.05)), later, {"moves": later.beside["n"][0]}


def searched(method, batches=4, **settings):
    search = recoup.search(method, dim=3, batch=8, **settings)
    state = search.init(jax.random.key(0), mean=0.3)
    for i in range(batches):
        theta, state = search.ask(jax.random.key(i), state)
        returns = 5 - jnp.sum((theta - TOP) ** 2, axis=1)
        state, info = search.tell(jax.random.key(i), state, theta, returns)
    return np.concatenate([state.mean, state.std]), info


def worked(study, moves, fails=()):
    for i in range(moves):
        for trial in study.ask(8):
            if (i, trial.id % 8) in fails:
                study.tell(trial.id, failed="fell")
            else:
                study.tell(trial.id, 5 - float(np.sum((trial.theta - TOP) ** 2)))
    return np.concatenate([study.mean, study.std])


def studied(path, method, moves=4, fails=(), **settings):
    with recoup.Study.open(path, dim=3, batch=8, method=method, mean=0.3, **settings) as study:
        return worked(study, moves, fails)


@pytest.mark.parametrize("window", [None, 1, 2])
@pytest.mark.parametrize("weighting", ["none", "own", "balance"])
def test_a_mover_that_ascends_the_gradient_moves_as_the_method_that_does(window, weighting):
    mine, info = searched(Momentum(), window=window, weighting=weighting)
    ours, other = searched(Method("plain", window=window, weighting=weighting))
    np.testing.assert_allclose(mine, ours, rtol=2e-5)
    np.testing.assert_allclose(info.objective, other.objective, rtol=2e-5)
    assert info.notes == {"moves": 4}


@pytest.mark.parametrize("failure", ["worst", -3.0])
def test_a_study_moves_as_the_method_that_does_the_same(tmp_path, failure):
    how = {"fails": {(0, 3), (2, 5), (2, 6)}, "failure": failure}
    mine = studied(tmp_path / "a.db", Momentum(), **how)
    ours = studied(tmp_path / "b.db", Method("plain", weighting="balance"), **how)
    np.testing.assert_allclose(mine, ours, rtol=1e-9)


def test_what_failed_is_neither_valid_nor_weighed_where_it_is_left_out(tmp_path):
    found = []

    def step(xp, seen, rho, memory):
        found.append(seen)
        return rho, memory

    studied(tmp_path / "s.db", recoup.Mover("looks", step), moves=2, fails={(0, 3), (0, 5)})
    seen = found[0]  # once eight have a return
    assert list(np.flatnonzero(~seen.valid)) == [2, 4]
    np.testing.assert_allclose(seen.weights, seen.valid)
    np.testing.assert_array_equal(seen.returns[~seen.valid], 0.0)


def test_the_newest_samples_are_those_of_the_largest_order(tmp_path):
    seen_by = []

    def look(order, valid):
        seen_by.append(np.array(order)[np.array(valid)])

    def step(xp, seen, rho, memory):
        if xp is np:
            look(seen.order, seen.valid)
        else:  # as it is computed, one tell after another
            jax.debug.callback(look, seen.order, seen.valid)
        return rho, memory

    studied(tmp_path / "s.db", recoup.Mover("looks", step))
    assert [list(order) for order in seen_by] == [
        [i for i in range(move) for _ in range(8)] for move in range(1, 5)
    ]
    looks = recoup.search(recoup.Mover("looks", step), dim=3, batch=8, window=2)
    state = looks.init(jax.random.key(0))
    seen_by.clear()
    for i in range(3):
        theta, state = looks.ask(jax.random.key(i), state)
        state, _ = looks.tell(jax.random.key(i), state, theta, theta[:, 0])
        jax.effects_barrier()
        assert len(seen_by) == i + 1
    newest = [order == order.max() for order in seen_by]
    assert [np.sum(each) for each in newest] == [8, 8, 8]
    assert [len(each) for each in newest] == [8, 16, 16]


@pytest.mark.parametrize("largest", [plain.NUMPY_NUMBERS, 0], ids=["plain", "compiled"])
def test_what_is_told_late_is_as_old_as_the_distribution_that_drew_it(
    tmp_path, monkeypatch, largest
):
    """And what is imported is older than all that the study drew."""
    monkeypatch.setattr(plain, "NUMPY_NUMBERS", largest)
    seen_by = []

    def keep(*seen):
        seen_by.append([np.array(x) for x in seen])

    def step(xp, seen, rho, memory):
        look = keep if xp is np else lambda *x: jax.debug.callback(keep, *x)
        look(seen.theta, seen.order, seen.valid)
        return rho.stretched(xp, 0 * rho.mean + 0.1, 0 * rho.mean, 1e-3), memory

    looks = recoup.Mover("looks", step, batch=lambda dim: 4)
    with recoup.Study.open(tmp_path / "s.db", dim=2, method=looks, seed=2) as study:

        def tell(trials):
            study.tell([trial.id for trial in trials], [-1.0] * len(trials))

        first = study.ask(8)
        tell(first[:4])
        held = study.ask(4)
        tell(first[4:])
        drawn = np.random.default_rng(0).normal(size=(3, 2))
        study.import_samples(drawn, np.zeros(3), mean=0.0, std=1.0)
        tell(study.ask(4))
        tell(held)
        study.ask()
        trials = {tuple(row.theta): row.proposal for row in study.trials()}
    jax.effects_barrier()
    theta, order, valid = seen_by[-1]
    assert valid.sum() == 19
    age = {tuple(x): o for x, o in zip(theta[valid], order[valid], strict=True)}
    own = sorted({(trials[x], o) for x, o in age.items() if x not in set(map(tuple, drawn))})
    assert [number for number, _ in own] == sorted(number for number, _ in own)
    assert len(own) == 3
    assert [o for _, o in own] == [1, 2, 3]
    assert {age[tuple(x)] for x in drawn} == {0}


MOMENTUM = Momentum(keep=0.5)


def test_compiled_and_not_a_study_moves_alike_and_may_change_on_the_way(tmp_path, monkeypatch):
    want = studied(tmp_path / "plain.db", MOMENTUM)
    studied(tmp_path / "both.db", MOMENTUM, moves=2)
    monkeypatch.setattr(plain, "NUMPY_NUMBERS", 0)  # as with a million results
    compiled = studied(tmp_path / "compiled.db", MOMENTUM)
    with recoup.Study.open(tmp_path / "both.db", method=MOMENTUM) as study:
        both = worked(study, 2)
        assert [row["notes"]["moves"] for row in study.history()] == [1, 2, 3, 4]
    np.testing.assert_allclose(compiled, want, rtol=1e-9)
    np.testing.assert_allclose(both, want, rtol=1e-9)
    monkeypatch.undo()
    with recoup.Study.open(tmp_path / "compiled.db", method=MOMENTUM) as study:
        np.testing.assert_allclose(worked(study, 1)[:3], studied_on(tmp_path, want), rtol=1e-9)


def studied_on(tmp_path, want):
    with recoup.Study.open(tmp_path / "plain.db", method=MOMENTUM) as study:
        np.testing.assert_array_equal(np.concatenate([study.mean, study.std]), want)
        return worked(study, 1)[:3]


def test_a_mover_needs_no_compiler_and_one_of_jax_says_so(tmp_path):
    program = (
        "import sys, numpy as np, recoup\n"
        "step = lambda xp, seen, rho, memory: (rho.stretched(xp, 0.1 + 0 * rho.mean, "
        "0 * rho.log_spread(xp), 1e-3), memory)\n"
        "mine = recoup.Mover('drifts', step)\n"
        "with recoup.Study.open('s.db', dim=2, batch=4, method=mine) as study:\n"
        "    for trial in study.ask(4):\n"
        "        study.tell(trial.id, 1.0 * trial.id)\n"
        "    np.testing.assert_allclose(study.mean, 0.1)\n"
        "    study.recommend(), study.evaluate(), study.replay(), study.fork('f.db').close()\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=LIMIT)

    def step(xp, seen, rho, memory):
        assert xp is jnp
        return rho._replace(eta=rho.eta + jnp.zeros(3).at[0].set(1.0)), memory

    found = studied(tmp_path / "jax.db", recoup.Mover("jax", step, compiled=True), moves=2)
    np.testing.assert_allclose(found[:3], [2.3, 0.3, 0.3])


@pytest.mark.parametrize("family", ["full", Round])
def test_a_mover_takes_any_family(tmp_path, family):
    drawn = recoup.family(
        "round",
        start=lambda mean, std: Round(mean, jnp.log(std[:1])),
        log_density=lambda rho, theta: jnp.sum(
            -0.5 * ((theta - rho.centre) / jnp.exp(rho.log_width)) ** 2 - rho.log_width
        ),
    )

    def step(xp, seen, rho, memory):
        total = xp.maximum(xp.sum(seen.weights), 1e-9)
        best = seen.weights @ seen.theta / total
        if isinstance(rho, Full):
            return rho.refitted(xp, rho.whitened(xp, best[None])[0], xp.eye(3)), memory
        return rho._replace(centre=best), memory

    given = family if family == "full" else drawn
    mine, _ = searched(recoup.Mover("mean", step), family=given, batches=2)
    assert np.isfinite(mine).all()
    found = studied(tmp_path / "s.db", recoup.Mover("mean", step), family=given, moves=2)
    assert np.isfinite(found).all()


def test_a_candidate_is_tried_twice_where_the_mover_wants_it(tmp_path):
    @dataclass(frozen=True)
    class Curious(Momentum):
        def wants_repeat(self, memory):
            return memory.beside["n"][0] == 2

    studied(tmp_path / "s.db", Curious())
    with recoup.Study.open(tmp_path / "s.db", method=Curious()) as study:
        kinds = [trial.kind for trial in study.trials()]
        assert [i for i, kind in enumerate(kinds) if kind == "repeat"] == [17]
    search = recoup.search(Curious(), dim=3, batch=4)
    state, twice = search.init(jax.random.key(0)), []
    for i in range(4):
        theta, state = search.ask(jax.random.key(i), state)
        twice.append(bool(jnp.all(theta[0] == theta[1])))
        state, _ = search.tell(jax.random.key(i), state, theta, theta[:, 0])
    assert twice == [False, False, True, False]


def test_a_study_goes_on_once_its_mover_is_given_again(tmp_path):
    path = tmp_path / "s.db"
    whole = studied(tmp_path / "whole.db", MOMENTUM, moves=3)
    studied(path, MOMENTUM, moves=2)
    with recoup.Study.open(path) as study:
        worked(study, 1)
        assert len(study.history()) == 2
        (due, *_) = study.diagnostics()["advice"]
        assert "It needs method=momentum" in due
        with pytest.raises(recoup.InputError, match=r"Study.open\(..., method=...\)"):
            study.replay()
    with recoup.Study.open(path, method=MOMENTUM) as study:
        study.ask()
        np.testing.assert_array_equal(np.concatenate([study.mean, study.std]), whole)
        assert study.method.name == "momentum"
        replayed = study.replay()
        np.testing.assert_array_equal(np.concatenate(replayed[-1][2:4]), whole)
        study.amend(2, 4.0)
        assert len(study.history()) == 3
    with pytest.raises(recoup.InputError, match="made with method='momentum', not 'cem'"):
        recoup.Study.open(path, method="cem")
    other = recoup.Mover("other", lambda xp, seen, rho, memory: (rho, memory))
    with pytest.raises(recoup.InputError, match="made with method='momentum', not 'other'"):
        recoup.Study.open(path, method=other)


OTHERS = {"failure": "censored", "window": 3, "family": "diagonal"}


@pytest.mark.parametrize(
    "beside",
    [{"failure": -20.0}, {"failure": "worst"}, {"window": 2}, {"family": "full"}],
    ids=str,
)
def test_what_was_given_beside_a_mover_is_left_out_when_it_goes_on(tmp_path, beside):
    path, ((key, value),) = tmp_path / "s.db", beside.items()
    recoup.Study.open(path, dim=3, method=MOMENTUM, **beside).close()
    with recoup.Study.open(path, method=MOMENTUM) as study:
        assert getattr(study.method, key) == value
    recoup.Study.open(path, method=MOMENTUM, **beside).close()
    with pytest.raises(recoup.InputError, match=f"was made with {key}="):
        recoup.Study.open(path, method=MOMENTUM, **{key: OTHERS[key]})


def test_what_was_given_beside_a_row_is_given_again_when_it_goes_on(tmp_path):
    """A row says every setting: what differs from it is another method."""
    row, path = Method("mine", weighting="own"), tmp_path / "s.db"
    recoup.Study.open(path, dim=3, method=row, failure=-20.0).close()
    with pytest.raises(recoup.InputError, match="give failure beside your row to go on"):
        recoup.Study.open(path, method=row)
    recoup.Study.open(path, method=row, failure=-20.0).close()
    with pytest.raises(recoup.InputError, match="was made with weighting='own', not 'none'"):
        recoup.Study.open(path, method=Method("mine"), failure=-20.0)


def test_a_run_is_made_resumed_and_loaded_with_a_mover(tmp_path):
    run = recoup.train("toy", MOMENTUM, iterations=2, batch=4, out=tmp_path / "run", seed=1)
    assert run.history[-1].episodes == 8
    more = recoup.resume(tmp_path / "run", iterations=4, method=MOMENTUM)
    whole = recoup.train("toy", MOMENTUM, iterations=4, batch=4, out=tmp_path / "whole", seed=1)
    np.testing.assert_array_equal(more.mean, whole.mean)
    assert recoup.load(tmp_path / "run", method=MOMENTUM).missing == {}
    with pytest.raises(recoup.InputError, match=r"resume\(run, method=...\)"):
        recoup.resume(tmp_path / "run", iterations=6)


def test_a_comparison_takes_a_mover_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "my_movers.py").write_text(
        "import recoup\n"
        "stays = recoup.Mover('stays', lambda xp, seen, rho, memory: (rho, memory),\n"
        "                     batch=lambda dim: 2 * dim)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    entrant = entrant_of("my_movers:stays:weighting=own")
    assert (entrant.peer, batch_of(entrant, 3, None)) == (None, 6)
    with pytest.raises(recoup.InputError, match="'epsilon' is not a setting of my_movers:stays"):
        entrant_of("my_movers:stays:epsilon=1")
    words = ["compare", "--task", "toy", "--method", "my_movers:stays", "--runs", "2"]
    words += ["--episodes", "6", "--workers", "1", "--out", "out"]
    for _ in range(2):  # the second finds every run
        done = subprocess.run(
            [sys.executable, "-m", "recoup", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stderr
    assert "runs to make" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "cem"}, "cem is a method of ours: give your mover another name"),
        ({"name": 3}, "the name of a mover must be a text"),
        ({"name": "\x1b[2J"}, "the name of a mover must be printable"),
        ({"init": 3}, "init of mine must be a function"),
        ({"window": 0}, "window"),
    ],
)
def test_what_cannot_be_a_mover_is_refused(given, words):
    made = {"name": "mine", "step": lambda *_: None, **given}
    with pytest.raises(recoup.InputError, match=words):
        recoup.search(recoup.Mover(**made), dim=2, batch=4)


def test_a_memory_by_keys_of_several_kinds_is_refused_in_a_sentence(tmp_path):
    def init(xp, rho):
        return {"drift": xp.zeros(3), 1: xp.zeros(())}

    mixed = recoup.Mover("mixed", lambda xp, seen, rho, memory: (rho, memory), init=init)
    with pytest.raises(recoup.InputError, match="keys of a dict in a memory must be texts"):
        recoup.Study.open(tmp_path / "s.db", dim=3, method=mixed)
    assert not (tmp_path / "s.db").exists()


def test_a_mover_has_the_settings_of_what_draws_and_weighs():
    row = known_method(MOMENTUM)
    assert (row.name, row.weighting, row.window) == ("momentum", "balance", None)
    assert row.name not in METHODS
    with pytest.raises(recoup.InputError, match="'epsilon' is not a setting of momentum"):
        recoup.search(MOMENTUM, dim=2, batch=4, epsilon=0.1)
    listed = type("Listed", (list,), {"name": "listed", "step": len})
    with pytest.raises(recoup.InputError, match="a mover must be a function, or an object"):
        recoup.search(listed(), dim=2, batch=4)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda xp, seen, rho, memory: rho, r"must give \(rho, memory\) or"),
        (lambda xp, seen, rho, memory: (tuple(rho), memory), "a rho like the one it was given"),
        (lambda xp, seen, rho, memory: (rho._replace(eta=rho.eta[:1]), memory), "same shapes"),
        (lambda xp, seen, rho, memory: (rho, memory, {"x": rho.eta}), "names to numbers"),
        (lambda xp, seen, rho, memory: (rho, memory, 3.0), "names to numbers"),
        (lambda xp, seen, rho, memory: (rho, (1.0,)), "changed its structure"),
        (lambda xp, seen, rho, memory: (rho._replace(tau=-rho.tau), memory), "spread that wrong"),
    ],
)
def test_what_a_step_must_not_give_moves_nothing_and_loses_nothing(tmp_path, step, words):
    wrong = recoup.Mover("wrong", step)
    with recoup.Study.open(tmp_path / "s.db", dim=3, batch=8, method=wrong) as study:
        trials = study.ask(8)
        for trial in trials[:-1]:
            study.tell(trial.id, 1.0)
        with pytest.raises(recoup.InputError, match=words):
            study.tell(trials[-1].id, 1.0)
    with recoup.Study.open(tmp_path / "s.db") as study:
        assert len(study.trials()) == 8
        assert study.history() == []


def test_a_memory_that_no_file_can_hold_makes_no_study(tmp_path):
    wordy = recoup.Mover(
        "wordy", lambda xp, seen, rho, memory: (rho, memory), init=lambda xp, rho: {"why": "so"}
    )
    with pytest.raises(recoup.InputError, match=r"\['why'\]"):
        recoup.Study.open(tmp_path / "s.db", dim=2, batch=4, method=wordy)
    assert not (tmp_path / "s.db").exists()


def added_up(name, start, arrays=1):
    """A mover that stays, and counts by `start` from there."""

    def step(xp, seen, rho, memory):
        return rho, tuple(x + start for x in memory), {"at": xp.sum(memory[0])}

    return recoup.Mover(name, step, init=lambda xp, rho: (start + 0 * rho.mean,) * arrays)


def told(study, results):
    for trial in study.ask(results):
        study.tell(trial.id, float(trial.theta[0]))
    return [move["notes"].get("at") for move in study.history()]


def test_a_fork_has_the_mover_that_it_is_given_and_a_memory_of_its_own(tmp_path):
    one, other, longer = added_up("one", 1.0), added_up("other", -5.0), added_up("longer", 2.0, 3)
    with recoup.Study.open(tmp_path / "s.db", dim=3, batch=4, method=one) as study:
        assert told(study, 8) == [3.0, 6.0]
        for name, method, first in (("a", one, 9.0), ("b", other, -15.0), ("c", longer, 6.0)):
            with study.fork(tmp_path / f"{name}.db", method=method) as fork:
                assert told(fork, 4) == [first]
        with study.fork(tmp_path / "again.db") as fork:
            assert told(fork, 4) == [9.0]
        with study.fork(tmp_path / "ours.db", method="recoup") as fork:
            assert len(told(fork, 4)) == 1
            with fork.fork(tmp_path / "back.db", method=one) as back:
                assert told(back, 4) == [3.0]


def test_a_fork_has_the_parts_of_a_row_that_it_is_given(tmp_path):
    def middle(earned, scores):
        return jnp.median(earned.returns)

    row = Method("mine", weighting="balance", baseline=middle)
    with recoup.Study.open(tmp_path / "s.db", dim=3, batch=8, method="mis-pgpe-ob") as study:
        worked(study, 1)
        with study.fork(tmp_path / "f.db", method=row) as fork:
            assert fork.opened.missing == {}


class Widths(NamedTuple):
    """A diagonal Gaussian by logarithms, which answers to nothing but what a family must have."""

    centre: jax.Array
    log_width: jax.Array

    mean = property(lambda self: self.centre)
    std = property(lambda self: jnp.exp(self.log_width))

    def theta(self, noise):
        return self.centre + jnp.exp(self.log_width) * noise


WIDTHS = recoup.family(
    "widths",
    start=lambda mean, std: Widths(jnp.asarray(mean), jnp.log(std)),
    log_density=lambda rho, theta: jnp.sum(
        -0.5 * ((theta - rho.centre) * jnp.exp(-rho.log_width)) ** 2 - rho.log_width
    ),
    whitened=lambda rho, theta: (theta - rho.centre) * jnp.exp(-rho.log_width),
    log_spread=lambda rho: rho.log_width,
    stretched=lambda rho, delta, log, least: Widths(
        rho.theta(delta), jnp.maximum(rho.log_width + log, jnp.log(least).at[:].add(0.0))
    ),
    refitted=lambda rho, delta, variance: Widths(
        rho.theta(delta), rho.log_width + jnp.log(variance) / 2
    ),
    shape="diagonal",
)


def asks_for_all(xp, seen, rho, memory):
    """To the best third, by everything that a rho answers to."""
    level = xp.sort(xp.where(seen.valid, seen.returns, -xp.inf))[-5]
    best = xp.where(seen.valid & (seen.returns >= level), seen.weights, 0.0)
    best = best / xp.maximum(xp.sum(best), 1e-9)
    z = rho.whitened(xp, seen.theta)
    delta = best @ z
    log = 0.2 * (best @ (z - delta) ** 2 - 1) + 0.01 * (memory - rho.log_spread(xp))
    after = rho.stretched(xp, delta, log, 1e-2)
    return after.refitted(xp, 0.1 * delta, 0.5 + 0.5 * xp.exp(log)), memory


ASKS = recoup.Mover("asks", asks_for_all, init=lambda xp, rho: rho.log_spread(xp))


@pytest.mark.parametrize(
    ("own", "ours"),
    [(WIDTHS, "diagonal"), (full_gaussian()._replace(name="as-full"), "full")],
    ids=["diagonal", "full"],
)
def test_a_mover_asks_a_family_of_the_users_as_it_asks_ours(tmp_path, own, ours):
    mine, want = (searched(ASKS, family=family)[0] for family in (own, ours))
    np.testing.assert_allclose(mine, want, rtol=1e-4)
    curious = ASKS._replace(wants_repeat=lambda memory: memory[0] < 1)
    mine = studied(tmp_path / "own.db", curious, family=own)
    want = studied(tmp_path / "ours.db", curious, family=ours)
    np.testing.assert_allclose(mine, want, rtol=1e-9)
    with recoup.Study.open(tmp_path / "own.db", method=curious, family=own) as study:
        assert [trial.kind for trial in study.trials()].count("repeat") == 3
        study.amend(2, 4.0)
        assert len(study.replay()) == 4


def test_a_mover_may_give_the_record_that_the_family_makes(tmp_path):
    def step(xp, seen, rho, memory):
        assert isinstance(rho, Round)
        return Round(rho.whitened(xp, seen.theta)[0], rho.log_width), memory

    found = studied(tmp_path / "s.db", recoup.Mover("own", step), family=rounded(**ROUND_MOVING))
    assert np.isfinite(found).all()


def test_what_a_mover_asks_for_and_the_family_has_not_is_said(tmp_path):
    def step(xp, seen, rho, memory):
        assert not hasattr(rho, "refitted")
        return rho.stretched(xp, 0 * rho.mean, 0 * rho.mean, 1e-3), memory

    words = "asks a rho for `stretched`, which its family 'round' has not.*every result is kept"
    asks, path = recoup.Mover("asks", step), tmp_path / "s.db"
    with pytest.raises(recoup.InputError, match=words):
        searched(asks, family=rounded())
    with pytest.raises(recoup.InputError, match=words):
        studied(path, asks, family=rounded())
    with recoup.Study.open(path, method=asks, family=rounded(**ROUND_MOVING)) as study:
        assert len(study) == study.counts()["ok"] == 8
    first = asks._replace(init=lambda xp, rho: rho.log_spread(xp))
    with pytest.raises(recoup.InputError, match="asks a rho for `log_spread`"):
        studied(tmp_path / "none.db", first, family=rounded())
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("family", ["diagonal", "full", "lowrank"])
def test_a_stretch_along_the_coordinates_suits_every_family(tmp_path, family):
    """As docs/own-parts.md has it: `log [D]` and `variance [D]`."""

    def step(xp, seen, rho, memory):
        log = xp.asarray([0.1, -0.2, 0.3])
        wider = rho.stretched(xp, 0.1 * xp.ones(3), log, 1e-3)
        return wider.refitted(xp, 0 * log, xp.asarray([0.25, 1.0, 4.0])), memory

    mover = recoup.Mover("stretches", step)
    want = [np.full(3, 0.4), np.exp([0.1, -0.2, 0.3]) * [0.5, 1.0, 2.0]]
    found = studied(tmp_path / "s.db", mover, moves=1, family=family)
    np.testing.assert_allclose(found, np.concatenate(want), rtol=1e-6)
    found, _ = searched(mover, batches=1, family=family)
    np.testing.assert_allclose(found, np.concatenate(want), rtol=1e-5)
