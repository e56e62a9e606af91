"""Trials on a Ray cluster: one that is there, or one of this machine alone for as long as it takes.

Every worker is an actor of Ray's, which builds the task once and then rolls trials out one at a
time. Workers come when the cluster has room for them, and go with the nodes that they are on:
trials wait until there is a worker that has said that it is ready, and one that is lost is replaced
as soon as there is room again.
"""

import logging
import math
import os
import pickle
import re
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from recoup.checks import InputError, check_choice, check_count, not_installed, shortly
from recoup.core.types import Plain, Settings
from recoup.tasks.engines.attempt import reason
from recoup.tasks.engines.engine import Broken, Build, Job, Outcome
from recoup.tasks.engines.processes import pickled

CLUSTER_POLL = 1.0  # seconds between two looks at workers that say nothing
PAUSE, LONGEST = 0.5, 30.0  # seconds before a worker that could not build the task is replaced
ANSWER = 5.0  # seconds within which a cluster must answer
OBJECTS = 256 * 2**20  # bytes of memory that Ray's processes share here: trials are small
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # the first message of either side in HTTP/2,
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS  # which Ray speaks
AMOUNTS = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}  # as asked for, as counted
EXAMPLE = {"num_cpus": 2, "num_gpus": 0.5}
COLOUR = r"\x1b\[\d+m"  # on a terminal
WANTS = (*AMOUNTS, "resources", "accelerator_type", "label_selector")  # what a worker may want


