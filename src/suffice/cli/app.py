"""What all commands share: the application, its errors, and how tables are printed."""

import importlib
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

import suffice
from suffice import OptionError, SufficeError
from suffice.imports import import_module

WIDE = 120
"""Columns of output that goes to a file or a pipe, where there is no terminal to ask."""

_UsageError: Any = typer.BadParameter.__base__


_arguments: list[str] = []


def arguments() -> list[str]:
    """What the command line was called with, for a report to tell."""
    return list(_arguments)


class _Group(TyperGroup):
    """Turns our errors into one sentence and exit code 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _arguments[:] = args
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            raise _refusal(error.format_message()) from None
        except OptionError as error:
            option = f"--{error.argument.replace('_', '-')} " if error.argument else ""
            raise _refusal(f"{option}{error.complaint}") from None
        except SufficeError as error:
            raise _refusal(str(error)) from None
        except BrokenPipeError:  # whoever read our output has seen enough
            raise typer.Exit(1) from None
        except OSError as error:
            raise _refusal(f"the output can't be written: {error.strerror}") from None


def _refusal(message: str) -> typer.Exit:
    typer.echo("suffice: " + " ".join(message.split()), err=True)
    return typer.Exit(2)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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


class ManyValues(TyperCommand):
    """Lets `--train A B` stand for `--train A --train B`, and likewise for the other options that take pools."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse with the option repeated before each of its values."""
        spread: list[str] = []
        option = ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg in ("--train", "--test", "--fit") else ""
            if option and arg != option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        parsed: list[str] = super().parse_args(ctx, spread)
        return parsed


def need(module: str, extra: str) -> Any:
    """Import what lives behind an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs {error.name}, of the extra {extra}: pip install 'suffice[{extra}]'") from None


def whole_numbers(argument: str, text: str) -> tuple[int, ...]:
    """The value of an option that takes numbers with commas between."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f'must be whole numbers with commas between, not "{text}"', argument) from None


def show(*parts: Any) -> None:
    """Print tables, each as wide as it needs to be: a narrow terminal folds lines, but nothing is cut."""
    console = Console(width=None if sys.stdout and sys.stdout.isatty() else WIDE, markup=False, emoji=False)
    for part in parts:
        console.print(part, width=max(console.width, console.measure(part).minimum), crop=False, no_wrap=True)
