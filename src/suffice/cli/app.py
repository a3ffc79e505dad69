"""What all commands share: the application, its errors, and how tables are printed."""

import importlib
import os
import sys
from collections.abc import Callable
from keyword import iskeyword
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import suffice
from suffice.cli.command import Command, F, spelled, with_options
from suffice.errors import OptionError, SufficeError, missing
from suffice.imports import import_module

COMMANDS = (
    *("ask", "run", "collect", "import", "serve", "pools", "evaluate", "advise", "controllers"),
    *("train", "plan", "fit", "weigh", "calibrate", "reproduce", "panel", "keys"),
)
"""In the order of the help. Each has a file, which is imported when the command is asked for."""

WIDE = 80
"""Columns of output that goes to a file or a pipe, where neither a terminal nor COLUMNS tells how many there are."""

_UsageError: Any = typer.BadParameter.__base__

arguments: list[str] = []
"""What the command line was called with, for a report to tell."""


class Group(TyperGroup):
    """Turns our errors into one sentence and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            if not error.format_message():  # the help was shown instead
                raise typer.Exit(2) from None
            raise _refusal(error.format_message()) from None
        except OptionError as error:
            raise _refusal(str(spelled(error, self.params))) from None
        except SufficeError as error:
            raise _refusal(str(error)) from None
        except BrokenPipeError:  # whoever read our output has seen enough
            raise typer.Exit(1) from None
        except OSError as error:
            raise _refusal(f"the output can't be written: {error.strerror}") from None


class Root(Group):
    """All commands, of which no file is imported before its command is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        waiting: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = {**waiting, **self.commands}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command's file, where that has not been done."""
        if cmd_name in COMMANDS and not self.commands[cmd_name]:
            importlib.import_module(f"suffice.cli.commands.{cmd_name}" + "_" * iskeyword(cmd_name))
            self.commands.update(typer.main.get_group(app).commands)
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what the command line was called with."""
        arguments[:] = args
        return list(super().parse_args(ctx, args))


def _refusal(message: str) -> typer.Exit:
    typer.echo("suffice: " + " ".join(message.split()), err=True)
    return typer.Exit(2)


class CommandApp(typer.Typer):
    """An application all of whose commands are read alike."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        add = super().command(name, cls=Command, **settings)
        return lambda command: add(with_options(command))


app = CommandApp(
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Ask your LLM just enough times.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(suffice.__version__)
        raise typer.Exit


@app.callback()
def options(
    imports: Annotated[
        list[str],
        typer.Option("--import", metavar="MODULE", help="Import a module, or a .py file, that registers controllers."),
    ] = [],  # noqa: B006
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Ask your LLM just enough times."""
    for name in imports:
        import_module(name)


def need(module: str, extra: str) -> Any:
    """Import what lives behind an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error.name or module, extra) from None


def show(*parts: Any) -> None:
    """Print tables, each as wide as it needs to be: a narrow terminal folds lines, but nothing is cut."""
    from rich.console import Console
    from rich.text import Text

    told = "COLUMNS" in os.environ or (sys.stdout and sys.stdout.isatty())
    console = Console(width=None if told else WIDE, markup=False, emoji=False)
    wide = console.width
    for part in parts:
        needed = console.measure(part, options=console.options.update_width(sys.maxsize)).minimum
        console.width = max(wide, needed)
        console.print(part, crop=False, no_wrap=True, soft_wrap=isinstance(part, Text))
