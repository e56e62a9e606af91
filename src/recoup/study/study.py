"""`recoup.Study`: ask for trials, tell what came of them, at any time and in any order."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recoup.checks import (
    InputError,
    check_choice,
    check_count,
    check_finite,
    check_shape,
    check_stds,
    check_vector,
)
from recoup.engine.methods import Method, settings_of
from recoup.store.file import (
    Exists,
    StudyFile,
    count,
    counters_of,
    damage,
    insert,
    packed,
    understood,
    unpacked,
)
from recoup.store.rows import (
    DRAWN,
    FAILED,
    FOREIGN,
    MEAN,
    MIRROR,
    OK,
    OWN,
    PENDING,
    Evaluation,
    Told,
    Trial,
    told_of,
    trial_number,
)
from recoup.store.transactions import Asked, put_densities, put_move, put_result, put_trials
from recoup.study.advice import advice, evaluation
from recoup.study.ledger import Ledger
from recoup.study.parameters import Parameter, to_latent, to_user
from recoup.study.settings import RUN, check_settings, method_of, resolved, shape_of

if TYPE_CHECKING:
    from recoup.study.fork import Imported
    from recoup.study.replay import Replayed


class Study:
    """A search that lives in a file. A trial is on disk before `ask` returns it, a result before
    it counts; the distribution moves after every `batch` finite results, whichever proposal drew
    them.

    With named parameters, thetas are in the user's units; `mean` and `std` are the latent ones,
    those of the Gaussian that is searched.
    """

    def __init__(self, file: StudyFile) -> None:
        self.file = file
        with understood(file.path):
            self.settings = file.settings()
            check_settings(self.settings)
            self.method: Method = method_of(self.settings)
            self.parameters = tuple(Parameter(**row) for row in self.settings.get("params", ()))
            self.shape = shape_of(self.settings)
        self.dim, self.batch = self.settings["dim"], self.settings["batch"]
        self.discount: float = self.settings.get("discount", 1.0)
        self.names = tuple(p.name for p in self.parameters)
        self._ledger: Ledger | None = None
        self._densities = 0  # the move whose densities the ledger has

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
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        horizon: int | None = None,
        actions: int | None = None,
        discount: float | None = None,
        **settings: Any,
    ) -> "Study":
        """The study in `path`; a new one if there is none, which needs `dim` or `params`.

        An existing study goes on with the settings it was made with; others given here must agree.
        `params` names the parameters, with bounds and scales if they have any: `{"stiffness": (10,
        200, "log"), "offset": None}`; `mean` is then in those units, `std` latent. A method that
        explores in action space needs `horizon`, and takes `actions` and `discount`.
        """
        path = Path(path)
        named = {"dim": dim, "method": method, "mean": mean, "std": std, "batch": batch}
        named |= {"seed": seed, "params": params}
        named |= {"horizon": horizon, "actions": actions, "discount": discount}
        given = {key: value for key, value in named.items() if value is not None} | settings
        if path.exists():
            return cls._opened(path, given)
        if dim is None and params is None:
            raise InputError(f"there is no study in {path}: give `dim` to start one.")
        settings = resolved(given)
        try:
            return cls.create(path, settings)
        except Exists:  # made by another process meanwhile
            return cls._opened(path, given)

    @classmethod
    def _opened(cls, path: Path, given: dict[str, Any]) -> "Study":
        file = StudyFile.open(path)
        try:
            study = cls(file)
            study._check_same(given)
        except BaseException:
            file.close()
            raise
        return study

    @classmethod
    def create(
        cls,
        path: Path,
        settings: dict[str, Any],
        then: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> "Study":
        """A new study of resolved settings, with what `then` writes in it from the beginning."""
        mean, std = (np.asarray(settings[key], float) for key in ("mean", "std"))
        return cls(StudyFile.create(path, settings, then, mean=mean, std=std, memory=[]))

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    # -- ask --

    def ask(self, n: int | None = None, *, at: str | None = None) -> list[Trial]:
        """`n` trials (1 unless said), on disk before they are returned.

        First what `enqueue` has put in line, then draws from the newest distribution; under
        mirrored sampling whole pairs, 2 unless said, and one more than `n` where a pair would be
        split. `at="mean"` gives the mean policy instead: a trial that is kept and reported, but no
        part of any estimate.
        """
        pairs = self.method.mirrored and at is None
        n = check_count("n", (2 if pairs else 1) if n is None else n)
        if at is not None:
            check_choice("at", at, ("mean",))
        self.refuse_run()
        self._settle()
        with self.file.writing() as file:
            (proposal, mean, std), last = self._newest(), counters_of(file).last
            waiting = [] if at else _waiting(file, n)
            new = [
                Asked(last + i, OWN, None, theta, self._seed(last + i))
                for i, (_, theta) in enumerate(waiting, 1)
            ]
            last, more = last + len(new), n - len(new)
            more += pairs and more % 2
            where = (proposal, unpacked(mean), unpacked(std))
            new += [
                self._drawn(last + i, at, pairs and i % 2 == 0, *where) for i in range(1, more + 1)
            ]
            put_trials(file, new)
            file.executemany("DELETE FROM queue WHERE id = ?", [(place,) for place, _ in waiting])
            counters = counters_of(file)
        self.file.note_count(counters)
        return [self._trial(*trial) for trial in new]

    def enqueue(self, theta: Any, note: str | None = None) -> None:
        """Puts a theta of one's own choice, in the user's units, in line for the next `ask`.

        Its result is kept and reported, and is no part of any estimate: no distribution drew it.
        """
        self.refuse_run()
        if isinstance(theta, Mapping):
            theta = self._by_name(theta)
        check_shape("`enqueue(theta=...)`", theta, "[D]", (self.dim,))
        check_finite("`enqueue(theta=...)`", theta)
        latent = to_latent(self.parameters, np.asarray(theta, float))
        with self.file.writing() as file:
            (last,) = file.execute("SELECT COALESCE(MAX(id), 0) FROM queue").fetchone()
            insert(file, "queue", [(last + 1, packed(latent), note)])

    def _drawn(
        self,
        number: int,
        at: str | None,
        mirror: bool,
        proposal: int,
        mean: np.ndarray,
        std: np.ndarray,
    ) -> Asked:
        """The trial of a number: its randomness depends on the study's seed and nothing else."""
        seed = self._seed(number)
        if at is not None:
            return Asked(number, MEAN, None, packed(mean), seed)
        if self.method.space == "actions":  # the policy draws the actions, not we the policy
            return Asked(number, DRAWN, proposal, packed(mean), seed)
        kind = MIRROR if mirror else DRAWN
        return Asked(number, kind, proposal, packed(self.theta(number, kind, mean, std)), seed)

    def theta(self, number: int, kind: str, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """The latent theta that the trial of a number has, drawn from (mean, std)."""
        mirror = kind == MIRROR
        noise = self._generator(number - mirror).standard_normal(self.dim)
        return mean - std * noise if mirror else mean + std * noise

    def _generator(self, number: int, use: int = 0) -> np.random.Generator:
        """Randomness for one use of the trial of a number."""
        key = [self.settings["seed"], 2 * number + use]
        return np.random.Generator(np.random.Philox(key=key))

    def _seed(self, number: int) -> int:
        return int(self._generator(number, 1).integers(2**31))

    # -- tell --

    def tell(
        self,
        id: int | Sequence[int],
        value: Any = None,
        *,
        values: Sequence[float] | None = None,
        failed: str | None = None,
        trajectory: Any = None,
    ) -> None:
        """What came of a trial: a return, several of its episodes, or why it failed.

        On disk when this returns. The same told again is accepted, something else is refused. With
        lists of ids and returns, all of them or, if one is refused, none. A method that explores in
        action space is told a `trajectory`, a `recoup.Trajectory` of one episode.
        """
        self.refuse_run()
        if isinstance(id, (int, np.integer)) and not isinstance(id, bool):
            told = self.result(value, values=values, failed=failed, trajectory=trajectory)
            self.tell_all([(int(id), told)])
            return
        if not isinstance(id, (list, tuple, np.ndarray)):
            raise InputError(f"the id of a trial must be a whole number, got {id!r}.")
        if values is not None or failed is not None:
            raise InputError("several trials are told with a list of ids and one of returns.")
        several = value if trajectory is None else trajectory
        if not isinstance(several, (list, tuple, np.ndarray)) or len(id) != len(several):
            raise InputError("several trials are told with a list of ids and one of returns.")
        key = "value" if trajectory is None else "trajectory"
        results = [self.result(**{key: v}) for v in several]
        self.tell_all([(trial_number(i), r) for i, r in zip(id, results, strict=True)])

    def result(self, value: Any = None, **how: Any) -> Told:
        """A result, checked, as `tell_all` takes it."""
        return told_of(value, **how, shape=self.shape, discount=self.discount)

    def tell_all(self, results: Sequence[tuple[int, Told]]) -> None:
        """Several results in one transaction: all of them, or none."""
        self.refuse_run()
        with self.file.writing() as file:
            for number, told in results:
                put_result(file, self.file.path, number, told)
            counters = counters_of(file)
        self.file.note_count(counters)
        if counters.fresh >= self.batch:
            self._settle()

    # -- what is known --

    def pending(self) -> list[Trial]:
        """The trials that wait for a result."""
        rows = self.file.rows(
            "SELECT id, kind, proposal, theta, seed FROM asked "
            "WHERE id NOT IN (SELECT id FROM told) ORDER BY id"
        )
        return [self._trial(*row) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many trials are pending, ok and failed; foreign samples are among the ok."""
        trials, ok, failed, *_ = self.file.counters()
        return {PENDING: trials - ok - failed, OK: ok, FAILED: failed}

    def until_move(self) -> int:
        """How many finite results are missing until the distribution moves again."""
        return max(self.batch - self.file.counters().fresh, 0)

    @property
    def mean(self) -> np.ndarray:
        """Means of the newest distribution `[D]`, latent where parameters are named."""
        return unpacked(self._newest()[1])

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of the newest distribution `[D]`; in action space sigma `[A]`."""
        return unpacked(self._newest()[2])

    @property
    def mean_policy(self) -> np.ndarray:
        """The mean of the newest distribution in the user's units, the theta to deploy."""
        return self.in_units(self.mean)

    def history(self) -> list[dict[str, Any]]:
        """What every move was made of, in order."""
        rows = self.file.rows("SELECT id, counted, info FROM moves WHERE id > 0 ORDER BY id")
        return [{"move": i, "results": n, **json.loads(info)} for i, n, info in rows]

    def distributions(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Latent means and standard deviations after every move; 0 is the start."""
        rows = self.file.rows(
            "SELECT moves.id, mean, std FROM moves "
            "JOIN proposals ON proposals.id = moves.proposal ORDER BY moves.id"
        )
        return {number: (unpacked(mean), unpacked(std)) for number, mean, std in rows}

    def diagnostics(self) -> dict[str, Any]:
        """How the search fares, in numbers and, under `advice`, in words."""
        with self.file.reading():
            return self._diagnostics()

    def _diagnostics(self) -> dict[str, Any]:
        counters = self.file.counters()
        number, *_, text, _ = self.file.one("moves", "ORDER BY id DESC LIMIT 1")
        ((foreign,),) = self.file.rows("SELECT COUNT(*) FROM asked WHERE kind = ?", (FOREIGN,))
        ((waiting,),) = self.file.rows(
            "SELECT COUNT(*) FROM asked WHERE kind IN (?, ?) AND id NOT IN (SELECT id FROM told)",
            (DRAWN, MIRROR),
        )
        unset = dict.fromkeys(("ess", "samples", "max_weight", "pareto_k", "objective"))
        found: dict[str, Any] = {
            **self.counts(),
            "imported": foreign,
            "waiting": waiting,
            "moves": number,
            "until_move": max(self.batch - counters.fresh, 0),
            **unset,
            **json.loads(text),
        }
        return {**found, "advice": advice(self.method, self.batch, found)}

    @property
    def best(self) -> tuple[Trial, float] | None:
        """The trial with the highest return, and that return; None before the first."""
        rows = self.file.rows(
            'SELECT asked.id, kind, proposal, theta, seed, "return" FROM told '
            "JOIN asked ON asked.id = told.id WHERE status = ? "
            'ORDER BY "return" DESC, asked.id LIMIT 1',
            (OK,),
        )
        return None if not rows else (self._trial(*rows[0][:5]), rows[0][5])

    def evaluate(self, mean: Any = None, std: Any = None) -> Evaluation:
        """The expected return of a candidate distribution (the newest unless given), no rollout.

        Self-normalised weights against the mixture of all proposals. Where the results do not
        cover the candidate the answer is not a number, and `words` says so. With named parameters
        `mean` is in the user's units and `std` latent.
        """
        from recoup.core.pareto import pareto_k
        from recoup.study.moves import judge

        with self.file.reading():
            target = (self.latent_mean(mean), self.latent_std(std))
            counted = self.file.counters().counted
            if counted < 2:
                raise InputError(
                    f"{self.file.path} has {counted} results of its own distributions: two are "
                    "needed to evaluate."
                )
            found = judge(self.method, self._all_results(), counted, *target)
        coverage = float(np.sum(found.weights)) / max(found.samples, 1)
        k = pareto_k(found.weights)
        return evaluation(found.objective, found.stderr, found.ess, k, found.samples, coverage)

    # -- other archives, other methods --

    def import_samples(
        self, theta: Any, returns: Any, mean: Any = None, std: Any = None
    ) -> "Imported":
        """Adds samples from elsewhere, `[n, D]` in the user's units, and their returns `[n]`.

        `mean` and `std` are of what drew them: a number, `[D]`, or `[n, D]` for one each; without
        them a Gaussian is fitted to the samples, and marked as such.
        """
        from recoup.study.fork import Samples, import_samples

        mean, std = (None if x is None else np.asarray(x) for x in (mean, std))
        samples = Samples(np.asarray(theta), np.asarray(returns), mean, std)
        return import_samples(self, samples)

    def fork(self, path: str | Path, **changes: Any) -> "Study":
        """A new study that starts from all results of this one, with their densities.

        `changes` are its settings where they differ: method, batch, seed, mean, std, or any of the
        method. It starts where this one has come to, unless they say otherwise.
        """
        from recoup.study.fork import fork

        return fork(self, path, **changes)

    def replay(self, method: str | None = None, **settings: Any) -> "list[Replayed]":
        """How another method would have moved on the same results, at no rollout."""
        from recoup.study.replay import replay

        return replay(self, method, **settings)

    def export(self, path: str | Path) -> int:
        """All trials as a table, CSV or, by the name's ending, Parquet; how many there are."""
        from recoup.study.tables import export

        return export(self, Path(path))

    # -- moves --

    def _settle(self) -> None:
        """Makes the moves that the results told so far allow, each from a fixed set of them."""
        while not self.file.read_only and self._move():
            pass

    def _move(self) -> bool:
        """Makes the next move, if one is due; another process may make it too: it is the same."""
        with self.file.reading():
            if self.file.counters().fresh < self.batch:
                return False
            number, _, before, memory, *_ = self.file.one("moves", "ORDER BY id DESC LIMIT 1")
            newest, mean, std = self._newest()
            upto, new, late = self._next_mark(before, newest)
            ledger = self._results_of_move(number)
        from recoup.study.moves import move

        rho = unpacked(mean), unpacked(std)
        how = (self.method, self.discount, ledger, upto, new)
        moved = move(*how, *rho, json.loads(memory))
        kept = ledger is self._ledger  # and its densities with it
        with self.file.writing() as file:
            (last,) = file.execute("SELECT MAX(id) FROM moves").fetchone()
            if last != number:
                return True
            info = {**moved.info, "late": late}
            put_move(file, number + 1, upto, moved.mean, moved.std, moved.memory, info)
            counters = counters_of(file)
            count(file, counters._replace(fresh=counters.fresh - new))
            if kept:
                put_densities(file, number + 1, moved.own[len(ledger.own) :], moved.mixture)
        if kept:
            ledger.own, ledger.mixture, self._densities = moved.own, moved.mixture, number + 1
        return True

    def _next_mark(self, before: int, newest: int) -> tuple[int, int, int]:
        """The place up to which the next move takes results, how many are new, how many late."""
        rows = self.file.rows(
            "SELECT told.counted, told.id, status, kind, proposal FROM told "
            "JOIN asked ON asked.id = told.id WHERE counted > ? ORDER BY counted",
            (before,),
        )
        new = late = 0
        for place, number, status, kind, proposal in rows:
            if kind == FOREIGN:
                continue
            ready = int(status == OK)
            if self.method.mirrored:
                partner = number - 1 if kind == MIRROR else number + 1
                ready += self.file.one("told", "WHERE id = ?", (partner,))[1] == OK
            new += ready
            late += ready if proposal != newest else 0
            if new >= self.batch:
                return place, new, late
        raise InputError(damage(self.file.path, "its counters are higher than its rows"))

    def _results_of_move(self, number: int) -> Ledger:
        """What the next move is made of: all results, or those of the last `window` batches.

        A method without weights leaves out those from elsewhere.
        """
        window, weighted = self.method.window, self.method.weighting != "none"
        if window is None and weighted:
            return self._all_results()
        first = 0 if window is None else max(number + 1 - window, 0)
        where = "WHERE id <= ? ORDER BY id DESC LIMIT 1"
        after = self.file.one("moves", where, (first,))[2] if first else 0
        return Ledger(self.file, self.shape, self.batch, self.method.mirrored, after, weighted)

    def _all_results(self) -> Ledger:
        """All results, and their densities as the last move left them."""
        if self._ledger is None:
            self._ledger = Ledger(self.file, self.shape, self.batch, self.method.mirrored)
        ((last,),) = self.file.rows("SELECT MAX(id) FROM moves")
        if last != self._densities:
            for table in ("own", "mixture"):
                rows = self.file.read(table, "WHERE id <= ? ORDER BY id", (last,))
                known = np.concatenate([np.zeros(0), *(unpacked(row[1]) for row in rows)])
                setattr(self._ledger, table, known)
            self._densities = last
        return self._ledger

    def _newest(self) -> tuple[int, bytes, bytes]:
        """Id, means and standard deviations of the newest distribution."""
        number, _, mean, std = self.file.one(
            "proposals", "WHERE id = (SELECT proposal FROM moves ORDER BY id DESC LIMIT 1)"
        )
        return number, mean, std

    # -- small parts --

    def in_units(self, latent: np.ndarray) -> np.ndarray:
        """Latent values `[..., D]` in the user's units."""
        return to_user(self.parameters, latent)

    def method_settings(self) -> dict[str, Any]:
        """The settings of the method that the study was made with."""
        return {key: self.settings[key] for key in settings_of(self.method.name)}

    def _trial(
        self,
        number: int,
        kind: str,
        proposal: int | None,
        theta: bytes,
        seed: int,
    ) -> Trial:
        user = self.in_units(unpacked(theta))
        spread = None
        if self.method.space == "actions":
            rows = self.file.rows("SELECT std FROM proposals WHERE id = ?", (proposal,))
            spread = unpacked(rows[0][0]) if rows else self.std
        return Trial(number, user, seed, kind, spread, self.names)

    def _by_name(self, theta: Mapping[str, Any]) -> list[Any]:
        missing = [name for name in self.names if name not in theta]
        extra = [name for name in theta if name not in self.names]
        if missing or extra:
            raise InputError(
                f"the parameters are {', '.join(self.names) or 'not named'}; got "
                f"{', '.join(map(str, theta))}."
            )
        return [theta[name] for name in self.names]

    def latent_mean(self, mean: Any = None) -> np.ndarray:
        """A candidate's means, given in the user's units, as latent ones; the newest's if None."""
        if mean is None:
            return self.mean
        if isinstance(mean, Mapping):
            mean = self._by_name(mean)
        check_vector("mean", mean, self.dim)
        check_finite("mean", mean)
        return to_latent(self.parameters, np.broadcast_to(np.asarray(mean, float), (self.dim,)))

    def latent_std(self, std: Any = None) -> np.ndarray:
        """A candidate's standard deviations, latent as they are; the newest's if None."""
        if std is None:
            return self.std
        check_vector("std", std, self.shape.stds)
        check_stds("std", std)
        return np.broadcast_to(np.asarray(std, float), (self.shape.stds,)).copy()

    def refuse_run(self) -> None:
        """Refuses to ask or tell by hand where `recoup train` does so."""
        if RUN in self.settings:
            raise InputError(
                f"{self.file.path} belongs to a run of {self.settings[RUN]['task']}: `recoup "
                "resume` goes on with it, `recoup study fork` starts a study of your own from it."
            )

    def _check_same(self, given: dict[str, Any]) -> None:
        """Refuses settings that differ from those the study was made with."""
        if not given:
            return
        asked = resolved({**self._as_given(), **given})
        for key in given:
            mine, other = self.settings.get(key), asked.get(key)
            if mine != other:
                raise InputError(
                    f"the study in {self.file.path} was made with {key}={_short(mine)}, not "
                    f"{_short(given[key])}: leave it out to go on, or start another study in "
                    "another file."
                )

    def _as_given(self) -> dict[str, Any]:
        """What would make this study again, but for its start."""
        keys = ("dim", "method", "batch", "seed", "params", "horizon", "actions", "discount")
        return {key: self.settings[key] for key in keys if key in self.settings}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _waiting(connection: sqlite3.Connection, n: int) -> list[tuple[int, bytes]]:
    """What `enqueue` has put in line, at most `n`."""
    query = "SELECT id, theta FROM queue ORDER BY id LIMIT ?"
    return connection.execute(query, (n,)).fetchall()
