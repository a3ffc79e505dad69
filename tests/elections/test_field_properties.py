"""What holds of every election of structured answers."""

import json
import random
from typing import Any

from helpers.tallies import at, elect_fields, field_tallies
from hypothesis import assume, example, given
from hypothesis import strategies as st

from suffice.elections import field_accuracy
from suffice.elections.parts import FieldComparison

NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 1.0, 0.5, "x", "y", "x y", "X", "a long text " * 5, "another one " * 5]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
OBJECTS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)
ANSWERS = st.lists(OBJECTS, min_size=1, max_size=7)


def form(answer: Any) -> str | None:
    part = FieldComparison().part(answer)
    return part.form if part else None


@given(VALUES, st.integers(1, 6))
def test_equal_responses_elect_what_they_are(answer: Any, times: int) -> None:
    assume(answer is not None)
    elected = elect_fields(*[answer] * times)
    assert (elected.value, elected.response) == (answer, 0)
    assert all(field.share == 1 for field in elected.fields.values())


@given(OBJECTS, ANSWERS)
@example({"a": "a long text " * 5}, [{"a": None}])
def test_what_most_responses_are_is_elected(answer: Any, others: list[Any]) -> None:
    elected = elect_fields(*others, *[answer] * (len(others) + 1))
    assert form(elected.value) == form(answer) or not field_accuracy(elected.value, answer).fields


def reordered(value: Any, chance: random.Random) -> Any:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, dict):
        names = chance.sample(list(value), len(value))
        return {name: reordered(value[name], chance) for name in names}
    return [reordered(part, chance) for part in value] if isinstance(value, list) else value


@given(ANSWERS, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(answers: list[Any], chance: random.Random) -> None:
    elected, again = elect_fields(*answers), elect_fields(*(reordered(answer, chance) for answer in answers))
    assert elected.value == again.value
    assert elected.response == again.response
    assert {pointer: field.choice for pointer, field in elected.fields.items()} == {
        pointer: field.choice for pointer, field in again.fields.items()
    }


ROWS = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("pqrst"), "n": st.integers(0, 2), "t": st.lists(NAMES, max_size=2)}),
    max_size=4,
)


def as_set(rows: list[Any]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@given(st.lists(ROWS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_elements_changes_nothing_but_the_order(lists: list[Any], chance: random.Random) -> None:
    shuffled = [chance.sample(rows, len(rows)) for rows in lists]
    elected, again = (elect_fields(*({"r": rows} for rows in all_)) for all_ in (lists, shuffled))
    assert as_set(elected.value["r"]) == as_set(again.value["r"])
    assert elected.composed == again.composed


def has_at_most_two_scalars_alike(value: Any) -> bool:
    leaves = [repr(part) for part in value.values() if not isinstance(part, dict | list)]
    return all(leaves.count(leaf) < 2 for leaf in leaves)


@given(
    ANSWERS, st.sampled_from([has_at_most_two_scalars_alike, lambda value: len(value) != 2, lambda value: "a" in value])
)
def test_the_result_is_allowed_whenever_any_response_is(answers: list[Any], allows: Any) -> None:
    elected = field_tallies(*answers, allows=allows).elect()
    assert (elected is not None) == any(map(allows, answers))
    assert elected is None or allows(elected.value)


@given(ANSWERS)
def test_a_response_is_given_as_it_came_and_fields_say_what_it_holds(answers: list[Any]) -> None:
    elected = elect_fields(*answers)
    assert elected.response is not None and elected.value is answers[elected.response]
    for pointer, field in elected.fields.items():
        assert repr(at(elected.value, pointer)) == repr(field.value)
        assert 1 <= field.votes <= field.tally.draws == len(answers)
        assert 0 < field.share <= 1


@given(ANSWERS)
def test_tallies_have_all_draws(answers: list[Any]) -> None:
    for number in range(len(answers)):
        tallies = field_tallies(None, *answers[:number])
        assert {tally.draws for tally in (*tallies.tallies.values(), tallies.whole)} == {number + 1}


@given(OBJECTS, OBJECTS)
def test_an_answer_is_right_where_it_equals_gold(answer: Any, gold: Any) -> None:
    assert field_accuracy(gold, gold).whole
    if form(answer) == form(gold):
        assert field_accuracy(answer, gold).whole
    assert not any(field_accuracy(None, gold).fields.values())
