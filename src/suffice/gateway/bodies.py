"""The body of a request: a JSON object, and its text changed in one place and nowhere else."""

import json
import re
import sys
from collections.abc import Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from suffice.gateway.errors import GatewayError

_SPACE = re.compile(r"\s*")


ONCE = ("model", "n", "stream", "suffice")
"""By these a request is judged; an upstream might take another one of two."""

DEEPEST = 100
"""So deep may the objects and lists of a body be in one another."""


def json_object(raw: bytes) -> dict[str, Any]:
    """The object that a body is; what others might read otherwise than we do is refused."""
    named: list[str] = []

    def member_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named[:] = [name for name, _ in pairs]  # those of the outermost object stay: it ends last
        return dict(pairs)

    try:
        text = raw.decode()
        if text[:1] == "\ufeff" or "\0" in text[:4]:
            raise UnicodeError
        body = json.loads(text, object_pairs_hook=member_names, parse_constant=_no_constant, parse_float=_finite)
    except UnicodeError:
        raise GatewayError(400, "the body must be JSON in UTF-8, without a byte order mark") from None
    except _ConstantError as error:
        raise GatewayError(400, str(error)) from None
    except (ValueError, RecursionError):
        raise GatewayError(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise GatewayError(400, "the body must be a JSON object")
    for name in ONCE:
        if named.count(name) > 1:
            raise GatewayError(400, f'"{name}" is in the body twice', param=name)
    _check_depth(body)
    return body


class _ConstantError(ValueError):
    """A number that JSON does not have."""


def _no_constant(name: str) -> Any:
    raise _ConstantError(f"the body has {name} in it, which is not JSON")


def _finite(text: str) -> float:
    """A number; one that is too large is the largest there is, since infinity could not be sent on."""
    return max(-sys.float_info.max, min(sys.float_info.max, float(text)))


def _check_depth(body: dict[str, Any]) -> None:
    level: list[Any] = [body]
    for _ in range(DEEPEST):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [part for parts in inside for part in parts if isinstance(part, dict | list)]
        if not level:
            return
    raise GatewayError(400, f"the body is more than {DEEPEST} objects and lists deep")


def model_of(raw: bytes) -> str | None:
    """The model that a body names, if it is one that names any."""
    try:
        model = json.loads(raw)["model"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return model if isinstance(model, str) else None


def without_member(body: bytes, name: str) -> bytes:
    r"""The same bytes, less the members of that name at the top and a comma for each.

    >>> without_member(b'{"a": 1.50, "b" :{"a": 2} ,  "c":3,"a":4}', "a")
    b'{"b" :{"a": 2} ,  "c":3}'
    """
    text = body.decode()
    members = _members(text)
    begins = [member.start for member in members[1:]] + [len(text)]
    kept = [
        (text[member.start : member.end], text[member.end : after])  # and what stands between it and the next
        for member, after in zip(members, begins, strict=True)
        if member.key != name
    ]
    inside = "".join(member + separator for member, separator in kept[:-1]) + "".join(member for member, _ in kept[-1:])
    return (text[: members[0].start] + inside + text[members[-1].end :]).encode()


def with_member(body: bytes, name: str, value: str) -> bytes:
    r"""The same bytes, with another text as the value of the members of that name.

    >>> with_member(b'{"model" : "m+vote", "x": 1.50}', "model", "m")
    b'{"model" : "m", "x": 1.50}'
    """
    text = body.decode()
    for member in reversed(_members(text)):
        if member.key == name:
            text = text[: member.value] + json.dumps(value) + text[member.end :]
    return text.encode()


def with_members(body: bytes, members: Mapping[str, Any]) -> bytes:
    r"""The same bytes, with these members in the place of those of the same names.

    >>> with_members(b'{"logprobs": false, "x": 1.50}', {"logprobs": True})
    b'{"logprobs": true, "x": 1.50}'
    """
    for name in members:
        body = without_member(body, name)
    text = body.decode()
    inside = text.index("{") + 1
    more = ", " if _members(text) else ""
    return (text[:inside] + json.dumps(members)[1:-1] + more + text[_after_space(text, inside) :]).encode()


class _Member(NamedTuple):
    """A member's key, where it and its value begin, and where both end."""

    key: str
    start: int
    value: int
    end: int


def _members(text: str) -> list[_Member]:
    """The members of the object."""
    decoder = json.JSONDecoder()
    members = []
    place = _after_space(text, text.index("{") + 1)
    while text[place] != "}":
        start = place
        key, place = scanstring(text, place + 1)
        place = _after_space(text, _after_space(text, place) + 1)  # past the colon
        value = place
        _, place = decoder.raw_decode(text, place)
        members.append(_Member(key, start, value, place))
        place = _after_space(text, place)
        place = _after_space(text, place + (text[place] == ","))
    return members


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place
