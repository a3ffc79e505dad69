"""The places in structured answers that are decided, from the outside in: what is chosen there, and what follows."""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Literal

from suffice.answers.fields import LIST, MISSING, OBJECT, Part, escaped
from suffice.elections.lists import LONGEST, align, elements_at, in_order
from suffice.tally import Tally

LONG_TEXT = 40
"""Characters from which a string may be free text."""

ENOUGH = 4
"""Responses after which strings of several words that are all different are free text, however short they are."""

Kind = Literal["voted", "text", "ignored"]


@dataclass
class Point:
    """One place in the answers: what each response has there, and the points that follow from what is elected."""

    choices: Sequence[Part | None]
    """By response; None for one that has no say here."""
    keys: list[str | None]
    """What the choices are compared by."""
    tally: Tally
    kind: Kind = "voted"
    fields: "dict[str, Point]" = field(default_factory=dict)
    elements: "list[Point]" = field(default_factory=list)
    """Those that stand in their elected order, then the others."""
    places: Sequence[int | None] = ()
    """Of an element of a list, where it stands in each response's list."""

    def walk(self, pointer: str = "") -> "Iterator[tuple[str, Point]]":
        """This point and all that follow from what is elected, by JSON pointer."""
        yield pointer, self
        for name, point in self.fields.items():
            yield from point.walk(f"{pointer}/{escaped(name)}")
        for number, element in enumerate(self.elements):
            yield from element.walk(f"{pointer}/{number}")

    @property
    def is_open(self) -> bool:
        """Whether there is anything to settle: an object or list that all agree on is settled by its parts."""
        return self.kind == "voted" and not ((self.fields or self.elements) and self.tally.top(2)[1] == 0)

    @property
    def stands(self) -> bool:
        """Whether something is elected here, and not that nothing is."""
        return self.kind != "voted" or self.tally.leader != MISSING.key

    @cached_property
    def agrees(self) -> list[bool]:
        return [key is not None and key == self.tally.leader for key in self.keys]

    @property
    def supporters(self) -> frozenset[int]:
        return frozenset(response for response, agrees in enumerate(self.agrees) if agrees)

    @property
    def elected(self) -> list[Part | None]:
        """The choices of the responses that agree."""
        return [part if agrees else None for part, agrees in zip(self.choices, self.agrees, strict=True)]

    @property
    def said(self) -> list[str | None]:
        """What each response has here, down to its last part where that isn't voted on by itself."""
        return [
            key if part is None or agrees or part.is_leaf else part.form
            for part, key, agrees in zip(self.choices, self.keys, self.agrees, strict=True)
        ]

    def votes_of(self, response: int) -> int:
        key = self.keys[response]
        return 0 if key is None else self.keys.count(key)

    def spelt_alike(self, among: Sequence[int]) -> dict[int, int]:
        """For each of some responses that agree, how many of them spell what is elected in the same way."""
        spellings = {response: self._spelling(response) for response in among}
        times = Counter(spellings.values())
        return {response: times[spelling] for response, spelling in spellings.items()}

    def spelt(self) -> int:
        """The first response that has the elected choice in its most common spelling."""
        alike = self.spelt_alike(sorted(self.supporters))
        return max(alike, key=lambda response: alike[response])

    def _spelling(self, response: int) -> str:
        """What isn't compared: how a scalar is written, and the order of a list."""
        part = self.choices[response]
        scalar = repr(part.value) if part and part.is_leaf else ""
        return scalar + str([element.places[response] for element in self.elements])

    def given_by(self, nearest: Sequence[int]) -> int:
        """The nearest response that can give what isn't voted on: a text, or what is ignored, be that missing."""
        for response in nearest:
            part = self.choices[response]
            if part is not None and (self.kind == "ignored" or isinstance(part.value, str | list)):
                return response
        raise LookupError("a point without choices")


