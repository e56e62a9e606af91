"""The page of a reproduction: what the paper claims, what was found, and everything behind it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from recoup.checks import InputError
from recoup.engine.methods import METHODS, Method
from recoup.outputs import Over
from recoup.report.html import embedded, measured, page, write_page
from recoup.reproduce import ORDER
from recoup.reproduce.claims import FAILS, HOLDS, HOLM, OPEN, RULE, corrected
from recoup.reproduce.figures.nine import LONGER
from recoup.reproduce.reproduce import ABOUT, CLAIMS, DATA, FILM, PICTURE

PAGE = "report.html"
PAPER_NAMES = {
    "pgpe": "PGPE",
    "pgpe-ob": "PGPE_OB",
    "niw-pgpe": "NIW-PGPE",
    "niw-pgpe-ob": "NIW-PGPE_OB",
    "iw-pgpe": "IW-PGPE",
    "iw-pgpe-ob": "IW-PGPE_OB, the proposed method",
    "tiw-pgpe-ob": "Truncated IW-PGPE_OB",
    "iw-reinforce-ob": "IW-REINFORCE_OB",
    "tiw-enac": "TIW-eNAC",
    "r3": "R^3",
}
BASELINES = {"none": "none", "optimal": "optimal (Theorem 2)"}
WEIGHTS = {"none": "none", "own": "own proposal", "balance": "mixture of all proposals"}
CHOICES = (
    (
        "bound on the car's force",
        "none (mountain-car), and ±0.3 (mountain-car-weak); both reported",
        "the equations print no bound, the text says that the force is too weak to climb directly",
    ),
    (
        "weights of samples from many proposals",
        "against the proposal that drew the sample; mis-pgpe-ob against the mixture of all",
        "the paper defines w for one proposal only; the first is the plainest reading",
    ),
    (
        "baseline",
        "estimated from all samples, one scalar for means and standard deviations together",
        "as the paper says of its experiments; Theorem 3 needs one for each",
    ),
    (
        "zero of the arm's angles",
        "the arm stretched forward",
        "with zero at the hanging arm and phi(s) = s no policy can move at all",
    ),
    (
        "control cost of the arm",
        "sum of squared servo torques",
        "with squared angles in degrees, not moving is optimal",
    ),
    (
        "floor of the standard deviations",
        "0.05 on every task",
        "stated for the toy alone",
    ),
    (
        "rewards of R^3",
        "shifted by the smallest one that occurred",
        "reward-weighted regression needs rewards that are not negative",
    ),
    (
        "which true gradient moves the path of Figure 1",
        "the joint one of mean and standard deviation, from 10,000 samples; bias against "
        "quadrature",
        "the text names the gradient of the mean, and updates both",
    ),
)


def ours_of(size: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """What the paper neither says nor does, what is done here at a size, and why."""
    iterations = dict(size["reach_iterations"])
    return (
        (
            "iterations of the reaching tasks",
            f"{iterations[2]} with two joints, {iterations[4]} with four, {iterations[9]} with "
            f"nine; one method goes on to {int(LONGER * iterations[9])} with nine, to see what "
            "more of them do",
            "the paper's text gives 400 for nine joints, and no number for two and four",
        ),
        (
            "test episodes of the reaching tasks",
            f"{size['reach_tests']} at every test",
            "the paper has 50; runs differ more than episodes of one run do, so more runs and "
            "fewer episodes say more (a guess)",
        ),
        (
            "runs",
            f"{size['toy_runs']:,} on the toy, {size['car_runs']} on the cars, "
            f"{size['reach_runs']} on the reaching tasks",
            "the paper has 20, 10 and 10",
        ),
        *NOT_THE_PAPERS,
    )


NOT_THE_PAPERS = (
    (
        "the split baseline",
        "two halves, each with the baseline of the other (cross-fitted), so that all samples serve "
        "the gradient",
        "the paper says that splitting does not work well, not how it was done",
    ),
    (
        "thresholds",
        "nine tenths, a half, a fifth, 1 %, 10 %, 1.5 times, a third of the iterations, 5 cm",
        "words such as fast, small, near or fairly well need a number; every claim names its own",
    ),
    (
        "tests",
        "a t-test over runs, and Holm's correction over all claims",
        "the paper shows error bars and tests nothing",
    ),
    (
        "causes on the car",
        "estimates made again from fresh samples, at iterations 10 and 30 of real runs",
        "the paper supposes them (perhaps, maybe) and measures neither",
    ),
    (
        "policies whose distance, cost and energy are measured",
        "the mean of the search distribution, 20 episodes",
        "the paper does not say which policy it shows",
    ),
)


def figures_of(directory: Path) -> list[dict[str, Any]]:
    """The figures in the directory of a reproduction, their claims judged together."""
    figures = [
        figure_of(directory / name) for name in ORDER if (directory / name / CLAIMS).is_file()
    ]
    together = iter(corrected([claim for figure in figures for claim in figure["claims"]]))
    return [{**figure, "claims": [next(together) for _ in figure["claims"]]} for figure in figures]


def write_reproduction(directory: str | Path, *, force: bool = False) -> Path:
    """`report.html` of what lies in the directory of a reproduction."""
    directory = Path(directory)
    figures = figures_of(directory)
    if not figures:
        raise InputError(f"{directory} holds no figures: run `recoup reproduce` first.")
    sizes = {figure["about"]["size"]["name"] for figure in figures}
    if len(sizes) > 1:
        raise InputError(
            f"{directory} holds figures of different sizes ({', '.join(sorted(sizes))}): reproduce "
            "them in one size, or in directories of their own."
        )
    content = page("reproduction.html", **_content(figures))
    return write_page(directory / PAGE, content, Over(force))


def _content(figures: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that the page shows."""
    claims = [claim for figure in figures for claim in figure["claims"]]
    about = figures[0]["about"]
    return {
        "about": about,
        "size": about["size"],
        "counts": Counter(claim["verdict"] for claim in claims),
        "together": Counter(claim["holm_verdict"] for claim in claims),
        "claims": claims,
        "parts": parts_of(claims),
        "groups": [
            {"word": word, "claims": [c for c in claims if c["verdict"] == word]}
            for word in (FAILS, OPEN, HOLDS)
            if any(c["verdict"] == word for c in claims)
        ],
        "rule": RULE,
        "holm": HOLM,
        "figures": figures,
        "methods": [_method(row) for row in METHODS.values()],
        "choices": CHOICES,
        "ours": ours_of(about["size"]),
    }


