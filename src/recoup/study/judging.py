"""What a study's results say: how the search fares, and what a candidate is worth."""

from typing import Any

from recoup.checks import InputError
from recoup.store.dropped import dropped
from recoup.store.rows import FAILED, FOREIGN, OK, PENDING, SAMPLED
from recoup.study.advice import advice, judgement
from recoup.study.ends import outdated
from recoup.study.leases import overdue
from recoup.study.opened import Opened
from recoup.study.settling import Mover
from recoup.study.slips import slips
from recoup.study.trials import Evaluation

SHOWN = 3  # improbable results that are spoken of, the last ones


def evaluate(opened: Opened, mover: Mover, mean: Any, std: Any) -> Evaluation:
    """The expected return of a candidate distribution, from all results."""
    from recoup.core.pareto import pareto_k
    from recoup.study.moves import judge

    if "family" in opened.missing:
        opened.check_whole()
    with opened.store.reading():
        target = opened.target(mean, std)
        counted = opened.store.counters().counted
        if counted < 2:
            raise InputError(
                f"{opened.path} has {counted} results of its own distributions: two are needed to "
                "evaluate."
            )
        found = judge(opened.method, mover.all_results(), counted, target)
    return Evaluation(
        mean=found.worth.mean,
        stderr=found.worth.stderr,
        ess=found.worth.ess,
        pareto_k=pareto_k(found.weights),
        samples=found.samples,
        words=judgement(found),
        low=found.worth.interval.low,
        high=found.worth.interval.high,
        unseen=found.worth.unseen,
        explained=found.worth.explained,
    )


def diagnostics(opened: Opened) -> dict[str, Any]:
    """How the search fares, in numbers and, under `advice`, in words."""
    store = opened.store
    counters, last = store.counters(), store.last_move()
    nothing = dropped(store)
    lost = [row.told.status for row in store.results(nothing).values()]
    unset = dict.fromkeys(("ess", "samples", "max_weight", "pareto_k", "objective"))
    found: dict[str, Any] = {
        **unset,
        **last.info,
        PENDING: counters.trials - counters.ok - counters.failed,
        OK: counters.ok,
        FAILED: counters.failed,
        "dropped": lost.count(FAILED),  # of the failed
        "uncounted": lost.count(OK),  # of the ok: the other of their pair was dropped
        "imported": store.kind_count(FOREIGN),
        "waiting": store.pending_count(SAMPLED),
        "overdue": overdue(store),
        "moves": last.id,
        "until_move": max(opened.batch - counters.fresh, 0),
        "missing": [f"{key}={text}" for key, text in opened.missing.items()],
    }
    strange = slips(store.returns(nothing))
    found["improbable"] = [slip.trial for slip in strange]
    said = [*filter(None, [outdated(opened)]), *advice(opened.method, opened.batch, found)]
    return {**found, "advice": said + [slip.words for slip in strange[-SHOWN:]]}
