"""What the numbers of a study mean, in plain words."""

from typing import TYPE_CHECKING, Any

from recoup.engine.methods import Method
from recoup.study.reasons import reasons

if TYPE_CHECKING:  # needs JAX
    from recoup.study.steps import Judged

TRUSTED = 0.7  # Pareto k-hat above which a mean of weights, and its error, cannot be trusted
LEAST = 5.0  # effective sample size below which nothing is said: `recoup.core.worth` has it too
LITTLE = 0.1  # share of the returns' variance below which the model is not spoken of
SHOWN = 12  # trials that a sentence names


def judgement(found: "Judged") -> str:
    """What results say of a candidate, what that rests on, or why they say nothing."""
    worth, n = found.worth, found.samples
    ess = f"{worth.ess:.0f}" if worth.ess >= 10 else f"{worth.ess:.1f}"
    count = f"{n} result{'' if n == 1 else 's'} that count{'s' if n == 1 else ''} for {ess}"
    left_out = _left_out(found.censored)
    if worth.refused == "equal":
        return f"{count}, all returns equal: without any spread there is no interval.{left_out}"
    if worth.refused:
        says = "says" if n == 1 else "say"
        why = f"{count} {says} too little about it: {_why(found)}"
        return f"{why} A few rollouts of its own would say more.{left_out}"
    rests = "it rests on weights alone"
    if worth.explained >= LITTLE:
        rests = (
            f"a model of the returns takes over {min(worth.explained, 0.99):.0%} of their "
            "variance, weights correct it"
        )
    about = " This is the return of a rollout that does not fail." if left_out else ""
    return f"{count}; {rests}.{left_out}{about}"


def _why(found: "Judged") -> str:
    worth = found.worth
    if worth.refused == "unseen":
        return f"{worth.unseen:.0%} of it lies where hardly any result could have been drawn."
    if worth.refused == "few":
        pairs = " (in pairs, 5)" if found.draw > 1 else ""
        return f"an interval needs six that count for {LEAST * found.draw:.0f}{pairs}."
    if worth.refused == "dimensions":
        return "there are fewer than four for each parameter, so that it must be nearer to them."
    if worth.refused == "huge":
        return "the returns are too large to compute with."
    return "their weights do not average to 1, so that they miss a part of it."


def _left_out(censored: int) -> str:
    if not censored:
        return ""
    return f" {censored} failed result{'s are' if censored > 1 else ' is'} left out."


def health(samples: float, ess: float, k: float) -> str:
    """What the weights of the last move say, and what to do about it."""
    words = f"The last move used {samples:.0f} results that count for {ess:.1f}."
    if not ess >= LEAST:
        return words + " That is too little to say how good the distribution is."
    if k > TRUSTED:
        return words + (
            f" Pareto k-hat is {k:.2f}, above {TRUSTED}: a few weights decide the estimate, and "
            "its error cannot be trusted. Bounded weights (mis-pgpe-ob), a window or smaller steps "
            "help."
        )
    if ess < 0.1 * samples:
        return words + " Most of what was kept no longer counts: a window would lose little."
    return words + " The estimate rests on many of them."


def next_batch(ess: float, batch: int) -> str:
    """What reuse is worth for the next batch."""
    if ess < 1.5 * batch:
        return (
            f"Reuse adds little now: the next move rests on its own {batch} rollouts and not much "
            "else."
        )
    return (
        f"Reuse makes the next batch of {batch} about {ess / batch:.1f} times as large: what is "
        f"kept is worth {ess:.0f} fresh rollouts."
    )


def advice(method: Method, batch: int, found: dict[str, Any]) -> list[str]:
    """What `Study.diagnostics` found, in sentences."""
    said = _due(found)
    if found["moves"] == 0:
        said.append(f"The distribution moves after {found['until_move']} more results.")
    elif found.get("notes"):
        said += reasons(found["notes"], found["ess"])
    elif method.window == 1:
        said.append(f"{method.name} keeps nothing between moves: every batch starts afresh.")
    else:
        said.append(health(found["samples"], found["ess"], found["pareto_k"]))
        said.append(next_batch(found["ess"], batch))
    said += _late(method, batch, found) + _failures(method, found)
    return said + _waiting(found) + _overdue(found)


def _due(found: dict[str, Any]) -> list[str]:
    """That a move waits for a part of the method that only Python can give."""
    if not found["missing"] or found["until_move"]:
        return []
    return [
        f"A move is due. It needs {' and '.join(found['missing'])}, which a file cannot hold: it "
        "is made once the study is opened with it, in Python. Nothing told is lost."
    ]


def _late(method: Method, batch: int, found: dict[str, Any]) -> list[str]:
    """What results of older distributions, and from elsewhere, mean for the method."""
    said, late = [], found.get("late") or 0
    if found["imported"] and method.weighting == "none":
        said.append(
            f"{method.name} has no weights, so that its moves leave out the {found['imported']} "
            "results from elsewhere; `evaluate` uses them."
        )
    if late and method.weighting == "none":
        said.append(
            f"{late} results of the last move were drawn by older distributions; {method.name} has "
            "no weights and uses them as if they were new."
        )
    if late >= batch and method.weighting == "balance":
        said.append(
            "No result of the last move came from the newest distribution, so that its weights "
            "have no bound: tell some of the newest trials before the next."
        )
    return said


def _failures(method: Method, found: dict[str, Any]) -> list[str]:
    failures = found["failed"] - found.get("dropped", 0)
    failed = failures / max(found["ok"] - found.get("uncounted", 0) + failures, 1)
    if method.failure != "censored" or failed <= 0.3 or failures < 3:
        return []
    return [
        f"{failed:.0%} of the results are failures, which are left out: the search does not learn "
        "to avoid them. Smaller standard deviations would help, or a return for what now counts as "
        "failed (`fork` with failure=worst, or a number)."
    ]


def _waiting(found: dict[str, Any]) -> list[str]:
    waiting = found["waiting"]
    if not waiting:
        return []
    several = "s wait for a result" if waiting > 1 else " waits for a result"
    return [
        f"{waiting} drawn trial{several}: however late, it will count with the density that drew "
        "it."
    ]


def _overdue(found: dict[str, Any]) -> list[str]:
    """That trials came back, of workers that may have died."""
    trials = found["overdue"]
    if not trials:
        return []
    more = f" and {len(trials) - SHOWN} more" if len(trials) > SHOWN else ""
    named = f"{', '.join(map(str, trials[:SHOWN]))}{more}"
    if len(trials) == 1:
        return [f"The lease of trial {named} has run out: the next `ask` hands it out again."]
    return [f"The leases of trials {named} have run out: the next `ask` hands them out again."]
