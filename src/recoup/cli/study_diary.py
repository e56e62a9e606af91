"""`recoup study trials|log|best|cancel|note|title`: coming back to a study after a while."""

import csv
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from recoup.checks import InputError, check_choice, check_count, shortly
from recoup.cli.app import argument, examples, for_tables, option, print_json
from recoup.cli.parsing import whole_option
from recoup.cli.study_app import File, FormatOption, Id, JsonOption, app, form_of, opened
from recoup.cli.study_tables import MANY, show_values, typed_value
from recoup.cli.text_tables import show_table, show_text
from recoup.store.rows import (
    CANCELLED,
    CONTEXT,
    DRAWN,
    FAILED,
    FOREIGN,
    MEAN,
    MIRROR,
    OK,
    OWN,
    PENDING,
    REPEAT,
)
from recoup.study.exchange.tables import ALSO, quoted
from recoup.study.space.parameters import labelled
from recoup.study.text.notebook import typed
from recoup.study.text.times import when
from recoup.study.trials.leases import now
from recoup.study.views.listing import trials as listed
from recoup.study.views.study_summary import deployed
from recoup.study.voice.sentences import best_trial, no_best

if TYPE_CHECKING:
    from recoup.study.reader.records import TrialResult
    from recoup.study.study import Study

STATUSES = (OK, FAILED, PENDING, CANCELLED)
KINDS = (DRAWN, MIRROR, REPEAT, MEAN, OWN, FOREIGN)
NEWEST = 20  # rows, unless said
FEW_NUMBERS = 3  # numbers of a context that a table of trials shows
BESIDE = ("kind", "status", "return", "stderr", "episodes", "note", "notes", "asked_at", "told_at")
TRIALS_EXAMPLES = examples(
    "study trials robot.db",
    "study trials robot.db --status failed --last 5",
    "study trials robot.db --format csv > trials.csv",
)
LOG_EXAMPLES = examples("study log robot.db", "study log robot.db --last 5 --json")
CANCEL_EXAMPLES = examples('study cancel robot.db 7 --why "the arm would hit the table"')
NOTE_EXAMPLES = examples(
    'study note robot.db "new gripper pads"',
    'study note robot.db 7 "slipped a little at the end"',
)
TITLE_EXAMPLES = examples('study title robot.db "Left arm, new pads"')

LastOption = Annotated[int | None, whole_option(f"The newest N ({NEWEST} of a table unless said).")]
AllOption = Annotated[bool, option("--all", "All of them.")]


