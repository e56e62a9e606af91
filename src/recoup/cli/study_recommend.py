"""`recoup study recommend|predict`: what to deploy, what it is worth, whether to go on."""

from typing import TYPE_CHECKING, Annotated

from recoup.checks import InputError, shortly
from recoup.cli.app import examples, option, print_json
from recoup.cli.parsing import check_once, typed_value, whole_option
from recoup.cli.study_app import SIGNED, File, JsonOption, app, opened
from recoup.cli.study_tables import MANY
from recoup.cli.text_tables import Cell, show_table, show_text
from recoup.study.space.goals import GOALS
from recoup.study.views.study_summary import Deployed, deployed, to_deploy
from recoup.study.voice.sentences import (
    apart,
    best_at,
    best_between,
    best_choice,
    due,
    explains,
    share_explained,
)

if TYPE_CHECKING:
    from recoup.study.voice.recommend import Recommendation

EXAMPLES = examples(
    "study recommend robot.db",
    "study recommend robot.db --budget 15   (how many to search with, how many of the mean)",
    "study recommend robot.db --worth 0.5 --json",
)
PREDICT_EXAMPLES = examples(
    "study predict robot.db --param stiffness=300",
    "study predict robot.db --param stiffness=300 --param damping=0.7 --json",
)


@app.command(epilog=EXAMPLES)
def recommend(
    file: File,
    worth: Annotated[
        float | None,
        option(
            "A difference in return that matters to you: a batch from which less than a tenth "
            "of it is expected is not worth its trials."
        ),
    ] = None,
    budget: Annotated[
        int | None, whole_option("Trials that are left: how many to search with, how many to test.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Which parameters to deploy, what they are worth, and whether to go on; at no rollout."""
    with opened(file, read_only=True) as study, study.store.reading():
        found = study.recommend(worth=worth, budget=budget)
        rows = deployed(study.opened)
        version = study.store.version()
    if as_json:
        units = {"units": study.opened.units, "return_unit": study.opened.return_unit or None}
        mean = {"mean_policy": {row.name: row.value for row in rows}}
        print_json({**found.plain(), **mean, **units, "version": version})
        return
    show_parameters(found, rows)
    print()
    more = f"; {best_choice()}" if found.choices else ""
    limits = [row.limit for row in found.limits]
    show_text(f"best between: {best_between(limits, study.opened.goal)}{more}.")
    if found.matters:
        show_text(f"explains: {share_explained(study.opened.goal)}.")
    if len(found.batches) > 1:
        print()
        _show_batches(found)
    print()
    if study.opened.return_unit:
        show_text(f"{study.opened.goal.nouns.capitalize()} are in {study.opened.return_unit}.")
    show_text(found.words)


def show_parameters(found: "Recommendation", rows: list[Deployed]) -> None:
    """Prints the parameters to deploy, and between what each is best."""
    ends = [Cell(best_at(x), isinstance(x, dict)) for x in found.best]
    take = to_deploy(rows, found.params)
    shown = [take] if take == rows else [take, rows]
    cells: list[list[str | Cell]] = [
        [one[0].label, *(Cell(row.text, isinstance(row.value, str)) for row in one), best]
        for *one, best in zip(*shown, ends, strict=True)
    ]
    heads = ["parameter", *("deploy", "mean policy")[: len(shown)], "best between"]
    alone = {row.names[0]: row for row in found.matters if len(row.names) == 1}
    if alone:
        heads.append("explains")
        for line, row in zip(cells, rows, strict=True):
            of = alone[row.name]
            line.append(explains(of.share, of.stderr))
    show_table(heads, cells[:MANY], texts=["parameter"])
    if len(cells) > MANY:
        show_text(f"{len(cells) - MANY} more parameters: --json gives all of them.")


def _show_batches(found: "Recommendation") -> None:
    heads = ["results", f"mean {GOALS[found.direction].noun}", "standard error"]
    rows = [
        [str(b.results), apart(b.mean, b.mean + b.stderr)[0], f"{b.stderr:.2g}"]
        for b in found.batches
    ]
    show_table(heads, rows, title="the last distributions")


@app.command(epilog=PREDICT_EXAMPLES, **SIGNED)
def predict(
    file: File,
    param: Annotated[
        list[str],
        option(
            "A parameter's value, repeatable; the others stay at the mean policy.",
            metavar="NAME=VALUE",
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Expected return of parameters that need not have been tried; at no rollout."""
    given: dict[str, float | str] = {}
    for text in param:
        name, equals, value = (part.strip() for part in text.rpartition("="))
        if not (name and equals and value):
            raise InputError(f"--param takes NAME=VALUE, got {shortly(text)}.")
        check_once("--param", name, given)
        given[name] = typed_value(value)
    with opened(file, read_only=True) as study, study.store.reading():
        found, version = study.predict(given), study.store.version()
        before = "" if study.until_move() else due(study.opened.lacks)
    if as_json:
        print_json({**found.plain(), "version": version})
        return
    show_text(" ".join(filter(None, [before, found.words])))
