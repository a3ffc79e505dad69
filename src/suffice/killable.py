"""Tasks that may never end, in a process that can be killed: searches, equality by math-verify, JSON schemas.

Why not multiprocessing, or pebble's pool on top of it: their spawned workers import the caller's main module again. A
script without `if __name__ == "__main__"` would ask its model twice, and one from standard input could not start any.
Instead the process runs this file by itself, which imports nothing of the package: a JSON line in, a JSON line out.
"""

import atexit
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any

SECONDS = 1.0  # of processor time for a task
LONGEST = 8.0  # elapsed time, in processor times: a busy machine gives a share
MEMORY = 1 << 30  # bytes of address space
STUCK_SECONDS = 60.0  # for a process to load, on a busy machine
LARGE = 256 << 20  # bytes: a process that took more is replaced
DONE, REPLACE = 0, 3  # exit codes of the child


class KillableWorker:
    """One process for tasks of one kind, started at need and again if it dies."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._forget()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Have no process; one that was forked leaves it to its parent."""
        self._lock = threading.RLock()
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: str, *arguments: Any, seconds: float = SECONDS) -> Any:
        """Return the result of a task: False if it raised, None if it took too long or too much memory."""
        with self._lock:
            for _ in range(2):  # again if the process was gone: that need not have been this task's doing
                process = self.process or self._start()
                assert process.stdin and process.stdout  # noqa: S101 - they are pipes
                waiting = select.poll()
                waiting.register(process.stdout, select.POLLIN)
                try:
                    process.stdin.write(json.dumps([task, seconds, arguments]) + "\n")
                    if waiting.poll(1000 * (STUCK_SECONDS + LONGEST * seconds)):
                        return json.loads(process.stdout.readline())
                except (OSError, ValueError):
                    pass
                except BaseException:  # Ctrl-C: its result must not be taken for the next one's
                    self.close()
                    raise
                self.close()
            return None

    def _start(self) -> "subprocess.Popen[str]":
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", __file__, self._kind],
            bufsize=1,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the caller's
        )
        return self.process

    def close(self) -> None:
        with self._lock:
            if self.process:
                with suppress(OSError), self.process:  # which closes its pipes; what was not sent yet is lost
                    os.killpg(self.process.pid, signal.SIGKILL)  # with its child that does the tasks
            self.process = None


class Lane:
    """Two workers for tasks of one kind, first come first served."""

    def __init__(self, kind: str, seconds: float) -> None:
        self._kind = kind
        self._seconds = seconds
        self._own = threading.local()
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._threads = ThreadPoolExecutor(2, f"suffice-{self._kind}", initializer=self._equip)

    def _equip(self) -> None:
        self._own.worker = KillableWorker(self._kind)

    def submit(self, task: str, *arguments: Any) -> "Future[Any]":
        """Start a task, as `KillableWorker.run` does."""
        return self._threads.submit(lambda: self._own.worker.run(task, *arguments, seconds=self._seconds))


SEARCHER = KillableWorker("search")  # its own: malicious expressions hold up others

VALIDATOR = KillableWorker("schema")


def search(pattern: str, text: str) -> str | None:
    found = None
    for match in re.finditer(pattern, text):
        found = match[1]
    return found


def equal(a: Any, b: Any) -> bool:
    """Compare formulas by math-verify, and parts one by one, in any order in sets and lists."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and (a == b or _verified(a, b))
    (opens, parts, closes), (opens_b, others, closes_b) = a, b
    if (opens, closes, len(parts)) != (opens_b, closes_b, len(others)):
        return False
    if opens not in ("", r"\{"):
        return all(map(equal, parts, others))
    for part in parts:
        match = next((place for place, other in enumerate(others) if equal(part, other)), None)
        if match is None:
            return False
        others = others[:match] + others[match + 1 :]
    return True


def _verified(a: str, b: str) -> bool:
    from math_verify import verify

    left, right = _parsed(a), _parsed(b)
    exactly: dict[str, Any] = {"float_rounding": 30, "numeric_precision": 40, "timeout_seconds": None}
    return bool(left and right and verify(left, right, **exactly) and verify(right, left, **exactly))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    from math_verify import LatexExtractionConfig, parse

    exact = re.sub(r"(\d*)\.(\d+)", lambda m: rf"{{\frac{{{int(m[1] + m[2])}}}{{{10 ** len(m[2])}}}}}", text)
    return parse(f"${exact}$", [LatexExtractionConfig()], parsing_timeout=None)


def schema_fault(schema: str) -> str:
    """Return what is wrong with a JSON schema or its references, "" if nothing."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    validator = _validator(schema)
    try:
        type(validator).check_schema(validator.schema)
        draft = specification_with(type(validator).META_SCHEMA["$schema"], default=DRAFT202012)
        pending = [(validator._resolver, draft.create_resource(validator.schema))]
        while pending:
            resolver, part = pending.pop()
            if isinstance(part.contents, dict) and "$ref" in part.contents:
                resolver.lookup(part.contents["$ref"])
            pending += [(resolver.in_subresource(inner), inner) for inner in part.subresources()]
    except SchemaError as error:
        where = "".join(f"/{part}" for part in error.path)
        return f"is no JSON schema{f' at {where}' if where else ''}: {error.message[:200]}"
    except Unresolvable as error:
        return f'refers to "{error.ref}", which is not in it; nothing is fetched'
    return ""


def allows(schema: str, value: Any) -> bool:
    return bool(_validator(schema).is_valid(value))


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    document = json.loads(schema)
    # The default registry would fetch what a reference names.
    return validator_for(document, default=Draft202012Validator)(document, registry=Registry())


def main(kind: str) -> None:
    """Do tasks of one kind until there are no more."""
    if kind == "equal":  # load what the tasks need
        _verified(r"\frac{1}{2}", r"\sqrt{x}")
    if kind == "schema":
        allows("{}", None)
    with suppress(ValueError, OSError):  # not on this system
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    # A child does the tasks: if it is killed, another has all loaded already.
    while True:
        child = os.fork()
        if child == 0:
            os._exit(_serve())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code in (-signal.SIGPROF, -signal.SIGALRM):  # the time of a task was up
            print("null", flush=True)
        elif code != REPLACE:
            return


def _serve() -> int:
    """Do tasks until there are no more, or too much memory was needed."""
    tasks: dict[str, Callable[..., Any]] = {one.__name__: one for one in (search, equal, schema_fault, allows)}
    for line in sys.stdin:
        task, seconds, arguments = json.loads(line)
        _limit(seconds)
        try:
            result = tasks[task](*arguments)
        except MemoryError:
            result = None
        except Exception:  # whatever a formula sets off, it is not equal
            result = False
        _limit(0)
        print(json.dumps(result), flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if peak > LARGE:
            return REPLACE
    return DONE


def _limit(seconds: float) -> None:
    """Let the system kill this process after seconds of its time; 0 is never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, LONGEST * seconds)


if __name__ == "__main__":
    main(sys.argv[1])
