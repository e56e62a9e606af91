"""The page of commands: what the program itself says under `--help`, 80 columns wide."""

from collections.abc import Iterator
from importlib import import_module
from unittest import mock

import typer
from typer.testing import CliRunner

from recoup.cli import main as program

COLUMNS = "80"


def commands_page() -> str:
    """Every command and its help, but those of a study."""
    intro = (
        "What `recoup COMMAND --help` prints; [`recoup study`](study-commands.md) has a page of "
        "its own. A command ends with status 0; with 2 after wrong use, and with 1 after a "
        "failure, with one sentence on standard error. `--json` prints one line of JSON on "
        "standard output and nothing else there."
    )
    return _page("Commands", intro, [words for words in commands() if words[:1] != ("study",)])


def study_commands_page() -> str:
    """The commands of a study and their help."""
    intro = "What `recoup study COMMAND --help` prints: a search by hand."
    found = [words for words in commands() if words[:1] == ("study",)]
    return _page("Commands of a study", intro, found)


def _page(title: str, intro: str, listed: list[tuple[str, ...]]) -> str:
    found = [f"# {title}", "", intro, ""]
    for words in listed:
        found += [f"## {' '.join(('recoup', *words))}", "", "```text", help_of(words), "```", ""]
    return "\n".join(found)


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command, groups before what is in them."""
    for name in (*program.OTHERS, *program.BY_HAND):
        import_module(f"recoup.cli.{name}")
    yield ()
    yield from _below(typer.main.get_command(program.app), ())


def _below(group: typer.core.TyperGroup, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, command in sorted(group.commands.items()):
        if not command.hidden:
            yield (*words, name)
            if isinstance(command, typer.core.TyperGroup):
                yield from _below(command, (*words, name))


def help_of(words: tuple[str, ...]) -> str:
    """What a command says of itself, without spaces at the ends of lines."""
    with mock.patch("typer.rich_utils.FORCE_TERMINAL", None):
        runner = CliRunner(env={"COLUMNS": COLUMNS, "TERM": "dumb", "NO_COLOR": "1"})
        found = runner.invoke(program.app, [*words, "--help"], prog_name="recoup")
    lines = [line.rstrip() for line in found.output.splitlines()]
    return "\n".join(lines).strip("\n")
