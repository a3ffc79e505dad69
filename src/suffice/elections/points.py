"""The places in structured answers that are decided, from the outside in."""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Literal

from suffice.elections.lists import LONGEST, align, elements_at, in_order
from suffice.elections.parts import LIST, MISSING, OBJECT, Part
from suffice.json_values import escaped
from suffice.tally import Tally

LONG_TEXT = 40  # characters from which a string may be free text
ENOUGH = 4  # strings of words that are free text if different

Kind = Literal["voted", "text", "ignored"]


@dataclass
class Point:
    """One place in the answers, and the points that follow from what is elected there."""

    choices: Sequence[Part | None]  # by response; None has no say here
    keys: list[str | None]  # that choices are compared by
    tally: Tally
    kind: Kind = "voted"
    fields: "dict[str, Point]" = field(default_factory=dict)
    elements: "list[Point]" = field(default_factory=list)  # those that stand come first, in their order
    places: Sequence[int | None] = ()  # of an element, in each response's list

    def walk(self, pointer: str = "") -> "Iterator[tuple[str, Point]]":
        """Yield this point and all that follow from it, by JSON pointer."""
        yield pointer, self
        for name, point in self.fields.items():
            yield from point.walk(f"{pointer}/{escaped(name)}")
        for number, element in enumerate(self.elements):
            yield from element.walk(f"{pointer}/{number}")

    @property
    def is_open(self) -> bool:
        """Whether there is anything to settle, besides the parts of what all agree on."""
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
        """What each response has here, as a whole where its parts are not voted on."""
        return [
            key if part is None or agrees or part.is_leaf else part.form
            for part, key, agrees in zip(self.choices, self.keys, self.agrees, strict=True)
        ]

    def votes_of(self, response: int) -> int:
        key = self.keys[response]
        return 0 if key is None else self.keys.count(key)

    def spelt_alike(self, among: Sequence[int]) -> dict[int, int]:
        """Return, by response, how many write the scalar or order the list as it does."""
        spellings: dict[int, str] = {}
        for response in among:
            part = self.choices[response]
            scalar = repr(part.value) if part and part.is_leaf else ""
            spellings[response] = scalar + str([element.places[response] for element in self.elements])
        times = Counter(spellings.values())
        return {response: times[spelling] for response, spelling in spellings.items()}

    def spelt(self) -> int:
        """Return the first response with the choice in its commonest spelling."""
        alike = self.spelt_alike(sorted(self.supporters))
        return max(alike, key=lambda response: alike[response])

    def given_by(self, nearest: Sequence[int]) -> int:
        """Return the nearest response that has what isn't voted on."""
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
        """Decide on one place, and on what follows from it."""
        is_ignored = any(part is not None and part.is_ignored for part in choices)
        keys = [None if part is None else part.form for part in choices] if is_ignored else _keys(choices)
        tally = Tally(self._budget)
        for key in keys:
            tally.add(key)
        tally.round_ends = self._round_ends
        point = Point(choices, keys, tally, places=places)
        leader = tally.leader or ""
        if is_ignored:
            point.kind = "ignored"
        elif _is_free_text(choices, tally, self._copies):
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
        """Keep the elements of the list whose elements have the most votes."""
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
    """Return keys: of lists too long to be aligned their form, of objects their alternative."""
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
    """Return the number of the first alternative with half of the keys, or of a new one."""
    for number, known in enumerate(alternatives):
        if names in known:
            return number
        if any(2 * len(names & other) >= len(names | other) for other in known):
            known.append(names)
            return number
    alternatives.append([names])
    return len(alternatives) - 1


def _are_free_texts(point: Point) -> bool:
    """Whether lists are of strings of several words that seldom come twice: queries, tags."""
    lists = [part for part in point.elected if part and part.elements]
    strings = [one for part in lists for one in part.elements]
    if len(lists) < ENOUGH or not all(isinstance(one.value, str) for one in strings):
        return False
    times = Counter(one.key for one in strings)
    return any(" " in one.key for one in strings) and 2 * len(times) > len(strings)


def _is_free_text(choices: Sequence[Part | None], tally: Tally, copies: Set[int]) -> bool:
    """Whether strings are long and nearly all different, copies of a whole answer apart."""
    said = {number: part for number, part in enumerate(choices) if part and isinstance(part.value, str)}
    worded = len(said) >= ENOUGH and all(" " in part.key for part in said.values())
    if len(said) < 2 or (median(len(part.key) for part in said.values()) < LONG_TEXT and not worded):
        return False
    times = Counter(part.key for part in said.values())
    apart = Counter(part.key for number, part in said.items() if number not in copies)
    others = max((count for key, count in tally.votes.items() if key not in times), default=0)
    alike = max(apart.values(), default=len(said)) > 1 + len(said) // 8 or 2 * max(times.values()) > len(said) > 2
    return not alike and len(said) >= others
