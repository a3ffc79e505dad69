"""The words that tell what a request asks for, in many languages: `words.toml`."""

import tomllib
import unicodedata
from functools import lru_cache
from pathlib import Path

_UNSPACED = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"), ("\u0e00", "\u0e7f"))
"""Kana, Chinese characters, Hangul, Thai."""


def is_unspaced(text: str) -> bool:
    """Whether a script sets no spaces between words."""
    return any(start <= character <= end for character in text for start, end in _UNSPACED)


@lru_cache(maxsize=512)
def folded(text: str) -> str:
    """Return a text as words in small letters with a space around each.

    >>> folded("What’s 17*23, s'il te plaît?")
    " what's 17 23 s'il te plaît "
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = [one if one == "'" or one.isalnum() or is_mark(one) else " " for one in plain]
    return f" {' '.join(''.join(kept).split())} "


def is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it, as many vowels do."""
    return bool(character) and unicodedata.category(character).startswith("M")


def within(words: str, text: str) -> bool:
    """Whether words, folded, occur in a text, folded.

    >>> within(folded("B"), folded("A or B?")), within(folded("b"), folded("abc")), within(folded("京"), folded("東京"))
    (True, False, True)
    """
    return (words.strip() if is_unspaced(words) else words) in text if words.strip() else False


class Words:
    """Words of which any may occur in a text.

    >>> Words("explain* how_to 为什么").occur_in(folded("Explaining it")), Words("how_to").occur_in(folded("how"))
    (True, False)
    """

    def __init__(self, words: str) -> None:
        self.entries = frozenset(map(_entry, words.split()))
        self._unspaced = frozenset(filter(is_unspaced, self.entries))

    def occur_in(self, text: str) -> bool:
        return any(entry in text for entry in self.entries)

    def open(self, text: str, first: int = 1) -> bool:
        """Whether one of the first words of a folded text is among them."""
        head = f" {' '.join(text.split()[:first])} "
        return any(entry in (text if entry in self._unspaced else head) for entry in self.entries)

    def start(self, text: str) -> bool:
        """Whether a folded text begins with one; without spaces, it may be anywhere."""
        return any(entry in text if entry in self._unspaced else text.startswith(entry) for entry in self.entries)

    def are(self, text: str) -> bool:
        """Whether a folded text is one of them."""
        return any(entry.strip() == text.strip() for entry in self.entries)


def _entry(word: str) -> str:
    word = word.replace("_", " ").replace("-", " ").casefold()
    if is_unspaced(word):
        return word
    return f" {word[:-1]}" if word.endswith("*") else f" {word} "


_TABLES: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_NUMBERS = _TABLES.pop("numbers")

WORDS = {name: Words(text) for name, text in _TABLES.items()}

WORTH = {word: number for line in _NUMBERS.splitlines() for number, word in enumerate(line.split())}
WORTH.pop("-")
"""Numbers in words."""
