"""The command line from a test: as a process, in this process, and at a terminal where Ctrl-C is pressed."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer.main
from typer.testing import CliRunner

from suffice.cli import app

SUFFICE = str(Path(sys.executable).with_name("suffice"))
POOL = "qwen2.5-coder-1.5b__gsm8k"
COMMAND: Any = typer.main.get_command(app)
"""The whole command line."""


def command(*names: str) -> Any:
    """A command with its options, or its commands."""
    found = COMMAND
    for name in names:
        found = found.get_command(None, name)
    return found


def process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run([SUFFICE, *map(str, arguments)], capture_output=True, text=True)


def suffice(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which spares the time to load everything again."""
    command = [str(argument) for argument in arguments]
    done = CliRunner().invoke(app, command, prog_name="suffice")
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def works(*arguments: str | Path) -> str:
    """What a good call prints."""
    done = suffice(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(*arguments: str | Path) -> str:
    """The one sentence that a bad call gets."""
    done = suffice(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("suffice: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def interrupted(*arguments: str | Path, after: Sequence[str]) -> tuple[int, str, str]:
    """Press Ctrl-C when the terminal has shown all of these; the exit code, the output and what the terminal showed."""
    terminal, errors = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    command = [SUFFICE, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True)
    os.close(errors)
    shown, pressed = b"", False
    try:
        while piece := _read(terminal):
            shown += piece
            if not pressed and all(sign.encode() in shown for sign in after):
                os.killpg(process.pid, signal.SIGINT)
                pressed = True
        output, _ = process.communicate()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert pressed, shown
    return process.returncode, output.decode(), shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes to it any more
        return b""
