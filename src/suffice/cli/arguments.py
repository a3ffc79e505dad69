"""How what is typed after a command is read: options with many values, and how the help shows them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from typer.core import TyperCommand

import suffice
from suffice.paths import is_there

OUTPUT = "-"
"""The file that is the standard output."""

PAIR = re.compile(r"[a-z_0-9]+=")
"""How a value like `order=arrival` or `temperature=0.7` begins."""


class Command(TyperCommand):
    """A command whose options may have many values; `--json` may have its file left out."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, as the help shows them."""
        return shown_plainly(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what all of that stands for."""
        args = _with_flow(args)
        many = {name for one in self.params if getattr(one, "multiple", False) for name in one.opts} & _MANY.keys()
        args, ctx.meta[_OPEN] = _spread(args, many)
        if "--json" in args:
            args = self._with_file(ctx, args)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def invoke(self, ctx: Any) -> Any:
        """Run it; an error names its option, which need not be spelled as the argument is."""
        try:
            return super().invoke(ctx)
        except suffice.OptionError as error:
            raise spelled(error, self.params) from None

    def _with_file(self, ctx: Any, args: list[str]) -> list[str]:
        """Where no file follows `--json`, or the only argument that the command has, the output stands for it."""
        after = args.index("--json") + 1
        output = [*args[:after], OUTPUT, *args[after:]]
        if after == len(args) or (args[after].startswith("-") and args[after] != OUTPUT):
            return output
        found = self.make_parser(ctx).parse_args([*args])[0]
        required = [one.name for one in self.params if one.param_type_name == "argument" and one.required]
        return args if all(isinstance(found.get(name), str | tuple) and found[name] for name in required) else output


def spelled(error: suffice.OptionError, params: Sequence[Any]) -> suffice.OptionError:
    """The error with its option, and those that it names in brackets, as they are typed, where they are options."""
    options: dict[str | None, str] = {}
    for one in params:
        option = one.opts[0]
        options = {one.name: option, option.removeprefix("--").replace("-", "_"): option} | options
    complaint = re.sub(r"\((\w+)\)", lambda name: f"({options.get(name[1], name[1])})", error.complaint)
    if error.argument in options:
        return suffice.OptionError(f"{options[error.argument]} {complaint}")
    return suffice.OptionError(complaint, error.argument)


_OPEN = "suffice.open"


def still_open(ctx: Any) -> str:
    """The option that takes many values, and may take one more where the line ends now."""
    return str(ctx.meta.get(_OPEN, ""))


def _is_controller(text: str, arguments: int) -> bool:
    """Whether it is one more controller and not a pool: it has the name of one, or pools have been given already."""
    known = text.partition(":")[0] in (*suffice.controller_names(), "file")
    is_pool = text in suffice.bundled_pools() or is_there(Path(text))
    return known or (arguments > 0 and not is_pool)


_MANY: Mapping[str, Callable[[str, int], bool]] = {
    "--controller": _is_controller,
    "--request": lambda text, arguments: bool(PAIR.match(text)),
    **dict.fromkeys(("--train", "--test"), lambda text, arguments: True),
}
"""Options that take many values, and what further ones are theirs, after so many arguments of the command's own."""


def _with_flow(args: Sequence[str]) -> list[str]:
    """The arguments, where `--flow` always has a value: it may stand alone."""
    given: list[str] = []
    for arg, following in zip(args, [*args[1:], ""], strict=False):
        alone = arg == "--flow" and following != "auto" and not PAIR.match(following)
        given += [arg, "true"] if alone else [arg]
    return given


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
