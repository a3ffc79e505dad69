"""The page docs/api.md, made from the code: every public name with its signature, its docstring and its example."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import suffice
from suffice import errors

MODULES = ("suffice", "suffice.answers", "suffice.inspect", "suffice.langchain", "suffice.ray", "suffice.testing")

TITLES = {
    "Sampling a server": ("live", "flow", "response"),
    "Controllers": ("controllers", "tally"),
    "The planner, the confidence and the certainty": ("planning", "penalties"),
    "Pools": ("pools",),
    "Replay": ("replay",),
    "Answers": ("answers",),
    "Errors": ("errors",),
}
"""The parts of the page for the names of `suffice` itself, each with the rooms whose names it has."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Entry:
    """One public name."""

    module: str
    name: str
    home: str
    """The module that defines it."""
    signature: str
    members: tuple[str, ...]
    text: str
    example: str
    is_attribute: bool
    """Whether its docstring stands below it: what runs the examples of functions and classes does not see it."""


def entries() -> list[Entry]:
    """All public names, in the order of their modules."""
    return [_entry(module, name) for module in MODULES for name in importlib.import_module(module).__all__]


def api_page() -> str:
    """The page."""
    found = entries()
    parts = [
        "# The Python API",
        "For whoever writes Python: all public names. Made from the code by `make docs`. The examples are run with the "
        "module's names at hand; what is promised of them is in [stability](stability.md).",
    ]
    rooms_left = sorted({_room(one) for one in found} - {room for rooms in TITLES.values() for room in rooms})
    for title, rooms in [*TITLES.items(), *((room.capitalize(), (room,)) for room in rooms_left)]:
        own = [one for one in found if one.module == "suffice" and _room(one) in rooms]
        parts += [f"## {title}", *_tree(title), *map(_shown, own)] if own else []
    for module in MODULES[1:]:
        parts += [f"## `{module}`", *(_shown(one) for one in found if one.module == module)]
    return "\n\n".join(parts) + "\n"


def _room(entry: Entry) -> str:
    return entry.home.split(".")[1]


def _tree(title: str) -> Iterator[str]:
    if title == "Errors":
        first, _, tree = inspect.getdoc(errors).partition("\n\n")  # type: ignore[union-attr]
        yield f"{first}\n\n```text\n{tree}\n```"


def _shown(entry: Entry) -> str:
    parts = [f"### `{entry.name}`"]
    parts += [f"```text\n{entry.signature}\n```"] if entry.signature else []
    parts += [entry.text]
    parts += ["\n".join(f"- {member}" for member in entry.members)] if entry.members else []
    parts += [f"```pycon\n{entry.example}\n```"] if entry.example else []
    return "\n\n".join(parts)


def _entry(module: str, name: str) -> Entry:
    thing = getattr(importlib.import_module(module), name)
    if isinstance(thing, ModuleType):
        text, example = _split(inspect.getdoc(thing))
        return Entry(module, name, thing.__name__, "", (), text, example, False)
    if getattr(thing, "__qualname__", None) == name:
        home = thing.__module__
        node, values = _body(home)[name], vars(importlib.import_module(home))
        assert isinstance(node, Definition)
        text, example = _split(ast.get_docstring(node))
        return Entry(module, name, home, _signature(node, values), _members(node, values), text, example, False)
    home, node, below = next(found for home in _homes(module) for found in _attributes(home) if _name(found[1]) == name)
    signature = ast.unparse(node)
    if inspect.ismethod(thing):
        signature = f"{name}{inspect.signature(thing).replace(return_annotation=inspect.Signature.empty)}"
    return Entry(module, name, home, signature, (), *_split(below), True)


@cache
def _homes(module: str) -> list[str]:
    """The modules below this one, in whose files its names may be defined."""
    root = Path(suffice.__file__).parent
    below = root.joinpath(*module.split(".")[1:])
    paths = (path.relative_to(root).with_suffix("") for path in sorted(below.rglob("*.py")) if path.stem != "__init__")
    return [".".join(["suffice", *path.parts]) for path in paths if not path.stem.endswith("_process")]


@cache
def _body(home: str) -> dict[str, ast.stmt]:
    """What a file defines, by name."""
    source = inspect.getsource(importlib.import_module(home))
    return {_name(node): node for node in ast.parse(source).body}


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return node.name if isinstance(node, Definition) else ast.unparse(node)


def _attributes(home: str) -> Iterator[tuple[str, ast.stmt, str]]:
    """The names of a file that have a string below them, and that string."""
    for node, following in pairwise(_body(home).values()):
        if isinstance(node, ast.Assign) and (below := _string(following)):
            yield home, node, below


