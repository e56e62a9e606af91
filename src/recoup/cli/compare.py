"""`recoup compare`: methods side by side, ours and other libraries'."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from recoup.checks import InputError, as_typed, check_count
from recoup.cli.app import (
    ForceOption,
    JsonOption,
    app,
    examples,
    fail,
    interruptible,
    option,
    say,
    stop,
)
from recoup.cli.parsing import complete_task, number, number_option, whole_option
from recoup.cli.text_tables import show_table, show_text
from recoup.cli.train_commands import prints_elsewhere
from recoup.core.types import Plain
from recoup.tasks.bounded.bounded_suite import BOUNDED
from recoup.tasks.suite import GYM_TASKS, LISTS, TEST_SEED, TUNING_SEED

if TYPE_CHECKING:
    from recoup.compare.comparison import ComparisonPlan, Order
    from recoup.compare.work import Chunk

COMPARE_EXAMPLES = examples(
    "compare --task mountain-car --method recoup --method cma-es --method snes\n"
    "  --runs 5 --episodes 100",
    "compare --task sphere-10 --task sphere-10@0.25 --method recoup:window=1\n"
    "  --method cma-es:popsize=10 --runs 30 --episodes 400 --checkpoints 50,100,200,400",
    "compare --task robot:rollout --dim 6 --method recoup --method optuna-tpe",
    "compare --task bounded --method recoup --method optuna-gp --runs 3 --episodes 50",
    f"compare --task quick --method iw-pgpe-ob:epsilon=0.5 --method snes --seed {TUNING_SEED}\n"
    "  (starts to choose settings on, apart from those of the tests)",
)
AGAIN = """
The same command again goes on where it was; other methods, tasks or more runs are added.
"""


def complete_compared(incomplete: str) -> list[tuple[str, str]]:
    """Tasks, and lists of tasks, that begin so, for a shell."""
    named = {name: f"{task.env_id}, {task.horizon} steps" for name, task in GYM_TASKS.items()}
    named |= {name: row.summary for name, row in BOUNDED.items()}
    named |= {name: f"{len(tasks)} tasks" for name, tasks in LISTS.items()}
    return complete_task(incomplete) + [x for x in named.items() if x[0].startswith(incomplete)]


def complete_entrant(incomplete: str) -> list[tuple[str, str]]:
    """Methods that search parameters and begin so, ours and other libraries'."""
    from recoup.compare.entrants import PEERS
    from recoup.engine.methods import METHODS

    rows = [(row.name, row.summary) for row in METHODS.values() if row.space == "parameters"]
    rows += [(row.name, row.summary) for row in PEERS.values()]
    return [row for row in rows if row[0].startswith(incomplete)]


@app.command(epilog=COMPARE_EXAMPLES + AGAIN)
def compare(
    task: Annotated[
        list[str],
        option(
            "--task",
            f"One of `recoup tasks`, {', '.join(GYM_TASKS)}, a Gymnasium id or "
            "module:callable, repeatable; TASK@0.25 with other standard deviations at the start; "
            f"or a list: {', '.join(LISTS)}.",
            metavar="TASK",
            autocompletion=complete_compared,
        ),
    ],
    method: Annotated[
        list[str],
        option(
            "--method",
            "One of `recoup methods` that searches parameters, or of another library (cma-es, "
            "lq-cma-es, snes, evosax-pgpe, evosax-cma-es, evosax-open-es, optuna-tpe, "
            "optuna-cma-es, evotorch-pgpe; with bounds cma-es-noise, lra-cma-es, spsa, optuna-gp, "
            "botorch-qlognei, smac, nevergrad-tbpsa, nevergrad-ngopt, turbo, gibo, mpd), "
            "repeatable; METHOD:key=value,... with settings.",
            metavar="METHOD",
            autocompletion=complete_entrant,
        ),
    ],
    runs: Annotated[int, whole_option("Runs of each method on each task.")] = 10,
    episodes: Annotated[int, whole_option("Episodes that each run may spend.")] = 400,
    checkpoints: Annotated[
        str | None, option("Episodes after which runs are tested, separated by commas.")
    ] = None,
    seed: Annotated[
        int,
        whole_option(f"Seed of starts, noise and tests ({TEST_SEED} is that of reported results)."),
    ] = TEST_SEED,
    out: Annotated[
        Path, option("Directory; what lies there already is not computed again.")
    ] = Path("runs/compare"),
    workers: Annotated[int | None, whole_option("Processes (one a core unless said).")] = None,
    std_factor: Annotated[
        float, number_option("Factor of all standard deviations at the start.")
    ] = 1.0,
    against: Annotated[
        str | None,
        option(
            "The method that differences are taken to (the first unless said).", metavar="METHOD"
        ),
    ] = None,
    target: Annotated[
        float | None,
        option(
            "Return to count episodes to (unless said, what iw-pgpe-ob has at the end, or "
            "the method that differences are taken to).",
            parser=number,
            metavar="X",
        ),
    ] = None,
    test_episodes: Annotated[
        int | None, whole_option("Episodes of each test (the task's own number unless said).")
    ] = None,
    dim: Annotated[int | None, whole_option("Parameters of a function of theta.")] = None,
    horizon: Annotated[
        int | None, whole_option("Steps of an episode (the task's own unless said).")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, option("--quiet", "No progress, no tables.")] = False,
) -> None:
    """Compare methods: curves and tables with intervals, over the same starts and noise."""
    from recoup.compare.arenas import Asking
    from recoup.compare.comparison import Order

    if workers is not None:
        check_count("workers", workers)
    points = None if checkpoints is None else _points(checkpoints)
    asking = Asking(std_factor, dim, horizon, test_episodes)
    order = Order(task, method, runs, episodes, points, seed, asking, against, target)
    said, written = _compared(order, out, workers, quiet or as_json, force)
    if as_json:
        print(json.dumps(said))
    elif not quiet:
        _show(said, written)


