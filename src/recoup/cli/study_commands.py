"""`recoup study new|tell|amend|show|evaluate`: a search by hand, days apart."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from recoup.checks import InputError
from recoup.cli.app import argument, examples, option, print_json, say_path
from recoup.cli.parsing import (
    method_settings,
    names_given,
    typed_number,
    typed_result,
    typed_return,
    whole,
    whole_option,
)
from recoup.cli.study_app import (
    SIGNED,
    AlsoOption,
    BatchOption,
    ContextOption,
    File,
    Id,
    JsonOption,
    LimitOption,
    MeanOption,
    MethodOption,
    MinimizeOption,
    SeedOption,
    SetOption,
    StdOption,
    WithinOption,
    app,
    given_options,
    opened,
)
from recoup.cli.study_tables import show_distribution
from recoup.cli.text_tables import show_facts, show_text
from recoup.study.exchange.tables import ALSO
from recoup.study.space.parameters import parameter, parameters_of
from recoup.study.trials.diary import check_asked, other_of_pair, told_nevertheless
from recoup.study.trials.results import BEFORE, in_words, trial_number
from recoup.study.views.study_summary import best_trial, summary_rows
from recoup.study.voice.sentences import CANDIDATE, DRAW, broke, due, more_results
from recoup.study.voice.slips import slips

if TYPE_CHECKING:
    from recoup.store.rows import Told
    from recoup.study.study import Study

NEW_EXAMPLES = examples(
    "study new robot.db --dim 12 --std 0.3",
    "study new robot.db --dim 2 --mean -1,0.5 --std 0.3,0.1 --method iw-pgpe-ob --batch 5",
    "study new robot.db --param stiffness=10:200:log --param damping=0:1 --param offset",
    'study new robot.db --param "gripper=soft|hard|vacuum" --param force=1:40',
    'study new robot.db --param stiffness=10:200:log --limit "force<50" --within 0.95',
)
TELL_EXAMPLES = examples(
    "study tell robot.db 3 -12.3",
    "study tell robot.db 3 -12.3 -11.8 -12.9   (three episodes of one theta, one result)",
    'study tell robot.db 4 --failed "gripper slipped"',
    "study tell robot.db 3 -12.3 --also force=41   (a number that a limit may be on)",
    "study tell robot.db 3 -12.3 --context payload=2.5   (known before the trial began)",
    "study tell robot.db --file results.csv    (columns id, return, failed, also_force)",
)
AMEND_EXAMPLES = examples(
    'study amend robot.db 6 -12.5 --why "a slip of the keyboard" --dry-run',
    'study amend robot.db 6 --failed "the gripper opened"',
    "study amend robot.db 6 --also force=41   (the return stays)",
    'study amend robot.db 6 --drop "the sensor was loose"',
    "study amend arm.db 6 --trajectory episode.npz   (for methods that explore in actions)",
)
EVALUATE_EXAMPLES = examples(
    "study evaluate robot.db",
    "study evaluate robot.db --mean 400,0.6 --std 0.5 --json",
)
CONTEXT = "context"  # prefix of columns of results, beside ALSO
ID_DIGITS = 18  # of a trial's id, at most


@app.command(epilog=NEW_EXAMPLES, **SIGNED)
def new(
    file: File,
    dim: Annotated[
        int | None, whole_option("How many parameters, where they have no names.")
    ] = None,
    param: Annotated[
        list[str] | None,
        option(
            "A named parameter, repeatable: NAME, NAME=LOW:HIGH, with :log or :int after it, "
            "or NAME=ONE|OTHER|..., unordered choices.",
            metavar="NAME=LOW:HIGH",
        ),
    ] = None,
    params: Annotated[
        Path | None,
        option(
            "A TOML file of them: a table each, with low, high, scale, choices, start, std, unit.",
            metavar="TOML",
        ),
    ] = None,
    method: MethodOption = None,
    batch: BatchOption = None,
    seed: SeedOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    horizon: Annotated[
        int | None, whole_option("Steps of an episode, for methods that explore in actions.")
    ] = None,
    actions: Annotated[int | None, whole_option("Actions of the policy, likewise.")] = None,
    discount: Annotated[float | None, option("Of rewards, likewise.")] = None,
    minimize: MinimizeOption = False,
    limit: LimitOption = None,
    within: WithinOption = None,
    set_: SetOption = None,
    title: Annotated[str | None, option("What the study is called.")] = None,
    unit: Annotated[
        list[str] | None, option("The unit of a parameter, repeatable.", metavar="NAME=UNIT")
    ] = None,
    return_unit: Annotated[str | None, option("The unit of returns.", metavar="UNIT")] = None,
    return_above: Annotated[
        float | None, option("What no result can be below: 0 of a cost in millimetres.")
    ] = None,
    return_below: Annotated[float | None, option("What no result can be above.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Start a study in a new file; of what is told, larger is better unless you --minimize."""
    if file.exists():
        raise InputError(f"{file} exists already: `recoup study show {file}` says what is in it.")
    named = [parameter(text) for text in param or []]
    named += [] if params is None else parameters_of(params)
    if not named and dim is None:
        raise InputError("give --dim, or the parameters' names with --param or --params.")
    episode = {"horizon": horizon, "actions": actions, "discount": discount}
    given = given_options(
        dim=dim, method=method, batch=batch, seed=seed, mean=mean, std=std, **episode
    )
    given |= given_options(title=title, return_unit=return_unit, limits=limit, within=within)
    given |= given_options(return_above=return_above, return_below=return_below)
    given |= {"params": named} if named else {}
    given |= {"units": names_given("--unit", "NAME=UNIT", unit)} if unit else {}
    given |= {"direction": "minimize"} if minimize else {}
    from recoup.study.study import Study

    with Study.open(file, **given, **method_settings(set_)) as study:
        say_path("study", file, as_json)
        if not as_json:
            goal, limits = study.opened.goal, study.opened.limits
            print(f"Tell {goal.nouns}: {goal.better}.")
            for name in limits.names:
                show_text(f"Tell {name} beside each: --also {name}=NUMBER.")


