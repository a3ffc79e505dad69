"""Elections of structured answers, where every field has a tally of its own: docs/structure.md has the rules."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from suffice.controllers import Controller
from suffice.controllers.rules import lead_probabilities
from suffice.elections.lists import LONGEST, align, elements_at
from suffice.elections.parts import MISSING, FieldComparison, Part
from suffice.elections.points import Kind, Point, Points
from suffice.json_values import escaped, leaves
from suffice.tally import DEFAULT_BUDGET, Tally

CLEAR = 0.95  # probability that the first whole answer beats the second
SEVERAL = 4  # draws after which a field that never repeats is not waited for


@dataclass(frozen=True)
class Field:
    """A leaf of the elected object: a scalar, or an empty object or list."""

    value: Any
    choice: str  # in its tally: its own, or that of the whole around it
    tally: Tally
    kind: Kind = "voted"  # text and ignored fields are one response's

    @property
    def votes(self) -> int:
        return self.tally.votes[self.choice]

    @property
    def share(self) -> float:
        return self.votes / sum(self.tally.votes.values())

    @property
    def leads(self) -> bool:
        """Whether it is what its tally elects; of a whole response it need not be."""
        return self.kind == "voted" and self.choice == self.tally.leader


@dataclass(frozen=True)
class FieldElection:
    """The elected object, and how its fields were voted on."""

    value: Any
    response: int | None  # which one it is; None where composed
    fields: dict[str, Field]  # its leaves, by JSON pointer
    whole: Tally  # the vote on whole answers

    @property
    def composed(self) -> bool:
        return self.response is None


class FieldTallies:
    """The tallies of all fields of structured answers, which are added in order of arrival.

    Any JSON value is an answer: an object, a list of tool calls, a scalar. One that is too deep or too large, or that
    is not allowed (by a schema, as `Schema.allows`), is a draw without an answer.
    """

    def __init__(
        self,
        budget: int = DEFAULT_BUDGET,
        *,
        ignore: Sequence[str] = (),
        compare: Mapping[str, str] | None = None,
        allows: Callable[[Any], bool] | None = None,
    ) -> None:
        self.budget = budget
        self.answers: list[Any] = []  # None for a draw without one
        self.round_ends: list[int] = []
        self._comparison = FieldComparison(ignore, compare)
        self._allows = allows
        self._parts: list[Part | None] = []

    def joined_by(self, answer: Any) -> "FieldTallies":
        """Return a copy with one answer more, or None for a draw without one."""
        part = self._comparison.part(answer)
        if part is not None and self._allows is not None and not self._allows(answer):
            part = None
        joined = copy(self)
        joined.__dict__.pop("_root", None)
        joined.answers = [*self.answers, None if part is None else answer]
        joined.round_ends = [*self.round_ends]
        joined._parts = [*self._parts, part]
        return joined

    def end_round(self) -> None:
        self.round_ends.append(self.draws)  # which all tallies share

    @property
    def draws(self) -> int:
        return len(self.answers)

    @property
    def key(self) -> str | None:
        """What the last answer is compared by as a whole."""
        last = self._parts[-1] if self._parts else None
        return last.form if last else None

    @property
    def tallies(self) -> dict[str, Tally]:
        """What is to be settled, by JSON pointer: every field that is voted on, and whatever may be there or not.

        All have the same number of draws. Elements that don't stand are numbered after those that do.
        """
        listed = {pointer: point.tally for pointer, point in self._root.walk() if point.is_open}
        return listed or {"": self._root.tally}

    @property
    def whole(self) -> Tally:
        """The vote on whole answers: free text and what is ignored left out."""
        first: dict[tuple[str | None, ...], str] = {}
        whole = Tally(self.budget)
        points = [point.said for point in self._voted()]
        for response, part in enumerate(self._parts):
            said = tuple(point[response] for point in points)
            whole.add(first.setdefault(said, part.form) if part else None)
        whole.round_ends = list(self.round_ends)
        return whole

    def next_round(self, controller: Controller) -> int:
        """Return the most draws that any field asks for; 0 when all are settled.

        A field in which no two of several draws say the same is as free as a text, beside others that can settle.
        """
        # Most fields look alike to a controller: it is asked once for each pattern of votes.
        tallies = {_pattern(tally): tally for tally in self.tallies.values()}.values()
        settling = [tally for tally in tallies if tally.draws < SEVERAL or tally.top(1)[0] > 1]
        return max(controller.next_round(tally) for tally in settling or tallies)

    def elect(self, compose: bool = False) -> FieldElection | None:
        """Elect an object, if there is any; only where told to compose, one that nobody said."""
        voters = {response: part for response, part in enumerate(self._parts) if part}
        if not voters:
            return None
        points, whole = self._voted(), self.whole
        agreed = {response: sum(point.agrees[response] for point in points) for response in voters}
        nearest = sorted(voters, key=lambda response: -agreed[response])
        equal = [response for response in nearest if agreed[response] == len(points)]
        if equal:
            # They may differ in spelling, in the order of lists and in texts: take the commonest.
            alike = [point.spelt_alike(equal) for point in points]
            forms = Counter(part.form for part in voters.values())
            commonest = max(equal, key=lambda one: (sum(spelt[one] for spelt in alike), forms[voters[one].form]))
            return self._as_it_came(commonest, whole)
        if compose:
            fields: dict[str, Field] = {}
            value = _compose(self._root, "", nearest, fields)
            if not self._is_inconsistent(value, whole):
                return FieldElection(value, None, fields, whole)
        votes = {response: sum(point.votes_of(response) for point in points) for response in voters}
        equals = whole.votes
        best = max(voters, key=lambda one: (agreed[one], votes[one], equals[whole.answers[one] or ""]))
        return self._as_it_came(best, whole)

    def _as_it_came(self, response: int, whole: Tally) -> FieldElection:
        fields: dict[str, Field] = {}
        _read_off(self._root, "", response, fields)
        return FieldElection(self.answers[response], response, fields, whole)

    def _is_inconsistent(self, value: Any, whole: Tally) -> bool:
        if self._allows is not None and not self._allows(value):
            return True
        if lead_probabilities(max(self.budget, self.draws))[whole.top(2)] < CLEAR:
            return False
        supporters = {point.supporters for point in self._voted()}
        return any(one.isdisjoint(other) for one, other in combinations(supporters, 2))

    @cached_property
    def _root(self) -> Point:
        return Points(self.budget, self.round_ends, self._copies).on(self._parts)

    @property
    def _copies(self) -> set[int]:
        """The responses that are wholly as an earlier one."""
        forms = [part and part.form for part in self._parts]
        return {number for number, form in enumerate(forms) if form is not None and form in forms[:number]}

    def _voted(self) -> list[Point]:
        return [point for _, point in self._root.walk() if point.kind == "voted"]


def _pattern(tally: Tally) -> tuple[int, ...]:
    """Return the answers as numbers in the order in which they first came; -1 for none."""
    numbers: dict[str | None, int] = {None: -1}
    return tuple(numbers.setdefault(answer, len(numbers) - 1) for answer in tally.answers)


def _compose(point: Point, pointer: str, nearest: Sequence[int], fields: dict[str, Field]) -> Any:
    """Return the elected value or `MISSING`, and add its leaves to the fields."""
    response = point.spelt() if point.kind == "voted" else point.given_by(nearest)
    part = point.choices[response]
    if part is None or part is MISSING:
        return MISSING
    value: Any
    if point.fields:
        named = {
            name: _compose(one, f"{pointer}/{escaped(name)}", nearest, fields) for name, one in point.fields.items()
        }
        value = {name: one for name, one in named.items() if one is not MISSING}
    elif point.elements:
        standing = [element for element in point.elements if element.stands]
        value = [_compose(one, f"{pointer}/{number}", nearest, fields) for number, one in enumerate(standing)]
    else:
        fields |= _leaf_fields(point, pointer, response)
        return part.value
    if not value:
        fields[pointer] = Field(value, point.keys[response] or "", point.tally)
    return value


def _read_off(point: Point, pointer: str, response: int, fields: dict[str, Field]) -> None:
    """Add the leaves that a response has here to the fields."""
    part = point.choices[response]
    if part is None or part is MISSING:
        return
    if not (point.agrees[response] and (point.fields or point.elements) and not part.is_leaf):
        fields |= _leaf_fields(point, pointer, response)
        return
    for name in part.fields:
        _read_off(point.fields[name], f"{pointer}/{escaped(name)}", response, fields)
    placed = {element.places[response]: element for element in point.elements}
    for place in range(len(part.elements)):
        if place in placed:
            _read_off(placed[place], f"{pointer}/{place}", response, fields)


def _leaf_fields(point: Point, pointer: str, response: int) -> dict[str, Field]:
    """Return a response's leaves at a point, with the votes that it has there."""
    part, choice = point.choices[response], point.keys[response] or ""
    found = leaves(part.value if part else None, pointer)
    return {path: Field(leaf, choice, point.tally, point.kind) for path, leaf in found.items()}