def _string(node: ast.stmt) -> str:
    """What a statement says that is nothing but a string."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _split(docstring: str | None) -> tuple[str, str]:
    """What a docstring says, and its example."""
    text, mark, example = inspect.cleandoc(docstring or "").partition(">>> ")
    return _listed(text.strip()), (mark + example).strip()


def _listed(text: str) -> str:
    """A docstring's sections as Markdown: their arguments and errors as a list.

    >>> print(_listed("Add.\\n\\nArgs:\\n    one: A number,\\n        or none."))
    Add.
    <BLANKLINE>
    **Args**
    <BLANKLINE>
    - `one`: A number,
      or none.
    """
    text = re.sub(r"^(Args|Returns|Raises):$", r"**\1**\n", text, flags=re.MULTILINE)
    return re.sub(r"^    (    |\w+:)?", _item, text, flags=re.MULTILINE)


def _item(found: re.Match[str]) -> str:
    """The beginning of a line in a section: of an item, of its further lines, or of plain text."""
    begun = found[1] or ""
    return "  " if begun.isspace() else f"- `{begun[:-1]}`:" if begun else ""


def _signature(node: Definition, values: dict[str, Any]) -> str:
    """How it is called; a long one has a line for each argument."""
    if isinstance(node, ast.ClassDef):
        made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        arguments = _arguments(made, values) if made else [text for text, _ in _fields(node, values)]
        head, returned = f"class {node.name}", ""
        if not arguments and not _is_dataclass(node):
            return head + "".join(f"({ast.unparse(base)})" for base in node.bases[:1])
    else:
        head = f"{'async ' * isinstance(node, ast.AsyncFunctionDef)}{node.name}"
        arguments = _arguments(node, values)
        returned = f" -> {ast.unparse(node.returns).strip(chr(39))}" if node.returns else ""
    line = f"{head}({', '.join(arguments)}){returned}"
    if len(line) <= 100:
        return line
    return f"{head}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returned}"


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef, values: dict[str, Any]) -> list[str]:
    """The arguments as they are written, with the values of defaults that have names; without self."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    shown = [_argument(one, default, values) for one, default in zip(positional, defaults, strict=True)]
    shown = shown[1:] if positional and positional[0].arg in ("self", "cls") else shown
    if given.vararg:
        shown.append(f"*{ast.unparse(given.vararg)}")
    elif given.kwonlyargs:
        shown.append("*")
    shown += [_argument(one, default, values) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [*shown, f"**{ast.unparse(given.kwarg)}"] if given.kwarg else shown


def _argument(node: ast.arg, default: ast.expr | None, values: dict[str, Any]) -> str:
    return ast.unparse(node).replace("'", "") + (f" = {_default(default, values)}" if default else "")


def _default(node: ast.expr, values: dict[str, Any]) -> str:
    """A default: the value of a name, where it is a plain one."""
    if isinstance(node, ast.Lambda):
        return "…"
    text = ast.unparse(node)
    if isinstance(node, ast.Name | ast.Attribute):
        value = eval(text, values)
        return repr(value) if isinstance(value, str | int | float | None) else text
    return text


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def _fields(node: ast.ClassDef, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of a dataclass as arguments, each with the string below it."""
    if not _is_dataclass(node):
        return
    for field, following in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(field, ast.AnnAssign) and "ClassVar" not in ast.unparse(field.annotation):
            shown = ast.unparse(field.target) + ": " + ast.unparse(field.annotation).replace("'", "")
            if isinstance(field.value, ast.Call) and ast.unparse(field.value.func) == "setting":
                default, about = field.value.args[:2]
                yield shown + _field_default(default, values), eval(ast.unparse(about), values)
            else:
                yield shown + _field_default(field.value, values), _string(following)


def _field_default(node: ast.expr | None, values: dict[str, Any]) -> str:
    if isinstance(node, ast.Call):
        return " = …" if "default" in ast.unparse(node) else ""
    return f" = {_default(node, values)}" if node else ""


def _members(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, values: dict[str, Any]) -> tuple[str, ...]:
    """What a class has besides its fields: its methods and properties, with the first line of their docstrings."""
    if not isinstance(node, ast.ClassDef):
        return ()
    shown = [f"`{text.partition(':')[0]}`: {below}" for text, below in _fields(node, values) if below]
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_"):
            is_property = any("property" in ast.unparse(mark) for mark in one.decorator_list)
            called = one.name if is_property else _signature(one, values)
            text = ast.get_docstring(one)
            if not text and any(hasattr(base, one.name) for base in values[node.name].__bases__):
                continue  # the base says it
            assert text, f"{node.name}.{one.name} is public and has no docstring"
            shown.append(f"`{' '.join(called.split())}`: {text.partition(chr(10))[0]}")
    return tuple(shown)
