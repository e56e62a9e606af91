"""`recoup study check|export|import|replay|fork|copy`: a study as a whole."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from recoup.checks import InputError, check_choice
from recoup.cli.app import ForceOption, argument, examples, for_tables, option, print_json, say
from recoup.cli.parsing import check_once, method_settings, names_given, typed_value, whole_option
from recoup.cli.study_app import (
    SIGNED,
    File,
    JsonOption,
    LimitOption,
    MeanOption,
    MethodOption,
    SetOption,
    StdOption,
    WithinOption,
    app,
    given_options,
    opened,
)
from recoup.cli.study_tables import print_replay
from recoup.cli.text_tables import show_text

if TYPE_CHECKING:
    pass

CHECK_EXAMPLES = examples("study check robot.db", "study check robot.db --recover saved.db")
EXPORT_EXAMPLES = examples(
    "study export robot.db > trials.csv",
    "study export robot.db --out trials.parquet",
)
IMPORT_EXAMPLES = examples(
    "study import robot.db last-year.db",
    "study import robot.db samples.csv --mean 0,0 --std 0.5",
)
REPLAY_EXAMPLES = examples(
    "study replay robot.db --method iw-pgpe-ob",
    "study replay robot.db --set share=0.5 --plot replay.png",
)
FORK_EXAMPLES = examples(
    "study fork robot.db careful.db --method tiw-pgpe-ob --batch 4",
    "study fork runs/reach-2-recoup-0/study.db by-hand.db --std 0.3",
    "study fork robot.db wider.db --param stiffness=10:400:log",
    'study fork robot.db gentle.db --limit "force<40"   (in place of all limits; none: without)',
    "study fork robot.db more.db --param friction=0:1@0.3 --rename damping=d --freeze offset=0",
)
COPY_EXAMPLES = examples("study copy robot.db monday.db")


@app.command(epilog=CHECK_EXAMPLES)
def check(
    file: File,
    recover: Annotated[
        Path | None, option("Write everything that can be read to this new file.", metavar="NEW")
    ] = None,
    quiet: Annotated[bool, option("--quiet", "No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify a study: its bytes, its rows, its counters, its draws and its moves."""
    if recover is not None:
        from recoup.study.care.recover import recover as recover_file

        with _progress("reading its pages", quiet or as_json) as tick:
            saved = recover_file(file, recover, tick)
        print_json(saved) if as_json else show_text(saved.words)
        return
    from recoup.study.care.verify import check as check_file

    with _progress("making its moves again", quiet or as_json) as tick:
        found = check_file(file, tick)
    sound = all(finding.sound for finding in found)
    if as_json:
        print_json({"sound": sound, "findings": found})
    for finding in () if as_json else found:
        show_text(f"{'ok   ' if finding.sound else 'WRONG'}  {finding.words}")
    if not sound:
        raise typer.Exit(1)


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        row = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(row, completed=done, total=of)


