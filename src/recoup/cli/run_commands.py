"""`recoup evaluate`, `render`, `report`."""

import sys
import time
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console

from recoup.checks import InputError, check_path, printable
from recoup.cli.app import (
    ForceOption,
    JsonOption,
    app,
    argument,
    examples,
    option,
    print_json,
    say,
    say_path,
)
from recoup.cli.parsing import TaskOption, WhichOption, which_of, whole, whole_option
from recoup.cli.study_app import blaming
from recoup.cli.text_tables import show_table
from recoup.core.types import Plain

if TYPE_CHECKING:
    from recoup.runs.fresh import Evaluated
    from recoup.runs.run import Run

EVALUATE_EXAMPLES = examples(
    "evaluate runs/mountain-car-recoup-0",
    "evaluate runs/mountain-car-recoup-0 --episodes 1000 --json",
    "evaluate runs/mountain-car-recoup-0 --which best",
)
RENDER_EXAMPLES = examples(
    "render runs/reach-2-recoup-0",
    "render runs/mountain-car-recoup-0 --steps 0,10,20,30,40 --out pictures",
)
REPORT_EXAMPLES = examples(
    "report runs/mountain-car-recoup-0",
    "report runs/* --out comparison.html   (curves of all of them, mean and error over seeds)",
    "report robot.db",
    "report monday.db tuesday.db   (curves laid over each other, numbers side by side)",
)


@app.command(epilog=EVALUATE_EXAMPLES)
def evaluate(
    run: Annotated[Path, argument("A run directory.", "RUN")],
    episodes: Annotated[
        int | None, whole_option("Fresh episodes of each (the task's own number unless said).")
    ] = None,
    seed: Annotated[int, whole_option("Seed of the episodes.")] = 0,
    which: WhichOption = "last",
    task: TaskOption = None,
    as_json: JsonOption = False,
) -> None:
    """Expected returns of a run's search distribution and mean policy, on fresh episodes."""
    from recoup.runs.kept import chosen_move
    from recoup.runs.run import load
    from recoup.runs.train import evaluate as evaluate_run

    started, loaded = time.perf_counter(), load(run, task=task)
    with Console(stderr=True).status("rolling out"):
        found = evaluate_run(loaded, episodes=episodes, seed=seed, which=which_of(which))
    if as_json:
        wall = {"wall_s": time.perf_counter() - started}
        move = None if which == "last" else chosen_move(loaded.history, which_of(which))
        said = {**loaded.summary(), "run": str(run), **_fresh(found), **_at(loaded, move), **wall}
        if not found.failed:  # what the final test says of its own episodes
            said.pop("tests_failed", None)
        print_json(said)
        return
    both = {"search distribution": found.return_search, "mean policy": found.return_mean_policy}
    show_returns(f"{loaded.plan.task} by {loaded.plan.method}", both)
    if found.failed:
        print(f"{found.failed} episodes failed: the returns are of the others.")
    if loaded.outdated:
        print(f"recoup: {printable(loaded.outdated)}", file=sys.stderr)


def _fresh(found: "Evaluated") -> Plain:
    """What fresh episodes say, for a summary."""
    names = ("return_search", "return_mean_policy")
    returns: Plain = {key: getattr(found, key)._asdict() for key in names}
    return {**returns, **({"tests_failed": found.failed} if found.failed else {})}


def _at(run: "Run", move: int | None) -> Plain:
    """What a summary says of the distribution after a move, where it is not the newest."""
    if move is None:
        return {}
    at = {"mean": run.means[move].tolist(), "std": run.stds[move].tolist()}
    params = {"params": dict(run.mean_policy_after(move))} if run.names else {}
    return {"iteration": move, **at, **params}


@app.command(epilog=RENDER_EXAMPLES)
def render(
    run: Annotated[Path, argument("A run directory.", "RUN")],
    seed: Annotated[int, whole_option("Seed of the episode.")] = 0,
    steps: Annotated[str | None, option("Steps of the film strip, separated by commas.")] = None,
    out: Annotated[Path | None, option("Directory to write to (the run's unless said).")] = None,
    task: TaskOption = None,
    force: ForceOption = False,
    quiet: Annotated[bool, option("--quiet", "Print nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Film the learned policy: a video and a film strip."""
    from recoup.runs.render import render_run

    chosen = None if steps is None else [whole(part) for part in steps.split(",")]
    with Console(stderr=True, quiet=quiet).status("filming"):
        written = render_run(run, seed=seed, steps=chosen, out=out, task=task, force=force)
    found = {what: (out or run) / path.name for what, path in written.items()}
    if as_json:
        print_json(found)
    for path in () if quiet or as_json else found.values():
        say(path)


@app.command(epilog=REPORT_EXAMPLES)
def report(
    runs: Annotated[list[Path], argument("Run directories, or files of studies.", "RUN...")],
    out: Annotated[
        Path | None,
        option(
            "The page (report.html in the first run, FILE-report.html, or "
            "studies-report.html beside the first of several, unless said)."
        ),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page about runs, or about studies.

    An older page of recoup's is replaced, any other file is not.
    """
    if not any(path.is_file() for path in runs):
        if runs and not check_path("the run", runs[0]).exists():
            raise InputError(f"there is no run and no study in {runs[0]}.")
        from recoup.report.run_page import write_report

        say_path("page", write_report(runs, out, force=force), as_json)
        return
    if any(path.is_dir() for path in runs):
        raise InputError(
            "a page is of runs or of studies: name run directories, or files of studies (that of a "
            "run is its study.db)."
        )
    from recoup.report.studies_page import write_studies_report
    from recoup.report.study_page import write_study_report

    with blaming(*runs):
        if len(runs) > 1:
            say_path("page", write_studies_report(runs, out, force=force), as_json)
        else:
            say_path("page", write_study_report(runs[0], out, force=force), as_json)


def show_returns(title: str, returns: Mapping[str, tuple[float, float, int]]) -> None:
    """Prints expected returns: of what, the mean and its standard error, of how many episodes."""
    rows = [
        [what, f"{x:.2f} ± {e:.2f}" if isfinite(x) else "not known", str(n)]
        for what, (x, e, n) in returns.items()
    ]
    show_table(["", "expected return", "test episodes"], rows, texts=[""], title=title)
