"""`recoup train`, `resume`, `evaluate`, `render`, `report`."""

import json
import time
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from recoup.checks import InputError
from recoup.cli.app import JsonOption, app, fail, interruptible, stop
from recoup.cli.parsing import (
    complete_method,
    complete_setting,
    complete_task,
    method_settings,
    number,
    pairs,
    vector,
    whole,
    whole_option,
)
from recoup.engine.methods import DEFAULT_METHOD, SETTINGS
from recoup.tasks.registry import TASKS

if TYPE_CHECKING:
    from recoup.runs.run import Run

TRAIN_EXAMPLES = """
[bold]Examples[/]

  recoup train mountain-car

  recoup train mountain-car --method iw-pgpe-ob --iterations 30 --batch 10 --seed 0 --json

  recoup train mountain-car-weak --episodes 400 --set baseline=coordinate --set truncate=2

  recoup train toy --mean -1.6 --std 1 --set update=natural --set kl=0.5
"""
RESUME_EXAMPLES = """
[bold]Examples[/]

  recoup resume runs/mountain-car-mis-pgpe-ob-0

  recoup resume runs/mountain-car-mis-pgpe-ob-0 --iterations 60
"""
EVALUATE_EXAMPLES = """
[bold]Examples[/]

  recoup evaluate runs/mountain-car-mis-pgpe-ob-0

  recoup evaluate runs/mountain-car-mis-pgpe-ob-0 --episodes 1000 --json
"""
RENDER_EXAMPLES = """
[bold]Examples[/]

  recoup render runs/reach-2-mis-pgpe-ob-0

  recoup render runs/mountain-car-mis-pgpe-ob-0 --steps 0,10,20,30,40 --out pictures
"""
REPORT_EXAMPLES = """
[bold]Examples[/]

  recoup report runs/mountain-car-mis-pgpe-ob-0

  recoup report runs/* --out comparison.html   (curves of all of them, mean and error over seeds)

  recoup report robot.db
"""


