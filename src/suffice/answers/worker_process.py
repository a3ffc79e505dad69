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


def _prepare(task: str) -> None:
    if task == "first_equal":
        _verified(r"\frac{1}{2}", r"\sqrt{x}")


def main() -> None:
    """Do tasks until there are no more."""
    seconds = float(sys.argv[1])
    tasks: dict[str, Callable[..., Any]] = {"search": search, "first_equal": first_equal}
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
