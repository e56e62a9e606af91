"""Live displays of runs and reproductions, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from recoup.runs.history import Step
from recoup.runs.plan import Plan


@contextmanager
def live(plan: Plan, console: Console | None = None) -> Iterator[Callable[[Step], None]]:
    """A function that shows each `Step` it is given, while the context lasts."""
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[health]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console or Console(stderr=True)) as bar:
        row = bar.add_task(plan.task, total=plan.iterations, health="compiling ...")

        def show(step: Step) -> None:
            bar.update(row, completed=step.iteration, health=_health(step))

        yield show


def _health(step: Step) -> str:
    text = f"curve [cyan]{step.return_curve:8.2f}[/] ±{step.return_curve_stderr:.2f}"
    if step.ess is None:
        return text
    return f"{text}  ess [cyan]{step.ess:.1f}[/]/{step.samples}  max w {step.max_weight:.2f}"


@contextmanager
def reproducing(seconds: float, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A function that is told of jobs and the seconds done of them, while the context lasts."""
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True, quiet=quiet)
    with Progress(*columns, console=console, speed_estimate_period=120) as bar:
        row = bar.add_task("", total=seconds)

        def show(job: str, done: float) -> None:
            bar.update(row, advance=done, description=job)

        yield show
