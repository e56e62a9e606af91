"""`recoup study plot`: a study as a picture."""

from pathlib import Path
from typing import Annotated

from recoup.cli.app import ForceOption, examples, option, say_path
from recoup.cli.study_app import File, JsonOption, app, opened

PLOT_EXAMPLES = examples(
    "study plot robot.db --out robot.png",
    "study plot runs/mountain-car-recoup-0/study.db --out car.pdf",
)


@app.command(epilog=PLOT_EXAMPLES)
def plot(
    file: File,
    out: Annotated[Path, option("The picture: a .png, .pdf or .svg file.", metavar="PNG")],
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw results and estimates, the parameters over time, slices, and the health of reuse.

    An older picture of recoup's is replaced, any other file is not.
    """
    with opened(file, read_only=True) as study:
        study.plot(out, force=force)
    say_path("picture", out, as_json)
