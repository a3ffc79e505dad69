"""What a reply that is passed back says of the tokens that it took."""

import json
import re

_ADDED = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""What Anthropic counts beside the tokens of the input, and others among them."""

_TOLD = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", *_ADDED)
_BEGINS = re.compile(rb'"usage"\s*:\s*(?=\{)')
_EVENT = b"\ndata:"
_AT_END = 2
"""So many events with no token in them come after a usage."""

_LONGEST = 1 << 14
"""No usage is longer."""


class UsageReader:
    """Finds the usage in a reply, whole or streamed, in bytes that pass.

    Within a string the quotes would have a backslash, so that what is found is no text.

    >>> reader = UsageReader()
    >>> for piece in (b'{"choices": [], "us', b'age": {"prompt_tokens": 7, "comp', b'letion_tokens": 5}}'):
    ...     reader.feed(piece)
    >>> reader.told
    {'prompt_tokens': 7, 'completion_tokens': 5}
    """

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        self.size = 0
        self.events = 0
        self._since = 0
        """How many events came after the last usage."""
        self._last = b"\n"
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        self.size += len(data)
        events = (self._last + data).count(_EVENT)
        self.events += events
        self._since += events
        self._last = (self._last + data)[1 - len(_EVENT) :]
        text = self._rest + data
        found = text.find(b'"usage"')
        while found >= 0:
            begins = _BEGINS.match(text, found)
            if begins and self._read(text[begins.end() : begins.end() + _LONGEST]):
                self._since = text.count(_EVENT, found)
            elif begins and len(text) - found < _LONGEST:
                break  # its end is yet to come
            if not begins and len(text) - found < 16:
                break
            found = text.find(b'"usage"', found + 1)
        self._rest = text[found:] if found >= 0 else text[-6:]

    def _read(self, text: bytes) -> bool:
        """Take in a usage, where it is whole; what came later counts, for it grows."""
        try:
            usage, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
        except (ValueError, RecursionError):
            return False
        counts = {name: usage.get(name) for name in _TOLD}
        self.told |= {name: value for name, value in counts.items() if type(value) is int and 0 <= value < 1 << 40}
        return True

    @property
    def untold(self) -> int:
        """Tokens that no usage tells yet, of which an event has one: Messages tell theirs when they begin and end."""
        return max(0, self._since - _AT_END) if self.told else 0

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Those of the prompt and of the completion; None where nothing was told."""
        told = self.told
        if not told:
            return None
        prompt = told.get("prompt_tokens", told.get("input_tokens", 0)) + sum(told.get(name, 0) for name in _ADDED)
        return prompt, told.get("completion_tokens", told.get("output_tokens", 0)) + self.untold
