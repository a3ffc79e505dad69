"""Work that may never end, done in a process that can be killed: searches, equality by math-verify, JSON schemas."""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

SECONDS = 1.0
"""How long one task may take, of processor time where the system counts that."""

START_SECONDS = 60.0
"""How long the process may take to start and to load what its tasks need."""

PATIENCE, LEAST_PATIENCE = 10.0, 5.0
"""So many times as long, and at least so many seconds, is waited for a task that ought to have been ended."""


class TooSlowError(Exception):
    """A task that took too long, or needed too much memory."""


class KillableWorker:
    """One process for tasks of one kind, started when it is first needed and again where it is lost."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked = 0
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @property
    def pid(self) -> int | None:
        """Of its process, if it runs."""
        return self._process.pid if self._process else None

    def search(self, pattern: str, text: str) -> str | None:
        """The group of a regular expression's last match, or None."""
        try:
            found: str | None = self.do("search", pattern=pattern, text=text)
        except TooSlowError:
            return None
        return found

    def equal(self, a: Any, b: Any, seconds: float) -> bool:
        """Whether two answers are equal, by their structures."""
        return self.do("equal", seconds, a=a, b=b) is True

    def schema_fault(self, schema: str) -> str:
        """What is wrong with a JSON schema; nothing where it is sound."""
        try:
            return self.do("schema_fault", schema=schema) or ""
        except TooSlowError:
            return "takes too long to check"

    def allows(self, schema: str, value: Any) -> bool:
        """Whether a JSON schema allows a value."""
        try:
            return self.do("allows", schema=schema, value=value) is True
        except TooSlowError:
            return False

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._kill()

    def _forget(self) -> None:
        """In a process that was forked: the worker is the parent's."""
        self._lock = threading.Lock()
        self._process = None

    def do(self, task: str, seconds: float = SECONDS, **arguments: Any) -> Any:
        """The result of one task, None where it failed; TooSlowError."""
        with self._lock:
            for _ in range(2):  # again where the process was gone: that need not have been this task's doing
                try:
                    if self._process is None:
                        self._start()
                    return self._ask({"task": task, "seconds": seconds, "arguments": arguments}, seconds)
                except queue.Empty:
                    self._kill()
                    break
                except (OSError, ValueError):
                    self._kill()
            raise TooSlowError

    def _ask(self, message: dict[str, Any], seconds: float) -> Any:
        if self._process is None or self._process.stdin is None:
            raise OSError("the process is gone")
        self._asked += 1
        self._process.stdin.write(json.dumps({**message, "number": self._asked}) + "\n")
        self._process.stdin.flush()
        while True:
            reply = json.loads(self._replies.get(timeout=max(LEAST_PATIENCE, PATIENCE * seconds)))
            if reply is None:
                raise TooSlowError
            if reply["number"] == self._asked:
                return reply["result"]

    def _start(self) -> None:
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
        self._replies = queue.SimpleQueue()
        threading.Thread(target=_pass_on, args=(self._process.stdout, self._replies), daemon=True).start()
        json.loads(self._replies.get(timeout=START_SECONDS))  # it is ready

    def _kill(self) -> None:
        if self._process:
            self._end(self._process)
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    with suppress(OSError):
                        stream.close()
        self._process = None

    @staticmethod
    def _end(process: "subprocess.Popen[str]") -> None:
        """Kill a process, and its child that does the tasks."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


def _pass_on(lines: IO[str] | None, replies: "queue.SimpleQueue[str]") -> None:
    with suppress(OSError, ValueError):  # closed while it was read
        for line in lines or ():
            replies.put(line)
    replies.put("")  # no JSON: whoever waits learns at once that there is no reply


SEARCHER = KillableWorker("search")
"""The one for regular expressions: a malicious one holds up others of its kind alone."""

VALIDATOR = KillableWorker("schema")
"""The one for JSON schemas."""