class Points:
    """Makes points, all of the same responses."""

    def __init__(self, budget: int, round_ends: list[int], copies: Set[int] = frozenset()) -> None:
        self._budget = budget
        self._round_ends = round_ends
        self._copies = copies

    def on(self, choices: Sequence[Part | None], places: Sequence[int | None] = ()) -> Point:
        """Decide on one place, and on what follows from it; an element of a list has places of its own."""
        is_ignored = any(part is not None and part.is_ignored for part in choices)
        keys = [None if part is None else part.form for part in choices] if is_ignored else _keys(choices)
        tally = Tally(self._budget)
        for key in keys:
            tally.add(key)
        tally.round_ends = self._round_ends
        point = Point(choices, keys, tally, "ignored" if is_ignored else "voted", places=places)
        if is_ignored:
            return point
        leader = tally.leader or ""
        if _is_free_text(choices, tally, self._copies):
            point.kind = "text"
        elif leader.startswith(OBJECT[0]):
            objects = point.elected
            names = dict.fromkeys(name for part in objects if part for name in part.fields)
            point.fields = {
                name: self.on([part and part.fields.get(name, MISSING) for part in objects]) for name in names
            }
        elif leader == LIST:
            point.elements = self._elements(point.elected)
            if _are_free_texts(point):
                point.kind, point.elements = "text", []
        return point

    def _elements(self, lists: Sequence[Part | None]) -> list[Point]:
        elements = [self.on(elements_at(lists, places), places) for places in align(lists)]
        if elements and not any(one.stands for one in elements) and all(one.elements for one in lists if one):
            elements = self._best_elements(elements, lists)
        standing = [one for one in elements if one.stands]
        order = in_order([one.places for one in standing])
        return [standing[number] for number in order] + [one for one in elements if not one.stands]

    def _best_elements(self, elements: list[Point], lists: Sequence[Part | None]) -> list[Point]:
        """The elements of the list whose elements have the most votes, where that they are missing is no choice."""
        best = max(
            (response for response, one in enumerate(lists) if one),
            key=lambda response: sum(element.votes_of(response) for element in elements),
        )
        return [
            one
            if one.places[best] is None
            else self.on([None if part is MISSING else part for part in one.choices], one.places)
            for one in elements
        ]


def _keys(choices: Sequence[Part | None]) -> list[str | None]:
    """What choices are compared by: lists too long to be aligned by their whole form, objects by their alternative."""
    keys = [None if part is None else part.key for part in choices]
    if LIST in keys and any(len(part.elements) > LONGEST for part in choices if part):
        keys = [part.form if part and key == LIST else key for part, key in zip(choices, keys, strict=True)]
    alternatives: list[list[frozenset[str]]] = []
    for response, part in enumerate(choices):
        if part and keys[response] == OBJECT:
            number = _alternative(frozenset(part.fields), alternatives)
            keys[response] = OBJECT if number == 0 else f"{{{number + 1}}}"
    return keys


def _alternative(names: frozenset[str], alternatives: list[list[frozenset[str]]]) -> int:
    """The number of the first alternative in which some object shares at least half of the keys, or of a new one."""
    for number, known in enumerate(alternatives):
        if names in known:
            return number
        if any(2 * len(names & other) >= len(names | other) for other in known):
            known.append(names)
            return number
    alternatives.append([names])
    return len(alternatives) - 1


def _are_free_texts(point: Point) -> bool:
    """Whether lists here are of strings of several words, of which next to none is in two of them: queries, tags."""
    lists = [part for part in point.elected if part and part.elements]
    strings = [one for part in lists for one in part.elements]
    if len(lists) < ENOUGH or not all(isinstance(one.value, str) for one in strings):
        return False
    times = Counter(one.key for one in strings)
    return any(" " in one.key for one in strings) and 2 * len(times) > len(strings)


def _is_free_text(choices: Sequence[Part | None], tally: Tally, copies: Set[int]) -> bool:
    """Whether strings here are long and all different, but in copies of a whole answer; of many, few may be equal."""
    said = {number: part for number, part in enumerate(choices) if part and isinstance(part.value, str)}
    worded = len(said) >= ENOUGH and all(" " in part.key for part in said.values())
    if len(said) < 2 or (median(len(part.key) for part in said.values()) < LONG_TEXT and not worded):
        return False
    times = Counter(part.key for part in said.values())
    apart = Counter(part.key for number, part in said.items() if number not in copies)
    others = max((count for key, count in tally.votes.items() if key not in times), default=0)
    alike = max(apart.values(), default=len(said)) > 1 + len(said) // 8 or 2 * max(times.values()) > len(said) > 2
    return not alike and len(said) >= others