def parts_of(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How the claims fare, by what they are about."""
    parts = (
        ("The theory", ("bounds",)),
        ("the toy", ("toy",)),
        ("the mountain car as printed", ("mountain-car.",)),
        ("with a weak engine", ("mountain-car-weak",)),
        ("reaching", ("reach",)),
    )
    found = []
    for name, starts in parts:
        verdicts = Counter(c["verdict"] for c in claims if c["id"].startswith(starts))
        if verdicts:
            counts = {"holds": verdicts[HOLDS], "fails": verdicts[FAILS], "open": verdicts[OPEN]}
            found.append({"name": name, "claims": verdicts.total(), **counts})
    return found


def figure_of(directory: Path) -> dict[str, Any]:
    """Everything about one figure that a page shows, from its directory."""
    try:
        about = json.loads((directory / ABOUT).read_text())
        claims = json.loads((directory / CLAIMS).read_text())["claims"]
        claims = [{**claim, "least": claim["contrasts"][claim["least"]]} for claim in claims]
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise InputError(f"{directory} is damaged ({wrong}): reproduce it again.") from None
    picture, film = directory / f"{PICTURE}.png", directory / FILM
    with np.load(directory / DATA, allow_pickle=False) as data:
        table = _table(directory.name, dict(data))
    return {
        "name": directory.name,
        "paper": about["paper"],
        "title": about["title"],
        "caption": about["caption"],
        "about": about,
        "picture": embedded(picture) if picture.is_file() else None,
        "problem": about.get("problem"),
        "film": embedded(film) if film.is_file() else None,
        "table": table,
        "claims": claims,
    }


def _table(name: str, data: dict[str, np.ndarray]) -> dict[str, Any] | None:
    """Expected returns at the start, midway and at the end, of figures with learning curves."""
    groups = {"mountain-car": ("mountain-car ", "mountain-car-weak ")}.get(name, ("",))
    if name not in ("toy-returns", "mountain-car", "reach-2", "reach-4", "reach-9"):
        return None
    rows = []
    for group in groups:
        for method in METHODS:
            curves = data.get(f"{group}{method}")
            if curves is not None:
                columns = (0, curves.shape[1] // 2, -1)
                cells = [_mean(curves[:, column]) for column in columns]
                cells.append(_mean(curves[:, -1] - data[f"{group}iw-pgpe-ob"][:, -1]))
                rows.append([f"{group}{method}".strip(), *cells])
    return {"head": ["", "start", "midway", "end", "end, minus iw-pgpe-ob"], "rows": rows}


def _mean(values: np.ndarray) -> str:
    return measured(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def _method(row: Method) -> dict[str, str]:
    kept = {1: "no", None: "everything"}.get(row.window, f"last {row.window} iterations")
    cap = "" if row.truncate is None else f", w = min(w, {row.truncate:g})"
    in_actions, kind = row.space == "actions", "classic" if row.direction == "fit" else "descendant"
    return {
        "name": row.name,
        "paper": PAPER_NAMES.get(row.name, f"– (a {kind})"),
        "reuses": kept,
        "weights": WEIGHTS[row.weighting] + cap + (", of actions" if in_actions else ""),
        "baseline": BASELINES[row.baseline] if row.direction == "gradient" else "–",
    }
