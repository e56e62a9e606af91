"""A family that was added, `round`, in every door; run where the package has it."""

import sys

import numpy as np
from scipy import stats

import recoup
from recoup.checks import InputError
from recoup.engine import plain

WORD, METHODS = "round", ("mis-pgpe-ob", "cem")


def earned(theta):
    return -np.sum((theta - 1) ** 2, axis=-1)


def opened(name, method="recoup", **more):
    return recoup.Study.open(name, dim=2, batch=6, method=method, seed=1, family=WORD, **more)


def told(study, moves):
    while study.diagnostics()["moves"] < moves:
        trials = study.ask(6)
        study.tell([t.id for t in trials], [float(earned(t.theta)) for t in trials])
    assert np.ptp(study.std) == 0
    return np.concatenate([study.mean, study.std])


def estimated():
    rng = np.random.default_rng(0)
    theta, drew = rng.normal(size=(40, 2)), np.arange(40) // 20
    how = {"proposals": ([[0.0, 0.0], [0.1, 0.2]], [[1.0] * 2, [1.2] * 2]), "proposal": drew}
    e = recoup.estimate(theta, earned(theta), target=([0.2] * 2, [0.8] * 2), **how, family=WORD)
    pairs = (([0.2] * 2, [0.8] * 2), *zip(*how["proposals"], strict=True))
    target, *drawn = (stats.norm(*pair).logpdf(theta).sum(1) for pair in pairs)
    mixture = np.logaddexp(*drawn) - np.log(2)
    np.testing.assert_allclose(e.weights, np.exp(target - mixture), rtol=1e-9)
    return np.concatenate([e.mean_gradient, np.ravel(e.std_gradient), e.interval()])


def moved(kind):
    found = [estimated()]
    for method in METHODS:
        with opened(f"{kind}-{method}.db", method) as study:
            found.append(told(study, 3))
    return found


def exchanged():
    """What a study has, by a table, by its file, by rho, and in a fork and a replay."""
    with opened("old.db") as old:
        told(old, 3)
        old.export("old.csv")
        assert len(old.replay("cem")) == 3
        with old.fork("fork.db", seed=2, batch=4) as fork:
            assert fork.method.family == WORD
            np.testing.assert_array_equal(fork.mean, old.mean)
    for source in ("old.csv", "old.db"):
        with opened(f"from-{source}.db"):
            pass
        assert "18" in said("study", "import", f"from-{source}.db", source)
    with opened("new.db") as new:
        new.import_samples(np.ones((4, 2)), np.arange(4.0), mean=[0.0, 0.0], std=[1.0, 1.0])
        for wrong in ({"std": [1.0, 2.0], "mean": 0.0}, {"rho": [0.0, 0.0, -1.0]}):
            try:
                new.import_samples(np.ones((4, 2)), np.arange(4.0), **wrong)
            except InputError:
                continue
            raise AssertionError(wrong)


def searched():
    import jax

    search = recoup.search("recoup", dim=2, batch=6, family=WORD)
    state = search.init(jax.random.key(0), mean=0.0, std=1.0)
    for i in range(3):
        theta, state = search.ask(jax.random.key(i), state)
        state, _ = search.tell(jax.random.key(i), state, theta, earned(np.asarray(theta)))
    assert np.ptp(state.std) == 0


def trained():
    run = recoup.train(
        "sphere-10", "mis-pgpe-ob", iterations=2, batch=4, out="run", test_episodes=4, family=WORD
    )
    assert np.ptp(run.std) == 0
    assert np.ptp(recoup.resume("run", iterations=3).std) == 0


def said(*words):
    from program import recoup as program

    done = program(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


by_numpy = moved("plain")
exchanged()
assert "jax" not in sys.modules, "it was compiled"
plain.NUMPY_NUMBERS, most = 0, plain.NUMPY_NUMBERS  # as with a million results
for x, y in zip(by_numpy, moved("compiled"), strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
assert "jax" in sys.modules
plain.NUMPY_NUMBERS = most
searched()
trained()
short = ("--episodes", "8", "--quiet", "--out")
said("train", "toy", "--set", f"family={WORD}", "--batch", "4", *short, "by-hand")
methods = ("--method", f"cem:family={WORD}", "--method", "cem", "--runs", "2", "--workers", "1")
said("compare", "--task", "sphere-10", *methods, *short, "compared")
print("every door")
