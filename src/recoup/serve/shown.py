"""What gets say of a study: its state, its trials, its columns for plots."""

from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus

import numpy as np
from starlette.responses import Response, StreamingResponse

from recoup.core.types import Given, Plain
from recoup.serve.accepting import accepted
from recoup.serve.call import Call, as_json, done
from recoup.serve.problems import Problem
from recoup.serve.trial_rows import MOST_ROWS, PAGE, as_csv, as_lines, page_of, trials_of
from recoup.store.codec import OF_MOVES
from recoup.store.place import is_writable
from recoup.store.rows import Move
from recoup.study.space.contexts import context_of
from recoup.study.space.parameters import Parameter, places_of
from recoup.study.study import Study
from recoup.study.text.times import in_full
from recoup.study.trials.diary import paused_since
from recoup.study.trials.leases import overdue
from recoup.study.views.study_summary import deployed
from recoup.study.views.trial_columns import TrialColumns, thinned

SCALE_WORDS = {"linear": "lin"}  # as they are written here; the others as in the library
JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
TRIALS_AS = (JSON, NDJSON, CSV)


# -- the study --


async def study_now(call: Call) -> Given:
    """The study as it is; nothing, where the one who asks has that version."""

    def read(study: Study) -> tuple[str, Plain | None]:
        version = call.served.look().version
        late = "-overdue" if overdue(study.store) else ""  # by the clock, not by the file
        stuck = "-stuck" if call.served.stuck else ""
        tag = f'"{version}{late}{stuck}"'
        if call.header("if-none-match") in (tag, f"W/{tag}"):
            return tag, None
        return tag, {**described(study, call), "version": version}

    tag, found = await done(call.served.reads(read))
    if found is None:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    return as_json(found, headers={"ETag": tag})


def described(study: Study, call: Call) -> Plain:
    """All that a page shows of a study at its top."""
    opened, store, line = study.opened, study.store, call.served.look().line
    with store.reading():
        since = paused_since(store)
        return {
            "name": call.served.name,
            "title": line["title"],
            "path": str(call.served.path.absolute()),
            "method": study.method.name,
            "direction": opened.goal.word,
            "noun": opened.goal.noun,
            "unit": opened.return_unit or None,
            "dim": len(opened.labels),
            "space": study.method.space,
            "correlated": opened.starts_as != opened.family,
            "named": bool(study.names),
            "parameters": parameters(study),
            "batch": study.batch,
            "until_move": study.until_move(),
            "counts": line["counts"],
            "moves": line["moves"],
            **distribution(study),
            "best": best(study),
            "paused_since": None if since is None else in_full(since),
            "overdue": bool(overdue(store)),
            "limits": [limit.text for limit in opened.limits.rows],
            "limit_names": list(opened.limits.names),
            "context_names": sorted(context_of(store.first_context())),
            "frozen": study.frozen,
            "enqueued": study.queue(),
            "missing": opened.lacks,
            "uses_context": study.uses_context,
            "stuck": call.served.stuck,
            "run": None if call.served.run is None else call.served.name,
            "writable": call.served.writable and is_writable(call.served.path),
        }


def parameters(study: Study) -> list[Plain]:
    """Every parameter with its bounds or choices."""
    opened = study.opened
    rows = [
        {
            "name": p.name,
            "low": p.low,
            "high": p.high,
            "scale": "choice" if p.choices else SCALE_WORDS.get(p.scale, p.scale),
            "choices": None if p.choices is None else list(p.choices),
            "unit": p.unit,
        }
        for p in opened.parameters
    ]
    unnamed = {"low": None, "high": None, "scale": "lin", "choices": None, "unit": None}
    return rows or [{"name": name, **unnamed} for name in opened.labels]