@app.command(epilog=EXPORT_EXAMPLES)
def export(
    file: File,
    format: Annotated[
        str | None, option("csv or parquet (by the name's ending unless said).")
    ] = None,
    out: Annotated[
        Path | None, option("File to write; CSV goes to standard output without one.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write all trials as a table, with the distributions that drew them.

    An older table of the same study is replaced, any other file is not.
    """
    from recoup.study.exchange import tables

    if format is not None:
        check_choice("format", format, tables.FORMATS)
    if format == "parquet" and out is None:
        raise InputError("a Parquet file needs a name: give --out trials.parquet.")
    with opened(file, read_only=True) as study:
        if out is None and as_json:
            with study.store.reading():
                heads, rows = tables.columns_of(study.opened), tables.rows_of(study.opened)
                print_json([dict(zip(heads, row, strict=True)) for row in rows])
            return
        if out is None:
            tables.write_csv(study.opened, for_tables(sys.stdout))
            return
        count = tables.export(study.opened, out, format, force=force)
    print_json({"trials": count, "out": out}) if as_json else say(f"{count} trials in {out}")


@app.command(name="import", epilog=IMPORT_EXAMPLES, **SIGNED)
def import_(
    file: File,
    samples: Annotated[
        Path, argument("A .csv, .parquet or .npz file, or another study.", "SAMPLES")
    ],
    mean: Annotated[
        list[str] | None,
        option("Mean of what drew them, where the file does not say.", metavar="X,..."),
    ] = None,
    std: Annotated[
        list[str] | None, option("Its standard deviations, likewise.", metavar="X,...")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add samples from elsewhere, weighed by what drew them."""
    from recoup.study.exchange.proposals import moments_given
    from recoup.study.exchange.read import read_samples
    from recoup.study.exchange.samples import import_samples

    with opened(file) as study:
        found = read_samples(study.opened, samples)
        given = given_options(mean=mean, std=std)
        if given:
            if found.mean is not None or found.blocks is not None:
                raise InputError(f"{samples} says itself what drew them: leave out --mean, --std.")
            found = found._replace(**moments_given(study.opened, given))
        added = import_samples(study.opened, found, str(samples))
    print_json(added) if as_json else show_text(added.words)


@app.command(epilog=REPLAY_EXAMPLES, **SIGNED)
def replay(
    file: File,
    method: MethodOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    set_: SetOption = None,
    plot: Annotated[Path | None, option("A picture of it.", metavar="PNG")] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """How another method would have moved on the same results, at no rollout."""
    from recoup.outputs import Over, check_output
    from recoup.pictures.picture_files import PICTURE, write_picture
    from recoup.study.exchange.replay import replay as replay_study

    with opened(file, read_only=True) as study:
        over = Over(force, study=file)
        if plot is not None:
            check_output(plot, PICTURE, over)
        given = {**given_options(mean=mean, std=std), **method_settings(set_)}
        with _progress("replaying", as_json) as tick:
            found = replay_study(study.opened, method, tick=tick, **given)
        if not found:
            raise InputError(f"{file} has not moved yet: there is nothing to replay.")
        own = study.history()
        name = method or study.method.name
        if plot is not None:
            from recoup.pictures.curves import replayed

            drawn = replayed(study.method.name, own, name, found, study.opened.goal.noun)
            write_picture(drawn, plot, 150, over)
        if as_json:
            print_json([row.plain() for row in found])
        else:
            print_replay(study, own, name, found)


@app.command(epilog=FORK_EXAMPLES, **SIGNED)
def fork(
    file: File,
    new: Annotated[Path, argument("The new study's file.", "NEW")],
    method: MethodOption = None,
    batch: Annotated[int | None, whole_option("Results of one move.")] = None,
    seed: Annotated[int | None, whole_option("Seed of all randomness.")] = None,
    mean: MeanOption = None,
    std: StdOption = None,
    set_: SetOption = None,
    change: Annotated[
        list[str] | None,
        option(
            "--param",
            "Other bounds for a parameter, repeatable: NAME=LOW:HIGH. A new one says after @ "
            "what it was in all results so far: NAME=LOW:HIGH@VALUE, NAME=A|B@A.",
            metavar="NAME=LOW:HIGH",
        ),
    ] = None,
    minimize: Annotated[
        bool | None,
        option(
            "--minimize/--maximize",
            "Take what was told as costs, or as returns (as the old study does unless said).",
        ),
    ] = None,
    limit: LimitOption = None,
    within: WithinOption = None,
    rename: Annotated[
        list[str] | None, option("Another name, repeatable.", metavar="OLD=NEW")
    ] = None,
    freeze: Annotated[
        list[str] | None,
        option(
            "Search a parameter no more, repeatable; it stays at the mean policy's value "
            "unless said.",
            metavar="NAME[=VALUE]",
        ),
    ] = None,
    unit: Annotated[
        list[str] | None, option("The unit of a parameter, repeatable.", metavar="NAME=UNIT")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Start a new study from all results of an old one: another method, start, or parameters."""
    from recoup.study.exchange.fork import forked_words  # as heavy as the study itself

    given = given_options(method=method, batch=batch, seed=seed, mean=mean, std=std)
    given |= given_options(limits=limit, within=within)
    changes = {
        "params": change,
        "rename": names_given("--rename", "OLD=NEW", rename),
        "freeze": _values(freeze),
        "units": names_given("--unit", "NAME=UNIT", unit),
    }
    given |= {key: value for key, value in changes.items() if value}
    given |= method_settings(set_)
    if minimize is not None:
        given["direction"] = "minimize" if minimize else "maximize"
    with opened(file, read_only=True) as study, study.fork(new, **given) as forked:
        words = forked_words(forked.opened, file)
        found = {"study": new, "of": file, **forked.counts(), "frozen": forked.frozen}
        found["words"] = words
    print_json(found) if as_json else show_text(f"{new}: {words}")


def _values(texts: list[str] | None) -> dict[str, float | str | None]:
    found: dict[str, float | str | None] = {}
    for text in texts or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or (equals and not value):
            raise InputError(f"--freeze takes NAME or NAME=VALUE, got {text!r}.")
        check_once("--freeze", name, found)
        found[name] = typed_value(value) if equals else None
    return found


@app.command(epilog=COPY_EXAMPLES)
def copy(
    file: File,
    new: Annotated[Path, argument("The copy's file.", "NEW")],
    as_json: JsonOption = False,
) -> None:
    """Copy a study, also while others write to it: a backup. `cp` may lose its newest results."""
    with opened(file, read_only=True) as study:
        study.store.copy_to(new)
    with opened(new, read_only=True) as copied:
        found = {"study": new, "of": file, **copied.counts()}
        words = f"{new}: {len(copied)} trials of {file}"
    print_json(found) if as_json else show_text(words)