class Cluster:
    """So many workers of a cluster, as far as it has room for them."""

    def __init__(
        self,
        build: Build,
        workers: int,
        timeout: float | None = None,
        address: str | None = None,
        resources: Settings | None = None,
        here: str = ".",
    ) -> None:
        """`timeout` is how many seconds a trial may take, from when a ready worker has got it.

        `address` is "auto", "host:port" or "ray://host:port"; without one, Ray runs on this machine
        until `close`, its workers in the directory `here`. If this process has connected to Ray
        already, that is used, and left as it is. Workers reserve `resources`, say {"num_cpus": 2}.
        """
        self.slots, self.timeout = check_count("workers", workers), timeout
        self._ray = _ray()
        wants = {"num_cpus": 1, **_checked(resources)}
        self._host, sent = _host_of(self._ray, wants), pickled(build)
        self._ours = _connected(self._ray, address, self.slots, wants)
        path = [os.path.abspath(os.path.join(here, entry)) for entry in sys.path]
        self._path, self._here = path if address is None else [], os.path.abspath(here)
        self._build = self._ray.put(sent)  # once, for all workers
        self._waiting: deque[Job] = deque()
        self._ever_ready = False
        self._failures, self._trouble = 0, ""  # builds that failed in a row, and the last reason
        self._workers = [self._start() for _ in range(self.slots)]
        self._due: list[float] = []  # when workers that are missing are asked for

    def submit(self, job: Job) -> None:
        """Gives a trial to a worker, or keeps it until one is ready."""
        self._waiting.append(job)
        self._give()

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """What has finished, failed or was given up."""
        until = math.inf if seconds is None else time.monotonic() + seconds
        while self._waiting or any(worker.job for worker in self._workers):
            outcomes = self._looked(until)
            if outcomes or time.monotonic() >= until:
                return outcomes
        return []

    def words(self) -> str:
        """How many workers there are, and what keeps others from being ready."""
        ready = sum(worker.ready for worker in self._workers)
        text = f"{ready} of {self.slots} workers ready"
        return f"{text} ({self._trouble})" if self._failures and ready < self.slots else text

    def close(self) -> None:
        """Ends every worker; Ray too, if it was started here."""
        workers, self._workers = self._workers, []
        self._waiting.clear()
        if self._ray.is_initialized():  # or it would be started to end them
            for worker in workers:
                self._end(worker)
            if self._ours:
                self._ray.shutdown(wait_for_processes=True)
        if self._ours:
            _hush(self._ray, False)
            self._ours = False

    def _start(self) -> "_Worker":
        """A worker that builds the task, as soon as there is room for it."""
        actor = self._host.remote(self._path, self._here if self._ours else ".")
        return _Worker(actor, actor.built.remote(self._build))

    def _give(self) -> None:
        """Gives trials that wait to workers that are ready and have none."""
        for worker in self._workers:
            if self._waiting and worker.ready and worker.job is None:
                worker.take(self._waiting.popleft())

    def _looked(self, until: float) -> list[Outcome]:
        """What is found when workers are looked at, once one has said something or it is time."""
        self._ask_again()
        self._give()
        asked = {worker.said: worker for worker in self._workers if worker.said is not None}
        heard = self._heard_of(list(asked), self._seconds_left(until))
        found = [self._heard(asked[said]) for said in heard]
        silent = [worker for said, worker in asked.items() if said not in heard]
        late = f"it took longer than {self.timeout or 0:g} s"
        found += [self._lost(worker, late) for worker in silent if self._late(worker)]
        self._give()
        return [outcome for outcome in found if outcome is not None]

    def _heard_of(self, said: list[Any], seconds: float) -> list[Any]:
        """Answers that have come; the first of them is waited for."""
        if not said:
            time.sleep(seconds)
            return []
        heard, _ = self._ray.wait(said, num_returns=1, timeout=seconds)
        if heard and len(said) > 1:
            heard, _ = self._ray.wait(said, num_returns=len(said), timeout=0)
        return heard

    def _seconds_left(self, until: float) -> float:
        """How long nothing needs to be done, unless a worker says something."""
        times = [until, *self._due]
        if self.timeout is not None:
            times += [worker.since + self.timeout for worker in self._workers if worker.job]
        return min(CLUSTER_POLL, max(min(times) - time.monotonic(), 0.0))

    def _late(self, worker: "_Worker") -> bool:
        """Whether its trial has taken too long."""
        if self.timeout is None or worker.job is None:
            return False
        return time.monotonic() - worker.since > self.timeout

    def _heard(self, worker: "_Worker") -> Outcome | None:
        """What a worker has said, or why it says no more."""
        errors = self._ray.exceptions
        try:
            said = self._ray.get(worker.said)
        except errors.RayTaskError as wrong:  # it lives; what was to run there could not
            why = reason(getattr(wrong, "cause", None) or wrong)
            if worker.ready:
                return self._lost(worker, why)
            return self._unbuilt(worker, why, re.sub(COLOUR, "", str(wrong)))
        except errors.RayError as wrong:
            return self._lost(worker, f"its worker was lost: {_why_lost(wrong)}")
        worker.said = None
        if worker.ready:
            worker.job = None
            return pickle.loads(said)
        if said is not None:
            return self._unbuilt(worker, *said)
        self._ever_ready = worker.ready = True
        self._failures = 0
        return None

    def _unbuilt(self, worker: "_Worker", why: str, trace: str) -> Outcome | None:
        """Gives the task up if it was never built, and replaces the worker if it was elsewhere."""
        if not self._ever_ready:
            raise Broken(f"the task cannot be built: {why}", trace)
        return self._lost(worker, f"its worker could not build the task: {why}")

    def _lost(self, worker: "_Worker", why: str) -> Outcome | None:
        """Replaces a worker; the trial that it had has failed.

        One that never was ready is replaced after a pause. It had no trial; but where no other
        worker is ready, the trial that waits longest fails for it, so that none waits for ever.
        """
        self._end(worker)
        self._workers.remove(worker)
        if worker.ready:
            self._workers.append(self._start())
            return worker.failed(why)
        self._failures, self._trouble = self._failures + 1, why
        pause = min(PAUSE * 2.0 ** min(self._failures - 1, 10), LONGEST)
        self._due.append(time.monotonic() + pause)
        if self._waiting and not any(other.ready for other in self._workers):
            return Outcome(self._waiting.popleft().id, failed=why)
        return None

    def _ask_again(self) -> None:
        """Asks for workers that are missing, once it is time to."""
        now = time.monotonic()
        self._workers += [self._start() for due in self._due if due <= now]
        self._due = [due for due in self._due if due > now]

    def _end(self, worker: "_Worker") -> None:
        """Kills a worker, or takes back that it was asked for."""
        with suppress(self._ray.exceptions.RayError):  # it may be gone, or not yet known
            self._ray.kill(worker.actor, no_restart=True)


@dataclass(eq=False)
class _Worker:
    """One actor, what it was asked last, and the trial that it has."""

    actor: Any
    said: Any  # a reference to what it will say: that it is ready, then what came of its trial
    job: Job | None = None
    ready: bool = False
    since: float = field(default_factory=time.monotonic)

    def take(self, job: Job) -> None:
        """Gives it a trial."""
        self.job, self.since = job, time.monotonic()
        self.said = self.actor.rolled.remote(pickle.dumps(job))

    def failed(self, why: str) -> Outcome | None:
        """What came of the trial that it had, if it had one."""
        if self.job is None:
            return None
        return Outcome(self.job.id, failed=why, seconds=time.monotonic() - self.since)


def _host_of(ray: ModuleType, wants: Settings) -> Any:
    """The class of actors.

    It is made here, and imports when it is called: Ray then sends it as it is, and it starts
    without this package, which is looked for along the path that comes with it.
    """

    class Host:
        def __init__(self, path: list[str], here: str) -> None:
            os.chdir(here)
            sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
            os.dup2(2, 1)  # what the task prints, so that it ends up on no one's standard output

        def built(self, build: bytes) -> tuple[str, str] | None:
            import cloudpickle

            from recoup.tasks.engines.attempt import Raised, theirs

            try:
                with theirs():
                    self.roller = cloudpickle.loads(build)()
            except Raised as wrong:
                return wrong.words, wrong.trace
            return None

        def rolled(self, job: bytes) -> bytes:
            from recoup.tasks.engines.attempt import attempt

            return pickle.dumps(attempt(self.roller, pickle.loads(job)))

    try:
        return ray.remote(Host).options(**wants)
    except (TypeError, ValueError) as wrong:
        raise InputError(f"resources must be what a Ray actor can reserve: {wrong}.") from None


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError:
        raise not_installed("the Ray engine needs Ray", "ray") from None
    return ray


