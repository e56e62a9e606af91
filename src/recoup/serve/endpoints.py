"""The one table of routes: what starlette serves, and what openapi.json says of it."""

import asyncio
from http import HTTPStatus

from starlette.responses import Response

from recoup import __version__
from recoup.core.types import Given, Plain
from recoup.serve import judged, runs_shown, schemas, shown, streams
from recoup.serve import writing_trials as writes
from recoup.serve.answers import proof_of
from recoup.serve.call import JUDGE, OPEN, WRITE, Call, Endpoint, judging, reading, writing

STUDIES, RUNS = "/v1/studies/{name}", "/v1/runs/{name}"
TRIALS = STUDIES + "/trials"
TRIAL = TRIALS + "/{id}"
KEYED_BY: Plain = {
    "Idempotency-Key": {
        "type": "string",
        "pattern": "^[!-~]+$",
        "minLength": 1,
        "maxLength": writes.KEY_LENGTH,
    }
}
TAGGED: Plain = {"If-None-Match": {"type": "string"}}
LAST_EVENT: Plain = {"Last-Event-ID": {"type": "string"}}


async def service(call: Call) -> Given:
    """What is served, in a line each."""
    hub = call.hub
    await asyncio.to_thread(hub.find)
    lines = [await asyncio.to_thread(one.about) for one in list(hub.served.values())]
    of_runs = {name for name, one in hub.served.items() if one.run is not None}
    return {
        "version": __version__,
        "read_only": hub.read_only,
        "may_write": call.may_write,
        "studies": [line for line in lines if line["name"] not in of_runs],
        "runs": [line for line in lines if line["name"] in of_runs],
    }


async def proofs(call: Call) -> Given:
    """The HMAC-SHA256 of "recoup proof" and the nonce under each token, for who would send one."""
    nonce = call.query["nonce"]
    return {"proofs": [proof_of(token, nonce) for token in call.hub.door.tokens]}


async def open_session(call: Call) -> Given:
    """Gives a page a session for a token, which stands for it until it ends."""
    return {"session": call.hub.door.open_session(call.body["token"])}


async def close_session(call: Call) -> Response:
    """Ends the session that the header names."""
    call.hub.door.close_session(call.request)
    return Response(status_code=HTTPStatus.NO_CONTENT)


ENDPOINTS = (
    Endpoint("GET", "/v1", service, "What is served"),
    Endpoint(
        *("GET", "/v1/proof", proofs, "That it is the server", OPEN), query=schemas.PROOF_QUERY
    ),
    Endpoint("POST", "/v1/session", open_session, "A session for a token", OPEN, schemas.TOKEN),
    Endpoint("DELETE", "/v1/session", close_session, "End the session", OPEN, status=204),
    Endpoint("GET", STUDIES, shown.study_now, "A study as it is", headers=TAGGED),
    Endpoint("GET", f"{STUDIES}/snapshot", judging(shown.snapshot_now), "All that is said of it"),
    Endpoint(
        *("GET", TRIALS, shown.trials_now, "Trials, a page at a time"),
        query=schemas.PAGE_QUERY,
        gives=shown.TRIALS_AS,
    ),
    Endpoint("GET", f"{STUDIES}/waiting", reading(shown.waiting_now), "What waits for a result"),
    Endpoint(
        *("GET", f"{STUDIES}/points", reading(shown.points), "Returns, thinned for a plot"),
        query=schemas.POINTS_QUERY,
    ),
    Endpoint("GET", f"{STUDIES}/moves", reading(shown.moves_now), "Every distribution"),
    Endpoint(
        *("GET", f"{STUDIES}/pairs", reading(shown.pairs), "Two parameters and the returns"),
        query=schemas.PAIRS_QUERY,
    ),
    Endpoint(
        *("POST", f"{STUDIES}/ask", writes.ask, "Trials to roll out", WRITE, schemas.ASK),
        headers=KEYED_BY,
    ),
    Endpoint("POST", f"{TRIAL}/tell", writes.tell_one, "What came of a trial", WRITE, schemas.TELL),
    Endpoint("POST", f"{STUDIES}/tell", writes.tell_many, "Of several", WRITE, schemas.TELL_MANY),
    Endpoint(
        *("POST", f"{TRIAL}/lease", writing(writes.lend_again), "Keep a trial longer"),
        *(WRITE, schemas.LEASE),
    ),
    Endpoint(
        *("POST", f"{TRIAL}/cancel", writing(writes.cancel), "Do not roll a trial out"),
        *(WRITE, schemas.CANCEL),
        headers=KEYED_BY,
    ),
    Endpoint(
        *("POST", f"{TRIAL}/amend", writes.amend, "Put a result right", WRITE, schemas.AMEND),
        headers=KEYED_BY,
    ),
    Endpoint(
        *("POST", f"{STUDIES}/enqueue", writing(writes.enqueued), "Put a theta in line"),
        *(WRITE, schemas.ENQUEUE),
        headers=KEYED_BY,
    ),
    Endpoint(
        *("POST", f"{STUDIES}/note", writing(writes.noted), "Write down", WRITE, schemas.NOTE),
        headers=KEYED_BY,
    ),
    Endpoint(
        "PUT", f"{STUDIES}/title", writing(writes.titled), "Name the study", WRITE, schemas.TITLE
    ),
    Endpoint(
        *("POST", f"{STUDIES}/pause", writing(writes.paused), "Give out no trials"),
        *(WRITE, schemas.NOTHING),
    ),
    Endpoint(
        *("POST", f"{STUDIES}/resume", writing(writes.resumed), "Give out trials again"),
        *(WRITE, schemas.NOTHING),
    ),
    Endpoint(
        *("POST", f"{STUDIES}/evaluate", judged.evaluate, "What a distribution earns"),
        *(JUDGE, schemas.EVALUATE),
    ),
    Endpoint(
        *("POST", f"{STUDIES}/predict", judging(judged.predict), "What parameters earn"),
        *(JUDGE, schemas.PREDICT),
    ),
    Endpoint(
        *("POST", f"{STUDIES}/recommend", judging(judged.recommend), "What to deploy"),
        *(JUDGE, schemas.RECOMMEND),
    ),
    Endpoint(
        *("POST", f"{STUDIES}/suggest", judging(judged.suggest), "What is surely good"),
        *(JUDGE, schemas.NOTHING),
    ),
    Endpoint(
        *("GET", f"{STUDIES}/report", judging(judged.report), "The page of `recoup report`"),
        gives=("text/html",),
    ),
    Endpoint(
        *("GET", f"{STUDIES}/events", streams.events, "Changes as they happen"),
        headers=LAST_EVENT,
        gives=("text/event-stream",),
    ),
    Endpoint(
        *("GET", f"{STUDIES}/changes", streams.changes, "Whether it is another than a version"),
        query=schemas.CHANGES_QUERY,
    ),
    Endpoint("GET", RUNS, runs_shown.run_now, "A run"),
    Endpoint("GET", f"{RUNS}/curve", runs_shown.curve_now, "Its learning curve"),
    Endpoint("GET", f"{RUNS}/film", runs_shown.film_now, "Its film", gives=("video/mp4",)),
    Endpoint("GET", f"{RUNS}/strip", runs_shown.strip_now, "Its film strip", gives=("image/png",)),
)
