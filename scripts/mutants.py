"""Break the code in many small ways, in a copy, and see which of them no test notices: `make mutants ROOM=tally`.

The survivors are shown as diffs, and are to be looked at: each wants an assertion, or is as good as the original.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("tally", "controllers", "planning", "replay", "live", "answers", "gateway")
ALSO = ["tests/test_tally.py", "tests/controllers", "tests/replay/test_run.py"]
"""Tests that every room is held by, and that are quick."""

RUN_AS_SCRIPTS = ["*_process.py"]
SHIM = """

pytest.Item._nodeid = property(lambda item: item.nodeid)
_quick = {"max_examples": 20, "phases": [hypothesis.Phase.explicit, hypothesis.Phase.generate]}
settings.register_profile("mutants", parent=settings.get_profile("suffice"), **_quick)
settings.load_profile("mutants")
"""
"""What mutmut 3.8 asks of pytest, which has it no more from 9.2 on; and fewer examples, none of which is made small."""

NOTICED = {"killed", "timeout", "suspicious", "segfault", "caught by type check"}


def sources(room: str) -> list[str]:
    """What is mutated: a room, or a file in it as ROOM/FILE."""
    path = Path("src/suffice") / room
    if (ROOT / path).is_dir():
        return [f"{path}/*"]
    if not (ROOT / f"{path}.py").is_file():
        sys.exit(f"there is no {path}: ROOM is one of {', '.join(ROOMS)}, or ROOM/FILE")
    return [f"{path}.py"]


def tests(room: str) -> list[str]:
    """The room's own tests, and what holds every room."""
    own = [path for path in (f"tests/{room.partition('/')[0]}", f"tests/test_{room}.py") if (ROOT / path).exists()]
    return list(dict.fromkeys([*own, *ALSO]))


def copy(folder: Path, room: str, chosen: list[str]) -> None:
    """The project as far as the tests need it, with the settings of this run."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(f"\n\nimport hypothesis{SHIM}")
    settings = {
        "source_paths": ["src"],
        "only_mutate": sources(room),
        "do_not_mutate": RUN_AS_SCRIPTS,
        "pytest_add_cli_args_test_selection": chosen,
        "pytest_add_cli_args": ["-p", "no:xdist", "-p", "no:randomly"],
        "process_isolation": "forkserver",
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    project = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]))
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", help="a room, or a file in it as ROOM/FILE: tally, planning/values, …")
    parser.add_argument("tests", nargs="*", help="tests to run; the room's own by default")
    parser.add_argument("--children", type=int, default=2, help="how many mutants are tried at once")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="suffice-mutants-") as name:
        folder = Path(name)
        copy(folder, given.room, given.tests or tests(given.room))
        mutmut = [sys.executable, "-m", "mutmut"]
        done = subprocess.run([*mutmut, "run", "--max-children", str(given.children)], cwd=folder)  # noqa: S603
        if done.returncode:
            return done.returncode
        told = subprocess.run([*mutmut, "results", "--all", "true"], cwd=folder, capture_output=True, text=True)  # noqa: S603
        fates = dict(line.strip().rsplit(": ", 1) for line in told.stdout.splitlines() if ": " in line)
        survivors = [mutant for mutant, fate in fates.items() if fate not in NOTICED]
        for mutant in survivors:
            print(f"\n{mutant}: {fates[mutant]}")
            subprocess.run([*mutmut, "show", mutant], cwd=folder)  # noqa: S603
        print(f"\n{given.room}: {len(fates) - len(survivors)} of {len(fates)} noticed", end="")
        print(f", {(len(fates) - len(survivors)) / max(len(fates), 1):.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
