"""`recoup study recommend`: which parameters to deploy, what they are worth, whether to go on."""

import json
from typing import TYPE_CHECKING

from recoup.checks import without_nan
from recoup.cli.study_app import File, JsonOption, app, opened
from recoup.cli.study_tables import MANY
from recoup.cli.tables import show_table, show_text
from recoup.store.states import version_of
from recoup.study.goals import GOALS
from recoup.study.sentences import best_between, between
from recoup.study.summary import Deployed, deployed

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
    with opened(file, read_only=True) as study, study.store.reading():
        found, rows = study.recommend(), deployed(study.opened)
        version = version_of(study.store)
    if as_json:
        print(json.dumps(without_nan({**found.plain(), "version": version})))
        return
    show_parameters(found, rows)
    print()
    show_text(f"best between: {best_between()}.")
    if len(found.batches) > 1:
        print()
        _show_batches(found)
    print()
    show_text(found.words)


def show_parameters(found: "Recommendation", rows: list[Deployed]) -> None:
    """Prints the parameters to deploy, and between what each is best."""
    ends = [between(*pair) for pair in zip(found.low, found.high, strict=True)]
    cells = [[row.name, row.text, best] for row, best in zip(rows, ends, strict=True)]
    show_table(["parameter", "deploy", "best between"], cells[:MANY], texts=["parameter"])
    if len(cells) > MANY:
        show_text(f"{len(cells) - MANY} more parameters: --json gives all of them.")


def _show_batches(found: "Recommendation") -> None:
    heads = ["results", f"mean {GOALS[found.direction].noun}", "standard error"]
    rows = [[str(b.results), f"{b.mean:.4g}", f"{b.stderr:.2g}"] for b in found.batches]
    show_table(heads, rows, title="the last distributions")
