"""Giving out trials: those that came back, those in line, draws from the newest distribution."""

from recoup.store.rows import DRAWN, MEAN, MIRROR, OWN, Asked, Proposal
from recoup.study.draws import episode_seed
from recoup.study.leases import lend, returned
from recoup.study.opened import Opened


def ask(opened: Opened, n: int, at: str | None, lease: float | None = None) -> list[Asked]:
    """`n` trials, on disk, first those whose lease has run out; lent for `lease` seconds if said.

    Under mirrored sampling whole pairs are drawn, so one more where need be.
    """
    store, pairs = opened.store, opened.method.mirrored and at is None
    with store.writing():
        newest, last = store.newest(), store.counters().last
        again = [] if at else returned(store, n)
        waiting = [] if at else store.queue(n - len(again))
        new = [
            Asked(last + i, OWN, None, queued.theta, episode_seed(_seed(opened), last + i))
            for i, queued in enumerate(waiting, 1)
        ]
        last, more = last + len(new), n - len(again) - len(new)
        more += pairs and more % 2
        kinds = [MEAN if at else MIRROR if pairs and i % 2 else DRAWN for i in range(more)]
        new += [_drawn(opened, newest, last + i, kind) for i, kind in enumerate(kinds, 1)]
        store.add_trials(new)
        store.dequeue([queued.id for queued in waiting])
        lend(store, new, again, lease)
    return again + new


def _drawn(opened: Opened, newest: Proposal, number: int, kind: str) -> Asked:
    """Trial `number`: its randomness depends on that and the study's seed, and on nothing else."""
    rho, seed = opened.rho(newest.numbers), _seed(opened)
    if kind == MEAN:
        return Asked(number, kind, None, rho.mean, episode_seed(seed, number))
    theta = opened.drawn(rho, number, kind)
    return Asked(number, kind, newest.id, theta, episode_seed(seed, number))


def _seed(opened: Opened) -> int:
    return opened.settings["seed"]
