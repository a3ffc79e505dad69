"""What runs in the worker's process: a JSON line in, a JSON line out. It imports nothing of the package."""

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

MEMORY = 1 << 30
"""Bytes of address space: a task that needs more is given up, and the machine spared."""

LARGE = 256 << 20
"""Bytes that a process may have needed at its peak and go on: one that needed more makes room for a fresh one."""

LONGEST = 8.0
"""So many times as long as its time may be spent until a task ends all the same."""

_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in what the system counts peak memory in."""

DONE, AGAIN = 0, 3
"""How the process that does the tasks ends: as there are no more, or since another one is to go on."""


def search(pattern: str, text: str) -> str | None:
    """The group of the last match."""
    found = None
    for match in re.finditer(pattern, text):
        found = match[1]
    return found


def equal(a: Any, b: Any) -> bool:
    """Formulas are equal as math-verify sees it; what has parts, part by part, and in any order in sets and lists."""
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
    """What is wrong with a JSON schema, to go on from its name; nothing where it is sound."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        _check(schema)
    except SchemaError as error:
        where = "".join(f"/{part}" for part in error.path)
        return f"is no JSON schema{f' at {where}' if where else ''}: {error.message[:200]}"
    except Unresolvable as error:
        return f'refers to "{error.ref}", which is not in it; nothing is fetched'
    return ""


def allows(schema: str, value: Any) -> bool:
    """Whether a JSON schema allows a value."""
    return bool(_validator(schema).is_valid(value))


def _check(schema: str) -> None:
    """Raise what is wrong with a schema, and with its references."""
    from referencing.jsonschema import DRAFT202012, specification_with

    validator = _validator(schema)
    type(validator).check_schema(validator.schema)
    draft = specification_with(type(validator).META_SCHEMA["$schema"], default=DRAFT202012)
    pending = [(validator._resolver, draft.create_resource(validator.schema))]
    while pending:
        resolver, resource = pending.pop()
        if isinstance(resource.contents, dict) and "$ref" in resource.contents:
            resolver.lookup(resource.contents["$ref"])
        pending += [(resolver.in_subresource(part), part) for part in resource.subresources()]


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    document = json.loads(schema)
    # A registry of its own: the default one would fetch what a reference names.
    return validator_for(document, default=Draft202012Validator)(document, registry=Registry())


def _prepare(kind: str) -> None:
    """Load what tasks of a kind need."""
    if kind == "equal":
        _verified(r"\frac{1}{2}", r"\sqrt{x}")
    if kind == "schema":
        allows("{}", None)


def main() -> None:
    """Do tasks of one kind until there are no more."""
    _prepare(sys.argv[1])
    print("true", flush=True)
    with suppress(ValueError, OSError):  # not on this system
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    # A child does the tasks: one that had to be killed is replaced by another, which has all loaded already.
    while True:
        child = os.fork()
        if child == 0:
            os._exit(_serve())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == DONE:
            return
        if code != AGAIN:
            print("null", flush=True)


def _serve() -> int:
    """Do tasks until there are no more, or until too much memory was needed."""
    tasks: dict[str, Callable[..., Any]] = {one.__name__: one for one in (search, equal, schema_fault, allows)}
    for line in sys.stdin:
        task, seconds, arguments = json.loads(line)
        _limit(seconds)
        try:
            result = tasks[task](*arguments)
        except MemoryError:
            return 1
        except Exception:  # whatever a formula sets off, it is not equal
            result = False
        _limit(0)
        print(json.dumps(result), flush=True)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT > LARGE:
            return AGAIN
    return DONE


def _limit(seconds: float) -> None:
    """Let the system kill this process after so many seconds of its time; 0 for never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, LONGEST * seconds)


if __name__ == "__main__":
    main()