def _points(text: str) -> list[int]:
    try:
        return [as_typed(part, int) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--checkpoints must be whole numbers separated by commas, got {text!r}."
        ) from None


def _compared(
    order: "Order", out: Path, workers: int | None, silent: bool, force: bool
) -> tuple[Plain, dict[str, Path]]:
    """What a comparison says, and where its files lie."""
    from recoup.compare.comparison import compare as run
    from recoup.compare.comparison import left_of, plan_of, workers_of
    from recoup.compare.run_results import CurveFiles
    from recoup.compare.summary import summary
    from recoup.report.comparison_page import check_comparison, write_comparison
    from recoup.runs.progress import advancing
    from recoup.tasks.engines.engine import Broken

    place = out.absolute()  # a task may change the directory
    try:
        with interruptible(), prints_elsewhere():
            plan = plan_of(order)
            results = CurveFiles(place)
            results.prepare()
            check_comparison(place, force=force)
            left = left_of(plan, results)
            processes = workers_of(plan) if workers is None else workers
            if not silent:
                _say(plan, left, processes)
            episodes = sum(chunk.episodes for chunk in left)
            hidden = silent or not episodes
            with advancing(episodes, hidden, "starting ...", period=300) as show:
                curves = run(order, place, processes, show)
            said = summary(plan, curves)
            written = write_comparison(said, place, force=force)
            return said, {what: out / path.relative_to(place) for what, path in written.items()}
    except KeyboardInterrupt as stopped:
        stopped.__traceback__ = None  # what it holds of workers is freed in order
        stop(f"stopped; the same command goes on from what lies in {out}.")
    except Broken as broken:
        fail(str(broken), 1)


def _say(plan: "ComparisonPlan", left: "list[Chunk]", workers: int) -> None:
    """What is going to be done, and how long it takes."""
    from recoup.compare.comparison_tables import runs_in_words
    from recoup.compare.durations import in_words, seconds

    runs, wanted = sum(len(chunk.runs) for chunk in left), plan.runs * len(plan.chunks)
    there = wanted - runs
    kept = f" ({there} lie{'s' * (there == 1)} there already)" if there else ""
    if not runs:
        words = "the one run lies" if wanted == 1 else f"all {wanted} runs lie"
        words += " there already"
    else:
        time = in_words(seconds(plan, left, workers))
        words = f"{runs_in_words(runs)} to make{kept}: roughly {time}"
    print(words, file=sys.stderr)


def _show(said: Plain, written: dict[str, Path]) -> None:
    from recoup.compare.comparison_tables import deployed, overall_tables, short_table

    tables = [(short_table(said, task), task["notes"]) for task in said["tasks"]]
    tables += [(table, []) for table in overall_tables(said)]
    for one, notes in tables:
        print()
        earlier = [head for head in one.heads if head.startswith(one.heads[1][:3])][:-1]
        show_table(one.heads, one.rows, texts=["method"], spare=earlier, title=one.title)
        for note in notes:
            show_text(note)
    if deployed(said):
        show_text(deployed(said))
    print()
    for path in written.values():
        say(f"  {path}")
