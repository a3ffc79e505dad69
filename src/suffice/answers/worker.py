"""Work that may never end, done in a process that can be killed: searches, equality by math-verify, JSON schemas."""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

SECONDS = 1.0
"""How long one task may take."""

START_SECONDS = 60.0
"""How long the process may take to start and to load what a task needs."""


class Worker:
    """One process, started when it is first needed and again after a task that had to be killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ready: set[str] = set()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def search(self, pattern: str, text: str) -> str | None:
        """The group of a regular expression's last match, or None."""
        found: str | None = self._do("search", pattern=pattern, text=text)
        return found

    def first_equal(self, new: Any, seen: Sequence[Any]) -> int | None:
        """The place of the first of `seen` that equals `new`, or None; each is the structure of an answer."""
        found: int | None = self._do("first_equal", new=new, seen=list(seen))
        return found

    def schema_fault(self, schema: str) -> str:
        """What is wrong with a JSON schema; nothing where it is sound."""
        fault: str | None = self._do("schema_fault", schema=schema)
        return "takes too long to check" if fault is None else fault

    def allows(self, schema: str, value: Any) -> bool:
        """Whether a JSON schema allows a value."""
        return self._do("allows", schema=schema, value=value) is True

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._kill()

    def _forget(self) -> None:
        """In a process that was forked: the worker is the parent's."""
        self._lock = threading.Lock()
        self._process = None
        self._ready = set()

    def _do(self, task: str, **arguments: Any) -> Any:
        """The result of one task; None if it took too long, or ended two processes."""
        with self._lock:
            for _ in range(2):  # again where the process was gone: that need not have been this task's doing
                try:
                    if self._process is None:
                        self._start()
                    if task not in self._ready:
                        self._ask({"task": task, "prepare": True}, START_SECONDS)
                        self._ready.add(task)
                    return self._ask({"task": task, **arguments}, SECONDS)
                except queue.Empty:
                    self._kill()
                    return None
                except (OSError, ValueError):
                    self._kill()
            return None

    def _ask(self, message: dict[str, Any], seconds: float) -> Any:
        if self._process is None or self._process.stdin is None:
            raise OSError("the process is gone")
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._replies.get(timeout=seconds))

    def _start(self) -> None:
        # Its own file, run by itself: nothing of the caller's program is imported again.
        script = str(Path(__file__).with_name("worker_process.py"))
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", script, str(SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the caller's
        )
        self._replies = queue.SimpleQueue()
        threading.Thread(target=_pass_on, args=(self._process.stdout, self._replies), daemon=True).start()

    def _kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    with suppress(OSError):
                        stream.close()
        self._process = None
        self._ready.clear()


def _pass_on(lines: IO[str] | None, replies: "queue.SimpleQueue[str]") -> None:
    with suppress(OSError, ValueError):  # closed while it was read
        for line in lines or ():
            replies.put(line)
    replies.put("")  # no JSON: whoever waits learns at once that there is no reply


WORKER = Worker()
"""The one for formulas, which this program shares."""

SEARCHER = Worker()
"""The one for regular expressions: a malicious one holds up others of its kind alone."""

VALIDATOR = Worker()
"""The one for JSON schemas."""