def distribution(study: Study) -> Plain:
    """Means in units, and latent standard deviations, as `evaluate` takes them; and in units."""
    rows = deployed(study.opened)
    shown = bool(rows) and study.method.space == "parameters"
    std = study.std if shown else np.zeros(0)
    named = {p.name: place for p, place in places(study)}
    return {
        "mean": {row.name: row.value for row in rows},
        "std": {name: float(np.mean(std[at])) for name, at in named.items()} if len(std) else {},
        "low": {row.name: row.low for row in rows},
        "high": {row.name: row.high for row in rows},
        "chances": {row.name: row.chances for row in rows if row.chances is not None},
    }


def places(study: Study) -> list[tuple[Given, slice]]:
    """Parameters, and where their latent numbers stand."""
    rows = study.opened.parameters or [Parameter(name) for name in study.opened.labels]
    return list(zip(rows, places_of(rows), strict=True))


def best(study: Study) -> Plain | None:
    """The best trial, and what came of it."""
    found = study.best
    if found is None:
        return None
    trial, value = found
    params = study.opened.params(trial.theta)
    return {"id": trial.id, "value": value, "params": params}


def snapshot_now(study: Study, call: Call) -> Plain:
    """Everything one may say about the study, in one record."""
    return study.snapshot().plain()


def waiting_now(study: Study, call: Call) -> Plain:
    """The trials that wait for a result, for people: with ages and leases in words."""
    with study.store.reading():
        waits = study.waiting()
        rows = {row["id"]: row for row in trials_of(study, [one.trial.id for one in waits])}
        found = [
            {**rows[one.trial.id], **one.plain(), "params": rows[one.trial.id]["params"]}
            | {"age": one.age, "lease": one.lease, "handed_out": one.handed_out}
            for one in waits
        ]
    return {"trials": found}


# -- trials, page by page --


async def trials_now(call: Call) -> Given:
    """Trials by number, after one: JSON a page at a time, or rows alone by `Accept`."""
    kind = accepted(call.request.headers.getlist("accept"), TRIALS_AS)
    if kind != JSON:
        lines = _lines(call, kind)
        return StreamingResponse(lines, media_type=f"{kind}; charset=utf-8")
    after, status = call.query.get("after", 0), call.query.get("status")
    limit = call.query.get("limit", PAGE)
    rows = await done(call.served.reads(lambda study: page_of(study, after, limit, status)))
    return {"trials": rows, "next": rows[-1]["id"] if len(rows) == limit else None}


async def _lines(call: Call, kind: str) -> AsyncIterator[str]:
    """All rows, or as many as were asked for, read a thousand at a time."""
    after, left = call.query.get("after", 0), call.query.get("limit")
    head, status = True, call.query.get("status")
    while left is None or left > 0:
        some = MOST_ROWS if left is None else min(left, MOST_ROWS)

        def read(study: Study, after: int = after, some: int = some, head: bool = head) -> Given:
            rows = page_of(study, after, some, status)
            text = as_lines(rows) if kind == NDJSON else as_csv(study, rows, head)
            return rows[-1]["id"] if rows else 0, len(rows), text

        after, n, text = await done(call.served.reads(read))
        yield text
        head, left = False, None if left is None else left - n
        if n < some:
            return


# -- columns for plots --


def columns_of(study: Study, call: Call) -> TrialColumns:
    """All results as columns; kept by the lane, with what was added since. Inside `reading()`."""
    served = call.served
    if served.columns is None or served.columns.of is not study.opened:
        served.columns = TrialColumns(study.opened)
    served.columns.refresh()
    return served.columns


def points(study: Study, call: Call) -> Plain:
    """Returns over trials, thinned so that no extreme is lost."""
    width, named = call.query.get("width", WIDTH), names_in(study, call.query.get("params"))
    with study.store.reading():
        columns = columns_of(study, call)
        ids, values = columns.returns()
        failed, events = columns.failed(), study.store.last_event()
        asked, shown = columns.shown(ids[thinned(ids, values, width)])
        values_of = columns.values(asked, named)
    found = {
        "id": asked.id,
        "value": shown,
        "failed": failed[thinned(failed, failed, width)],
        "proposal": [None if one < 0 else one for one in asked.proposal.tolist()],
        "kind": asked.kind,
        "total": len(ids),
        "shown": len(shown),
        "events": events,
    }
    if named:
        found["params"] = {name: readable(study, name, x) for name, x in values_of.items()}
    return found


