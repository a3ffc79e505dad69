"""The text of a JSON object, changed in one place and nowhere else."""

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"\s*")


def without_member(body: bytes, name: str) -> bytes:
    r"""The same bytes, less the members of that name at the top and a comma for each.

    >>> without_member(b'{"a": 1.50, "b" :{"a": 2} ,  "c":3,"a":4}', "a")
    b'{"b" :{"a": 2} ,  "c":3}'
    """
    text = body.decode()
    members = _members(text)
    begins = [start for _, start, _ in members[1:]] + [len(text)]
    kept = [
        (text[start:end], text[end:after])  # a member, and what stands between it and the next
        for (key, start, end), after in zip(members, begins, strict=True)
        if key != name
    ]
    inside = "".join(member + separator for member, separator in kept[:-1]) + "".join(member for member, _ in kept[-1:])
    return (text[: members[0][1]] + inside + text[members[-1][2] :]).encode()


def _members(text: str) -> list[tuple[str, int, int]]:
    """The members of the object: their keys, and where each begins and ends."""
    decoder = json.JSONDecoder()
    members = []
    place = _after_space(text, text.index("{") + 1)
    while text[place] != "}":
        start = place
        key, place = scanstring(text, place + 1)
        place = _after_space(text, _after_space(text, place) + 1)  # past the colon
        _, place = decoder.raw_decode(text, place)
        members.append((key, start, place))
        place = _after_space(text, place)
        place = _after_space(text, place + (text[place] == ","))
    return members


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place
