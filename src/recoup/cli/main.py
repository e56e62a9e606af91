"""The command line: train, resume, evaluate, render, report, reproduce, study, methods, tasks."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from recoup import __version__
from recoup.checks import InputError, check_count
from recoup.cli.parsing import method_settings, number, pairs, vector, whole, whole_option
from recoup.cli.study import app as study_app
from recoup.engine.methods import DEFAULT_METHOD, METHODS, SETTINGS
from recoup.reproduce import ORDER
from recoup.tasks.registry import TASKS

if TYPE_CHECKING:
    from recoup.reproduce.reproduce import Finding
    from recoup.runs.run import Run

HELP = "Policy search that gets the most out of every rollout."
EXAMPLES = """
[bold]Examples[/]

  recoup train mountain-car

  recoup train mountain-car --method iw-pgpe-ob --iterations 30 --json

  recoup study new robot.db --dim 12 --std 0.3

  recoup methods
"""
TRAIN_EXAMPLES = """
[bold]Examples[/]

  recoup train mountain-car

  recoup train mountain-car --method iw-pgpe-ob --iterations 30 --batch 10 --seed 0 --json

  recoup train mountain-car-weak --episodes 400 --set baseline=coordinate --set truncate=2

  recoup train toy --mean -1.6 --std 1 --set update=natural --set kl=0.5
"""
RENDER_EXAMPLES = """
[bold]Examples[/]

  recoup render runs/reach-2-mis-pgpe-ob-0

  recoup render runs/mountain-car-mis-pgpe-ob-0 --steps 0,10,20,30,40 --out pictures
