"""`recoup.Study`: ask for trials, tell what came of them, at any time and in any order.

Longer than others: every door of a study stands here; what is behind them stands elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recoup.checks import (
    AT_ONCE,
    InputError,
    check_choice,
    check_count,
    check_path,
    check_text,
    shortly,
)
from recoup.core.types import Given, Plain, Rho, Settings
from recoup.engine.methods import Method
from recoup.store.errors import Exists
from recoup.store.rows import FAILED, OK, PENDING, Told
from recoup.store.store import Store
from recoup.study.care.amend import Amended, Amendment, amend, result_instead
from recoup.study.exchange.fork import fork
from recoup.study.exchange.imported import Imported
from recoup.study.exchange.proposals import of_family
from recoup.study.exchange.replay import Replayed, replay
from recoup.study.exchange.samples import import_samples, samples_given
from recoup.study.exchange.tables import export
from recoup.study.exchange.unseen_choices import places_given
from recoup.study.moves.first import first_proposal
from recoup.study.moves.settling import Job, MoveMaker, at_once
from recoup.study.reader.batches import check_not_given
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import Named, Trial, TrialResult
from recoup.study.reader.settings import check_same, parts_given, resolved
from recoup.study.run.ends import of_its_run
from recoup.study.space.contexts import beside, check_alike, context_given
from recoup.study.space.goals import turned_row
from recoup.study.trials.ask import ask, enqueue, in_line
from recoup.study.trials.diary import (
    Cancelled,
    Note,
    cancel,
    check_same_title,
    check_title,
    notes,
    set_title,
    title,
    write_note,
)
from recoup.study.trials.leases import ToldLater, Waiting, check_lease, tell, told_later, waiting
from recoup.study.trials.results import for_each, told_of, told_within, trial_number
from recoup.study.views.by_weights import WeighedMean, weighed
from recoup.study.views.diagnostics import diagnostics, evaluate
from recoup.study.views.in_notebook import as_html
from recoup.study.views.listing import best, dataframe, trials
from recoup.study.views.log import Happened, log
from recoup.study.views.plot_data import plot
from recoup.study.views.snapshot import Snapshot, snapshot
from recoup.study.views.study_summary import in_a_line, mean_policy
from recoup.study.voice.evaluation import Evaluation
from recoup.study.voice.predict import Prediction, predict
from recoup.study.voice.recommend import Recommendation, recommend
from recoup.study.voice.suggesting import Suggestion, suggestion

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class Study:
    """A search that lives in a file: it is asked for trials, and told what came of them.

    A trial is on disk before `ask` returns it, a result before it counts; the distribution moves
    after every `batch` results, whichever proposal drew them. `recoup.Study.open` makes a study,
    and opens one.

    With named parameters, thetas are in the user's units; `mean` and `std` are the latent ones,
    those of the Gaussian that is searched. A study may be used in a `with` block, which closes it;
    it may be gone through, trial by trial; `len(study)` is how many trials there are.

    >>> study = recoup.Study.open("mine.db", dim=2, seed=0)
    >>> [trial] = study.ask()
    >>> study.tell(trial.id, -float(trial.theta @ trial.theta))
    []
    >>> study
    Study('mine.db', recoup, 2 parameters, 1 result, 0 moves)

    Longer than others: its methods are doors, each with its words; what they do stands beside.
    """

    def __init__(self, store: Store, parts: Settings | None = None) -> None:
        """`parts` are those of the method that only Python can give."""
        self.opened = Opened(store, parts)
        self.store, self.settings = store, self.opened.settings
        self.method: Method = turned_row(self.opened.method, self.opened.sign)  # as it was told
        self.parameters, self.names = self.opened.parameters, self.opened.names
        self.dim = self.opened.dim
        self._mover = MoveMaker(self.opened)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        dim: int | None = None,
        method: str | Method | None = None,
        mean: Given = None,
        std: Given = None,
        batch: int | None = None,
        seed: int | None = None,
        params: Settings | Sequence[Given] | None = None,
        title: str | None = None,
        return_unit: str | None = None,
        limits: Settings | Sequence[str] | None = None,
        within: float | None = None,
        read_only: bool = False,
        **settings: Given,
    ) -> "Study":
        """The study in `path`; a new one if there is none, which needs `dim` or `params`.

        An existing study goes on with the settings it was made with; others given here must agree.
        A move that was due when its last process was killed is made now.

        `dim` is the number of parameters D. `params` names them instead, with bounds and scales if
        they have any: `{"stiffness": (10, 200, "log"), "offset": None}`, or each as a mapping,
        which may give a unit: `{"low": 10, "high": 200, "scale": "log", "unit": "N/m"}`. The search
        starts from `mean` and `std`, each a number or `[D]`: `mean` in the units of named
        parameters, `std` latent. `method` is a name of `recoup.METHODS`, a `recoup.Method` or a
        mover of yours; a `batch` of results makes a move: unless said, as many as the method is
        made for with so many parameters, which may grow (`study.batch` is that of the next move).
        All randomness follows from `seed`.

        Results are returns, larger is better; with `direction="minimize"` costs, smaller is better.
        `title` and `return_unit` are for people to read, as units are. `limits` are on numbers
        that are told beside a return, `["force<50", "clearance>=0.1"]` or `{"force": "<50"}`: each
        is kept where a rollout lies within it with the probability `within` (0.95 unless said).
        `return_above=0` says that no result can be below 0, `return_below` what none can be above:
        others are refused, and no interval reaches there.
        `settings` are the method's: `failure=-20` says what failing is worth, `window=5` forgets,
        `update="adam"` (of `method="mis-pgpe-ob"`) has a
        memory. A method that explores in action space needs `horizon`, and takes `actions` and
        `discount`.

        With `read_only` an existing study is read, also while others write to it: nothing is
        written, no move is made, and what would write is refused. Any number of threads may use a
        study at once.

        Raises `InputError` where a setting cannot be used or differs from the study's own, where
        the file is damaged, and where there is none and neither `dim` nor `params` is given.

        >>> again = recoup.Study.open("robot.db")  # the settings are in the file
        >>> again
        Study('robot.db', recoup, 2 parameters, 36 results, 3 moves)
        >>> recoup.Study.open("robot.db", batch=5)
        Traceback (most recent call last):
        ...
        recoup.checks.InputError: ...
        """
        path = check_path("the study's file", path)
        named = {"dim": dim, "method": method, "mean": mean, "std": std, "batch": batch}
        named |= {"seed": seed, "params": params, "return_unit": return_unit, **settings}
        named |= {"limits": limits, "within": within}
        check_not_given(settings)
        given = {key: value for key, value in named.items() if value is not None}
        given |= {key: None for key in settings if settings[key] is None and key in UNSET}
        called = None if title is None else check_title(title)
        if path.exists() or read_only:
            return cls._opened(path, given, called, read_only)
        if dim is None and params is None:
            raise InputError(f"there is no study in {path}: give `dim` to start one.")
        try:
            return cls.create(path, resolved(given), parts_given(given), called)
        except Exists:  # made by another process meanwhile
            return cls._opened(path, given, called)

    @classmethod
    def _opened(
        cls, path: Path, given: Plain, called: str | None, read_only: bool = False
    ) -> "Study":
        store = Store.open(path, read_only)
        try:
            study = cls(store, parts_given(given))
            check_same(path, study.settings, given)
            if called is not None:
                check_same_title(store, called)
            study._mover.catch_up()
        except BaseException:
            store.close()
            raise
        return study

    @classmethod
    def create(
        cls,
        path: Path | None,
        settings: Plain,
        parts: Settings | None = None,
        title: str | None = None,
    ) -> "Study":
        """A new study of resolved settings; without a path it lives as long as the process.

        `path` is a Path or None, `settings` are what `study.settings` of another study holds,
        `parts` those of its method that only Python can give, `title` is for people. `open` is what
        one calls.

        Raises `InputError` where there is a file at `path`, which stays as it is.

        >>> recoup.Study.create(None, study.settings)
        Study(':memory:', recoup, 2 parameters, 0 results, 0 moves)
        """
        start = first_proposal(settings, parts)
        if path is None:
            return cls(Store.in_memory(settings, start), parts)
        then = None if not title else lambda store: set_title(store, title)
        return cls(Store.create(path, settings, start, then=then), parts)

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; nothing is lost without it, for everything told is on disk.

        >>> study.close()
        >>> study
        Study('robot.db', recoup, 2 parameters, closed)
        """
        self.store.close()

    def __repr__(self) -> str:
        return in_a_line(self.opened)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __len__(self) -> int:
        return self.store.counters().trials

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self.trials())

    def __bool__(self) -> bool:
        return True  # a study without trials is one too

    # -- ask and tell --

    def ask(
        self, n: int | None = None, *, at: str | None = None, lease: float | None = None
    ) -> list[Trial]:
        """`n` trials (1 unless said), on disk before they are returned: a list of `Trial`.

        First what `enqueue` has put in line, then draws from the newest distribution; under
        mirrored sampling whole pairs, 2 unless said, and one more than `n` where a pair would be
        split. `at="mean"` gives the mean policy instead: no move is made of it, and no weight given
        to it, but `recommend` and `predict` learn from it.

        What has no result `lease` seconds later is handed out again by the next `ask` (but one at
        the mean) before anything else, the oldest first: the same trials, with that call's lease.

        Raises `InputError` unless `n` is a whole number of at least 1, `at` "mean" and `lease`
        positive.

        >>> [trial.id for trial in study.ask(3)]
        [37, 38, 39]
        >>> [trial] = study.ask(at="mean")
        >>> trial.kind
        'mean'
        """
        pairs = self.method.mirrored and at is None
        n = check_count("n", (2 if pairs else 1) if n is None else n, most=AT_ONCE)
        if at is not None:
            check_choice("at", at, ("mean",))
        lease = check_lease(lease)
        self._mover.settle()
        return self.opened.trials(ask(self.opened, n, at, lease))

    def enqueue(self, theta: Given, note: str | None = None) -> None:
        """Puts a theta of one's own choice, in the user's units, in line for the next `ask`.

        `theta` is `[P]` in order, or all parameters by name; `note` says why, for people. No move
        is made of its result, and no weight is given to it, since no distribution drew it;
        `recommend`, `predict` and `best` look at it as at any other.

        Raises `InputError` where a parameter is missing, unknown or outside of its bounds, and in
        the study of a run.

        >>> study.enqueue({"gain": 20, "offset": 0.9}, note="as it was delivered")
        >>> [trial] = study.ask()
        >>> trial.kind, trial.params["offset"]
        ('own', 0.9)
        """
        latent = self.opened.latent_theta(theta)
        note = None if note is None else check_text("note", note)
        with self.store.writing():
            enqueue(self.opened, latent, note)

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
    ) -> list[ToldLater]:
        """What came of a trial: a return, several of its episodes, or why it failed.

        `id` is the trial's number and `value` its return; in place of that `values`, the returns of
        several episodes, or `failed`, why there is none. With lists of ids and returns, all of them
        are told or, if one is refused, none. A method that explores in action space is told a
        `trajectory`, a `recoup.Trajectory` of one episode.

        `also={"force": 41}` are numbers beside it, one each for the whole trial: those that have a
        limit, and any others, which are kept; None for one that is not known.
        `context={"payload": 2.5}`, or a list of numbers, is what was known before it began and does
        not depend on what was tried: moves take off of the returns what it explains.

        On disk when this returns. Of a trial that was handed out again the first result counts;
        another is kept, and returned here as a `ToldLater`: a list, mostly empty.

        Raises `InputError` for a return that is not finite, an unknown trial, and another result
        than the one that was told before (the same told again is accepted); nothing is changed
        then.

        >>> first, second, third = study.ask(3)
        >>> study.tell(first.id, 9.7)
        []
        >>> study.tell(second.id, values=[9.1, 9.6, 8.8])
        []
        >>> study.tell(third.id, failed="the gripper slipped")
        []
        """
        if isinstance(id, (int, np.integer)) and not isinstance(id, bool):
            how = {"values": values, "failed": failed, "trajectory": trajectory, "also": also}
            told = self.result(value, **how, context=context)
            return self.tell_all([(id, told)])
        if not isinstance(id, (list, tuple, np.ndarray)):
            raise InputError(f"the id of a trial must be a whole number, got {shortly(id)}.")
        several = value if trajectory is None else trajectory
        listed = isinstance(several, (list, tuple, np.ndarray)) and len(id) == len(several)
        if values is not None or failed is not None or not listed:
            raise InputError("several trials are told with a list of ids and one of returns.")
        key = "value" if trajectory is None else "trajectory"
        each = for_each("also", also, len(several)), for_each("context", context, len(several))
        rows = zip(several, *each, strict=True)
        results = [self.result(**{key: v, "also": a, "context": c}) for v, a, c in rows]
        return self.tell_all(list(zip(id, results, strict=True)))

    def settle(self, writing: Callable[[Job], bool] = at_once) -> None:
        """Makes the moves that results allow which were told without them, as `ask` does by itself.

        `writing` does what writes a move: by another thread, where one alone writes to the file.

        Raises `InputError` where the study was opened with `read_only`.

        >>> study.settle()
        """
        self._mover.writing = writing
        self._mover.settle()

    def result(self, value: Given = None, **how: Given) -> Told:
        """A result, checked, as `tell_all` takes it.

        `value` and `how` are what `tell` takes: `values`, `failed`, `trajectory`, `also`,
        `context`.

        Raises `InputError` where they cannot be a result.

        >>> study.result(9.7, also={"force": 41}).also
        {'force': 41.0}
        """
        study = self.opened
        how["also"] = beside(how.get("also"), how.pop("context", None))
        how |= {"layout": study.layout, "discount": study.discount, "noun": study.goal.noun}
        told = told_of(value, **how)
        study.ends.check(study.goal.noun, told.value, how.get("values"))
        return told_within(study.limits, told, how["also"])

    @property
    def uses_context(self) -> bool:
        """Whether moves look at what was known before trials.

        >>> study.uses_context
        True
        """
        return self.method.way.rule and self.method.context

    def with_context(self, told: Told, context: Given) -> Told:
        """A result, checked, with what was known before its trial.

        `told` is what `result` gives, `context` numbers by name or in order.

        Raises `InputError` where the context has other names than those told before.

        >>> study.with_context(study.result(9.7), {"payload": 2.5}).value
        9.7
        """
        found = told._replace(also={**(told.also or {}), **context_given(context)})
        check_alike(self.store, [found])
        return found

    def tell_all(self, results: Sequence[tuple[int, Told]]) -> list[ToldLater]:
        """Several results in one transaction: all of them, or none.

        `results` are pairs of a trial's number and what `result` gave. It gives, as `tell` does,
        those that are kept and do not count, as their trial was handed out again and told before.

        Raises `InputError` where one of them is refused, and then none is told.

        >>> trials = study.ask(2)
        >>> study.tell_all([(trial.id, study.result(9.0)) for trial in trials])
        []
        """
        numbered = [(trial_number(id, self.store.where), told) for id, told in results]
        with self.store.writing():
            later = tell(self.opened, numbered)
            fresh = self.store.counters().fresh
        if fresh >= self.batch:
            self._mover.settle()
        return later

    def amend(
        self,
        id: int,
        value: Given = None,
        *,
        values: Sequence[float] | None = None,
        failed: str | None = None,
        trajectory: Given = None,
        also: Given = None,
        context: Given = None,
        drop: str | None = None,
        why: str | None = None,
        dry_run: bool = False,
        writing: Callable[[Job], bool] = at_once,
    ) -> Amended:
        """Puts a result right that was told wrongly: another return, a failure, or none at all.

        `id` is the trial's number; `value`, `values`, `failed` and `trajectory` are the result as
        it should have been, as `tell` takes them. Numbers beside it that are not given with `also`,
        and those known before it that are not given with `context`, stay as they were; either alone
        puts only them right. In action space another `trajectory`, or "before", the one that an
        amendment took away.

        `drop` says why it is worth nothing (a loose sensor): it is kept, and counts for nothing.
        What it was, when it was told and `why` it is amended stay in the file. Every move that was
        made of it is made again from the results; what the old ones drew keeps the densities that
        drew it. `dry_run` says what would change, and changes nothing. `writing` does what writes,
        as in `settle`.

        Raises `InputError` where the trial has no result yet, or what is given cannot be one.

        >>> study.amend(3, 7.5, why="typed 75").moves
        [1, 2, 3]
        >>> study.amend(4, drop="the sensor was loose", dry_run=True).words
        'Trial 4: ...'
        """
        number = trial_number(id, self.store.where)
        given = {"value": value, "values": values, "failed": failed, "trajectory": trajectory}
        given |= {"also": also, "context": context}
        told = result_instead(self.opened, number, drop, **given)
        why = None if why is None else check_text("why", why)
        asked = Amendment(number, told, drop is not None, why)
        found = amend(self.opened, asked, dry=dry_run, writing=writing)
        if not dry_run:
            self.settle(writing)
        said = of_its_run(self.opened, number, found.moves, told, drop=asked.drop, dry=dry_run)
        return found._replace(words=f"{found.words} {said}".strip())

    def cancel(self, id: int, why: str | None = None) -> Cancelled:
        """Says that a trial will not be rolled out: it is not handed out or waited for any more.

        `id` is the trial's number, and stays in the file with `why`. The trial counts for nothing
        unless it is told all the same: then its result counts. Of a mirrored pair both are
        cancelled. What failed, or would have been dangerous, is better told as `failed`: of a
        cancelled trial the search learns nothing.

        Raises `InputError` where there is no such trial, or it has a result.

        >>> [trial] = study.ask()
        >>> study.cancel(trial.id, why="the arm is away").trials
        [37]
        """
        why = None if why is None else check_text("why", why)
        number = trial_number(id, self.store.where)
        with self.store.writing():
            return cancel(self.store, number, why)

    def note(self, text: str, trial: int | None = None) -> None:
        """Writes down something about the study, or about one of its trials, with the time.

        `text` is what to write, `trial` the number of a trial, if it is about one.

        Raises `InputError` for an empty text, and for a trial that is not there.

        >>> study.note("new gripper", trial=3)
        >>> study.notes()[0].text
        'new gripper'
        """
        number = None if trial is None else trial_number(trial, self.store.where)
        with self.store.writing():
            write_note(self.store, text, number)

    # -- what is known --

    @property
    def title(self) -> str | None:
        """What the study is called, if it was given a title; another may be given at any time.

        >>> study.title = "Pushing boxes"
        >>> study.title
        'Pushing boxes'
        """
        return title(self.store)

    @title.setter
    def title(self, text: str | None) -> None:
        called = check_title(text)
        with self.store.writing():
            set_title(self.store, called)

    def notes(self) -> list[Note]:
        """What was written down about the study and its trials, in order: a list of `Note`.

        >>> study.note("new gripper")
        >>> [note.text for note in study.notes()]
        ['new gripper']
        """
        return notes(self.store)

    def log(self) -> list[Happened]:
        """What happened when, in order: a list of `Happened`.

        >>> [entry.what for entry in study.log()][:4]
        ['created', 'asked', 'told', 'moved']
        """
        return log(self.opened)

    def queue(self) -> list[Plain]:
        """What `enqueue` has put in line: values by name or in order, and the note of each.

        >>> study.enqueue([20, 0.9], note="as it was delivered")
        >>> [row["note"] for row in study.queue()]
        ['as it was delivered']
        """
        return in_line(self.opened)

    def pending(self) -> list[Trial]:
        """The trials that wait for a result, a list of `Trial`.

        >>> asked = study.ask(2)
        >>> [trial.id for trial in study.pending()]
        [37, 38]
        """
        return self.opened.trials(self.store.pending())

    def waiting(self) -> list[Waiting]:
        """Trials without a result, when each was asked for and until when it is lent: `Waiting`.

        >>> asked = study.ask(lease=3600)
        >>> [row.trial.id for row in study.waiting()]
        [37]
        """
        return waiting(self.opened)

    def told_later(self) -> list[ToldLater]:
        """Results that came after the first of their trial: kept, and part of no move.

        >>> study.told_later()
        []
        """
        return told_later(self.store)

    def counts(self) -> dict[str, int]:
        """How many trials are pending, ok and failed; foreign samples are among the ok.

        Cancelled trials are none of them.

        >>> study.counts()
        {'pending': 0, 'ok': 36, 'failed': 0}
        """
        with self.store.reading():
            trials, ok, failed, *_ = self.store.counters()
            waiting = trials - ok - failed - len(self.store.cancelled())
        return {PENDING: waiting, OK: ok, FAILED: failed}

    @property
    def batch(self) -> int:
        """How many results the next move waits for.

        >>> study.batch
        12
        """
        return self.opened.batch

    def until_move(self) -> int:
        """How many results are missing until the distribution moves again.

        >>> study.until_move()
        12
        """
        return self.opened.until_move()

    def trials(self) -> list[TrialResult]:
        """All trials by number, with what came of them: a list of `TrialResult`.

        `for trial in study` gives the same.

        >>> max(study.trials(), key=lambda trial: trial.value).status
        'ok'
        """
        return trials(self.opened)

    def dataframe(self, *, full: bool = False) -> "pandas.DataFrame":
        """The trials as a table, where pandas is installed: what a person looks at.

        With `full` the table that `export` writes, with the distributions that drew them.

        Raises `InputError` where pandas is not installed.

        >>> len(study.dataframe())
        36
        """
        return dataframe(self.opened, full=full)

    @property
    def mean(self) -> np.ndarray:
        """Means of the newest distribution `[D]`, latent where parameters are named.

        >>> study.mean.shape
        (2,)
        """
        return self.opened.mean

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of the newest distribution `[D]`; in action space sigma `[A]`.

        >>> study.std.shape
        (2,)
        """
        return self.opened.std

    @property
    def mean_policy(self) -> np.ndarray | Named:
        """The mean of the newest distribution in the user's units.

        It is what one deploys in most cases, not in all: `recommend` says what.
        A mapping of the parameters' names, which NumPy takes as an array; an array `[D]` where
        they have none.

        >>> policy = study.mean_policy
        >>> f"{policy['offset']:.1f}"
        '1.1'
        """
        return mean_policy(self.opened)

    @property
    def frozen(self) -> Plain:
        """Parameters that are searched no more, with the values that every trial has them at.

        >>> study.frozen
        {}
        >>> study.fork("fixed.db", freeze={"gain": 20}).frozen
        {'gain': 20.0}
        """
        return {row.name: row.value for row in self.opened.frozen}

    def plot(self, path: str | Path | None = None, *, force: bool = False) -> "Figure":
        """A picture: results and estimates, the parameters over time, slices, health of reuse.

        Saved to `path` (.png, .pdf or .svg) if one is given, in place of an older picture of ours;
        with `force` in place of any other file but a study. It gives the figure of matplotlib.

        Raises `InputError` for another ending, and where a file is in the way.

        >>> figure = study.plot("robot.png")
        """
        return plot(self.opened, path, force=force)

    def history(self) -> list[Plain]:
        """What every move was made of, in order: numbers by name, as `Info.plain` has them.

        >>> [(move["move"], move["results"]) for move in study.history()]
        [(1, 12), (2, 24), (3, 36)]
        """
        return [
            {"move": move.id, "results": move.counted, **move.info}
            for move in self.store.moves()
            if move.id
        ]

    def distributions(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Latent means and standard deviations after every move; 0 is the start.

        >>> mean, std = study.distributions()[0]
        >>> mean, std
        (array([0., 0.]), array([1., 1.]))
        """
        return {mark.number: self.opened.shown(mark.numbers) for mark in self.opened.marks()}

    def snapshot(self) -> Snapshot:
        """Everything one may say about the study, of one moment, as a `Snapshot`.

        `plain()` of it is for JSON.

        >>> now = study.snapshot()
        >>> now.moves, now.until_move, now.verdict
        (3, 12, 'go on')
        """
        return snapshot(self)

    def diagnostics(self) -> Plain:
        """How the search fares, in numbers by name and, under `advice`, in sentences.

        >>> found = study.diagnostics()
        >>> found["samples"], found["moves"], found["advice"][0][:13]
        (36, 3, 'The last step')
        """
        with self.store.reading():
            return diagnostics(self.opened)

    @property
    def best(self) -> tuple[Trial, float] | None:
        """The trial with the highest return (or lowest cost), and that; None before the first.

        None that broke a limit, or lies outside of the bounds that a fork has made narrower.

        >>> trial, value = study.best
        >>> f"{value:.1f}, with an offset of {trial.params['offset']:.1f}"
        '10.0, with an offset of 1.0'
        """
        found = best(self.opened)
        return None if found is None else (self.opened.trials(found[:1])[0], found[1])

    def evaluate(self, mean: Given = None, std: Given = None) -> Evaluation:
        """The expected return of a candidate distribution, at no rollout: an `Evaluation`.

        `mean` and `std`, each a number, `[D]` or by name, are the candidate: the newest
        distribution unless given. With named parameters `mean` is in the user's units and `std`
        latent. Balance weights against the mixture of all proposals, self-normalised, and where it
        helps a model of the returns. Where the results do not cover the candidate the answer is not
        a number, and `words` says so.

        Equation: `shelton2001 normalised importance weights`, of weights by `veach1995 balance
        heuristic`.

        Raises `InputError` where the candidate is no distribution of the study, and before the
        first results.

        >>> found = study.evaluate(mean={"gain": 30, "offset": 1}, std=0.3)
        >>> print(f"{found.mean:.1f}, from {found.low:.1f} to {found.high:.1f}")
        9.6, from 9.5 to 9.6
        """
        return evaluate(self.opened, self._mover, mean, std)

    def weighed(self, mean: Given = None, std: Given = None) -> WeighedMean | None:
        """What weights alone say of a candidate, at once, as a `WeighedMean`.

        `evaluate` says it exactly. `mean` and `std` are the candidate, as `evaluate` takes them.
        None where the weights cannot be computed without JAX or a family of the user's.

        Equation: `kong1992 effective sample size`.

        Raises `InputError` where the candidate is no distribution of the study.

        >>> found = study.weighed()
        >>> 1 < found.ess < 36
        True
        """
        return weighed(self.opened, self._mover, mean, std)

    def suggest(self) -> Suggestion:
        """The parameters with the best lower end of their interval, of what results cover.

        None that keeps a limit less surely than `within`: where nothing is left, `words` says so.

        >>> study.suggest().words
        'The expected return is ...'
        """
        return suggestion(self.opened)

    def recommend(self, *, worth: float | None = None, budget: int | None = None) -> Recommendation:
        """The parameters to deploy, what they are worth, and whether to go on, at no rollout.

        `worth` is a difference in return that matters: a batch that should gain less than a tenth
        of it is not worth its trials. `budget` says how many trials are left: how many to search
        with, and how many to try the mean policy with. It gives a `Recommendation`, whose `words`
        say it all.

        Raises `InputError` unless `worth` is positive and `budget` a whole number, and before the
        first results.

        >>> found = study.recommend(budget=20)
        >>> found.verdict
        'go on'
        >>> print(f"{found.expected:.0f}")
        10
        """
        return recommend(self.opened, self._mover, worth, budget)

    def predict(self, params: Given) -> Prediction:
        """The expected return of parameters that need not have been tried, at no rollout.

        `params` are in the user's units, `[P]` in order or by name; those not named stay at the
        mean policy. It gives a `Prediction`. Where nothing near them was tried the answer is not a
        number, and `words` says so.

        Raises `InputError` for an unknown name, and for methods that explore in action space.

        >>> found = study.predict({"offset": 1})
        >>> print(f"{found.expected:.1f}")
        10.0
        """
        return predict(self.opened, params)

    # -- other archives, other methods --

    def import_samples(
        self,
        theta: Given,
        returns: Given,
        mean: Given = None,
        std: Given = None,
        *,
        rho: Rho = None,
        also: Given = None,
    ) -> Imported:
        """Adds samples from elsewhere, and what drew them; moves weigh them as their own.

        `theta` is `[n, P]` in the user's units, `returns` are `[n]`; not a number where one failed.
        `mean` and `std` are of what drew them, uncorrelated: a number, `[D]`, or `[n, D]` for one
        each; of a choice they are those of its latent numbers. `rho`, in place of both, are the
        packed numbers `[K]` or `[n, K]` of a distribution of the study's family. Without any a
        Gaussian is fitted to the samples, and marked as such. `also` are numbers beside the
        returns by name, `[n]` each.

        Raises `InputError` where shapes do not fit together, or a sample lies outside of the
        bounds.

        >>> theta, returns = [[20, 0.5], [30, 0.7]], [8.7, 9.5]
        >>> found = study.import_samples(theta, returns, mean=[25, 0.6], std=0.5)
        >>> found.samples, found.proposals
        (2, 1)
        """
        if rho is not None:
            rho = of_family(self.opened, "`import_samples(rho=...)`", self.opened.family, rho)
        theta = places_given(self.opened, theta)
        samples = samples_given(theta, returns, mean, std, also)._replace(blocks=rho)
        return import_samples(self.opened, samples)

    def fork(self, path: str | Path, **changes: Given) -> "Study":
        """A new study in `path` that starts from all results of this one, with their densities.

        `changes` are its settings where they differ: method, batch, seed, mean, std, or any of the
        method; other bounds, `freeze` and new parameters too, numbers or choices: `was` says what a
        new one was in all results so far. It starts where this one has come to, unless they say
        otherwise.

        Raises `InputError` where there is a file at `path`, or a setting cannot be used.

        >>> study.fork("wider.db", batch=20)
        Study('wider.db', recoup, 2 parameters, 36 results, 0 moves)
        >>> surface = {"choices": ["wood", "steel"], "was": "steel"}
        >>> study.fork("surfaces.db", params={"surface": surface}).names
        ('gain', 'offset', 'surface')
        """
        store, parts = fork(self.opened, check_path("the new study's file", path), changes)
        return Study(store, parts)

    def replay(self, method: str | None = None, **settings: Given) -> list[Replayed]:
        """How another method would have moved on the same results: a list of `Replayed`.

        No rollout is spent. `method` is a name, that of the study unless said; `settings` are its
        own.

        Raises `InputError` for an unknown method, or a setting that it has not.

        >>> [move.results for move in study.replay("cem")]
        [12, 24, 36]
        """
        return replay(self.opened, method, **settings)

    def export(self, path: str | Path, *, force: bool = False) -> int:
        """All trials as a table, CSV or, by the name's ending, Parquet; how many there are.

        An older table of this study at `path` is replaced; with `force` any other file but a study.

        Raises `InputError` where a file is in the way, or Parquet's package is not installed.

        >>> study.export("robot.csv")
        36
        """
        return export(self.opened, check_path("the table", path), force=force)


UNSET = ("window", "flatten", "truncate")  # settings whose None means something
