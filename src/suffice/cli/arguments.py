"""How what is typed after a command is read: options with many values, old spellings, and how the help shows them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

import suffice
from suffice.paths import is_there

OUTPUT = "-"
"""The file that is the standard output."""

OLD: Mapping[str, Mapping[str, str]] = {
    "advise": {"--max-tokens": "--max-mean-tokens"},
    "ask": {"--timeout": "--timeout-seconds"},
    "collect": {"--timeout": "--timeout-seconds"},
    "run": {"--timeout": "--timeout-seconds"},
}
"""By command, spellings that still work, and what they have become."""


class Command(TyperCommand):
    """A command whose options may have many values, and old spellings; `--json` may have its file left out."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, as the help shows them."""
        return shown_plainly(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what all of that stands for."""
        old = OLD.get(self.name or "", {})
        ctx.meta[_OLD] = sorted({one.partition("=")[0] for one in args} & old.keys())
        args = [_renamed(one, old) for one in args]
        many = {name for one in self.params if getattr(one, "multiple", False) for name in one.opts} & _MANY.keys()
        args, ctx.meta[_OPEN] = _spread(args, many)
        if "--json" in args:
            args = self._with_file(ctx, args)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def invoke(self, ctx: Any) -> Any:
        """Run it, and say in the end what spellings were old ones."""
        try:
            result = super().invoke(ctx)
        except suffice.OptionError as error:
            raise self._spelled(error, ctx.meta[_OLD]) from None
        for name in ctx.meta[_OLD]:
            typer.echo(f"suffice: {name} has become {OLD[self.name or ''][name]}, and will go", err=True)
        return result

    def _spelled(self, error: suffice.OptionError, old: Sequence[str]) -> suffice.OptionError:
        """The error with its option as it was typed, where that is not spelled as the argument is."""
        options = {one.name: one.opts[0] for one in self.params if one.param_type_name == "option"}
        if error.argument not in options:
            return error
        now = options[error.argument]
        typed = next((name for name in old if OLD[self.name or ""][name] == now), now)
        return suffice.OptionError(f"{typed} {error.complaint}")

    def _with_file(self, ctx: Any, args: list[str]) -> list[str]:
        """Where no file follows `--json`, or the only argument that the command has, the output stands for it."""
        after = args.index("--json") + 1
        output = [*args[:after], OUTPUT, *args[after:]]
        if after == len(args) or (args[after].startswith("-") and args[after] != OUTPUT):
            return output
        found = self.make_parser(ctx).parse_args([*args])[0]
        required = [one.name for one in self.params if one.param_type_name == "argument" and one.required]
        return args if all(isinstance(found.get(name), str | tuple) and found[name] for name in required) else output


_OPEN, _OLD = "suffice.open", "suffice.old"


def still_open(ctx: Any) -> str:
    """The option that takes many values, and may take one more where the line ends now."""
    return str(ctx.meta.get(_OPEN, ""))


def _renamed(arg: str, old: Mapping[str, str]) -> str:
    name, equals, value = arg.partition("=")
    return f"{old[name]}{equals}{value}" if name in old else arg


def is_pool(text: str) -> bool:
    """Whether it names a pool that is there."""
    return text in suffice.bundled_pools() or is_there(Path(text))


def _is_controller(text: str, arguments: int) -> bool:
    """Whether it is one more controller and not a pool: it has the name of one, or pools have been given already."""
    known = text.partition(":")[0] in (*suffice.controller_names(), "file")
    return known or (arguments > 0 and not is_pool(text))


_MANY: Mapping[str, Callable[[str, int], bool]] = {
    "--controller": _is_controller,
    **dict.fromkeys(("--train", "--test", "--fit"), lambda text, arguments: True),
}
"""Options that take many values, and what further ones are theirs, after so many arguments of the command's own."""


def _spread(args: Sequence[str], many: Iterable[str]) -> tuple[list[str], str]:
    """The arguments with the option repeated before each of its values, and the one that is open at the end."""
    spread: list[str] = []
    option, arguments, last = "", 0, ""
    for number, arg in enumerate(args):
        if arg == "--":
            return [*spread, *args[number:]], ""
        if arg.startswith("-") and arg != OUTPUT:
            option = arg if arg in many else ""
        elif option and last != option:
            if _MANY[option](arg, arguments):
                spread.append(option)
            else:
                option = ""
        if not option and not arg.startswith("-") and not last.startswith("-"):
            arguments += 1
        spread.append(arg)
        last = arg
    return spread, option


def shown_plainly(params: list[Any]) -> list[Any]:
    """Options as the help shall show them: a word for their value, none for flags, and texts with their brackets."""
    for one in params:
        if one.param_type_name == "argument":
            vars(one)["display_type_rich"] = lambda ctx: ""  # its name says it
        elif one.is_flag:
            one.metavar = ""
        elif one.metavar is None:
            one.metavar = _word(one)
        if one.help and "\\[" not in one.help:
            one.help = escape(one.help)
    return params


def _word(option: Any) -> str:
    """A word for an option's value: N for numbers, and for others the last of its name."""
    described = getattr(option, "type_descriptor", None)  # as new versions of typer have it
    kind = str(described.annotation if described else option.type)
    return "N" if "int" in kind.lower() or "float" in kind.lower() else option.name.split("_")[-1].upper()