@app.command(epilog=TELL_EXAMPLES, **SIGNED)
def tell(
    file: File,
    id: Annotated[int | None, argument("The trial.", "[ID]", parser=whole)] = None,
    value: Annotated[
        list[str] | None, argument("Its return, or those of several episodes.", "[RETURN...]")
    ] = None,
    failed: Annotated[str | None, option("Why it failed, in place of a return.")] = None,
    trajectory: Annotated[
        Path | None,
        option("A .npz file with features, actions, rewards, for methods that explore in actions."),
    ] = None,
    also: AlsoOption = None,
    context: ContextOption = None,
    results: Annotated[
        Path | None,
        option("--file", "A CSV file with id, return, failed, and also_NAME, context_NAME if any."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what came of a trial, or of many; larger is better, unless the study minimizes."""
    if (results is None) == (id is None):
        raise InputError("tell takes the id of a trial, or --file with many results.")
    if results is not None and (value or failed or trajectory or also or context):
        raise InputError("with --file every result stands in the file.")
    with opened(file) as study:
        moved, cancelled = len(study.history()), study.store.cancelled()
        if results is not None:
            told = _read_results(study, results)
        else:
            assert id is not None
            check_asked(study.store, trial_number(id, study.store.where))
            told = [(id, study.result(**typed_result(value, failed, trajectory, also, context)))]
        later = study.tell_all(told)
        numbers = {number for number, _ in told}
        said = [row.words for row in later]
        said += [
            told_nevertheless(number, event, other_of_pair(study.store, number))
            for number, event in cancelled.items()
            if number in numbers
        ]
        said += filter(None, (broke(n, *_broken(study, one)) for n, one in told))
        said += [slip.words for slip in slips(study.store.returns(study.store.dropped()), numbers)]
        moves, better = len(study.history()) - moved, study.opened.goal.better
        if as_json:
            _print_told(study, told, said, moves)
            return
        if results is not None:
            print(f"{len(numbers)} result{'' if len(numbers) == 1 else 's'} told ({better}).")
        elif not later:
            which = "" if told[0][1].value is None else f" ({better})"
            show_text(f"Trial {id}: {in_words(told[0][1])}{which}.")
        for sentence in said:
            show_text(sentence)
        _say_next(study, moves)


def _broken(study: "Study", told: "Told") -> tuple[dict[str, float], list[str]]:
    """The numbers beside a result, and the limits that they break."""
    return told.also or {}, [limit.text for limit in study.opened.limits.broken(told.also)]


def _print_told(
    study: "Study", told: "list[tuple[int, Told]]", said: list[str], moves: int
) -> None:
    """What was told, what is to be said of it, and what followed, as JSON."""
    results = [
        {"id": number, "status": one.status, "return": one.value, "failed": one.note}
        | ({"also": one.also, "broken": _broken(study, one)[1]} if one.also else {})
        for number, one in told
    ]
    then = {"moves": moves, "until_move": study.until_move()}
    print_json({"told": results, "words": said, **then})


@app.command(epilog=AMEND_EXAMPLES, **SIGNED)
def amend(
    file: File,
    id: Id,
    value: Annotated[
        list[str] | None, argument("Its return, or those of several episodes.", "[RETURN...]")
    ] = None,
    failed: Annotated[str | None, option("Why it failed, in place of a return.")] = None,
    trajectory: Annotated[
        str | None,
        option(
            f"A .npz file as `tell` takes it, or {BEFORE}: that which an amendment took away.",
            metavar=f"FILE|{BEFORE}",
        ),
    ] = None,
    also: AlsoOption = None,
    context: ContextOption = None,
    drop: Annotated[
        str | None, option("Why it is worth nothing: kept, and counted for nothing.")
    ] = None,
    why: Annotated[str | None, option("Why it is put right.")] = None,
    dry_run: Annotated[
        bool, option("--dry-run", "Say what would change, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a result right that was told wrongly; the moves made of it are made again."""
    given = typed_result(value, failed, None if trajectory == BEFORE else trajectory, also, context)
    if trajectory == BEFORE:
        given["trajectory"] = BEFORE
    with opened(file, read_only=dry_run) as study:
        found = study.amend(id, **given, drop=drop, why=why, dry_run=dry_run)
    print_json(found) if as_json else show_text(found.words)


def _say_next(study: "Study", moves: int) -> None:
    if moves:
        print(f"The distribution moved{'' if moves == 1 else f' {moves} times'}.")
    left = study.until_move()
    show_text(f"{more_results(left)} until the next move." if left else due(study.opened.lacks))


def _read_results(study: "Study", path: Path) -> "list[tuple[int, Told]]":
    """Results from a CSV file, every row checked before any is told."""
    from recoup.study.exchange.read import heads  # as heavy as the study itself

    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as wrong:
        raise InputError(f"{path} cannot be read: {wrong.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file.") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = heads(path, reader.fieldnames or [])
    if "id" not in columns or not {"return", "failed"} & set(columns):
        found = ", ".join(columns) or "none"
        raise InputError(f"{path} needs the columns id, return, failed; it has {found}.")
    reader.fieldnames = columns
    results = [_result(study, f"line {line} of {path}", row) for line, row in enumerate(reader, 2)]
    if not results:
        raise InputError(f"{path} holds no results.")
    return list({repr(row): row for row in results}.values())  # a line may stand there twice


def _result(study: "Study", where: str, row: dict[str, str]) -> "tuple[int, Told]":
    """One line of a file of results."""
    number, value, failed = ((row.get(key) or "").strip() for key in ("id", "return", "failed"))
    if not (number.isascii() and number.isdecimal()) or len(number) > ID_DIGITS:
        raise InputError(f"{where}: the id of a trial must be a whole number, got {number[:40]!r}.")
    if not value and not failed:
        raise InputError(f"{where}: trial {number} has no return: give one, or why it failed.")
    if value and failed:
        raise InputError(f"{where}: give a return, or why it failed, not both.")
    try:
        beside = {key: _numbers(key, row) for key in (ALSO, CONTEXT)}
        given = typed_return(value) if value else None
        told = study.result(given, failed=failed or None, **beside)
    except InputError as wrong:
        raise InputError(f"{where}: {wrong}") from None
    return int(number), told


def _numbers(kind: str, row: dict[str, str]) -> dict[str, float] | None:
    """The numbers of a line beside its return, of a kind, from its cells that are filled."""
    cells = ((key, (text or "").strip()) for key, text in row.items() if isinstance(key, str))
    found = {key: text for key, text in cells if key.startswith(f"{kind}_") and text}
    numbers = {key.removeprefix(f"{kind}_"): text for key, text in found.items()}
    return {name: typed_number(f"{kind} {name}", x) for name, x in numbers.items()} or None


@app.command()
def show(file: File, as_json: JsonOption = False) -> None:
    """What is in a study, how it fares, and what that means for the next batch."""
    from recoup.study.views.snapshot import snapshot  # as heavy as the study itself

    with opened(file, read_only=True) as study, study.store.reading():
        now = snapshot(study, compiling=as_json)
        if as_json:
            print_json({**now.found, **now.plain()})
            return
        best = best_trial(now.best)
        show_facts(summary_rows(study.opened, now.found, best, now.waiting))
        if now.distribution:
            print()
            show_distribution(study)
        for sentence in now.advice:
            print()
            show_text(sentence)


@app.command(epilog=EVALUATE_EXAMPLES, **SIGNED)
def evaluate(
    file: File, mean: MeanOption = None, std: StdOption = None, as_json: JsonOption = False
) -> None:
    """Expected return of a candidate distribution (the newest unless given), at no rollout."""
    from recoup.study.views.snapshot import of_a_draw

    with opened(file, read_only=True) as study, study.store.reading():
        found, goal = study.evaluate(**given_options(mean=mean, std=std)), study.opened.goal
        version = study.store.version()
        before = "" if study.until_move() else due(study.opened.lacks)
    if as_json:
        print_json({**found._asdict(), "version": version})
        return
    of = DRAW if mean is None and std is None else CANDIDATE
    show_text(" ".join(filter(None, [before, of_a_draw(found, goal=goal, of=of)])))
