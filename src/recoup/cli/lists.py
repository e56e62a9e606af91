"""`recoup methods|tasks`: what there is to choose from."""

from recoup.cli.app import app
from recoup.engine.methods import DEFAULT_METHOD, METHODS
from recoup.tasks.own.found import registered
from recoup.tasks.registry import TASKS


@app.command()
def methods() -> None:
    """List the methods, one line each."""
    for row in METHODS.values():
        mark = " (default)" if row.name == DEFAULT_METHOD else ""
        print(f"{row.name:<15} {row.summary}{mark}")


@app.command()
def tasks() -> None:
    """List the tasks, one line each."""
    for row in TASKS.values():
        print(f"{row.name:<18} {row.summary}")
    for found in registered().values():
        print(f"{found.name:<18} {found.summary or 'registered'}")
    print(f"{'a Gymnasium id':<18} any registered environment, for instance Pendulum-v1")
    print(f"{'module:callable':<18} a function that makes an environment; with --dim, of theta")
