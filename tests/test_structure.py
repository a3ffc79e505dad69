"""What holds the project together: rooms that know each other one way only, the names it promises, and test files."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import suffice

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "suffice"

BOTTOM = {"errors", "paths", "penalties", "jsonl", "imports", "notebook", "registry", "response", "settings", "options"}
"""Small modules that anybody may know, and that know only each other."""

STANDS_ON = {
    "executors": set[str](),
    "tally": set[str](),
    "killable": set[str](),
    "json_values": set[str](),
    "normalise": set[str](),
    "schemas": {"json_values", "killable"},
    "answers": {"tally", "killable", "json_values", "normalise"},
    "controllers": {"tally"},
    "pools": {"tally"},
    "flow": {"controllers"},
    "importing": {"answers", "pools"},
    "inspect": {"answers", "controllers"},
    "planning": {"answers", "controllers", "pools"},
    "elections": {"answers", "controllers", "pools"},
    "replay": {"planning", "elections", "flow", "executors"},
    "training": {"replay"},
    "panel": {"replay", "live"},
    "report": {"panel"},
    "experiments": {"report", "training"},
    "live": {"planning", "elections", "flow", "executors", "schemas"},
    "gateway": {"panel"},
    "langchain": {"live"},
    "llm": {"live"},
    "testing": {"replay", "live"},
    "ray": {"gateway", "executors"},
    "__main__": {"cli"},
    "cli": {"experiments", "gateway", "testing", "ray", "importing"},
}
"""Each room and those right below it; it may know all below, and no other."""


@cache
def below(room: str) -> frozenset[str]:
    return frozenset(STANDS_ON[room]).union(*map(below, STANDS_ON[room])) | BOTTOM


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a file, parsed once for all tests."""
    return list(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The modules of ours that a file imports when it runs, each with its line; not those for types alone."""
    branches = [node for node in nodes(path) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    for_types = {inner for branch in branches for node in branch.body for inner in ast.walk(node)}
    for node in nodes(path):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are written out"
            whole = [f"suffice.{name.name}" for name in node.names] if node.module == "suffice" else [node.module or ""]
            yield from ((node.lineno, name) for name in whole)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)


def loaded(statement: str) -> set[str]:
    """The modules that are there after a statement in a process of its own, which has nothing to complain of."""
    script = f"import sys; {statement}; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.count("\n") == 1, done.stderr
    return set(done.stderr.split())


def test_rooms_know_only_what_they_stand_on() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        allowed = BOTTOM if room in BOTTOM else below(room) | {room}
        for line, module in imported(path):
            top, _, rest = module.partition(".")
            if top != "suffice":
                continue
            other = rest.partition(".")[0]
            known = other in allowed if other in STANDS_ON or other in BOTTOM else room in ("cli", "testing")
            if not known:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {room} must not know {module}")
    assert not wrong, "\n".join(wrong)


def test_a_report_presents_what_others_ran() -> None:
    known = {
        module.split(".")[1]
        for path in (PACKAGE / "report").glob("*.py")
        for _, module in imported(path)
        if module.startswith("suffice.")
    }
    assert not known & {"training", "executors"}


def test_every_room_has_its_place() -> None:
    rooms = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert rooms - {"__init__", "__pycache__", "py.typed"} <= set(STANDS_ON) | BOTTOM


NAMES = """
Advice ArrayController Calibration CapReachedError Choice Comparison ConditionedController Controller ControllerError
Costs Difference Flow GaveUpError Imported LearnedController LocalServer OptionError Outcome Penalties Plan Pool
PoolError Question Response Result SampleError Sampling SavedController SufficeError Summary Tallies Tally advise
answers aparse asample bundled_pools calibrate certainty compare confidence controller_names difference evaluate
get_controller import_pool load_calibration load_controller load_pool parse register sample save_controller
shipped_controllers summarise trace
"""


def test_the_exported_names_are_these() -> None:
    assert sorted(suffice.__all__) == NAMES.split()
    assert set(NAMES.split()) <= set(dir(suffice))
    for name in NAMES.split():
        assert getattr(suffice, name) is not None


def test_help_shows_what_is_imported_only_when_it_is_used() -> None:
    check = "import pydoc, suffice\nprint(pydoc.render_doc(suffice, renderer=pydoc.plaintext))"
    shown = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    for line in ("\n    class LocalServer(", "\n    class Outcome(", "\n    async asample(", "\n    sample("):
        assert line in shown


@pytest.mark.parametrize(
    "module", ["suffice", "suffice.answers", "suffice.replay", "suffice.executors", "suffice.live", "suffice.ray"]
)
def test_the_library_loads_nothing_of_the_extras(module: str) -> None:
    heavy = {"torch", "ray", "starlette", "gymnasium", "matplotlib", "openai", "sympy", "typer", "rich"}
    heavy |= {"pydantic"} if module not in ("suffice.live", "suffice.ray") else set()
    parts_of_scipy = {"scipy.special", "scipy.sparse", "scipy.optimize", "scipy.stats"}  # scipy loads them when used
    assert not loaded(f"import {module}") & (heavy | parts_of_scipy)


def test_a_name_brings_its_room_and_what_that_stands_on() -> None:
    assert not loaded("import suffice") & {"numpy", "scipy", "suffice.tally"}
    tally = loaded("import suffice; suffice.Tally")
    assert "suffice.tally" in tally and not tally & {"suffice.answers", "suffice.controllers", "suffice.replay"}


def test_a_command_waits_for_nothing_that_only_others_need() -> None:
    version = loaded("import suffice.cli; suffice.cli.app(['--version'], standalone_mode=False)")
    others = {"numpy", "scipy", "openai", "pydantic", "rich.console", "suffice.answers", "suffice.cli.commands.ask"}
    assert not version & others
    serve = loaded("import suffice.cli; suffice.cli.app(['serve', '--help'], standalone_mode=False)")
    assert "suffice.cli.commands.serve" in serve and not serve & {"openai", "starlette", "suffice.cli.commands.ask"}


def test_test_files_stand_alone_and_are_short() -> None:
    files = [path for path in (ROOT / "tests").rglob("*.py") if "__pycache__" not in path.parts]
    stems = {path.stem for path in files if path.name.startswith("test_")} | {"conftest"}
    for path in files:
        assert len(path.read_text().splitlines()) <= 400, f"{path} is too long: split it by topic"
        taken = {module for _, module in imported(path)} & stems
        assert not taken, f"{path} imports {taken}: what several need is in tests/helpers"


WITHIN = {
    "gateway": {
        "errors": set[str](),
        "exchange": set(),
        "operations": {"errors", "exchange", "settings"},
        "door": {"errors", "exchange", "keys", "operations", "settings"},
        "keys": set(),
        "settings": {"keys"},
        "fleet": {"exchange", "errors", "keys", "settings", "operations"},
        "requests": {"door", "exchange", "errors", "operations", "settings"},
        "votes": {"exchange", "requests", "fleet", "errors", "operations", "settings"},
        "render": {"exchange", "requests", "errors"},
        "pipeline": {"requests", "votes", "render", "fleet", "door", "exchange", "errors", "operations", "settings"},
        "app": {
            "pipeline",
            "render",
            "requests",
            "votes",
            "fleet",
            "door",
            "exchange",
            "errors",
            "settings",
            "operations",
        },
        "serve": {"app", "settings", "operations"},
    },
}
"""Within a room of several parts, each part and those that it may know."""


def test_parts_of_a_room_know_only_what_they_stand_on() -> None:
    wrong = []
    for room, known in WITHIN.items():
        for path in sorted((PACKAGE / room).rglob("*.py")):
            part = path.relative_to(PACKAGE / room).parts[0].removesuffix(".py")
            for line, module in imported(path) if part != "__init__" else ():
                other = module.removeprefix(f"suffice.{room}.").partition(".")[0]
                if module.startswith(f"suffice.{room}.") and other not in known[part] | {part}:
                    wrong.append(f"{path.relative_to(ROOT)}:{line}: {part} must not know {other}")
    assert not wrong, "\n".join(wrong)


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