"""


REPORT_EXAMPLES = """
[bold]Examples[/]

  recoup report runs/mountain-car-mis-pgpe-ob-0

  recoup report runs/* --out comparison.html
"""
REPRODUCE_EXAMPLES = """
[bold]Examples[/]

  recoup reproduce toy-variance

  recoup reproduce reach-2 reach-2-cost --quick

  recoup reproduce all
"""
RESUME_EXAMPLES = """
[bold]Examples[/]

  recoup resume runs/mountain-car-mis-pgpe-ob-0
"""
EVALUATE_EXAMPLES = """
[bold]Examples[/]

  recoup evaluate runs/mountain-car-mis-pgpe-ob-0

  recoup evaluate runs/mountain-car-mis-pgpe-ob-0 --episodes 1000 --json
"""
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
VERDICTS = {"holds": "[green]✓ holds", "does not hold": "[red]✗ does not hold"}


app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


app.add_typer(study_app, name="study", help="A search by hand: ask, roll out, tell.")


def main() -> None:
    """Runs the program; whatever goes wrong becomes one sentence and an exit status."""
    try:
        status = app(standalone_mode=False)
    except typer.Exit as stop:
        status = stop.exit_code
    except KeyboardInterrupt:
        _stop("stopped.")
    except typer.TyperException as wrong:
        if not wrong.format_message():  # no command was given, and the help has been shown
            raise SystemExit(wrong.exit_code) from None
        _fail(wrong.format_message(), wrong.exit_code)
    except InputError as wrong:
        _fail(str(wrong), 2)
    except Exception as failure:
        if os.environ.get("RECOUP_TRACEBACK"):
            raise
        what = str(failure).partition("\n")[0] or type(failure).__name__
        _fail(f"{what} (RECOUP_TRACEBACK=1 shows where)", 1)
    raise SystemExit(status or 0)


def _fail(sentence: str, status: int) -> NoReturn:
    print(f"recoup: {sentence}", file=sys.stderr)
    raise SystemExit(status)


def _stop(sentence: str) -> NoReturn:
    """Ends at once after Ctrl-C: threads of others may not survive an orderly end."""
    print(f"recoup: {sentence}", file=sys.stderr, flush=True)
    os._exit(130)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C is an exception inside, so that what was begun can be left in order."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"recoup {__version__}")
        raise typer.Exit


@app.callback(help=HELP, epilog=EXAMPLES)
def recoup(  # noqa: D103
    version: Annotated[
        bool,
        typer.Option("--version", help="Print it.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command(epilog=TRAIN_EXAMPLES)
def train(
    task: Annotated[str, typer.Argument(help=f"One of {', '.join(TASKS)}.", metavar="TASK")],
    method: Annotated[
        str, typer.Option(help="See `recoup methods`.", metavar="NAME")
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
        with _interruptible():
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
        _stop(_stopped(out))
    _say(run, as_json, quiet)


@app.command(epilog=RESUME_EXAMPLES)
def resume(
    run: Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN")],
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Go on with a run after any stop; it ends as if it had never stopped."""
    from recoup.runs.train import resume as resume_run

    try:
        with _interruptible():
            resumed = resume_run(run, progress=not quiet)
    except KeyboardInterrupt:
        _stop(_stopped(run))
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
        _fail(f"the run in {run.out} ended with a return that is not finite.", 1)
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
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN...")],
    out: Annotated[
        Path | None, typer.Option(help="The page (report.html in the first run unless said).")
    ] = None,
) -> None:
    """Write one self-contained HTML page about runs."""
    from recoup.report.runs import write_report

    print(write_report(runs, out))


@app.command(epilog=REPRODUCE_EXAMPLES)
def reproduce(
    figures: Annotated[
        list[str], typer.Argument(help=f"{', '.join(ORDER)}, or all.", metavar="FIGURE...")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few runs: all figures in ten minutes.")
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's own numbers of runs and trials.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Directory (runs/reproduce-SIZE unless said).")
    ] = None,
    workers: Annotated[
        int | None, whole_option("Processes that measure (one a core unless said).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Measure, draw and judge figures of the paper; `all` ends in a page."""
    if quick and paper:
        raise InputError("give --quick or --paper, not both.")
    from recoup.report.reproduction import write_reproduction
    from recoup.reproduce.reproduce import ALL, directory_of, work_left
    from recoup.reproduce.reproduce import reproduce as run
    from recoup.reproduce.workers import default_workers
    from recoup.runs.progress import reproducing

    size = "quick" if quick else "paper" if paper else "default"
    processes = default_workers() if workers is None else check_count("workers", workers)
    out = directory_of(size, out)
    try:
        with _interruptible(), reproducing(work_left(figures, size, out), quiet) as show:
            findings = run(figures, size, out, show, processes)
    except KeyboardInterrupt:
        _stop(f"stopped; the same command goes on from what lies in {out}.")
    if not quiet:
        _show_claims(findings)
    for finding in findings:
        if finding.problem is not None:
            print(
                f"recoup: no picture of {finding.figure.name}: {finding.problem}", file=sys.stderr
            )
    print(write_reproduction(out) if ALL in figures else out)


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


def _show_claims(findings: "list[Finding]") -> None:
    table = Table(show_edge=False, title="claims of the paper", title_justify="left")
    for head in ("", "claim", "least favourable contrast"):
        table.add_column(head)
    for finding in findings:
        for claim in finding.claims:
            least = claim.least
            words = f"{least.effect:.3g} ± {least.stderr:.2g}  {least.what}"
            table.add_row(VERDICTS.get(claim.verdict, "[yellow]? inconclusive"), claim.id, words)
    Console().print(table)


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
    table = _returns_table(f"{plan.task} by {plan.method}")
    start = (first.return_search, first.return_search_stderr, plan.test_episodes)
    table.add_row("start", *_cells(*start))
    table.add_row("search distribution", *_cells(*run.return_search))
    table.add_row("mean policy", *_cells(*policy))
    console = Console()
    console.print()
    console.print(table)
    spent = plan.iterations * plan.batch
    console.print(f"\n{spent} episodes in {plan.iterations} iterations, {run.wall_s:.1f} s")
    if run.out is not None:
        for name in ("curve.png", "study.db", "config.json"):
            console.print(f"  {run.out / name}", soft_wrap=True, highlight=False)