@app.command(epilog=TRIALS_EXAMPLES)
def trials(
    file: File,
    status: Annotated[str | None, option(f"Only {', '.join(STATUSES)}.")] = None,
    kind: Annotated[str | None, option(f"Only {', '.join(KINDS)}.")] = None,
    last: LastOption = None,
    everything: AllOption = False,
    format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """List trials with what came of them, the newest first."""
    form = form_of(format, as_json)
    for what, value, known in (("--status", status, STATUSES), ("--kind", kind, KINDS)):
        if value is not None:
            check_choice(what, value, known)
    with opened(file, read_only=True) as study:
        first, there = 0, len(study)
        if status is None and kind is None:  # those before need not be read
            first = max(0, there - _how_many(last, everything, form, there))
        found = [
            trial
            for trial in reversed(listed(study.opened, first))
            if status in (None, trial.status) and kind in (None, trial.kind)
        ]
        shown = found[: _how_many(last, everything, form, len(found))]
        if form == "json":
            print_json([trial.plain() for trial in shown])
        elif form == "csv":
            _print_csv(study, shown)
        elif not shown:
            print("There is no such trial." if status or kind else "No trial was asked for yet.")
        else:
            _show_trials(study, shown)
            there = there if first else len(found)
            if len(shown) < there:
                print()
                newest = f"The newest {len(shown)} of {there} trials"
                show_text(f"{newest}: --all shows all of them.")


@app.command(epilog=LOG_EXAMPLES)
def log(
    file: File, last: LastOption = None, everything: AllOption = False, as_json: JsonOption = False
) -> None:
    """What happened to a study when, the newest last."""
    with opened(file, read_only=True) as study:
        found = study.log()
    form = form_of(None, as_json)
    shown = found[-_how_many(last, everything, form, len(found)) :]
    if as_json:
        print_json([one.plain() for one in shown])
        return
    at = now()
    rows = [[when(one.at, at), one.what, one.words] for one in shown]
    show_table(["when", "what", "about"], rows, texts=["what", "about"], turns=False)
    if len(shown) < len(found):
        print()
        show_text("Earlier entries are left out: --all shows all of them.")


@app.command()
def best(file: File, as_json: JsonOption = False) -> None:
    """The trial with the best result. What to deploy is another question: see `recommend`."""
    with opened(file, read_only=True) as study, study.store.reading():
        found, diagnosed = study.best, study.diagnostics()
        told = diagnosed[OK] - diagnosed["uncounted"]
        broken, outside = (diagnosed.get(key, 0) for key in ("broken", "outside"))
        if found is None:
            raise InputError(
                f"{file} has no best trial: {no_best(broken, outside)}."
                if broken or outside
                else f"{file} has no return yet: tell a few results first."
            )
        trial, value = found
        words = f"Best is {best_trial(trial.id, value, told, study.opened.goal, broken, outside)}."
        if as_json:
            units = {"units": study.opened.units, "return_unit": study.opened.return_unit or None}
            print_json({**trial.plain(), "return": value, **units, "words": words})
            return
        show_values(study, trial)
        print()
        show_text(f"{words} `recoup study recommend {file}` says what to deploy.")


@app.command(epilog=CANCEL_EXAMPLES)
def cancel(
    file: File,
    id: Id,
    why: Annotated[str | None, option("Why it will not be rolled out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say that a trial will not be rolled out: it is not handed out or waited for any more.

    Told all the same, it counts. What would have failed is better told as failed: of a cancelled
    trial the search learns nothing.
    """
    with opened(file) as study:
        found = study.cancel(id, why)
    print_json(found) if as_json else show_text(found.words)


@app.command(epilog=NOTE_EXAMPLES)
def note(
    file: File,
    words: Annotated[list[str], argument("A text, or a trial and a text.", "[ID] TEXT")],
    as_json: JsonOption = False,
) -> None:
    """Write down something about a study, or about one of its trials."""
    trial, text = _note_of(words)
    with opened(file) as study:
        study.note(text, trial)
        written = study.notes()[-1]
    on = "" if trial is None else f"Trial {trial}: "
    print_json(written) if as_json else show_text(f"{on}noted.".capitalize())


@app.command(epilog=TITLE_EXAMPLES)
def title(
    file: File,
    text: Annotated[str | None, argument("Another title; an empty one for none.", "[TEXT]")] = None,
    as_json: JsonOption = False,
) -> None:
    """What a study is called; with a text, call it that."""
    with opened(file) as study:
        if text is not None:
            study.title = text
        found = study.title
    if as_json:
        print_json({"title": found})
    else:
        show_text(found or "It has no title.")


def _note_of(words: Sequence[str]) -> tuple[int | None, str]:
    """The trial that a note is about, if any, and its text."""
    if len(words) == 1:
        return None, words[0]
    if len(words) > 2:
        raise InputError("a note is one text: put it in quotation marks.")
    number, text = words
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise InputError(
            f"the id of a trial must be a whole number, got {shortly(number)}; or put the text in "
            "quotation marks."
        )
    return int(number), text


def _how_many(last: int | None, everything: bool, form: str, there: int) -> int:
    """How many rows are shown, one at least, so that it can count from the end."""
    if last is not None and everything:
        raise InputError("give --last or --all, not both.")
    if last is not None:
        return check_count("--last", last)
    return max(there, 1) if everything or form != "table" else NEWEST


def _show_trials(study: "Study", found: "Sequence[TrialResult]") -> None:
    """Prints trials, a row each: what came of them, their parameters, and what is to be said."""
    at, opened_ = now(), study.opened
    value = labelled(opened_.goal.noun, opened_.return_unit)
    columns = {
        "id": [str(trial.id) for trial in found],
        "when": [when(t.asked_at if t.told_at is None else t.told_at, at) for t in found],
        "kind": [trial.kind for trial in found],
        value: [trial.status if t is None else typed(t) for trial in found for t in [trial.value]],
        "±": ["" if trial.stderr is None else f"{trial.stderr:.2g}" for trial in found],
        **{
            row.label: [typed_value(_value(trial, i), row.varies) for trial in found]
            for i, row in enumerate(deployed(opened_)[:MANY])
        },
        **{
            name: [typed(x) if (x := trial.also.get(name)) is not None else "" for trial in found]
            for name in _shown(_numbers(found))
        },
        "broke": [", ".join(trial.broken) for trial in found],
        "note": [trial.remark for trial in found],
    }
    plain = {"kind": DRAWN, "±": "", "note": "", "broke": ""}
    kept = {
        head: cells
        for head, cells in columns.items()
        if head not in plain or any(cell != plain[head] for cell in cells)
    }
    rows = list(zip(*kept.values(), strict=True))
    show_table(list(kept), rows, texts=["broke", "note"], spare=["kind", "±"])
    left = len(opened_.labels) - MANY
    if left > 0:
        show_text(f"{left} more parameters: --json gives all of them.")


def _numbers(found: "Sequence[TrialResult]") -> list[str]:
    """The names of all numbers that were told beside returns."""
    return sorted({name for trial in found for name in trial.also})


def _shown(names: list[str]) -> list[str]:
    """Those that a table has room for: observations would fill it."""
    contexts = [name for name in names if name.startswith(CONTEXT)]
    return names if len(contexts) <= FEW_NUMBERS else [x for x in names if x not in contexts]


def _value(trial: "TrialResult", i: int) -> Any:
    return trial.params[trial.names[i]] if trial.names else float(trial.theta[i])


def _print_csv(study: "Study", found: "Sequence[TrialResult]") -> None:
    writer = csv.writer(for_tables(sys.stdout), lineterminator="\n")
    numbers = _numbers(found)
    beside = [*BESIDE, *(f"{ALSO}_{x}" for x in numbers)]
    writer.writerow(["id", *map(quoted, study.opened.labels), *beside])
    for trial in found:
        row = trial.plain()
        values = row["params"].values() if "params" in row else row["theta"]
        beside = ["; ".join(row[key]) if key == "notes" else row[key] for key in BESIDE]
        also = [trial.also.get(name) for name in numbers]
        writer.writerow([trial.id, *map(quoted, values), *map(quoted, beside), *also])
