"""Alignment of the lists of several responses: which element of one is which of another.

Each goes into a slot, which is that element as all responses have it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import scipy

from suffice.elections.parts import LIST, MISSING, OBJECT, Part

LONGEST = 100  # elements; longer lists are compared whole
MOST_SLOTS = 2 * LONGEST  # of all lists; elements that come later are left out
MOST_TELLING = 16  # paths that tell elements apart
ALIKE = 0.3  # with 1 for equal: less is another element

Places = list[int | None]  # a slot: where its element is in each response's list


def elements_at(lists: Sequence[Part | None], places: Sequence[int | None]) -> list[Part | None]:
    """Return a slot's element by response: None without a list, missing where it is not in it."""
    found = []
    for one, place in zip(lists, places, strict=True):
        found.append(one and (MISSING if place is None else one.elements[place]))
    return found


def in_order(slots: Sequence[Sequence[int | None]]) -> list[int]:
    """Return the numbers of slots in the order that most responses have them in, pairwise."""
    # NaN is neither before nor after anything.
    places = np.array([[np.nan if place is None else place for place in slot] for slot in slots])
    if len(slots) < 2:
        return list(range(len(slots)))
    before = (places[:, None] < places[None]).sum(axis=2)
    ahead = (before > before.T).sum(axis=1) - (before < before.T).sum(axis=1)
    return sorted(range(len(slots)), key=lambda number: (-ahead[number], number))


def align(lists: Sequence[Part | None], shown_by: Sequence[Part | None] | None = None) -> list[Places]:
    """Return the slots that the elements of lists go into, a list a response.

    Lists of scalars are sets or sequences: sequences unless their order varies, in `shown_by` or else in themselves.
    Other lists are aligned by content.
    """
    if any(element.key in (OBJECT, LIST) for one in lists if one for element in one.elements):
        return _by_content(lists)
    shown = lists if shown_by is None else shown_by
    return _as_sets(lists) if _order_varies([one for one in shown if one]) else _as_sequences(lists)


def _order_varies(lists: Sequence[Part]) -> bool:
    """Whether two lists have values in common in different orders."""
    different = {tuple(element.key for element in one.elements) for one in lists}
    firsts = [{key: place for place, key in reversed(list(enumerate(keys)))} for keys in sorted(different)]
    for number, one in enumerate(firsts):
        ranked = sorted(one, key=one.__getitem__)
        for other in firsts[:number]:
            places = [other[key] for key in ranked if key in other]
            if places != sorted(places):
                return True
    return False


def _as_sets(lists: Sequence[Part | None]) -> list[Places]:
    """Make a slot for each value, and each time that it comes again."""
    slots: dict[tuple[str, int], Places] = {}
    for response, one in enumerate(lists):
        times: Counter[str] = Counter()
        for place, element in enumerate(one.elements if one else ()):
            name = (element.key, times[element.key])
            times[element.key] += 1
            if name in slots or len(slots) < MOST_SLOTS:
                slots.setdefault(name, [None] * len(lists))[response] = place
    return list(slots.values())


def _as_sequences(lists: Sequence[Part | None]) -> list[Places]:
    """Put each list where the fewest of its elements differ from those of the slots."""
    slots: list[Places] = []
    seen: list[set[str]] = []
    for response, one in enumerate(lists):
        keys = [element.key for element in one.elements] if one else []
        at = 0
        for number, place in _pairs(seen, keys) if one else ():
            if number is None and len(slots) == MOST_SLOTS:
                continue
            if number is None:
                slots.insert(at, [None] * len(lists))
                seen.insert(at, set())
            if place is not None:
                slots[at][response] = place
                seen[at].add(keys[place])
            at += 1
    return slots


Pairs = list[tuple[int | None, int | None]]
"""Slot and place; None where one side has nothing."""


def _pairs(seen: Sequence[set[str]], keys: Sequence[str]) -> Pairs:
    """Pair slots and places with the fewest changes; what is the same at the beginning stays."""
    shortest = min(len(seen), len(keys))
    start = next((place for place in range(shortest) if keys[place] not in seen[place]), shortest)
    later = _fewest_changes(seen[start:], keys[start:])
    moved = ((None if a is None else a + start, None if b is None else b + start) for a, b in later)
    return [*((place, place) for place in range(start)), *moved]


def _fewest_changes(seen: Sequence[set[str]], keys: Sequence[str]) -> Pairs:
    """Pair them by edit distance; replacing goes before leaving out and putting in."""
    if len(seen) == len(keys) and not any(map(set(keys).intersection, seen)):
        return [(place, place) for place in range(len(keys))]
    costs = [list(range(len(keys) + 1))]
    for number, values in enumerate(seen):
        above, row = costs[-1], [number + 1]
        for place, key in enumerate(keys):
            row.append(min(above[place] + (key not in values), above[place + 1] + 1, row[place] + 1))
        costs.append(row)
    pairs: Pairs = []
    number, place = len(seen), len(keys)
    while number or place:
        cost = costs[number][place]
        if number and place and cost == costs[number - 1][place - 1] + (keys[place - 1] not in seen[number - 1]):
            number, place = number - 1, place - 1
            pairs.append((number, place))
        elif number and cost == costs[number - 1][place] + 1:
            number -= 1
            pairs.append((number, None))
        else:
            place -= 1
            pairs.append((None, place))
    return pairs[::-1]


def _by_content(lists: Sequence[Part | None]) -> list[Places]:
    """Put each element into the slot that it is most like, no two of a list into one."""
    slots: list[Places] = []
    index = _Index(_path_weights(lists))
    for response, one in enumerate(lists):
        # Their place in the list says nothing here: they come in an order of their own.
        elements = sorted(enumerate(one.elements), key=lambda numbered: numbered[1]) if one else []
        taken = index.equals([element for _, element in elements])
        rows = [row for row in range(len(elements)) if row not in taken]
        columns = [number for number in range(len(slots)) if number not in taken.values()]
        likeness = np.array([index.likeness(elements[row][1], columns) for row in rows])
        if likeness.size:
            for row, column in zip(*scipy.optimize.linear_sum_assignment(likeness, maximize=True), strict=True):
                if likeness[row, column] >= ALIKE:
                    taken[rows[row]] = columns[column]
        for row, (place, element) in enumerate(elements):
            number = taken.get(row, len(slots))
            if number == MOST_SLOTS:
                continue
            if number == len(slots):
                slots.append([None] * len(lists))
            slots[number][response] = place
            index.add(element, number)
    return slots


def _path_weights(lists: Sequence[Part | None]) -> dict[str, float]:
    """Return the paths that tell elements apart best, by their share of different values."""
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
        self._equal[element.content][slot] += 1
        for path, key, words in element.content:
            if path in self._weights:
                self._paths[slot][path] = None
                for token, is_word in ((key, False), *((word, True) for word in words)):
                    counts = self._counts[path, token, is_word]
                    counts[slot] += 1
                    self._most[path, slot, is_word] = max(self._most[path, slot, is_word], counts[slot])

    def equals(self, elements: Sequence[Part]) -> dict[int, int]:
        """Return the slots in which elements were seen before, most often."""
        taken: dict[int, int] = {}
        for row, element in enumerate(elements):
            known = self._equal.get(element.content, Counter())
            free = [slot for slot in known if slot not in taken.values()]
            if free:
                taken[row] = max(free, key=lambda slot: (known[slot], -slot))
        return taken

    def likeness(self, element: Part, slots: Sequence[int]) -> list[float]:
        """Return the weighted share of leaves that an element shares with each slot, half by words."""
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
