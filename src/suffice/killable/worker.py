"""A process for tasks that may never end: searches, equality by math-verify, JSON schemas.

Why not multiprocessing, or pebble's pool on top of it: their spawned workers import the caller's main module again. A
script without `if __name__ == "__main__"` would ask its model twice, and one from standard input could not start any.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS = 1.0
"""Processor time of one task."""

START_SECONDS = 60.0
"""Maximum time to start the process and to load what its tasks need."""

PATIENCE, LEAST_PATIENCE = 10.0, 5.0
"""Wait for a reply so many times the task's seconds, at least 5: the process ends overdue tasks itself before that."""


class KillableWorker:
    """One process for tasks of one kind, started when it is first needed and again if it dies."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    @property
    def pid(self) -> int | None:
        """Of its process, if it runs."""
        return self._process.pid if self._process else None

    def run(self, task: str, *arguments: Any, seconds: float = SECONDS) -> Any:
        """Return the result of a task: False if it raised, None if it took too long or too much memory."""
        with self._lock:
            for _ in range(2):  # again if the process was gone: that need not have been this task's doing
                try:
                    process = self._process or self._start()
                    assert process.stdin  # noqa: S101 - it is a pipe
                    process.stdin.write(json.dumps([task, seconds, arguments]) + "\n")
                    process.stdin.flush()
                    return _reply(process, max(LEAST_PATIENCE, PATIENCE * seconds))
                except (OSError, ValueError):
                    self._kill()
            return None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._kill()

    def _forget(self) -> None:
        """In a process that was forked: the worker is the parent's."""
        self._lock = threading.Lock()
        self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        # Its own file, run by itself: nothing of the caller's program is imported again.
        script = str(Path(__file__).with_name("worker_process.py"))
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", script, self._kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the caller's
        )
        _reply(self._process, START_SECONDS)  # it is ready
        return self._process

    def _kill(self) -> None:
        if self._process:
            with suppress(OSError), self._process:  # which closes its pipes; what was not sent yet is lost
                _end(self._process)
        self._process = None


def _reply(process: "subprocess.Popen[str]", patience: float) -> Any:
    """Return the next line as JSON; ValueError if the process ends before that, or is ended as it takes too long."""
    alarm = threading.Timer(patience, _end, [process])
    alarm.daemon = True
    alarm.start()
    try:
        return json.loads(process.stdout.readline() if process.stdout else "")
    finally:
        alarm.cancel()


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill a process, and its child that does the tasks."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


SEARCHER = KillableWorker("search")
"""The one for regular expressions: a malicious one holds up others of its kind alone."""

VALIDATOR = KillableWorker("schema")
"""The one for JSON schemas."""
