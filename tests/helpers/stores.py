"""Small stores to try things on."""

import numpy as np

from recoup.store.rows import DRAWN, Asked, Leaf, Made, Proposal, Told
from recoup.store.store import Store

SETTINGS = {"dim": 3, "batch": 4, "seed": 1, "method": "iw-pgpe-ob"}
MEMORY = (Leaf("[0].count", np.int32(2)), Leaf("[0].mu", np.arange(3.0)))  # at the start


def start(k=6):
    return Proposal(0, "start", "diagonal", np.arange(k, dtype=float))


def trial(number, kind=DRAWN, proposal=0, **how):
    return Asked(number, kind, proposal, np.full(3, number / 7), 100 + number, **how)


def ok(value, **how):
    return Told("ok", value, None, 1, **how)


def filled(path):
    """A store with a row of every kind: trials, failures, moves, densities, a queue, tests."""
    store = Store.create(path, SETTINGS, start(), MEMORY)
    with store.writing():
        store.add_trials([trial(i) for i in range(1, 8)] + [trial(8, "mean", None)])
        for i in range(1, 5):
            store.add_result(i, ok(i / 3, trajectory=np.full((2, 3), i)))
        store.add_result(5, Told("failed", note="slipped"))
        store.add_move("diagonal", Made(1, 4, np.ones(6), None, {"ess": float("nan")}), used=4)
        store.add_densities(1, np.arange(4.0), np.arange(4.0) - 9)
        store.enqueue([1.0, 2.0, 3.0], "next")
        store.add_result(6, Told("ok", 2, 0.25, 3))
    return store
