"""How right a structured answer is, field by field, where the gold one is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suffice.answers.fields import MISSING, FieldComparison, Part, escaped, leaves
from suffice.elections.lists import LONGEST, align


@dataclass(frozen=True)
class FieldAccuracy:
    """Which fields are right, by JSON pointer into the gold answer; what is not in that one is wrong."""

    fields: dict[str, bool]

    @property
    def whole(self) -> bool:
        """Whether all of it is right."""
        return all(self.fields.values())

    @property
    def share(self) -> float:
        """The share of fields that are right."""
        return sum(self.fields.values()) / max(1, len(self.fields))


def field_accuracy(
    answer: Any,
    gold: Any,
    responses: Sequence[Any] = (),
    *,
    ignore: Sequence[str] = (),
    compare: Mapping[str, str] | None = None,
) -> FieldAccuracy:
    """How right an answer is, or None for none, by the comparison that votes use.

    A list of scalars counts as a set if its order varies among the responses that the answer came from, and else in
    order; lists of objects are aligned by content. Elements that gold has not are numbered after those that it has.

    >>> field_accuracy({"n": 1.0, "tags": ["a", "c"]}, {"n": 1, "tags": ["a", "b"]}).fields
    {'/n': True, '/tags/0': True, '/tags/1': False}
    """
    comparison = FieldComparison(ignore, compare)
    given = [comparison.part(one) for one in (gold, answer, *responses)]
    fields: dict[str, bool] = {}
    _compare([given[0] or MISSING, given[1] or MISSING, *given[2:]], "", fields)
    return FieldAccuracy(fields)


def _compare(parts: Sequence[Part | None], pointer: str, fields: dict[str, bool]) -> None:
    """Add what is right here; the parts are gold's, the answer's and the responses'."""
    gold, answer = parts[0] or MISSING, parts[1] or MISSING
    if gold.is_ignored or answer.is_ignored:
        return
    if gold.fields and answer.fields:
        for name in {**gold.fields, **answer.fields}:
            inner = [part.fields.get(name, MISSING) if part else None for part in parts]
            _compare(inner, f"{pointer}/{escaped(name)}", fields)
    elif gold.elements and answer.elements and len(gold.elements) <= LONGEST >= len(answer.elements):
        _compare_lists([part if part and part.elements else None for part in parts], pointer, fields)
    else:
        right = gold.form == answer.form
        fields |= dict.fromkeys(leaves(answer.value if gold is MISSING else gold.value, pointer), right)


def _compare_lists(lists: Sequence[Part | None], pointer: str, fields: dict[str, bool]) -> None:
    extra = len(lists[0].elements) if lists[0] else 0
    for slot in align(lists, shown_by=lists[1:]):
        place = slot.places[0]
        if place is None and slot.places[1] is None:
            continue
        if place is None:
            place, extra = extra, extra + 1
        _compare(slot.choices, f"{pointer}/{place}", fields)