def _checked(resources: Settings | None) -> Plain:
    """What a worker wants, once it is made of what it may want."""
    if resources is None:
        return {}
    if not isinstance(resources, Mapping):
        got = shortly(resources)
        raise InputError(f"resources must be a mapping such as {EXAMPLE}, got {got}.")
    return {check_choice("resources", name, WANTS): amount for name, amount in resources.items()}


def _connected(ray: ModuleType, address: str | None, workers: int, wants: Settings) -> bool:
    """Connects to Ray, which may be started for it; whether there is anything to undo."""
    if ray.is_initialized():
        return False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        _check_answers(address)
    sentence = "Ray cannot be started" if address is None else f"Ray at {address} cannot be used"
    _hush(ray, True)
    try:
        with _own_handler():
            if address is None:
                cpus = max(workers, math.ceil(workers * (wants["num_cpus"] or 0)))
                room = {"num_cpus": cpus, "object_store_memory": OBJECTS}
                ray.init("local", include_dashboard=False, **room, **quiet)
                _check_room(ray, wants)
            else:
                ray.init(address, **quiet)
    except BaseException as wrong:
        ray.shutdown()
        _hush(ray, False)
        if isinstance(wrong, InputError) or not isinstance(wrong, Exception):
            raise
        raise InputError(f"{sentence}: {reason(wrong)}{_hint(wrong)}") from None
    return True


def _hint(wrong: Exception) -> str:
    """What may be missing where a cluster is there and does not let us in."""
    if not isinstance(wrong, ConnectionError) or "RAY_AUTH_MODE" in os.environ:
        return "."
    return "; if it asks for a token, set RAY_AUTH_MODE=token."


def _check_room(ray: ModuleType, wants: Settings) -> None:
    """Raises if not even one worker will ever find what it wants on this machine."""
    has = ray.cluster_resources()
    asked = {AMOUNTS[name]: amount for name, amount in wants.items() if name in AMOUNTS}
    for name, amount in {**asked, **(wants.get("resources") or {})}.items():
        if amount and amount > has.get(name, 0):
            raise InputError(
                f"a worker is to reserve {amount:g} {name}, and this machine has "
                f"{has.get(name, 0):g}: give the address of a cluster that has it."
            )


def _check_answers(address: str) -> None:
    """Raises unless something like Ray answers there: Ray itself would try for minutes."""
    where = _where(address)
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"address must be auto, host:port or ray://host:port, got {address!r}.")
    named = address if address == where else f"{address} ({where})"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWER) as link:
            link.sendall(GREETING)
            encrypted = os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")
            if encrypted or link.recv(len(SETTINGS))[3:4] == SETTINGS[3:4]:
                return
    except (OSError, OverflowError) as wrong:
        raise InputError(f"no Ray cluster answers at {named}: {reason(wrong)}.") from None
    raise InputError(f"no Ray cluster answers at {named}, but something else.")


def _where(address: str) -> str:
    """Where "auto" is."""
    if address != "auto":
        return address
    from ray._private.services import get_ray_address_from_environment

    try:
        return get_ray_address_from_environment("auto", None)
    except ConnectionError:
        sentence = "no Ray cluster runs here: `ray start --head` starts one; or give its host:port."
        raise InputError(sentence) from None


@contextmanager
def _own_handler() -> Iterator[None]:
    """Keeps the handler of SIGTERM, which Ray would replace with one that leaves as `exit` does.

    Where there was none, that of Ray is better: with it, Ray's processes end with this one. It is
    set once more, since Ray's libraries have set another before it, which writes a stack trace.
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main else None
    try:
        yield
    finally:
        if before is not None:
            theirs = signal.getsignal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, theirs if before == signal.SIG_DFL else before)


def _hush(ray: ModuleType, quiet: bool) -> None:
    """Keeps Ray, which has no setting for it, from writing of lost workers to standard output."""
    ray._private.worker._worker_logs_enabled = not quiet


def _why_lost(wrong: Exception) -> str:
    """Shortly what Ray says at length."""
    text = " ".join(str(wrong).split())
    if type(wrong).__name__ == "OutOfMemoryError":
        return "its node ran out of memory"
    if "its node has died" in text:
        return "its node has died"
    if "its worker process has died" in text:
        return "its process has died (killed? out of memory?)"
    return f"{type(wrong).__name__}: {text[:200]}"
