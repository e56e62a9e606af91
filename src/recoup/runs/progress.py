"""Live displays of runs, reproductions and comparisons, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from recoup.checks import printable
from recoup.runs.history import HistoryRow
from recoup.runs.learning import Display
from recoup.runs.plan import Plan
from recoup.runs.schedule import Load


@contextmanager
def live(plan: Plan, console: Console | None = None) -> Iterator[Display]:
    """What shows each `Step` that it is given, and how busy workers are, while it lasts."""
    columns = (
        TextColumn("[bold]{task.description}", markup=True),
        BarColumn(bar_width=24 if plan.tested else 10),
        MofNCompleteColumn(),
        TextColumn("{task.fields[health]}"),
        TextColumn("{task.fields[load]}"),
        TimeRemainingColumn(compact=True),
    )
    console = console or Console(stderr=True)
    with Progress(*columns, console=console) as bar:
        total = plan.iterations if plan.tested else plan.trials
        first = "compiling ..." if plan.tested else ""
        row = bar.add_task(escape(printable(plan.task)), total=total, health=first, load="")

        curve = ""  # its last point: not every iteration has one

        def step(step: HistoryRow) -> None:
            nonlocal curve
            done = step.iteration if plan.tested else None
            curve = _curve(step, plan.tested) or curve
            bar.update(row, completed=done, health=curve + _health(step, plan.tested))

        def load(load: Load) -> None:
            if not plan.tested:
                bar.update(row, completed=load.told, load=_load(load))

        yield Display(step, load)


def _curve(step: HistoryRow, tested: bool) -> str:
    if step.return_curve != step.return_curve:  # no number
        return ""
    name = "curve" if tested else "batch"
    return f"{name} [cyan]{step.return_curve:8.2f}[/] ±{step.return_curve_stderr:.2f}"


def _health(step: HistoryRow, tested: bool) -> str:
    if step.ess is None or not tested:  # workers are shown in its place
        return ""
    return f"  ess [cyan]{step.ess:.1f}[/]/{step.samples}  max w {step.max_weight:.2f}"


def _load(load: Load) -> str:
    busy = f"{load.out}/{load.slots} busy " if load.slots > 1 else ""
    failed = f"[red]{load.failed} failed[/] " if load.failed else ""
    again = f"{load.again} again " if load.again else ""
    return f"{busy}{failed}{again}{load.rate:.3g}/s"


@contextmanager
def advancing(
    total: float, quiet: bool, first: str = "", period: float = 120
) -> Iterator[Callable[[str, float], None]]:
    """A function that is told of work by name, and how much of it is done, while it lasts.

    The time left is estimated from the last `period` seconds.
    """
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True, quiet=quiet)
    with Progress(*columns, console=console, speed_estimate_period=period) as bar:
        row = bar.add_task(first, total=total)
        yield lambda name, done: bar.update(row, advance=done, description=name)
