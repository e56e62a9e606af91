"""`recoup.Study`: ask for trials, tell what came of them, at any time and in any order."""

import json
import time
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError, check_count, check_finite, check_stds, check_vector
from recoup.estimation import estimate
from recoup.methods import DEFAULT_METHOD, Method, method_row, settings_of
from recoup.study.file import StudyFile, packed, unpacked
from recoup.study.moves import Results, move, start, window

PENDING, OK, FAILED = "pending", "ok", "failed"
LEAST, COVERED = 3.0, 0.2  # effective sample size and share of the candidate that are needed


class Trial(NamedTuple):
    """One theta to roll out, and a seed for the episode's randomness."""

    id: int
    theta: np.ndarray
    seed: int


class Told(NamedTuple):
    """What came of a trial."""

    status: str
    value: float | None
    stderr: float | None  # over the episodes of one theta
    episodes: int | None
    note: str | None


class Evaluation(NamedTuple):
    """The expected return of a distribution, from results that others drew."""

    mean: float  # not a number where the results say nothing
    stderr: float
    ess: float
    pareto_k: float
    samples: int
    words: str  # what that means


class Study:
    """A search that lives in a file. A trial is on disk before `ask` returns it, a result before
    it counts; the distribution moves after every `batch` finite results, whichever proposal drew
    them.
    """

    def __init__(self, file: StudyFile) -> None:
        self._file = file
        self.settings = file.settings()
        own = {key: self.settings[key] for key in settings_of(self.settings["method"])}
        self.method: Method = method_row(self.settings["method"], **own)
        self.dim, self.batch = self.settings["dim"], self.settings["batch"]

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        dim: int | None = None,
        method: str | None = None,
        mean: Any = None,
        std: Any = None,
        batch: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> "Study":
        """The study in `path`; a new one if there is none, which needs at least `dim`.

        An existing study goes on with the settings it was made with; others given here must agree.
        """
        path = Path(path)
        named = {"dim": dim, "method": method, "mean": mean, "std": std}
        every = {**named, "batch": batch, "seed": seed, **settings}
        given = {key: value for key, value in every.items() if value is not None}
        if path.exists():
            study = cls(StudyFile.open(path))
            study._check_same(given)
            return study
        if dim is None:
            raise InputError(f"there is no study in {path}: give `dim` to start one.")
        resolved = _resolved(given)
        own = {key: resolved[key] for key in settings_of(resolved["method"])}
        row = method_row(resolved["method"], **own)
        memory = start(row, np.asarray(resolved["mean"]), np.asarray(resolved["std"]))
        return cls(StudyFile.create(path, resolved, memory))

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    # -- ask --

    def ask(self, n: int = 1) -> list[Trial]:
        """`n` trials, drawn from the newest distribution, on disk before they are returned."""
        n = check_count("n", n)
        self._settle()
        with self._file.writing() as file:
            proposal, mean, std = file.execute(
                "SELECT id, mean, std FROM proposals ORDER BY id DESC LIMIT 1"
            ).fetchone()
            (last,) = file.execute("SELECT COALESCE(MAX(id), 0) FROM trials").fetchone()
            trials = [self._drawn(last + i, unpacked(mean), unpacked(std)) for i in range(1, n + 1)]
            file.executemany(
                "INSERT INTO trials (id, proposal, theta, seed, status, asked_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (trial.id, proposal, packed(trial.theta), trial.seed, PENDING, time.time())
                    for trial in trials
                ],
            )
        return trials

    def _drawn(self, number: int, mean: np.ndarray, std: np.ndarray) -> Trial:
        """The trial of a number: its randomness depends on the study's seed and nothing else."""
        generator = np.random.Generator(np.random.Philox(key=[self.settings["seed"], number]))
        seed = int(generator.integers(2**31))
        return Trial(number, mean + std * generator.standard_normal(self.dim), seed)

    # -- tell --

    def tell(
        self,
        id: int | Sequence[int],
        value: Any = None,
        *,
        values: Sequence[float] | None = None,
        failed: str | None = None,
    ) -> None:
        """What came of a trial: a return, several of its episodes, or why it failed.

        On disk when this returns. The same told again is accepted, something else is refused. With
        lists of ids and returns, all of them or, if one is refused, none.
        """
        if isinstance(id, (int, np.integer)):
            self.tell_all([(int(id), _told(value, values, failed))])
            return
        if values is not None or failed is not None or np.shape(id) != np.shape(value):
            raise InputError("several trials are told with a list of ids and one of returns.")
        self.tell_all([(int(i), _told(v, None, None)) for i, v in zip(id, value, strict=True)])

    def tell_all(self, results: Sequence[tuple[int, Told]]) -> None:
        """Several results in one transaction: all of them, or none."""
        with self._file.writing() as file:
            for number, told in results:
                _write_result(file, self._file.path, number, told)
        self._settle()

    # -- what is known --

    def pending(self) -> list[Trial]:
        """The trials that wait for a result."""
        rows = self._file.rows(
            "SELECT id, theta, seed FROM trials WHERE status = ? ORDER BY id", (PENDING,)
        )
        return [Trial(number, unpacked(theta), seed) for number, theta, seed in rows]

    def counts(self) -> dict[str, int]:
        """How many trials are pending, ok and failed."""
        rows = self._file.rows("SELECT status, COUNT(*) FROM trials GROUP BY status")
        return {PENDING: 0, OK: 0, FAILED: 0, **dict(rows)}

    def until_move(self) -> int:
        """How many finite results are missing until the distribution moves again."""
        return self._newest()[4] + self.batch - self.counts()[OK]

    @property
    def mean(self) -> np.ndarray:
        """Means of the newest distribution `[D]`."""
        return unpacked(self._newest()[1])

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of the newest distribution `[D]`."""
        return unpacked(self._newest()[2])

    def history(self) -> list[dict[str, Any]]:
        """What every move was made of, in order."""
        rows = self._file.rows("SELECT id, results, info FROM proposals WHERE id > 0 ORDER BY id")
        return [{"move": i, "results": n, **json.loads(info)} for i, n, info in rows]

    @property
    def best(self) -> tuple[Trial, float] | None:
        """The trial with the highest return, and that return; None before the first."""
        query = "SELECT id, theta, seed, value FROM trials WHERE status = ? ORDER BY value DESC, id"
        rows = self._file.rows(query + " LIMIT 1", (OK,))
        return (
            None if not rows else (Trial(rows[0][0], unpacked(rows[0][1]), rows[0][2]), rows[0][3])
        )

    def evaluate(self, mean: Any = None, std: Any = None) -> Evaluation:
        """The expected return of a candidate distribution (the newest unless given), no rollout.

        Self-normalised weights against the mixture of all proposals. Where the results do not
        cover the candidate the answer is not a number, and `words` says so.
        """
        newest, finite = self._newest(), self.counts()[OK]
        if finite < 2:
            raise InputError(f"{self._file.path} has {finite} results: two are needed to evaluate.")
        target = tuple(
            np.broadcast_to(np.asarray(own if given is None else given, float), (self.dim,))
            for own, given in ((unpacked(newest[1]), mean), (unpacked(newest[2]), std))
        )
        return evaluation(self._results(newest[0], finite), target)

    # -- moves --

    def _newest(self) -> tuple[Any, ...]:
        query = "SELECT id, mean, std, memory, results FROM proposals ORDER BY id DESC LIMIT 1"
        return self._file.rows(query)[0]

    def _settle(self) -> None:
        """Makes the moves that the results told so far allow, each from a fixed set of them."""
        while True:
            number, mean, std, memory, used = self._newest()
            ((finite,),) = self._file.rows("SELECT COUNT(*) FROM trials WHERE status = ?", (OK,))
            if finite < used + self.batch:
                return
            results = window(self.method, self.batch, self._results(number, used + self.batch))
            moved = move(self.method, results, unpacked(mean), unpacked(std), json.loads(memory))
            with self._file.writing() as file:
                file.execute(  # another process may have made the same move: it is the same one
                    "INSERT OR IGNORE INTO proposals VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        number + 1,
                        packed(moved.mean),
                        packed(moved.std),
                        json.dumps(moved.memory),
                        used + self.batch,
                        json.dumps(moved.info),
                        time.time(),
                    ),
                )

    def _results(self, newest: int, count: int) -> Results:
        """The first `count` finite results in the order of telling, and the proposals till then."""
        rows = self._file.rows(
            "SELECT theta, value, proposal FROM trials WHERE status = ? ORDER BY told LIMIT ?",
            (OK, count),
        )
        query = "SELECT mean, std FROM proposals WHERE id <= ? ORDER BY id"
        drew = [(unpacked(mean), unpacked(std)) for mean, std in self._file.rows(query, (newest,))]
        return Results(
            theta=np.stack([unpacked(theta) for theta, *_ in rows]),
            returns=np.array([value for _, value, _ in rows]),
            proposal=np.array([proposal for *_, proposal in rows]),
            means=np.stack([mean for mean, _ in drew]),
            stds=np.stack([std for _, std in drew]),
        )

    def _check_same(self, given: dict[str, Any]) -> None:
        """Refuses settings that differ from those the study was made with."""
        for key, value in given.items():
            mine: Any = self.settings.get(key)
            is_vector = isinstance(mine, list)
            asked = np.broadcast_to(value, (len(mine),)).tolist() if is_vector else value
            if asked != mine:
                raise InputError(
                    f"the study in {self._file.path} was made with {key}={mine!r}, not {value!r}: "
                    "leave it out to go on, or start another study in another file."
                )


def evaluation(results: Results, target: tuple[np.ndarray, ...]) -> Evaluation:
    """What `results` say about the distribution `target`, mean and std."""
    samples: dict[str, Any] = {
        "theta": results.theta,
        "returns": results.returns,
        "proposals": (results.means, results.stds),
        "proposal": results.proposal,
        "target": target,
        "baseline": "none",
    }
    plain = estimate(**samples)
    coverage = float(np.mean(plain.weights))  # one, where the results cover the candidate
    found = estimate(**samples, normalize=True)
    n, ess, k = len(results.returns), float(plain.ess), float(plain.pareto_k)
    if ess < LEAST or coverage < COVERED:
        words = (
            f"the {n} results count for {ess:.1f} and cover {coverage:.0%} of this candidate: they "
            "say nothing about it."
        )
        return Evaluation(float("nan"), float("nan"), ess, k, n, words)
    trust = "its error cannot be trusted" if k > 0.7 else "its error can be trusted"
    words = f"{n} results that count for {ess:.1f}; Pareto k-hat {k:.2f}: {trust}."
    return Evaluation(float(found.objective), float(found.objective_stderr), ess, k, n, words)


def _resolved(given: dict[str, Any]) -> dict[str, Any]:
    """All settings of a new study, every one checked, as plain values."""
    given = dict(given)
    dim = check_count("dim", given.pop("dim"))
    name = given.pop("method", DEFAULT_METHOD)
    batch = check_count("batch", given.pop("batch", 10))
    seed = check_count("seed", given.pop("seed", 0), least=0)
    mean, std = given.pop("mean", 0.0), given.pop("std", 1.0)
    row = method_row(name, **given)
    if row.space == "actions" or row.mirrored:
        raise InputError(f"a study cannot be made with {row.name} and these settings yet.")
    check_vector("mean", mean, dim)
    check_finite("mean", mean)
    check_vector("std", std, dim)
    check_stds("std", std)
    own = {key: getattr(row, key) for key in settings_of(name)}
    return {
        "method": name,
        "dim": dim,
        "batch": batch,
        "seed": seed,
        "mean": np.broadcast_to(np.asarray(mean, float), (dim,)).tolist(),
        "std": np.broadcast_to(np.asarray(std, float), (dim,)).tolist(),
        **own,
    }


def told_of(value: Any = None, failed: str | None = None) -> Told:
    """A result: a return, or why there is none."""
    return _told(value, None, failed)


def _told(value: Any, values: Sequence[float] | None, failed: str | None) -> Told:
    if sum(x is not None for x in (value, values, failed)) != 1:
        raise InputError("tell takes a value, `values=[...]` of several episodes, or `failed=...`.")
    if failed is not None:
        return Told(FAILED, None, None, None, str(failed))
    returns = np.array([_number(x) for x in (values if values is not None else [value])])
    if not returns.size:
        raise InputError("`values` must hold at least one return.")
    error = float(returns.std(ddof=1) / np.sqrt(returns.size)) if returns.size > 1 else None
    return Told(OK, float(returns.mean()), error, returns.size, None)


def _write_result(file: Any, path: Path, number: int, told: Told) -> None:
    """Writes what came of a trial, inside a transaction."""
    query = "SELECT status, value, note FROM trials WHERE id = ?"
    before = file.execute(query, (number,)).fetchone()
    if before is None:
        raise InputError(f"there is no trial {number} in {path}.")
    if before[0] != PENDING:
        _check_again(number, before, told)
        return
    (last,) = file.execute("SELECT COALESCE(MAX(told), 0) FROM trials").fetchone()
    file.execute(
        "UPDATE trials SET status = ?, value = ?, stderr = ?, episodes = ?, note = ?, told = ?, "
        "told_at = ? WHERE id = ?",
        (*told, last + 1, time.time(), number),
    )


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"a return must be a number, got {value!r}.")
    if not isfinite(value):
        raise InputError(
            f"a return must be finite, got {value}: report a failure with failed='what happened'."
        )
    return float(value)


def _check_again(number: int, before: tuple[Any, ...], told: Told) -> None:
    """Accepts what is told again, refuses what differs from it."""
    status, value, note = before
    if (told.status, told.value, told.note) == (status, value, note):
        return
    was = f"failed ({note})" if status == FAILED else value
    now = f"failed ({told.note})" if told.status == FAILED else told.value
    raise InputError(f"trial {number} was told {was} before, and now {now}: it stays as it was.")
