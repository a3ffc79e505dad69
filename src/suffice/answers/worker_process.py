"""What runs in the worker's process: a JSON line in, a JSON line out. It imports nothing of the package."""

import json
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

MEMORY = 4 << 30
"""Bytes of address space: a formula that needs more ends this process, not the machine."""


def search(pattern: str, text: str) -> str | None:
    """The group of the last match."""
    found = None
    for match in re.finditer(pattern, text):
        found = match[1]
    return found


def first_equal(new: Any, seen: list[Any]) -> int | None:
    """The place of the first structure that equals the new one."""
    return next((place for place, old in enumerate(seen) if _equal(old, new)), None)


def _equal(a: Any, b: Any) -> bool:
    """Formulas are equal as math-verify sees it; what has parts, part by part, and in any order in sets and lists."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and (a == b or _verified(a, b))
    (opens, parts, closes), (opens_b, others, closes_b) = a, b
    if (opens, closes, len(parts)) != (opens_b, closes_b, len(others)):
        return False
    if opens not in ("", r"\{"):
        return all(map(_equal, parts, others))
    for part in parts:
        match = next((place for place, other in enumerate(others) if _equal(part, other)), None)
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


def _prepare(task: str) -> None:
    if task == "first_equal":
        _verified(r"\frac{1}{2}", r"\sqrt{x}")
    if task in ("schema_fault", "allows"):
        allows("{}", None)


def main() -> None:
    """Do tasks until there are no more."""
    seconds = float(sys.argv[1])
    tasks: dict[str, Callable[..., Any]] = {one.__name__: one for one in (search, first_equal, schema_fault, allows)}
    guard = _guard(seconds)
    for line in sys.stdin:
        message = json.loads(line)
        task = message.pop("task")
        result = None
        try:
            if message.pop("prepare", False):
                _prepare(task)
            else:
                guard(True)
                result = tasks[task](**message)
                guard(False)
        except Exception:  # whatever a formula sets off, it is not equal
            guard(False)
        print(json.dumps(result), flush=True)


def _guard(seconds: float) -> Callable[[bool], None]:
    """A timer that the system kills this process by, should its parent be gone before it could."""
    try:
        import resource
        import signal
    except ImportError:  # not on this system; the parent's own timer remains
        return lambda on: None
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return lambda on: (signal.setitimer(signal.ITIMER_REAL, 2 * seconds if on else 0), None)[1]


if __name__ == "__main__":
    main()
