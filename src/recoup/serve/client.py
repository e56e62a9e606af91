"""`recoup.connect`: a study that somebody serves (`recoup serve`), with the verbs of `Study`.

Longer than others: each of its methods has its example.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

import numpy as np

from recoup.checks import InputError, check_count, check_number, check_positive, shortly
from recoup.core.types import Given, Plain
from recoup.serve.answers import FACTS, PAGE, RECEIPT, SERVICE, TRIAL, TRIALS, astray
from recoup.serve.calling import Caller, OnWait
from recoup.serve.remote_trials import Answer, Receipt, RemoteTrial, episode

STUDIES = "/v1/studies/"  # an address of the interface continues with the study's name
TOKEN = "RECOUP_TOKEN"  # the environment variable
PAGE_OF_TRIALS, PAGE_OF_NUMBERS = 1000, 10**6  # that are read at a time, and their parameters
LEASE, GIVEN_BACK = 3600.0, 0.001  # seconds
LONGEST_WAIT = 60.0  # seconds, at most, that a server waits for a change
TOLD = {  # of a result, beside its one return, and how the server calls it
    "values": "returns",
    "failed": "failed",
    "trajectory": "trajectory",
    "also": "also",
    "context": "context",
}


def connect(
    url: str,
    token: str | None = None,
    *,
    study: str | None = None,
    patience: float = 60.0,
    timeout: float = 60.0,
    certificate: str | None = None,
    on_wait: OnWait | None = None,
) -> "RemoteStudy":
    """A study that `recoup serve` offers at `url`, the address that it prints: a `RemoteStudy`.

    The token is `token`, or stands in the address behind `#token=`, or in the environment variable
    RECOUP_TOKEN. Where several studies are served, `study` says which, or the address does:
    `http://HOST:8765/v1/studies/NAME`. A call without an answer is made again for `patience`
    seconds, once at least unless that is 0, with the same key, so that it counts once; one attempt
    takes `timeout` seconds at most, however slowly the answer comes.
    `certificate` is a PEM file to trust, where the server has a certificate of its own. `on_wait`
    is called before each wait for a server that does not answer, with why and how many seconds.

    Raises `InputError` for an address or token that is refused, ConnectionError where nobody
    answers.

    >>> with recoup.connect(address) as robot:
    ...     print(robot.direction)
    maximize
    """
    found = _Address.of(url)
    caller = Caller(
        found.secure,
        found.host,
        found.port,
        token or found.token or os.environ.get(TOKEN) or None,
        base=found.base,
        patience=patience,
        timeout=check_positive("`connect(timeout=...)`", timeout),
        certificate=certificate,
    )
    caller.on_wait = on_wait
    try:
        return RemoteStudy(
            caller, found.base, study or found.study or _only_one(caller, found.base)
        )
    except BaseException:
        caller.close()
        raise


def _only_one(caller: Caller, base: str) -> str:
    """The name of the only study that is served."""
    names = [row["name"] for row in caller.get(f"{base}/v1", SERVICE)["studies"]]
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{caller.where} serves no study.")
    raise InputError(
        f"{caller.where} serves {len(names)} studies: say which with study=..., one of "
        f"{', '.join(names)} (on the command line --study)."
    )


@dataclass(frozen=True)
class _Address:
    """The parts of an address."""

    secure: bool
    host: str
    port: int
    base: str  # what stands before /v1, where a proxy puts something there
    token: str | None
    study: str | None

    @classmethod
    def of(cls, url: object) -> "_Address":
        """An address as it is printed; a sentence about one never holds its token."""
        shown = shortly(url.partition("#")[0] if isinstance(url, str) else url)
        wanted = f"the address must look like http://127.0.0.1:8765/#token=..., got {shown}."
        if not isinstance(url, str):
            raise InputError(wanted)
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError:
            raise InputError(wanted) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(wanted)
        base, _, name = parts.path.partition(STUDIES)
        after = _behind(parts.fragment)
        said = unquote(name.split("/")[0]) or after.get("study")
        secure = parts.scheme == "https"
        port = port or (443 if secure else 80)
        token = after.get("token") or None
        return cls(secure, parts.hostname, port, base.rstrip("/"), token, said or None)


def _behind(fragment: str) -> dict[str, str]:
    """What stands behind `#`, by name; a `+` is one, unlike in what a form sends."""
    pairs = (pair.partition("=") for pair in fragment.split("&"))
    return {name: unquote(value) for name, _, value in pairs}


class RemoteStudy:
    """A study on a server, with the verbs of `recoup.Study`. Threads may share it.

    Every call is made again until it is answered, as `connect(patience=...)` says, and counts once.
    What the server refuses is an `InputError` with the server's sentence; no answer at all is a
    `ConnectionError`.

    >>> study
    RemoteStudy(robot at http://127.0.0.1:...)

    Longer than others: each of its methods has its example.
    """

    def __init__(self, caller: Caller, base: str, name: str) -> None:
        self.caller, self.name = caller, name
        self._root = f"{base}{STUDIES}{quote(name, safe='')}"
        found = self.facts()  # of which is kept what never changes
        self.parameters: list[Plain] = found["parameters"]
        self.names = (
            tuple(row["name"] for row in self.parameters) if found.get("named", True) else ()
        )
        self.direction: str = found["direction"]
        self.noun: str = found["noun"]
        self.uses_context = bool(found.get("uses_context"))
        self.path = str(found.get("path") or f"{self.name}.db")  # of its file, on the server
        words = {row["name"]: row.get("choices") for row in self.parameters}
        self._choices = {name: choices for name, choices in words.items() if choices}

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name} at {self.caller.where})"

    def __enter__(self) -> "RemoteStudy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[RemoteTrial]:
        return iter(self.trials())

    def close(self) -> None:
        """Closes the connection; the study stays as it is.

        >>> study.close()
        """
        self.caller.close()

    # -- ask and tell --

    def ask(
        self,
        n: int | None = None,
        *,
        at: object = None,
        lease: float | None = LEASE,
        worker: str | None = None,
    ) -> list[RemoteTrial]:
        """`n` trials (1 unless said), lent for `lease` seconds (an hour; None: without end).

        `at="mean"` is the mean policy, a mapping parameters of your own. `worker` is who asks, for
        people to read. It gives a list of `RemoteTrial`.

        Raises `Refused` where the server says no: a study that is paused, say.

        >>> [trial] = study.ask(worker="left arm")
        >>> trial.kind, trial.status, trial.worker
        ('drawn', 'pending', 'left arm')
        """
        body = {"lease": lease, "worker": worker, "at": at if at is None else self._at(at)}
        if n is not None:
            body["n"] = check_count("n", n)
        rows = self._post("ask", body, TRIALS)["trials"]
        for row in rows:  # somebody rolls them out
            if wrong := astray(self.parameters, row["params"]):
                raise self.caller.stranger(f"it gives out {wrong}")
        return [self._trial(row) for row in rows]

    def tell(
        self,
        id: int | Sequence[int],
        value: Given = None,
        *,
        values: Sequence[float] | None = None,
        failed: str | None = None,
        trajectory: Given = None,
        also: Given = None,
        context: Given = None,
    ) -> Receipt:
        """What came of a trial: a return, several of its episodes, or why it failed; a `Receipt`.

        `id` is the trial's number and `value` its return, or `values` and `failed` in its place;
        `also` and `context` are numbers told beside it, as `Study.tell` takes them. A method that
        explores in action space is told a `trajectory` of one episode. With a list of ids and one
        of returns or trajectories, all of them or, if one is refused, none.

        Raises `Refused` where the server says no, with its sentence.

        >>> [trial] = study.ask()
        >>> study.tell(trial.id, 9.7).later
        False
        """
        if isinstance(id, (list, tuple, np.ndarray)):
            return self._tell_all(list(id), value, trajectory, also, context)
        more = {"values": values, "failed": failed, "trajectory": trajectory}
        body = _result(value, **more, also=also, context=context)
        found = self._post(f"trials/{_number_of(id)}/tell", body, {**RECEIPT, "trial": TRIAL})
        trial = self._trial(found["trial"])
        return Receipt(trial, found["until_move"], found.get("slip"), found["later"])

    def _tell_all(self, ids: list[int], *given: Given) -> Receipt:
        """Of each trial its return or trajectory, and what is told beside it, or None of all."""
        n = len(ids)
        listed = [[None] * n if x is None else list(x) for x in given]
        if any(len(x) != n for x in listed):
            raise InputError("several trials are told with a list of ids and one of returns.")
        rows = [
            {"id": _number_of(id), **_result(x, trajectory=t, also=a, context=c)}
            for id, x, t, a, c in zip(ids, *listed, strict=True)
        ]
        found = self._post("tell", rows, RECEIPT)
        return Receipt(None, found["until_move"], found.get("slip"), found["later"])

    def enqueue(self, theta: Given, note: str | None = None) -> None:
        """Puts parameters of your own in line for the next `ask`.

        `theta` is by name or in order, `note` says why, for people.

        Raises `Refused` where a parameter is missing, unknown or outside of its bounds.

        >>> study.enqueue({"gain": 20, "offset": 0.9})
        >>> study.ask()[0].kind
        'own'
        """
        self._post("enqueue", {"params": self._by_name("theta", theta), "note": note})

    def cancel(self, id: int, why: str | None = None) -> Answer:
        """Says that a trial will not be rolled out; `id` is its number, and `why` is kept.

        Raises `Refused` where there is no such trial, or it has a result.

        >>> [trial] = study.ask()
        >>> print(study.cancel(trial.id, why="the arm is away"))
        Trial ... is cancelled: ...
        """
        return Answer(self._post(f"trials/{_number_of(id)}/cancel", {"why": why}, dict))

    def renew(self, id: int, seconds: float = LEASE, *, worker: str | None = None) -> None:
        """Keeps a trial for so many `seconds` from now, if it is still that `worker`'s.

        `id` is its number.

        Raises `Refused` where another has it by now.

        >>> [trial] = study.ask(worker="left arm")
        >>> study.renew(trial.id, 600, worker="left arm")
        """
        body = {"seconds": seconds, **_given(worker=worker)}
        self._post(f"trials/{_number_of(id)}/lease", body)

    def give_back(self, id: int, *, worker: str | None = None) -> None:
        """Ends the lease of a trial: it is handed out again by the next `ask`.

        `id` is its number, `worker` who has it.

        Raises `Refused` where another has it by now.

        >>> [trial] = study.ask(worker="left arm")
        >>> study.give_back(trial.id, worker="left arm")
        """
        self.renew(id, GIVEN_BACK, worker=worker)

    def amend(
        self,
        id: int,
        value: Given = None,
        *,
        drop: str | None = None,
        why: str | None = None,
        dry_run: bool = False,
        **result: Given,
    ) -> Answer:
        """Puts a result right; `changes` of the answer says what changed.

        With `dry_run` it says what would change, and nothing does. `id` is the trial's number,
        `value` its return as it should have been, or `result` is `values`, `failed`,
        `trajectory`, `also` or `context`, as `tell` takes them. `drop` says why it is worth
        nothing, `why` why it is amended.

        Raises `Refused` where the trial has no result, or what is given cannot be one.

        >>> answer = study.amend(3, 7.5, why="typed 75", dry_run=True)
        """
        body = _given(drop=drop, why=why)
        body |= _result(value, **result) | {"dry_run": dry_run}
        return Answer(self._post(f"trials/{_number_of(id)}/amend", body, dict))

    def note(self, text: str, trial: int | None = None) -> None:
        """Writes down something about the study, or about one of its trials.

        `text` is what to write, `trial` the number of a trial, if it is about one.

        Raises `Refused` for an empty text, and for a trial that is not there.

        >>> study.note("new gripper")
        """
        self._post("note", {"text": text, "trial": trial})

    def pause(self) -> None:
        """Nobody is given trials until `resume`: `ask` says since when.

        >>> study.pause()
        >>> study.resume()
        """
        self._post("pause", {})

    def resume(self) -> None:
        """Trials are given again.

        >>> study.pause()
        >>> study.resume()
        """
        self._post("resume", {})

    # -- what is known --

    def facts(self) -> Plain:
        """The study in short: parameters, counts, results until the next move, mean and spread.

        >>> study.facts()["direction"]
        'maximize'
        """
        found: Plain = self.caller.get(self._root, FACTS)
        return found

    @property
    def title(self) -> str | None:
        """What the study is called; another may be given at any time.

        >>> study.title = "Pushing boxes"
        >>> study.title
        'Pushing boxes'
        """
        return self.facts().get("title")

    @title.setter
    def title(self, text: str | None) -> None:
        self._post("title", {"title": text or ""}, verb="PUT")

    @property
    def batch(self) -> int:
        """How many results the next move waits for.

        >>> study.batch
        12
        """
        return int(self.facts()["batch"])

    def until_move(self) -> int:
        """How many results are missing until the distribution moves again.

        >>> study.until_move() <= 12
        True
        """
        return int(self.facts()["until_move"])

    def counts(self) -> dict[str, int]:
        """How many trials are pending, ok and failed.

        >>> list(study.counts())
        ['pending', 'ok', 'failed']
        """
        found = self.facts()["counts"]
        return {key: found[key] for key in ("pending", "ok", "failed")}

    @property
    def mean_policy(self) -> Plain | np.ndarray:
        """The mean of the newest distribution, by name; an array `[D]` where they have none.

        `recommend` says whether to deploy it.

        >>> list(study.mean_policy)
        ['gain', 'offset']
        """
        found: Plain = self.facts()["mean"]
        return found if self.names else np.array(list(found.values()), float)

    def trials(self) -> list[RemoteTrial]:
        """All trials by number, with what came of them.

        >>> study.trials()[0].status
        'ok'
        """
        found: list[RemoteTrial] = []
        after: int | None = 0
        limit = min(PAGE_OF_TRIALS, PAGE_OF_NUMBERS // (len(self.parameters) or 1) or 1)
        while after is not None:
            page = self.caller.get(f"{self._root}/trials", PAGE, after=after, limit=limit)
            found += [self._trial(row) for row in page["trials"]]
            before, after = after, page.get("next")
            if after is not None and after <= before:
                raise self.caller.stranger("its pages have no end")
        return found

    def waiting(self) -> list[Answer]:
        """The trials that wait for a result: since when, who has them, how long leases run.

        >>> asked = study.ask(worker="left arm")
        >>> study.waiting()[-1].worker
        'left arm'
        """
        return [
            Answer(row)
            for row in self.caller.get(f"{self._root}/waiting", {"trials": [dict]})["trials"]
        ]

    def snapshot(self) -> Plain:
        """Everything one may say about the study, as `Study.snapshot().plain()`.

        >>> study.snapshot()["method"]
        'recoup'
        """
        found: Plain = self.caller.get(f"{self._root}/snapshot", dict)
        return found

    def evaluate(self, mean: Given = None, std: Given = None) -> Answer:
        """The expected return of a candidate distribution, at no rollout.

        `mean` and `std`, by name, in order or one number for all, are the candidate: the newest
        distribution unless given.

        Equation: `shelton2001 normalised importance weights`.

        Raises `Refused` where the candidate is no distribution of the study.

        >>> print(study.evaluate(mean={"gain": 30, "offset": 1}, std=0.3).words[:19])
        37 results, by a mo
        """
        body = {"mean": self._by_name("mean", mean), "std": self._by_name("std", std)}
        return Answer(self._post("evaluate", body, dict))

    def predict(self, params: Given) -> Answer:
        """The expected return of parameters that need not have been tried, at no rollout.

        `params` are by name or in order.

        Raises `Refused` for an unknown name.

        >>> print(study.predict({"offset": 1}))
        The expected return is ...
        """
        body = {"params": self._by_name("params", params)}
        return Answer(self._post("predict", body, dict))

    def recommend(self, *, worth: float | None = None, budget: int | None = None) -> Answer:
        """The parameters to deploy, what they are worth, and whether to go on; no rollout.

        `worth` and `budget` are as `Study.recommend` takes them.

        Raises `Refused` before the first results.

        >>> study.recommend()["verdict"]
        'go on'
        """
        return Answer(self._post("recommend", {"worth": worth, "budget": budget}, dict))

    def changes(self, since: object, wait: float = 30.0) -> Plain:
        """Waits until the study is another than in version `since`, at most `wait` seconds.

        It gives the version that it has then, and what is new since.

        Raises `Refused` unless `since` is a whole number.

        >>> "version" in study.changes(since=0, wait=1)
        True
        """
        longer = min(LONGEST_WAIT, max(0.0, check_number("`changes(wait=...)`", wait)))
        where = f"{self._root}/changes"
        found: Plain = self.caller.get(where, dict, longer=longer, since=since, wait=wait)
        return found

    # -- between here and there --

    def _post(self, path: str, body: object, shape: Given = object, verb: str = "POST") -> Given:
        return self.caller.post(f"{self._root}/{path}", body, shape, verb)

    def _trial(self, row: Plain) -> RemoteTrial:
        """A trial as the server writes it."""
        kept = {key: row[key] for key in TRIAL if row.get(key) is not None}
        named, std = kept.pop("params"), kept.pop("std", None)
        how = {"params": named if self.names else {}, "values": list(named.values())}
        how["std"] = None if std is None else np.array(std, float)
        return RemoteTrial(**how, choices=self._choices, **kept)

    def _at(self, at: Given) -> object:
        return at if isinstance(at, str) else self._by_name("at", at)

    def _by_name(self, what: str, given: Given) -> Plain | None:
        """Values by name, as the server takes them; given so, in order, or one for all."""
        if given is None or isinstance(given, Mapping):
            return None if given is None else {str(k): _value(what, x) for k, x in given.items()}
        names = [row["name"] for row in self.parameters]
        one = isinstance(given, (int, float, np.generic))
        listed = [given] * len(names) if one else list(np.asarray(given, object).ravel())
        if len(listed) != len(names):
            raise InputError(
                f"{what} must hold {len(names)} values, one each of {', '.join(names)}; got "
                f"{len(listed)}."
            )
        return {name: _value(what, x) for name, x in zip(names, listed, strict=True)}


def _value(what: str, given: Given) -> float | int | str:
    """A value of a parameter as JSON takes it."""
    if isinstance(given, str):
        return given
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return int(given)
    return check_number(what, given)


def _result(value: Given = None, **more: Given) -> Plain:
    """What came of a trial as the server takes it, which checks it."""
    body: Plain = {} if value is None else {"return": _value("a return", value)}
    for key, given in more.items():
        if key not in TOLD:
            raise InputError(f"there is no {key!r} to tell: {', '.join(TOLD)}.")
        if given is None or key == "failed":
            body |= _given(failed=given)
        elif key == "trajectory":
            body[key] = episode(given)
        elif isinstance(given, Mapping):
            body[key] = {k: None if x is None else _value(str(k), x) for k, x in given.items()}
        else:
            body[TOLD[key]] = [_value(TOLD[key], x) for x in given]
    return body


def _given(**fields: Given) -> Plain:
    return {key: value for key, value in fields.items() if value is not None}


def _number_of(id: object) -> int:
    return check_count("the id of a trial", id)
