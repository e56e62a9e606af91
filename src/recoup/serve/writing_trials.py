"""What posts do to a study: ask and tell, leases, amendments, notes; in the lane that writes.

A result is acknowledged once it is on disk. The move that it makes due is made afterwards, by
another thread; who asks next waits for it a little, as with the library.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus

from recoup.checks import InputError, check_text
from recoup.core.types import Given, Plain
from recoup.serve.call import Call, as_json, done
from recoup.serve.problems import Problem
from recoup.serve.trial_rows import trials_of
from recoup.store.rows import Asked, Request, Told
from recoup.study.study import Study
from recoup.study.text.times import in_full
from recoup.study.trials.ask import enqueue, given, given_own
from recoup.study.trials.diary import cancel as cancel_trial
from recoup.study.trials.diary import pause, paused_since, write_note
from recoup.study.trials.leases import check_lease, now, tell
from recoup.study.voice.slips import AROUND, slips

PLAIN_KEY = re.compile(r"[!-~]+")
KEY, KEY_LENGTH = "idempotency-key", 200  # the header, and its characters
AMENDING = ("drop", "why", "dry_run")  # fields of an amendment beside the result
DONE_BEFORE = "this was done before."  # what is said to who asks again
ASK_SECONDS = 2.0  # at most, that who asks waits for a move
Job = Callable[[], bool]


async def ask(call: Call) -> Given:
    """Trials, on disk before they are given; of the newest distribution, if that is made soon."""
    key, body = checked_key(call.header(KEY)), call.body
    with suppress(TimeoutError):
        await asyncio.wait_for(done(call.served.settles()), ASK_SECONDS)
    return await done(call.served.writes(lambda study: as_json(_asked(study, body, key))))


def checked_key(key: str | None) -> str | None:
    """An Idempotency-Key, once it is a short text."""
    if key is None or (0 < len(key) <= KEY_LENGTH and PLAIN_KEY.fullmatch(key)):
        return key
    sentence = f"an Idempotency-Key has 1 to {KEY_LENGTH} letters, digits and marks, no spaces."
    raise Problem(HTTPStatus.BAD_REQUEST, sentence)


def _asked(study: Study, body: Plain, key: str | None) -> Plain:
    """The trials of a request: those of before, if it came before."""
    store, text = study.store, json.dumps(body, sort_keys=True)
    with store.writing():
        before = _before(study, key, text)
        ids = _new(study, body, key) if before is None else before.trials
    return {"trials": trials_of(study, ids)}


def _before(study: Study, key: str | None, text: str) -> Request | None:
    """The request that came with a key before, which must have been the same."""
    before = None if key is None else study.store.request(key)
    if before is not None and before.body != text:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"the Idempotency-Key {key!r} came with another body before: give a new one.",
        )
    return before


def was_done(study: Study, call: Call) -> bool:
    """Whether what came with a key was done before."""
    key = checked_key(call.header(KEY))
    return _before(study, key, _text_of(call)) is not None


def note_done(study: Study, call: Call) -> None:
    """Writes that what came with a key is done; inside `writing()`."""
    key = checked_key(call.header(KEY))
    if key is not None:
        study.store.add_request(Request(key, _text_of(call), []))


def _text_of(call: Call) -> str:
    return json.dumps([call.request.url.path, call.body], sort_keys=True)


def _new(study: Study, body: Plain, key: str | None) -> list[int]:
    """New trials, and for whom they are; inside `writing()`."""
    store, since = study.store, paused_since(study.store)
    if since is not None:
        said = f"{store.where} is paused since {in_full(since)}: no trials are given out."
        raise Problem(HTTPStatus.CONFLICT, said, paused_since=in_full(since))
    ids = [trial.id for trial in _given(study, body)]
    if key is not None:
        store.add_request(Request(key, json.dumps(body, sort_keys=True), ids))
    if body["worker"] is not None:
        store.hand_to(ids, check_text("worker", body["worker"]))
    return ids


def _given(study: Study, body: Plain) -> list[Asked]:
    at, lease = body["at"], check_lease(body["lease"])
    if isinstance(at, dict):
        theta = study.opened.latent_theta(in_order(study, at))
        return [given_own(study.opened, theta, lease) for _ in range(body["n"])]
    return given(study.opened, body["n"], at, lease)


def in_order(study: Study, params: Plain) -> Given:
    """Values by name as the study takes them: in order, where its parameters have no names."""
    labels = study.opened.labels
    if study.names or sorted(params) != sorted(labels):
        return params
    return [params[name] for name in labels]


# -- results --


async def tell_one(call: Call) -> Given:
    """What came of a trial, acknowledged when it is on disk."""
    rows = [(call.trial, call.body)]
    found = await done(call.served.writes(lambda study: _told(study, rows)))
    _then_move(call, found)
    (trial,) = found.pop("trials")
    return {"trial": trial, **found}


async def tell_many(call: Call) -> Given:
    """What came of several trials: all of them are on disk, or none."""
    rows = [(row["id"], row) for row in call.body]
    found = await done(call.served.writes(lambda study: _told(study, rows)))
    _then_move(call, found)
    return found


def _then_move(call: Call, found: Plain) -> None:
    if found["until_move"] == 0:
        call.served.settles()  # and nobody waits for it


def _told(study: Study, rows: Sequence[tuple[int, Plain]]) -> Plain:
    ids = [number for number, _ in rows]
    with study.store.writing():
        check_there(study, ids)
        results = [(number, told_of(study, body)) for number, body in rows]
        later = tell(study.opened, results)
    with study.store.reading():
        said = [*(one.words for one in later), *_slips(study, ids)]
        slip = {"slip": " ".join(said) or None, "later": bool(later)}
        return {"trials": trials_of(study, ids), "until_move": study.until_move(), **slip}


def told_of(study: Study, body: Plain) -> Told:
    """A result as a body has it, checked."""
    how = {"values": body.get("returns"), "failed": body.get("failed")}
    beside = {key: body.get(key) for key in ("also", "context", "trajectory")}
    return study.result(body.get("return"), **how, **beside)


def check_there(study: Study, ids: Sequence[int]) -> None:
    """Raises unless there are trials of these numbers."""
    there = {trial.id for trial in study.store.asked(ids)}
    missing = [number for number in ids if number not in there]
    if missing:
        said = f"there is no trial {missing[0]} in {study.store.where}."
        raise Problem(HTTPStatus.NOT_FOUND, said)


def _slips(study: Study, ids: Sequence[int]) -> list[str]:
    """What looks like a slip among results that were told, beside those told at that time."""
    nothing, found = study.store.dropped(), []
    for number in ids:
        near = study.store.returns_near(number, AROUND + len(nothing))
        known = {n: value for n, value in near.items() if n not in nothing}
        found += [slip.words for slip in slips(known, [number])]
    return found


# -- other things --


def lend_again(study: Study, call: Call) -> Plain:
    """A trial is kept by whoever has it, for so many seconds from now."""
    number, worker = call.trial, call.body["worker"]
    check_there(study, [number])
    with study.store.writing():
        (row,) = trials_of(study, [number])
        if row["status"] != "pending":
            raise Problem(HTTPStatus.CONFLICT, f"trial {number} waits for no result any more.")
        if None not in (worker, row["worker"]) and worker != row["worker"]:
            said = f"trial {number} was handed out to {row['worker']!r} meanwhile."
            raise Problem(HTTPStatus.CONFLICT, said)
        study.store.renew(number, now() + call.body["seconds"])
    return {"trial": trials_of(study, [number])[0]}


def cancel(study: Study, call: Call) -> Plain:
    """A trial will not be rolled out."""
    check_there(study, [call.trial])
    why = call.body["why"]
    why = None if why is None else check_text("why", why)
    with study.store.writing():
        if was_done(study, call):
            both = study.store.together(call.trial)
            return {"trials": trials_of(study, both), "words": DONE_BEFORE}
        if study.store.results([call.trial]):
            said = f"trial {call.trial} has a result: `amend` puts it right, or drops it."
            raise Problem(HTTPStatus.CONFLICT, said)
        found = cancel_trial(study.store, call.trial, why)
        note_done(study, call)
    return {"trials": trials_of(study, found.trials), "words": found.words}


class _DoneBefore(Exception):
    """What came with a key was done before."""


async def amend(call: Call) -> Given:
    """A result is put right; with `dry_run` it is said what would change."""
    lane = call.served.judges if call.body["dry_run"] else call.served.puts_right
    return await done(lane(lambda study: _amended_once(study, call)))


def _amended_once(study: Study, call: Call) -> Plain:
    """An amendment; of one that came before with its key, how things are now."""
    amended = False

    def written(job: Job) -> bool:
        """The amendment with its key; what comes after it are moves."""
        nonlocal amended
        if amended:
            return call.served.written(job)
        amended = call.served.written(lambda: _once(study, call, job))
        return amended

    try:
        if was_done(study, call):
            raise _DoneBefore
        return _amended(study, call.trial, call.body, written)
    except (InputError, _DoneBefore):  # by another server of the file, just now
        if not was_done(study, call):
            raise
        (row,) = trials_of(study, [call.trial])
        return {"changes": [DONE_BEFORE], "done": True, "trial": row, "moves": []}


def _once(study: Study, call: Call, job: Job) -> bool:
    """Whether a job has written an amendment, in one transaction with its key."""
    with study.store.writing_together():
        if was_done(study, call):
            raise _DoneBefore
        found = job()
        if found:
            note_done(study, call)
        return found


def _amended(study: Study, number: int, body: Plain, written: Callable[[Job], bool]) -> Plain:
    check_there(study, [number])
    if not study.store.results([number]):
        raise Problem(HTTPStatus.CONFLICT, f"trial {number} has no result yet: tell it.")
    keys = {"return": "value", "returns": "values"}
    names = (*("return", "returns", "failed", "trajectory", "also", "context"), *AMENDING)
    how: Plain = {keys.get(key, key): body.get(key) for key in names}
    found = study.amend(number, **how, writing=written)
    changes = [found.words] if found.words else []
    rows = trials_of(study, [number])
    then = {"was": found.was, "now": found.now, "moves": found.moves}
    return {"changes": changes, "done": not body["dry_run"], "trial": rows[0], **then}


def enqueued(study: Study, call: Call) -> Plain:
    """A theta of one's own choice is put in line."""
    latent = study.opened.latent_theta(in_order(study, call.body["params"]))
    note = call.body["note"]
    note = None if note is None else check_text("note", note)
    with study.store.writing():
        if not was_done(study, call):
            enqueue(study.opened, latent, note)
            note_done(study, call)
    return {"in_line": study.store.enqueued()}


def noted(study: Study, call: Call) -> Plain:
    """Something is written down, about the study or a trial."""
    number = call.body["trial"]
    if number is not None:
        check_there(study, [number])
    with study.store.writing():
        if not was_done(study, call):
            write_note(study.store, call.body["text"], number)
            note_done(study, call)
    return {"notes": [note._asdict() for note in study.notes()]}


def titled(study: Study, call: Call) -> Plain:
    """The study is called otherwise."""
    study.title = call.body["title"]
    return {"title": study.title}


def paused(study: Study, call: Call) -> Plain:
    """No trials are given out any more, until `resumed`."""
    return _paused(study, True)


def resumed(study: Study, call: Call) -> Plain:
    """Trials are given out again."""
    return _paused(study, False)


def _paused(study: Study, now: bool) -> Plain:
    with study.store.writing():
        pause(study.store, now)
    return {"paused_since": in_full(paused_since(study.store))}
