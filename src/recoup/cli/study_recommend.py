"""`recoup study recommend`: which parameters to deploy, what they are worth, whether to go on."""

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from recoup.checks import without_nan
from recoup.cli.app import cell
from recoup.cli.study_app import File, JsonOption, app, opened
from recoup.cli.study_tables import SHOWN
from recoup.study.goals import GOALS
from recoup.study.sentences import best_between, between

if TYPE_CHECKING:
    from recoup.study.recommend import Recommendation

EXAMPLES = """
[bold]Examples[/]

  recoup study recommend robot.db

  recoup study recommend robot.db --json
"""


@app.command(epilog=EXAMPLES)
def recommend(file: File, as_json: JsonOption = False) -> None:
    """Which parameters to deploy, what they are worth, and whether to go on; at no rollout."""
    with opened(file, read_only=True) as study:
        found = study.recommend()
    if as_json:
        print(json.dumps(without_nan(found.plain())))
        return
    console = Console()
    console.print(parameters_table(found))
    console.print(
        f"\nbest between: {best_between()}.",
        highlight=False,
    )
    if len(found.batches) > 1:
        console.print()
        console.print(_batches_table(found))
    console.print(f"\n{cell(found.words)}", highlight=False)


def parameters_table(found: "Recommendation") -> Table:
    """The parameters to deploy, and between what each is best."""
    table = Table(show_edge=False)
    for head in ("parameter", "deploy", "best between"):
        table.add_column(head, justify="left" if head == "parameter" else "right")
    rows = list(zip(found.params.items(), found.low, found.high, strict=True))
    for (name, value), low, high in rows[:SHOWN]:
        table.add_row(cell(name), shown(value), between(low, high))
    if len(rows) > SHOWN:
        table.add_row(f"... {len(rows) - SHOWN} more", "", "")
    return table


def shown(value: float | str) -> str:
    """A value as a table shows it."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _batches_table(found: "Recommendation") -> Table:
    table = Table(show_edge=False, title="the last distributions", title_justify="left")
    noun = GOALS[found.direction].noun
    for head in ("results", f"mean {noun}", "standard error"):
        table.add_column(head, justify="right")
    for batch in found.batches:
        table.add_row(str(batch.results), f"{batch.mean:.4g}", f"{batch.stderr:.2g}")
    return table