@dataclass(frozen=True)
class FieldAccuracy:
    """Which fields are right, by JSON pointer; what gold has not is wrong."""

    fields: dict[str, bool]

    @property
    def whole(self) -> bool:
        return all(self.fields.values())

    @property
    def share(self) -> float:
        return sum(self.fields.values()) / max(1, len(self.fields))


def field_accuracy(
    answer: Any,
    gold: Any,
    responses: Sequence[Any] = (),
    *,
    ignore: Sequence[str] = (),
    compare: Mapping[str, str] | None = None,
) -> FieldAccuracy:
    """Compare an answer with gold, as votes compare.

    A list of scalars counts as a set if its order varies among the responses that the answer came from, and else in
    order; lists of objects are aligned by content. Elements that gold has not are numbered after those that it has.
    """
    comparison = FieldComparison(ignore, compare)
    given = [comparison.part(one) for one in (gold, answer, *responses)]
    fields: dict[str, bool] = {}
    _compare([given[0] or MISSING, given[1] or MISSING, *given[2:]], "", fields)
    return FieldAccuracy(fields)


def _compare(parts: Sequence[Part | None], pointer: str, fields: dict[str, bool]) -> None:
    """Add what is right here; the parts are gold, the answer, and the responses."""
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
    for places in align(lists, shown_by=lists[1:]):
        place = places[0]
        if place is None and places[1] is None:
            continue
        if place is None:
            place, extra = extra, extra + 1
        _compare(elements_at(lists, places), f"{pointer}/{place}", fields)
