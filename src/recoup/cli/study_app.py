"""The app of `recoup study`, and the options that its commands share."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from recoup.checks import InputError, check_choice, check_path
from recoup.cli.app import JsonOption as JsonOption
from recoup.cli.app import argument, examples, option
from recoup.cli.parsing import (
    complete_method,
    complete_setting,
    vector_or_named,
    whole,
    whole_option,
)
from recoup.core.types import Plain

if TYPE_CHECKING:
    from recoup.study.study import Study

EXAMPLES = examples(
    "study new robot.db --param stiffness=10:200:log --param damping=0:1",
    "study ask robot.db -n 4",
    "study tell robot.db 3 -12.3",
    'study tell robot.db 4 --failed "gripper slipped"',
    "study show robot.db",
)
ORDER = (  # of the commands in the help; others stand after them
    *("new", "ask", "pending", "tell", "amend", "cancel", "enqueue", "show", "trials", "log"),
    *("best", "note", "title", "plot", "recommend", "predict", "evaluate", "check", "export"),
    *("import", "replay", "fork", "copy"),
)


class _InOrder(TyperGroup):
    """The commands in the order in which somebody needs them, whichever module adds them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        found = super().list_commands(ctx)
        return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


class _Signed(TyperCommand):
    """A command to which -12.3 is a number and no option, while --typo is an option and no file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads them; what looks like an option and is none is refused, but for what follows --."""
        given = args[: args.index("--")] if "--" in args else list(args)
        left = super().parse_args(ctx, args)
        for value in (ctx.params[p.name] for p in self.params if p.param_type_name == "argument"):
            words = {str(word) for word in (value if isinstance(value, list | tuple) else [value])}
            for word in words.intersection(given):
                if LIKE_AN_OPTION.match(word):
                    ctx.fail(f"No such option: {word}")
        return left


LIKE_AN_OPTION = re.compile(r"--?(?!(?:inf|infinity|nan)$)[a-z]", re.IGNORECASE)
SIGNED: Plain = {"cls": _Signed, "context_settings": {"ignore_unknown_options": True}}
app = typer.Typer(cls=_InOrder, no_args_is_help=True, rich_markup_mode="rich", epilog=EXAMPLES)


@contextmanager
def opened(file: Path, read_only: bool = False) -> "Iterator[Study]":
    """The study in `file`; what stands there but makes no sense gets one sentence."""
    from recoup.study.study import Study

    if not check_path("FILE", file).exists():
        raise InputError(f"there is no study in {file}: `recoup study new {file}` starts one.")
    with blaming(file), Study.open(file, read_only=read_only) as study:
        yield study


@contextmanager
def blaming(*files: Path) -> Iterator[None]:
    """An error that nobody foresaw is damage of a study's file where `check` finds some there."""
    from recoup.store.errors import sensible

    with ExitStack() as stack:
        for file in files:
            stack.enter_context(sensible(file, partial(_is_damaged, file)))
        yield


def _is_damaged(file: Path) -> bool:
    from recoup.study.care.verify import check  # as heavy as the study itself

    return not all(found.sound for found in check(file))


File = Annotated[Path, argument("The study's file.", "FILE")]
Id = Annotated[int, argument("The trial.", "ID", parser=whole)]
MethodOption = Annotated[
    str | None, option("See `recoup methods`.", metavar="NAME", autocompletion=complete_method)
]
SetOption = Annotated[
    list[str] | None,
    option(
        "--set",
        "A setting of the method, repeatable.",
        metavar="KEY=VALUE",
        autocompletion=complete_setting,
    ),
]
FORMATS = ("table", "json", "csv")
FormatOption = Annotated[
    str | None,
    option(
        f"{', '.join(FORMATS)} (a table unless said). In csv a text that a spreadsheet would "
        "take for a formula, as the choice -1, stands after a '.",
        metavar="FORMAT",
    ),
]
MeanOption = Annotated[
    list[str] | None,
    option(
        "Means: a number, one each separated by commas, or some by name: kp=300,gripper=soft; "
        "repeatable.",
        metavar="X,...",
    ),
]
StdOption = Annotated[list[str] | None, option("Standard deviations, likewise.", metavar="X,...")]
MinimizeOption = Annotated[
    bool, option("--minimize", "Costs are told, not returns: smaller is better.")
]
LimitOption = Annotated[
    list[str] | None,
    option(
        "A limit on a number told beside returns (tell --also), repeatable: 'force<50', or "
        "<=, > or >=; in quotation marks.",
        metavar="NAME<NUMBER",
    ),
]
WithinOption = Annotated[
    float | None, option("Probability with which each limit is to be kept (0.95 unless said).")
]
AlsoOption = Annotated[
    list[str] | None,
    option(
        "A number beside the return, repeatable; nan where one is not known.", metavar="NAME=NUMBER"
    ),
]
ContextOption = Annotated[
    list[str] | None,
    option("A number known before the trial began, repeatable.", metavar="NAME=NUMBER"),
]
LeaseOption = Annotated[
    str | None,
    option(
        "Hand the trials out again where they have no result by then: 90s, 15m, 1h, 2d.",
        metavar="TIME",
    ),
]
BatchOption = Annotated[int | None, whole_option("Results of one move (the method's unless said).")]
SeedOption = Annotated[int | None, whole_option("Seed of all randomness (0 unless said).")]


def form_of(format: str | None, as_json: bool) -> str:
    """The form in which trials are printed: `--json` is `--format json`."""
    if format is None:
        return "json" if as_json else "table"
    check_choice("format", format, FORMATS)
    if as_json and format != "json":
        raise InputError(f"give --json or --format {format}, not both.")
    return format


def given_options(**options: Any) -> Plain:
    """The options that were given, vectors as numbers."""
    found = {key: value for key, value in options.items() if value is not None}
    return {
        key: vector_or_named(f"--{key}", ",".join(value)) if key in ("mean", "std") else value
        for key, value in found.items()
    }