@app.command(epilog=TRAIN_EXAMPLES)
def train(
    task: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(TASKS)}.", metavar="TASK", autocompletion=complete_task
        ),
    ],
    method: Annotated[
        str,
        typer.Option(help="See `recoup methods`.", metavar="NAME", autocompletion=complete_method),
    ] = DEFAULT_METHOD,
    episodes: Annotated[int | None, whole_option("Rollouts to spend in all.")] = None,
    iterations: Annotated[
        int | None, whole_option("Batches to spend instead (30 unless said).")
    ] = None,
    batch: Annotated[
        int | None, whole_option("Rollouts of one iteration (the task's own unless said).")
    ] = None,
    seed: Annotated[int, whole_option("Seed of all randomness.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Run directory (runs/TASK-METHOD-SEED unless said).")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(help="Start of the means: a number, or D separated by commas.")
    ] = None,
    std: Annotated[
        str,
        typer.Option(
            help="Start of the standard deviations (in action space, of the actions), likewise."
        ),
    ] = "1",
    horizon: Annotated[
        int | None, whole_option("Steps of an episode (the task's own unless said).")
    ] = None,
    discount: Annotated[
        float | None,
        typer.Option(
            help="Discount factor (the task's own unless said).", parser=number, metavar="X"
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            help="An option of the task, repeatable; for instance features=raw for reach-2.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help=f"A setting of the method, repeatable: {', '.join(SETTINGS)}.",
            metavar="KEY=VALUE",
            autocompletion=complete_setting,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Learn a task; write a run directory."""
    settings, options = method_settings(set_), pairs("--option", option or [])
    from recoup.runs.train import train as train_task

    out = out or Path("runs") / f"{task}-{method}-{seed}"
    try:
        with interruptible():
            run = train_task(
                task,
                method,
                episodes=episodes,
                iterations=iterations,
                batch=batch,
                seed=seed,
                mean=None if mean is None else vector("--mean", mean),
                std=vector("--std", std),
                horizon=horizon,
                discount=discount,
                options=options,
                out=out,
                progress=not quiet,
                **settings,
            )
    except KeyboardInterrupt:
        stop(_stopped(out))
    _say(run, as_json, quiet)


@app.command(epilog=RESUME_EXAMPLES)
def resume(
    run: Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN")],
    iterations: Annotated[
        int | None,
        whole_option("Go on to so many iterations in all, also where the run is finished."),
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Go on with a run after any stop, or to more iterations than were planned."""
    from recoup.runs.train import resume as resume_run

    try:
        with interruptible():
            resumed = resume_run(run, iterations=iterations, progress=not quiet)
    except KeyboardInterrupt:
        stop(_stopped(run))
    _say(resumed, as_json, quiet)


@app.command(epilog=EVALUATE_EXAMPLES)
def evaluate(
    run: Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN")],
    episodes: Annotated[
        int | None, whole_option("Fresh episodes of each (the task's own number unless said).")
    ] = None,
    seed: Annotated[int, whole_option("Seed of the episodes.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Expected returns of a run's search distribution and mean policy, on fresh episodes."""
    from recoup.runs.run import load
    from recoup.runs.train import evaluate as evaluate_run

    started, loaded = time.perf_counter(), load(run)
    with Console(stderr=True).status("rolling out"):
        found = evaluate_run(loaded, episodes=episodes, seed=seed)
    if as_json:
        returns = {key: measured._asdict() for key, measured in found._asdict().items()}
        wall = {"wall_s": time.perf_counter() - started}
        print(json.dumps({**loaded.summary(), **returns, **wall}))
        return
    table = _returns_table(f"{loaded.plan.task} by {loaded.plan.method}")
    table.add_row("search distribution", *_cells(*found.return_search))
    table.add_row("mean policy", *_cells(*found.return_mean_policy))
    Console().print(table)


def _say(run: "Run", as_json: bool, quiet: bool) -> None:
    """The end of a run, in the form that was asked for."""
    policy = run.return_mean_policy
    assert policy is not None
    if not (isfinite(run.return_search.mean) and isfinite(policy.mean)):
        fail(f"the run in {run.out} ended with a return that is not finite.", 1)
    if as_json:
        print(json.dumps(run.summary()))
    elif not quiet:
        _show(run)


def _stopped(run: Path) -> str:
    """What to do after a run was interrupted."""
    from recoup.runs.directory import STUDY

    if not (run / STUDY).is_file():
        return "stopped before the first iteration; nothing was written."
    return f"stopped; `recoup resume {run}` goes on where it was."


@app.command(epilog=RENDER_EXAMPLES)
def render(
    run: Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN")],
    seed: Annotated[int, whole_option("Seed of the episode.")] = 0,
    steps: Annotated[
        str | None, typer.Option(help="Steps of the film strip, separated by commas.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory to write to (the run's unless said).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Film the learned policy: a video and a film strip."""
    from recoup.runs.render import render_run

    chosen = None if steps is None else [whole(part) for part in steps.split(",")]
    with Console(stderr=True, quiet=quiet).status("filming"):
        written = render_run(run, seed=seed, steps=chosen, out=out)
    for path in () if quiet else written.values():
        print(path)


@app.command(epilog=REPORT_EXAMPLES)
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories, or the file of a study.", metavar="RUN..."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page (report.html in the first run, or FILE-report.html, unless said)."
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page about runs, or about a study."""
    if not any(path.is_file() for path in runs):
        from recoup.report.runs import write_report

        print(write_report(runs, out))
        return
    if len(runs) > 1:
        raise InputError("a page is of runs, or of one study: name the file of a study alone.")
    from recoup.report.study import write_study_report
    from recoup.store.errors import sensible

    with sensible(runs[0]):
        print(write_study_report(runs[0], out))


def _returns_table(title: str) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False)
    table.add_column("")
    table.add_column("expected return", justify="right")
    table.add_column("test episodes", justify="right")
    return table


def _cells(mean: float, stderr: float, episodes: int) -> tuple[str, str]:
    return f"{mean:.2f} ± {stderr:.2f}", str(episodes)


def _show(run: "Run") -> None:
    first, plan, policy = run.history[0], run.plan, run.return_mean_policy
    assert policy is not None
    table = _returns_table(f"{plan.task} by {plan.method}: final test")
    start = (first.return_curve, first.return_curve_stderr, plan.test_episodes)
    table.add_row("start of the curve", *_cells(*start))
    table.add_row("search distribution", *_cells(*run.return_search))
    table.add_row("mean policy", *_cells(*policy))
    console = Console()
    console.print()
    console.print(table)
    moves = run.history[-1].iteration
    console.print(f"\n{run.episodes} episodes in {moves} iterations, {run.wall_s:.1f} s")
    if run.failed:
        console.print(f"{run.failed} of the episodes failed: nothing was learned from them.")
    if run.out is not None:
        for name in ("curve.png", "study.db", "config.json"):
            if (run.out / name).exists():
                console.print(f"  {run.out / name}", soft_wrap=True, highlight=False)
