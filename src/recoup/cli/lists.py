"""`recoup methods|tasks`: what there is to choose from."""

from recoup.cli.app import JsonOption, app, print_json
from recoup.cli.text_tables import show_list
from recoup.engine.methods import DEFAULT_METHOD, METHODS
from recoup.tasks.own.found import registered
from recoup.tasks.registry import TASKS


@app.command()
def methods(as_json: JsonOption = False) -> None:
    """List the methods, one line each."""
    if as_json:
        print_json({row.name: row.summary for row in METHODS.values()})
        return
    marks = {DEFAULT_METHOD: " (default)"}
    show_list({row.name: f"{row.summary}{marks.get(row.name, '')}" for row in METHODS.values()})


@app.command()
def tasks(as_json: JsonOption = False) -> None:
    """List the tasks, one line each."""
    rows = {row.name: row.summary for row in TASKS.values()}
    rows |= {found.name: found.summary or "registered" for found in registered().values()}
    if as_json:
        print_json(rows)
        return
    rows["a Gymnasium id"] = "any registered environment, for instance CartPole-v1"
    rows["module:callable"] = "a function that makes an environment; with --dim, of theta"
    show_list(rows)
