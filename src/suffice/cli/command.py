"""How a command gets its options: those that are fields of settings, those with many values, and what Tab offers."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from glob import escape, glob
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand

import suffice
from suffice.paths import is_there

F = TypeVar("F", bound=Callable[..., Any])

OUTPUT = "-"
"""The file that is the standard output."""

PAIR = re.compile(r"[a-z_0-9]+=")
"""How a value like `order=arrival` begins."""

MANY = {"--controller", "--train", "--test"}
"""Options that take many values."""

OPEN = "suffice.open"
"""Where a context has the option that takes many values, and may take one more where the line ends now."""
POOL_FILES = (".jsonl", ".jsonl.gz")
CONTROLLER_FILES = (".safetensors",)


class Command(TyperCommand):
    """A command whose options may have many values; `--json` may have its file left out."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments; the help shows no types of arguments, whose names say enough."""
        params: list[Any] = super().get_params(ctx)
        for one in params:
            if one.param_type_name == "argument":
                vars(one)["display_type_rich"] = lambda ctx: ""
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = _with_flow(args)
        many = {name for one in self.params if getattr(one, "multiple", False) for name in one.opts} & MANY
        args, ctx.meta[OPEN] = _spread(args, many)
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


def _is_controller(text: str, arguments: int) -> bool:
    """Whether it is one more controller and not a pool: it has the name of one, or pools have been given already."""
    known = text.partition(":")[0] in (*suffice.controller_names(), "file")
    is_pool = text in suffice.bundled_pools() or is_there(Path(text))
    return known or (arguments > 0 and not is_pool)


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
            if option != "--controller" or _is_controller(arg, arguments):
                spread.append(option)
            else:
                option = ""
        if not option and not arg.startswith("-") and not last.startswith("-"):
            arguments += 1
        spread.append(arg)
        last = arg
    return spread, option


@dataclass(frozen=True)
class Fields:
    """Marks a parameter that stands for options: fields of a dataclass of settings, or of `Options`.

    The command gets a dict of those that were given, and of the defaults that are given here; where the parameter is of
    the class itself, an instance.
    """

    kind: type
    names: str = ""
    """The fields, with spaces between; all that are not `file_only` by default."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Other defaults than those of the fields; None for one that the help leaves out."""

    def options(self) -> list[inspect.Parameter]:
        known = declared(self.kind)
        wanted = self.names.split() or [name for name, (_, _, about) in known.items() if not about.get("file_only")]
        return [_option(name, *known[name], self.defaults) for name in wanted]

    def value(self, given: Mapping[str, Any], *, whole: bool) -> Any:
        """Return what the command gets for the options as they were typed."""
        told = {name: value for name, value in self.defaults.items() if value is not None}
        told |= {name: value for name, value in given.items() if value not in (None, [])}
        return self.kind(**told) if whole else told


def declared(kind: Any) -> dict[str, tuple[Any, Any, Mapping[str, Any]]]:
    """Return the type, the default and the help of each field."""
    if is_dataclass(kind):
        return {one.name: (one.type, one.default, one.metadata) for one in fields(kind) if "about" in one.metadata}
    return {
        name: (one.annotation, one.default, {"about": one.description, **one.json_schema_extra})
        for name, one in kind.model_fields.items()
    }


def with_options(command: F) -> F:
    """Return a command with options in the place of parameters that are marked as `Fields`."""
    signature = inspect.signature(command)
    groups = {
        name: made
        for name, one in signature.parameters.items()
        for made in getattr(one.annotation, "__metadata__", ())
        if isinstance(made, Fields)
    }
    options = {name: made.options() for name, made in groups.items()}

    @wraps(command)
    def called(**given: Any) -> Any:
        for name, made in groups.items():
            values = {one.name: given.pop(one.name) for one in options[name]}
            given[name] = made.value(values, whole=signature.parameters[name].annotation.__origin__ is made.kind)
        return command(**given)

    own = [options.get(name, [one]) for name, one in signature.parameters.items()]
    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for some in own for one in some]
    called.__signature__ = signature.replace(parameters=keyword)  # type: ignore[attr-defined]
    called.__annotations__ = {}
    return called  # type: ignore[return-value]


def _option(
    name: str, kind: Any, default: Any, about: Mapping[str, Any], defaults: Mapping[str, Any]
) -> inspect.Parameter:
    """Return a field as an option that is None where it is not given."""
    default = defaults.get(name, default)
    value = f"{default:g}" if isinstance(default, float) else default
    shown = "" if default in (None, "", ()) or isinstance(default, bool) else f"  [default: {value}]"
    kinds = [kind, *get_args(kind)]
    several = any(get_origin(part) in (tuple, Sequence) for part in kinds)
    plain = next((one for one in (bool, int, float, Path) if one in kinds and str not in kinds), str)
    number = plain in (int, float)
    flag = "--" + name.replace("_", "-")
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if default is True else flag,
        metavar=about["metavar"] or ("N" if number else None if plain is bool else name.split("_")[-1].upper()),
        help=about["about"] + shown,
        autocompletion=offered_controllers if name == "controller" else None,
    )
    annotation = Annotated[list[str] | None if several else plain | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def offered_controllers(incomplete: str) -> list[str]:
    """Controllers by name, and files of them after `file:`."""
    kind, colon, path = incomplete.partition(":")
    if colon:
        return [f"file:{one}" for one in _files(path, CONTROLLER_FILES)] if kind == "file" else []
    return [one for one in (*suffice.controller_names(), "file:") if one.startswith(incomplete)]


def offered_cards(incomplete: str) -> list[str]:
    return [*offered_controllers(incomplete), *_files(incomplete, CONTROLLER_FILES)]


def offered_pools(ctx: Any, incomplete: str) -> list[str]:
    """Bundled pools and files; controllers too after one of them, since there may be more."""
    named = [one for one in suffice.bundled_pools() if one.startswith(incomplete)]
    more = offered_controllers(incomplete) if ctx.meta.get(OPEN) == "--controller" else []
    return [*more, *named, *_files(incomplete, POOL_FILES)]


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """The files that begin so and end so, and folders, which have more in them."""
    for name in sorted(glob(f"{escape(incomplete)}*")):  # noqa: PTH207 - names stay as they were typed
        if Path(name).is_dir():
            yield f"{name}/"
        elif name.endswith(suffixes):
            yield name
