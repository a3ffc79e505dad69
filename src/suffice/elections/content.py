"""Lists of objects, aligned by what is in their elements, wherever those stand."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from suffice.answers.fields import Part
from suffice.elections.slots import Slots

MOST_TELLING = 16
"""Paths by which elements are told apart, those with the most different values first."""

ALIKE = 0.3
"""How alike two elements must be to be taken for the same one, with 1 for equal."""


def by_content(slots: Slots) -> None:
    """Each element goes into the slot whose elements so far it is most like, no two of a list into one."""
    from scipy.optimize import linear_sum_assignment  # not before it is needed: it takes its time to load

    index = _Index(_path_weights(slots.lists))
    for response, one in enumerate(slots.lists):
        # Where elements stand in their list says nothing here: they come in an order of their own.
        elements = sorted(enumerate(one.elements), key=lambda numbered: numbered[1]) if one else []
        taken = index.equals([element for _, element in elements])
        rows = [row for row in range(len(elements)) if row not in taken]
        columns = [number for number in range(len(slots.slots)) if number not in taken.values()]
        likeness = np.array([index.likeness(elements[row][1], columns) for row in rows])
        if likeness.size:
            for row, column in zip(*linear_sum_assignment(likeness, maximize=True), strict=True):
                if likeness[row, column] >= ALIKE:
                    taken[rows[row]] = columns[column]
        for row, (place, element) in enumerate(elements):
            number = taken.get(row, len(slots.slots))
            if number < len(slots.slots) or slots.new():
                slots.slots[number].fill(response, place, element)
                index.add(element, number)


def _path_weights(lists: Sequence[Part | None]) -> dict[str, float]:
    """How well paths tell the elements of one list apart: the share of different values there. The most telling."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for one in lists:
        values: defaultdict[str, list[str]] = defaultdict(list)
        for element in one.elements if one else ():
            for path, key, _ in element.content:
                values[path].append(key)
        for path, keys in values.items():
            shares[path].append(len(set(keys)) / len(keys))
    weights = {path: sum(one) / len(one) for path, one in shares.items()}
    return {path: weights[path] for path in sorted(weights, key=lambda path: (-weights[path], path))[:MOST_TELLING]}


class _Index:
    """What is in the elements of each slot, by content."""

    def __init__(self, weights: dict[str, float]) -> None:
        self._weights = weights
        self._counts: defaultdict[tuple[str, str, bool], Counter[int]] = defaultdict(Counter)
        self._most: defaultdict[tuple[str, int, bool], int] = defaultdict(int)
        self._paths: defaultdict[int, dict[str, None]] = defaultdict(dict)
        self._equal: defaultdict[object, Counter[int]] = defaultdict(Counter)

    def add(self, element: Part, slot: int) -> None:
        """Take in that an element is in a slot."""
        self._equal[element.content][slot] += 1
        for path, key, words in element.content:
            if path in self._weights:
                self._paths[slot][path] = None
                for token, is_word in ((key, False), *((word, True) for word in words)):
                    counts = self._counts[path, token, is_word]
                    counts[slot] += 1
                    self._most[path, slot, is_word] = max(self._most[path, slot, is_word], counts[slot])

    def equals(self, elements: Sequence[Part]) -> dict[int, int]:
        """Slots for those elements that equal one seen before: the slots in which that was seen most often."""
        taken: dict[int, int] = {}
        for row, element in enumerate(elements):
            known = self._equal.get(element.content, Counter())
            free = [slot for slot in known if slot not in taken.values()]
            if free:
                taken[row] = max(free, key=lambda slot: (known[slot], -slot))
        return taken

    def likeness(self, element: Part, slots: Sequence[int]) -> list[float]:
        """How like the elements of each slot one is: the weighted share of leaves that they share, half by words."""
        shared = dict.fromkeys(slots, 0.0)
        leaves_at = Counter(path for path, _, _ in element.content if path in self._weights)
        for path, key, words in element.content:
            if path not in self._weights:
                continue
            weight = self._weights[path] / leaves_at[path]
            tokens = [(key, False, weight / 2 if words else weight)]
            tokens += [(word, True, weight / 2 / len(words)) for word in words]
            for token, is_word, share in tokens:
                for slot, count in self._counts.get((path, token, is_word), {}).items():
                    if slot in shared:
                        shared[slot] += share * count / self._most[path, slot, is_word]
        return [part and part / self._weight({**leaves_at, **self._paths[slot]}) for slot, part in shared.items()]

    def _weight(self, paths: Iterable[str]) -> float:
        return sum(self._weights[path] for path in paths)
