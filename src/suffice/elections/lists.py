"""The lists of several responses, aligned: which element of one is which of another."""

from collections import Counter
from collections.abc import Sequence

from suffice.answers.fields import Part
from suffice.elections.content import by_content
from suffice.elections.slots import Slot, Slots


def align(lists: Sequence[Part | None], shown_by: Sequence[Part | None] | None = None) -> list[Slot]:
    """The slots that the elements of lists go into, a list a response, or None for one that has none there.

    Lists of scalars are sets or sequences: sequences unless their order varies, in `shown_by` or else in themselves.
    Other lists are aligned by content.
    """
    slots = Slots(lists)
    shown = lists if shown_by is None else shown_by
    if any(element.parts is not None for one in lists if one for element in one.elements):
        by_content(slots)
    elif _order_varies([one for one in shown if one]):
        _as_sets(slots)
    else:
        _as_sequences(slots)
    return slots.slots


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


def _as_sets(slots: Slots) -> None:
    """A slot for each value, and for each time that it comes again."""
    seen: dict[tuple[str, int], Slot | None] = {}
    for response, one in enumerate(slots.lists):
        times: Counter[str] = Counter()
        for place, element in enumerate(one.elements if one else ()):
            name = (element.key, times[element.key])
            times[element.key] += 1
            if name not in seen:
                seen[name] = slots.new()
            if slot := seen[name]:
                slot.fill(response, place, element)


def _as_sequences(slots: Slots) -> None:
    """Slots in order: each list is put where the fewest of its elements differ from what was seen in their slots."""
    seen: list[set[str]] = []
    for response, one in enumerate(slots.lists):
        if one is None:
            continue
        at = 0
        for number, place in _pairs(seen, [element.key for element in one.elements]):
            if place is None:
                at += 1
                continue
            if number is None:
                if slots.new(at) is None:
                    continue
                seen.insert(at, set())
            slots.slots[at].fill(response, place, one.elements[place])
            seen[at].add(one.elements[place].key)
            at += 1


_Pairs = list[tuple[int | None, int | None]]


def _pairs(seen: Sequence[set[str]], keys: Sequence[str]) -> _Pairs:
    """Pairs of slot and place, None where one side has nothing; what is the same at both ends is set aside first."""
    shortest = min(len(seen), len(keys))
    start = next((place for place in range(shortest) if keys[place] not in seen[place]), shortest)
    left = shortest - start
    end = next((back for back in range(left) if keys[-1 - back] not in seen[-1 - back]), left)
    inner = _fewest_edits(seen[start : len(seen) - end], keys[start : len(keys) - end])
    return [
        *((place, place) for place in range(start)),
        *((None if a is None else a + start, None if b is None else b + start) for a, b in inner),
        *((len(seen) - back, len(keys) - back) for back in range(end, 0, -1)),
    ]


def _fewest_edits(seen: Sequence[set[str]], keys: Sequence[str]) -> _Pairs:
    """Pairs of slot and place with the fewest changes; replacing goes before leaving out and putting in."""
    if len(seen) == len(keys) and not any(map(set(keys).intersection, seen)):
        return [(place, place) for place in range(len(keys))]
    costs = [list(range(len(keys) + 1))]
    for number, values in enumerate(seen):
        above, row = costs[-1], [number + 1]
        for place, key in enumerate(keys):
            row.append(min(above[place] + (key not in values), above[place + 1] + 1, row[place] + 1))
        costs.append(row)
    pairs: _Pairs = []
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
