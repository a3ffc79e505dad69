"""The text of a JSON object, changed in one place and nowhere else."""

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"\s*")


def without_member(body: bytes, name: str) -> bytes:
    r"""The same bytes, less the members of that name at the top.

    >>> without_member(b'{"a": 1.50, "b": {"a": 2}, "a":3}', "a")
    b'{"b": {"a": 2}}'
    """
    text = body.decode()
    decoder = json.JSONDecoder()
    start = text.index("{") + 1
    members: list[tuple[str, str]] = []
    place = start
    while True:
        begun = place = _after_space(text, place)
        if text[place] == "}":
            break
        key, place = scanstring(text, place + 1)
        place = _after_space(text, place) + 1  # the colon
        _, place = decoder.raw_decode(text, _after_space(text, place))
        members.append((key, text[begun:place]))
        place = _after_space(text, place)
        place += text[place] == ","
    kept = ", ".join(member for key, member in members if key != name)
    return (text[:start] + kept + text[place:]).encode()


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place
