"""`recoup work`: a worker of a study that somebody serves."""

import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from recoup.checks import InputError, printable
from recoup.cli.app import JsonOption, app, argument, examples, fail, option, print_json, stop
from recoup.cli.parsing import duration, whole_option
from recoup.core.types import Plain

if TYPE_CHECKING:
    from recoup.serve.client import RemoteStudy
    from recoup.serve.remote_trials import RemoteTrial
    from recoup.serve.remote_worker import CameBack, Tally, Worker
    from recoup.tasks.engines.engine import Engine, Outcome

WORK_EXAMPLES = examples(
    "work http://127.0.0.1:8765/#token=... my_module:rollout",
    "work http://lab:8765 robot:rollout --workers 4 --episodes 100   (token: RECOUP_TOKEN)",
    "work http://lab:8765 robot:rollout --study arm --lease 10m",
)
Hear = Callable[["Tally", "CameBack | None"], None]


@app.command(epilog=WORK_EXAMPLES)
def work(
    url: Annotated[str, argument("The address that `recoup serve` prints.", "URL")],
    rollout: Annotated[
        str, argument("The function to call, module:name, as `recoup train` takes it.", "ROLLOUT")
    ],
    workers: Annotated[int, whole_option("Rollouts at a time, a process each.")] = 1,
    episodes: Annotated[
        int | None, whole_option("Results to tell, then end (unless said, until Ctrl-C).")
    ] = None,
    lease: Annotated[
        str,
        option(
            "For how long a trial is taken, again and again while it runs; where this program is "
            "killed, others get the trial so long after.",
            metavar="TIME",
        ),
    ] = "1h",
    study: Annotated[
        str | None, option("Which study, where several are served.", metavar="NAME")
    ] = None,
    patience: Annotated[
        str, option("How long to wait for a server that does not answer.", metavar="TIME")
    ] = "1h",
    timeout: Annotated[
        str | None, option("What a rollout may take, like 90s or 10m.", metavar="TIME")
    ] = None,
    token: Annotated[
        str | None, option("Unless in the address, or in RECOUP_TOKEN.", metavar="TOKEN")
    ] = None,
    certificate: Annotated[
        Path | None, option("Of a server with a certificate of its own, to be trusted.")
    ] = None,
    quiet: Annotated[bool, option("--quiet", "No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Roll out trials of a served study, and tell what came of them, until it is stopped."""
    from recoup.checks import check_count
    from recoup.serve.client import connect
    from recoup.serve.remote_worker import Settings, Worker

    seconds = duration("--lease", lease)
    limit = None if timeout is None else duration("--timeout", timeout)
    check_count("--workers", workers)
    if episodes is not None:
        check_count("--episodes", episodes)
    trusted = None if certificate is None else str(certificate)
    how: Plain = {
        "study": study,
        "patience": duration("--patience", patience),
        "certificate": trusted,
    }
    settings = Settings(episodes, seconds, f"{socket.gethostname()} {os.getpid()}")
    with _ending() as at_work, connect(url, token, on_wait=_waiting(), **how) as remote:
        hands = _hands(remote, rollout, min(workers, episodes or workers), limit)
        with hands as rolling, _shown(episodes, quiet or as_json) as hear:
            at_work.append(Worker(remote, rolling, settings, hear))
            tally = _until_stopped(at_work[0])
    if as_json:
        print_json({"told": tally.told, "failed": tally.failed, "refused": tally.refused})
    elif not quiet:
        print(_in_words(tally))
    if tally.refused:
        raise SystemExit(1)


class _Hands:
    """An engine of ours, given trials as the server names them."""

    def __init__(self, engine: "Engine") -> None:
        self.slots, self._engine = engine.slots, engine

    def submit(self, trial: "RemoteTrial") -> None:
        """Gives a trial to a process that has none."""
        from recoup.tasks.engines.engine import Job

        self._engine.submit(Job(trial.id, trial.theta, trial.seed, trial.params or None, trial.std))

    def wait(self, seconds: float) -> "Sequence[Outcome]":
        """What has come back by then."""
        return self._engine.wait(seconds)


@contextmanager
def _hands(
    remote: "RemoteStudy", rollout: str, workers: int, timeout: float | None
) -> Iterator[_Hands]:
    """Processes that call the function, which is found and called as `recoup train` does it."""
    from recoup.tasks.engines.processes import Processes
    from recoup.tasks.own.found import find
    from recoup.tasks.own.host import How, host_task

    dim = None if remote.names else len(remote.parameters)
    task = host_task(find(rollout, is_function=True), How(names=remote.names, dim=dim))
    engine = Processes(task.build, workers, timeout, os.getcwd())
    try:
        yield _Hands(engine)
    finally:
        engine.close()


def _until_stopped(worker: "Worker") -> "Tally":
    """Works; the first Ctrl-C finishes what runs, the second gives it back and ends."""

    def pressed(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        worker.stop()

    before = signal.signal(signal.SIGINT, pressed)
    try:
        return worker.work()
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ending() -> Iterator["list[Worker]"]:
    """However the work ends, a sentence says it, below a line for each result that was not told."""
    from recoup.serve.remote_worker import OnlyRaises
    from recoup.tasks.engines.engine import Broken

    at_work: list[Worker] = []
    try:
        try:
            yield at_work
        finally:
            untold = [line for worker in at_work for line in _by_hand(worker)]
            for line in untold:
                print(printable(line), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        stop(f"stopped{_given_back(at_work)}.")
    except (Broken, OnlyRaises) as broken:
        for line in broken.trace.splitlines():
            print(printable(line), file=sys.stderr)
        fail(str(broken), 1)
    except ConnectionError as gone:
        fail(f"{str(gone).rstrip('.')}{_given_back(at_work)}.", 1)
    except InputError as wrong:
        fail(str(wrong), 1 if untold else 2)


def _by_hand(worker: "Worker") -> Iterator[str]:
    """Of each result that the server has not, what it is and the command that tells it."""
    from recoup.serve.remote_worker import in_words

    for trial, told, refused in worker.left.results:
        command = ["recoup", "study", "tell", worker.study.path, str(trial), *_typed(told)]
        why = "" if refused is None else f" ({refused.rstrip('.')})"
        yield (
            f"trial {trial} was not told{why}; its result: {in_words(told)}; by hand, where the "
            f"file is: {shlex.join(command)}"
        )


def _typed(told: Plain) -> list[str]:
    """A result as it is typed behind the number of its trial."""
    from recoup.serve.remote_worker import returns_of

    if "failed" in told:
        return ["--failed", told["failed"]]
    context = told.get("context")
    if context is None:
        context = {}
    elif not isinstance(context, Mapping):
        context = dict(enumerate(context, 1))  # the names that a study gives them
    known = [word for name, x in context.items() for word in ("--context", f"{name}={x}")]
    return [*map(repr, returns_of(told)), *known]


def _given_back(at_work: "list[Worker]") -> str:
    """What has become of the trials that were running, if any were, as the end of a sentence."""
    back = sum(worker.left.given_back for worker in at_work)
    kept = sum(worker.left.kept for worker in at_work)
    if not kept:
        return "; what was running is given back" if back else ""
    some = f" ({back} could)" if back else ""
    trials = "1 trial that was" if kept == 1 else f"{kept} trials that were"
    return (
        f"; {trials} running could not be given back{some}: others get what nobody has told once "
        "its lease has run out"
    )


def _waiting() -> Callable[[str, float], None]:
    """What says that the server does not answer yet, once for each reason."""
    said: set[str] = set()

    def waits(why: str, wait: float) -> None:
        if why not in said:
            print(f"no answer, trying again: {printable(why)}", file=sys.stderr, flush=True)
            said.add(why)

    return waits


@contextmanager
def _shown(episodes: int | None, quiet: bool) -> Iterator[Hear]:
    """What shows how the work goes: on a terminal in one line; what is in the way, anywhere."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    said = [""]
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        row = bar.add_task("", total=episodes)

        def hear(tally: "Tally", outcome: "CameBack | None") -> None:
            words = escape(printable(_now(tally)))
            bar.update(row, completed=tally.told, description=words)
            if not quiet and tally.says and tally.says != said[0]:
                console.print(escape(printable(tally.says)), highlight=False, soft_wrap=True)
            if not quiet and outcome is not None and outcome.failed is not None:
                why = f"trial {outcome.id} failed: {outcome.failed}"
                console.print(escape(printable(why)), highlight=False, soft_wrap=True)
            said[0] = tally.says

        yield hear


def _now(tally: "Tally") -> str:
    """How it goes, in a few words."""
    words = [f"{tally.out} running"]
    words += [f"{tally.failed} failed"] if tally.failed else []
    words += [f"{tally.refused} refused"] if tally.refused else []
    if tally.until_move is not None:
        words.append(f"{tally.until_move} until the next move")
    return ", ".join(words)


def _in_words(tally: "Tally") -> str:
    """What was done, in a sentence."""
    failed = f", {tally.failed} of them as failed" if tally.failed else ""
    refused = f"; the server refused {tally.refused}" if tally.refused else ""
    results = "1 result" if tally.told == 1 else f"{tally.told} results"
    return f"{results} told{failed}{refused}."
