"""The JSON of one question's requests: what all draws have in common is encoded once, and held once."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

SLICE = 1 << 16
"""A long body is sent in pieces of so many bytes, so that no connection keeps a copy of the whole."""


class Encoder:
    """Encodes requests that differ in little, a number of draws or a seed, and shares the rest between them.

    >>> encoder, messages = Encoder(), [{"role": "user", "content": "What is 6 * 7?"}]
    >>> first, second = (encoder.pieces({"messages": messages, "n": draws}) for draws in (4, 8))
    >>> b"".join(second)
    b'{"messages": [{"role": "user", "content": "What is 6 * 7?"}], "n": 8}'
    >>> first[1] is second[1]
    True
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, bytes]] = {}

    def pieces(self, body: Mapping[str, Any]) -> list[bytes]:
        """The bytes of an object, in pieces."""
        pieces = []
        before = b"{"
        for name, value in body.items():
            known = self._known.get(name)
            if known is None or known[0] is not value:
                known = self._known[name] = value, json.dumps(value).encode()
            pieces += [before + json.dumps(name).encode() + b": ", known[1]]
            before = b", "
        return [*pieces, b"}" if body else b"{}"]


def slices(pieces: Sequence[bytes]) -> Iterator[memoryview]:
    """The same bytes, in slices that are short."""
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), SLICE):
            yield view[start : start + SLICE]


async def sent(pieces: Sequence[bytes]) -> AsyncIterator[memoryview]:
    """The slices, for whoever sends them one after the other."""
    for piece in slices(pieces):
        yield piece
