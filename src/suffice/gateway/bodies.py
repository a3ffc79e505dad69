"""The body of a request: a JSON object, and its text changed in one place and nowhere else."""

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from suffice.gateway.errors import GatewayError

_SPACE = re.compile(r"\s*")


def json_object(raw: bytes) -> dict[str, Any]:
    """The object that a body is."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise GatewayError(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise GatewayError(400, "the body must be a JSON object")
    return body


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
