"""docs/reproduction.md and docs/lookup/verdicts.md, from what `recoup reproduce all` has written.

python -m benchmarks.reproduction runs/reproduce-default
"""

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from recoup.report.reproduction import CHOICES, figures_of, ours_of, parts_of
from recoup.reproduce import ORDER
from recoup.reproduce.claims import FAILS, HOLDS, HOLM, OPEN, RULE

DOCS = Path(__file__).parent.parent / "docs"
MARKS = {HOLDS: "holds", FAILS: "**does not hold**", OPEN: "inconclusive"}
HEAD = """# The paper, reproduced

Every figure of Zhao et al. 2013, run again, and every sentence of it that can be true or false here
as a measured statement. Made by `recoup reproduce all` ({runs}) and
`python -m benchmarks.reproduction`; the same as one page, with every contrast and the videos: the
`report.html` that it ends in. `make reproduce` does it in ten minutes with fewer runs.

{about}

**{holds} claims hold, {fails} do not, {open} are inconclusive; judged together, {holm_holds} hold,
{holm_fails} do not and {holm_open} are inconclusive.** {rule} {holm} A contrast is a number that is
positive where the claim is true; ± is one standard error over runs, paired where they share a
start. A reason that was not measured is marked as a guess.

[Learning curves](benchmarks/paper.md#learning-curves) show the {cars} runs on the cars at more
points of their way, and methods that the paper does not compare there.

{parts}
Beside the paper's methods stand two that are not in its comparison, or not in all of it:
`mis-pgpe-ob` (bounded weights) and `tiw-pgpe-ob` (truncated ones). How they end, minus
`iw-pgpe-ob`, is the last column of each table.
"""
VERDICTS = """
## All verdicts

[A page of their own](lookup/verdicts.md) has every claim with its verdict, its p and its contrast.
"""
VERDICTS_HEAD = """# All verdicts on the paper

Every claim of the paper with its verdict, alone and judged together with all others. How claims are
judged, and why some do not hold: [the paper, reproduced](../reproduction.md).
"""


def cell(contrast):
    return f"{contrast['effect']:.3g} ± {contrast['stderr']:.2g}"


def verdict_table(figures):
    yield "| claim | the paper | verdict | with Holm | p | least favourable contrast | runs |"
    yield "|---|---|---|---|---|---|---|"
    for figure in figures:
        for claim in figure["claims"]:
            least = claim["least"]
            runs = f"{least['runs']:,}" if least["runs"] else "none needed"
            says = claim["says"].replace("|", "\\|")
            yield (
                f"| `{claim['id']}` | {says} ({claim['where']}) | {MARKS[claim['verdict']]} | "
                f"{MARKS[claim['holm_verdict']]} | {claim['p']:.2g} | "
                f"{cell(least)}: {least['what'].replace('|', chr(92) + '|')} | "
                f"{runs} |"
            )


def not_holding(figures):
    for figure in figures:
        for claim in figure["claims"]:
            if claim["verdict"] == FAILS:
                against = [c for c in claim["contrasts"] if c["verdict"] == FAILS]
                measured = "; ".join(f"{c['what']}: {cell(c)}" for c in against[:4])
                more = "" if len(against) <= 4 else f"; and {len(against) - 4} more"
                alone = "" if claim["holm_verdict"] == FAILS else " Judged together: inconclusive."
                yield (
                    f"- `{claim['id']}`: “{claim['says']}” {measured}{more}.{alone} {claim['note']}"
                )


def table(head, rows):
    yield "| " + " | ".join(head) + " |\n|" + "---|" * len(head)
    yield from ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def pictures(figures, source):
    for figure in figures:
        name = figure["name"]
        shutil.copy(source / name / "figure.png", DOCS / "reproduction" / f"{name}.png")
        yield f"\n### {figure['title']} ({figure['paper']})\n"
        yield f"![{figure['title']}](reproduction/{name}.png)\n\n{figure['caption']}"
        if figure["table"]:
            head, rows = figure["table"]["head"], figure["table"]["rows"]
            yield "\n| method | " + " | ".join(head[1:]) + " |\n|" + "---|" * len(head)
            yield "\n".join(
                "| `" + "` | ".join([row[0], " | ".join(row[1:])]) + " |" for row in rows
            )


def main(source, machine):
    (DOCS / "reproduction").mkdir(exist_ok=True)
    figures = figures_of(source)
    claims = [claim for figure in figures for claim in figure["claims"]]
    counts, together = (Counter(c[key] for c in claims) for key in ("verdict", "holm_verdict"))
    about = json.loads((source / ORDER[0] / "data.json").read_text())
    size, versions = about["size"], ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    head = HEAD.format(
        runs=f"{size['toy_runs']:,} runs on the toy, {size['car_runs']} on the cars, "
        f"{size['reach_runs']} on the reaching tasks, M = {size['trials']:,}",
        about=f"{about['date']}; {versions}. {machine}",
        holds=counts[HOLDS],
        fails=counts[FAILS],
        open=counts[OPEN],
        holm_holds=together[HOLDS],
        holm_fails=together[FAILS],
        holm_open=together[OPEN],
        parts=" ".join(
            f"{part['name'][0].upper()}{part['name'][1:]}: {part['holds']} of {part['claims']} "
            f"claims hold, {part['fails']} do not, {part['open']} cannot be decided."
            for part in parts_of(claims)
        ),
        rule=RULE,
        holm=HOLM,
        cars=size["car_runs"],
    )
    parts = [
        head,
        "## What does not hold, and why\n",
        *not_holding(figures),
        "\n## What is ours, not the paper's\n",
        *table(("matter", "here", "why"), ours_of(size)),
        "\n## What the paper leaves open, and what we chose\n",
        *table(("question", "our choice", "why"), CHOICES),
        "\n## Figures",
        *pictures(figures, source),
        VERDICTS,
    ]
    (DOCS / "reproduction.md").write_text("\n".join(parts))
    (DOCS / "lookup").mkdir(exist_ok=True)
    verdicts = [VERDICTS_HEAD, *verdict_table(figures), ""]
    (DOCS / "lookup" / "verdicts.md").write_text("\n".join(verdicts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), " ".join(sys.argv[2:]))