WIDTH = 1600  # points that are shown, unless said


def names_in(study: Study, text: str | None) -> list[str]:
    """Names of parameters as a query lists them; `*`: all."""
    labels = list(study.opened.labels)
    if not text:
        return []
    if text == "*":
        return labels
    if text in labels:  # a name may have a comma in it
        return [text]
    for name in (found := text.split(",")):
        check_name(study, name)
    return found


def check_name(study: Study, name: str) -> str:
    """The name of a parameter, once there is one of that name."""
    if name not in study.opened.labels:
        said = f"there is no parameter {name!r} in {study.store.where}."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, said)
    return name


def readable(study: Study, name: str, values: np.ndarray) -> list[Given]:
    """Values of a parameter as people read them: choices as words, whole numbers as such."""
    words = dict(study.opened.choices).get(name)
    if words is None:
        return values.astype(int if name in study.opened.whole else float).tolist()
    return [words[int(place)] for place in values]


def pairs(study: Study, call: Call) -> Plain:
    """Two parameters against each other, with the returns: the newest, and the extremes."""
    x, y = (check_name(study, call.query[key]) for key in ("x", "y"))
    with study.store.reading():
        columns = columns_of(study, call)
        ids, values = columns.returns()
        asked, shown = columns.shown(ids[thinned(ids, values, call.query.get("limit", PAIRS))])
        found = columns.values(asked, [x, y])
    both = {"x": readable(study, x, found[x]), "y": readable(study, y, found[y])}
    return {**both, "value": shown, "id": asked.id, "total": len(ids)}


PAIRS = 2000  # of points, unless said


def moves_now(study: Study, call: Call) -> Plain:
    """Every distribution: its mean in units, one standard deviation around it, its worth."""
    opened = study.opened
    with study.store.reading():
        moves, blocks = study.store.moves(), [mark.numbers for mark in opened.marks()]
        trial = last_trials(study, moves)
    mean, std = opened.shown(np.stack(blocks))
    spread = std if std.shape == mean.shape else np.full(mean.shape, np.nan)
    ends = (opened.in_units(one) for one in (mean, mean - spread, mean + spread))
    named = dict(zip(("mean", "low", "high"), ends, strict=True))
    labels = list(opened.labels)
    by_name = {
        key: {name: readable_or_none(study, name, rows[:, i]) for i, name in enumerate(labels)}
        for key, rows in named.items()
    }
    infos = {key: [move.info.get(key) for move in moves] for key in OF_MOVES}
    latent = {p.name: spread[:, at].mean(axis=1) for p, at in places(study)}
    return {
        "move": [move.id for move in moves],
        "results": [move.counted for move in moves],
        "trial": trial,
        "made_at": [move.made for move in moves],
        "mean": by_name["mean"],
        "std": latent,
        "low": by_name["low"],
        "high": by_name["high"],
        "expected": infos["objective"],
        "expected_low": infos["low"],
        "expected_high": infos["high"],
        **{key: infos[key] for key in OF_MOVES[3:]},
    }


def last_trials(study: Study, moves: Sequence[Move]) -> list[int | None]:
    """The trial of the last result that each move was made of; none of the start."""
    nothing, upto = study.store.dropped(), moves[-1].counted
    rows = [row for row in study.store.counted(0, upto) if row[0] not in nothing]
    last = np.searchsorted([place for _, place in rows], [m.counted for m in moves], side="right")
    return [rows[i - 1][0] if i else None for i in last.tolist()]


def readable_or_none(study: Study, name: str, values: np.ndarray) -> list[Given]:
    """The same, of values that may be none."""
    return readable(study, name, values) if np.isfinite(values).all() else [None] * len(values)
