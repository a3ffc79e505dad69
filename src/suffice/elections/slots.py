"""Slots: an element of a list as several responses have it, and the order that slots stand in."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from suffice.answers.fields import MISSING, Part

LONGEST = 100
"""Elements up to which lists are aligned; where one is longer, they are compared whole."""

MOST_SLOTS = 2 * LONGEST
"""Different elements that are voted on; what comes later and fits none of them is left out."""


@dataclass
class Slot:
    """One element as each response has it: None where there is no list, and missing where it is not in the list."""

    choices: list[Part | None]
    places: list[int | None] = field(default_factory=list)
    """Where it stands in each response's list."""

    def fill(self, response: int, place: int, element: Part) -> None:
        """Say what stands in it in one response."""
        self.choices[response] = element
        self.places[response] = place


class Slots:
    """The slots that the elements of lists go into."""

    def __init__(self, lists: Sequence[Part | None]) -> None:
        self.lists = lists
        self.slots: list[Slot] = []

    def new(self, at: int | None = None) -> Slot | None:
        """Another slot, or None where there are enough."""
        if len(self.slots) >= MOST_SLOTS:
            return None
        slot = Slot([None if one is None else MISSING for one in self.lists], [None] * len(self.lists))
        self.slots.insert(len(self.slots) if at is None else at, slot)
        return slot


def in_order(slots: Sequence[Slot]) -> list[int]:
    """The numbers of slots in the order that most responses have them in, two by two."""
    # NaN is neither before nor after anything.
    places = np.array([[np.nan if place is None else place for place in slot.places] for slot in slots])
    if len(slots) < 2:
        return list(range(len(slots)))
    before = (places[:, None] < places[None]).sum(axis=2)
    ahead = (before > before.T).sum(axis=1) - (before < before.T).sum(axis=1)
    return sorted(range(len(slots)), key=lambda number: (-ahead[number], number))
