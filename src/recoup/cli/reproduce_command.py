"""`recoup reproduce`: the paper's figures and claims."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from recoup.checks import InputError, check_count
from recoup.cli.app import (
    ForceOption,
    JsonOption,
    app,
    argument,
    examples,
    interruptible,
    option,
    print_json,
    stop,
)
from recoup.cli.parsing import whole_option
from recoup.cli.text_tables import Cell, show_table
from recoup.reproduce import ORDER

if TYPE_CHECKING:
    from recoup.reproduce.reproduce import Finding

REPRODUCE_EXAMPLES = examples(
    "reproduce toy-variance",
    "reproduce reach-2 reach-2-cost --quick",
    "reproduce all",
)
VERDICTS = {
    "holds": Cell("✓ holds", True, "green"),
    "does not hold": Cell("✗ does not hold", True, "red"),
}
OPEN = Cell("? inconclusive", True, "yellow")


@app.command(epilog=REPRODUCE_EXAMPLES)
def reproduce(
    figures: Annotated[list[str], argument(f"{', '.join(ORDER)}, or all.", "FIGURE...")],
    quick: Annotated[bool, option("--quick", "Few runs: all figures in ten minutes.")] = False,
    paper: Annotated[
        bool, option("--paper", "The paper's own numbers of runs and trials.")
    ] = False,
    out: Annotated[Path | None, option("Directory (runs/reproduce-SIZE unless said).")] = None,
    workers: Annotated[
        int | None, whole_option("Processes that measure (one a core unless said).")
    ] = None,
    force: ForceOption = False,
    quiet: Annotated[bool, option("--quiet", "No progress, no table.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure, draw and judge figures of the paper; `all` ends in a page."""
    if quick and paper:
        raise InputError("give --quick or --paper, not both.")
    from recoup.outputs import Over
    from recoup.report.html import check_page
    from recoup.report.reproduction import PAGE, write_reproduction
    from recoup.reproduce.reproduce import ALL, directory_of, work_left
    from recoup.reproduce.reproduce import reproduce as run
    from recoup.runs.engines import default_workers
    from recoup.runs.progress import advancing

    size = "quick" if quick else "paper" if paper else "default"
    processes = default_workers() if workers is None else check_count("workers", workers)
    out = directory_of(size, out)
    if ALL in figures:
        check_page(out / PAGE, Over(force))
    try:
        with interruptible(), advancing(work_left(figures, size, out), quiet or as_json) as show:
            findings = run(figures, size, out, show, processes, force=force)
    except KeyboardInterrupt:
        stop(f"stopped; the same command goes on from what lies in {out}.")
    if not quiet and not as_json:
        _show_claims(findings)
    for finding in findings:
        if finding.problem is not None:
            print(
                f"recoup: no picture of {finding.figure.name}: {finding.problem}", file=sys.stderr
            )
    written = write_reproduction(out, force=force) if ALL in figures else out
    if as_json:
        claims = {finding.figure.name: finding.judged for finding in findings}
        print_json({"out": written, "figures": claims})
    else:
        print(written)


def _show_claims(findings: "list[Finding]") -> None:
    rows: list[list[str | Cell]] = []
    for finding in findings:
        for claim in finding.judged:
            least = claim["contrasts"][claim["least"]]
            words = f"{least['effect']:.3g} ± {least['stderr']:.2g}  {least['what']}"
            verdicts = (VERDICTS.get(claim[key], OPEN) for key in ("verdict", "holm_verdict"))
            rows.append([*verdicts, claim["id"], words])
    show_table(
        ["alone", "together", "claim", "least favourable contrast"],
        rows,
        texts=["claim", "least favourable contrast"],
        title="claims of the paper, judged alone and together with all others (Holm)",
    )
