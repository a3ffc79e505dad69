"""Does every pattern pay? Takes each out in turn, and shows whether corpora that it was not written for get worse.

python scripts/patterns.py [CORPUS.jsonl ...]    exits with 1 where one pays nowhere

A pattern is a regular expression or a table of words of the reader; those of normal forms, of JSON and of the
extractors that are asked for by name are held by tests of their own. A corpus is read without votes, by the route that
a request shows: what counts is that right answers are read alike and wrong ones apart, and how many responses without
an answer start a vote.
Only the kinds in which a pattern finds something are read again without it, and no more of them than show that it pays.
"""

import importlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from suffice.answers import Keys, get_extractor, requests, wants_answer
from suffice.answers.words import Words
from suffice.response import Response

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
READER = ("conclusion", "forms", "prose", "reader", "requests", "words")
AUTO = get_extractor("auto")
NEVER = re.compile(r"(?!)")
ALWAYS = ("words.OR", "words.BRIEF", "words.NO")
"""Tables of which the words are looked at one by one."""
PAYS = 1.0
"""What a pattern is worth, in kinds read wholly wrong without it, from which on no more of them are read."""


class WatchedPattern:
    """A regular expression that can be taken out, and tells whether it found anything."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.is_out = self.found = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if name == "sub" and callable(arguments[0]):
                arguments = (partial(self._replaced, arguments[0]), *arguments[1:])
            result = getattr(NEVER if self.is_out else self._pattern, name)(*arguments, **named)
            result = list(result) if name == "finditer" else result
            unchanged = {"sub": arguments[-1], "split": [arguments[0]]}.get(name)
            self.found |= bool(result) if unchanged is None else result != unchanged
            return iter(result) if name == "finditer" else result

        return call

    def _replaced(self, replace: Callable[[Any], str], match: re.Match[str]) -> str:
        return replace(WatchedMatch(match, self))


class WatchedMatch:
    """A match whose pattern is the watched one."""

    def __init__(self, match: re.Match[str], pattern: WatchedPattern) -> None:
        self._match = match
        self.re = pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(self._match, name)

    def __getitem__(self, group: int | str) -> Any:
        return self._match[group]


class WatchedWords:
    """A table of words that can be taken out, and tells whether any was found."""

    def __init__(self, words: Words) -> None:
        self._words, self._entries = words, words.entries
        self.found = False
        for name in (one for one in vars(Words) if not one.startswith("_")):
            setattr(words, name, self._watched(getattr(words, name)))

    def _watched(self, method: Callable[..., bool]) -> Callable[..., bool]:
        def call(*arguments: Any) -> bool:
            result = method(*arguments)
            self.found |= result
            return result

        return call

    @property
    def is_out(self) -> bool:
        """Whether it is taken out."""
        return not self._words.entries

    @is_out.setter
    def is_out(self, out: bool) -> None:
        self._words.entries = frozenset() if out else self._entries


Watched = WatchedPattern | WatchedWords


def watch() -> dict[str, Watched]:
    """The patterns of the reader by name, each put under watch wherever it is used."""
    watched: dict[int, tuple[str, Watched]] = {}
    tables: dict[str, Watched] = {}
    for room in READER[::-1]:
        module = importlib.import_module(f"suffice.answers.{room}")
        for name, value in list(vars(module).items()):
            if isinstance(value, re.Pattern):
                setattr(module, name, watched.setdefault(id(value), (f"{room}.{name}", WatchedPattern(value)))[1])
            elif isinstance(value, Words) and room == "words":
                tables[f"{room}.{name}"] = WatchedWords(value)
    return tables | dict(watched.values())


def score(kind: dict[str, Any]) -> float:
    """How well a kind is read: right answers alike and wrong ones apart, less what starts votes in vain."""
    requests._read.cache_clear()
    messages, responses = kind["messages"], kind["responses"]
    wants = wants_answer(messages)
    found = [_answer(messages, one["text"], wants) for one in responses]
    if not kind["vote"]:
        return -1.0 if wants else -sum(one is not None for one in found) / len(responses)
    keys, accepted = Keys(), {kind["answer"], *(kind.get("accept") or [])}
    read = [(keys.key(one), said["answer"] in accepted) for one, said in zip(found, responses, strict=True) if one]
    alike = Counter(key for key, is_right in read if is_right)
    best = max(alike, key=lambda key: alike[key], default=None)
    apart = sum(key != best for key, is_right in read if not is_right)
    return (alike[best] - sum(key == best for key, is_right in read if not is_right) + apart / 2) / len(responses)


def _answer(messages: list[dict[str, Any]], text: str, is_named: bool | None) -> str | None:
    reader, response = AUTO.for_request(messages, asked=False), Response(text)
    extractor = reader if is_named else reader.for_scout(response)
    return extractor.extract(response) if extractor else None


def read(paths: list[Path]) -> tuple[dict[str, Watched], list[tuple[dict[str, Any], float, set[str]]]]:
    """The patterns, and every kind with how well it is read and the patterns that find something in it."""
    patterns = watch()
    kinds = []
    for line in (line for path in paths for line in path.read_text(encoding="utf-8").splitlines()):
        for pattern in patterns.values():
            pattern.found = False
        kind = json.loads(line)
        whole = score(kind)
        kinds.append((kind, whole, {name for name, pattern in patterns.items() if pattern.found}))
    return patterns, kinds


def worth(paths: list[Path], share: int, shares: int) -> list[tuple[str, float, int]]:
    """For a share of the patterns: what each is worth, and in how many kinds that was seen."""
    patterns, kinds = read(paths)
    found = []
    for name in [*patterns][share::shares]:
        lost, seen = 0.0, 0
        patterns[name].is_out = True
        for kind, whole, using in kinds:
            if name in using or name in ALWAYS:
                lost, seen = lost + whole - score(kind), seen + 1
            if lost >= PAYS:
                break
        patterns[name].is_out = False
        found.append((name, lost, seen))
    return found


def main() -> None:
    """Print what every pattern is worth."""
    paths = [Path(path) for path in sys.argv[1:]] or sorted(CORPUS.glob("*.jsonl"))
    shares = os.cpu_count() or 1
    with ProcessPoolExecutor(shares) as pool:
        parts = pool.map(worth, [paths] * shares, range(shares), [shares] * shares)
        found = sorted((one for part in parts for one in part), key=lambda one: one[1])
    for name, lost, seen in found:
        print(f"{name:32}{lost:8.2f}{seen:6} kinds")
    idle = [name for name, lost, _ in found if lost <= 0]
    print(f"{len(found)} patterns; {len(idle)} pay nowhere: {', '.join(idle) or 'none'}")
    sys.exit(bool(idle))


if __name__ == "__main__":
    main()
