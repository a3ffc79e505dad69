"""Electing structured answers field by field."""

from typing import Any

import pytest
from helpers.tallies import elect_fields, field_tallies

from suffice import Tally, get_controller
from suffice.elections import FieldTallies
from suffice.schemas import Schema


def test_fields_are_elected_one_by_one() -> None:
    elected = elect_fields({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 1, "b": 2}, {"a": 4, "b": 2})
    assert elected.value == {"a": 1, "b": 2}
    assert not elected.composed
    assert list(elected.fields) == ["/a", "/b"]
    assert all((field.votes, field.share) == (3, 0.6) for field in elected.fields.values())


def test_what_comes_back_was_said_unless_it_may_be_composed() -> None:
    answers = [{"a": 1, "b": 2, "c": 0}, {"a": 1, "b": 0, "c": 3}, {"a": 0, "b": 2, "c": 3}]
    said = elect_fields(*answers)
    assert said.value in answers and not said.composed
    assert {pointer: field.votes for pointer, field in said.fields.items()} == {"/a": 2, "/b": 2, "/c": 1}
    elected = elect_fields(*answers, compose=True)
    assert elected.value == {"a": 1, "b": 2, "c": 3} and elected.response is None
    assert all(field.leads for field in elected.fields.values())


def test_the_response_that_equals_the_elected_object_is_given_as_it_came() -> None:
    elected = elect_fields({"a": 1.0, "b": "x  y"}, {"b": "x y", "a": 2}, {"b": "x y", "a": 1}, {"a": 1, "b": "x y"})
    assert elected.response == 2
    assert list(elected.value) == ["b", "a"]


def test_a_missing_key_and_null_are_choices() -> None:
    assert elect_fields({"a": 1}, {"a": 1, "b": 2}, {"a": 1}).value == {"a": 1}
    assert elect_fields({"a": 1, "b": None}, {"a": 1, "b": 2}, {"a": 1, "b": None}).value == {"a": 1, "b": None}
    three = field_tallies({"a": 1, "b": None}, {"a": 1, "b": 2}, {"a": 1})
    assert three.tallies["/b"].votes == {"null": 1, "2": 1, "missing": 1}


def test_the_commonest_spelling_is_given() -> None:
    answers = ({"a": 1.0, "b": 1, "c": 9}, {"a": 1, "b": 9, "c": 1}, {"a": 9, "b": 1, "c": 9})
    assert repr(elect_fields(*answers).value["a"]) == "1.0"
    assert repr(elect_fields({"a": 1.0}, {"a": 1}, {"a": 1}).value) == "{'a': 1}"


def test_types_that_conflict_are_choices() -> None:
    elected = elect_fields({"a": {"b": 1}}, {"a": "none"}, {"a": {"b": 2}}, {"a": {"b": 2}}, {"a": [1]})
    assert elected.value == {"a": {"b": 2}}
    tallies = field_tallies({"a": {"b": 1}}, {"a": "none"}, {"a": {"b": 2}}).tallies
    assert tallies["/a"].votes == {"{}": 2, '"none"': 1}
    assert tallies["/a/b"].answers == ["1", None, "2"]


def test_a_union_elects_one_of_its_alternatives() -> None:
    card = {"type": "card", "number": 7, "valid": "12/27"}
    iban = {"type": "iban", "iban": "CH1"}
    cash = {"type": "cash", "till": 3}
    elected = elect_fields(*[{"pay": one} for one in (card, iban, card, cash, iban, card, cash)])
    assert elected.value == {"pay": card}
    assert elected.fields["/pay/number"].votes == 3


def test_lists_whose_order_varies_are_sets() -> None:
    elected = elect_fields(["x", "y"], ["y", "x", "z"], ["x", "y", "w"])
    assert elected.value == ["x", "y"]
    assert elected.fields["/1"].votes == 3


def test_lists_whose_order_never_varies_are_sequences() -> None:
    assert elect_fields([12.5, 47.1], [12.5, 47.2], [12.5, 47.2], [12.6, 47.2]).value == [12.5, 47.2]
    assert elect_fields(["a", "b", "c"], ["a", "c"], ["a", "b", "c", "d"]).value == ["a", "b", "c"]
    assert elect_fields(["a", "b", "c"], ["b", "c", "d"], ["b", "c", "d"]).value == ["b", "c", "d"]
    assert elect_fields([1, 1, 2], [1, 1, 3], [1, 1, 3]).value == [1, 1, 3]


def test_lists_of_objects_are_aligned_by_content() -> None:
    pen, ink, nib = {"sku": "pen", "n": 1}, {"sku": "ink", "n": 2}, {"sku": "nib", "n": 3}
    elected = elect_fields([pen, ink], [ink, pen, nib], [{"sku": "ink", "n": 5}, {"sku": "pen", "n": 1}], [pen, ink])
    assert elected.value == [pen, ink]
    assert elected.fields["/0/n"].votes == 4
    assert elected.fields["/1/n"].votes == 3


def test_an_element_stands_if_most_responses_have_it() -> None:
    a, b, c = {"id": "a", "x": 1}, {"id": "b", "x": 2}, {"id": "c", "x": 3}
    assert elect_fields([a, b], [a, c], [a, b, c], [b], [b]).value == [a, b]
    tallies = field_tallies([a, b], [a, c], [a, b], [b, a]).tallies
    assert tallies["/2"].votes == {"missing": 3, "{}": 1}
    assert not any(pointer.startswith("/2/") for pointer in tallies)


def test_elements_stand_in_the_order_that_most_have() -> None:
    a, b, c = ({"id": name, "x": name * 2} for name in "abc")
    noise = [{"id": "a", "x": "??"}]
    assert elect_fields([c, a, b], [c, a, b], [c], [*noise, b], [c, *noise]).value == [c, a, b]


def test_a_list_is_empty_only_if_some_response_has_it_empty() -> None:
    search, book, wait = (
        {"name": "search", "arguments": {"q": "Bern"}},
        {"name": "book", "arguments": {"seat": 4}},
        {"name": "wait", "arguments": {"until": "noon"}},
    )
    assert elect_fields([search], [book], [search], [wait], [book], [search], [wait]).value == [search]
    assert elect_fields([search], [book], [wait], []).value == []


def test_tool_calls_are_elected_by_argument() -> None:
    def call(city: str, days: int, unit: str) -> list[Any]:
        return [{"name": "forecast", "arguments": {"city": city, "days": days, "unit": unit}}]

    answers = [call("Bern", 3, "C"), call("Bern", 2, "F"), call("Basel", 3, "F"), []]
    elected = elect_fields(*answers, compose=True)
    assert elected.value == call("Bern", 3, "F") and elected.composed


def test_nested_lists_are_elected_within_their_elements() -> None:
    def order(*lines: tuple[str, list[str]]) -> dict[str, Any]:
        return {"lines": [{"sku": sku, "tags": [{"t": tag} for tag in tags]} for sku, tags in lines]}

    elected = elect_fields(
        order(("pen", ["red", "new"]), ("ink", ["big"])),
        order(("ink", ["big"]), ("pen", ["new", "red"])),
        order(("pen", ["red", "old"]), ("ink", ["big", "wet"])),
    )
    assert elected.value == order(("pen", ["red", "new"]), ("ink", ["big"]))


def test_lists_too_long_to_align_are_compared_whole() -> None:
    long = list(range(500))
    assert elect_fields({"v": long}, {"v": long[::-1]}, {"v": long}).value == {"v": long}
    assert list(field_tallies({"v": long}, {"v": [1]}).tallies) == ["/v"]


def note(number: int) -> str:
    return f"It says so in paragraph {number} of the document, as far as I can see."


def test_free_text_comes_from_the_nearest_response_and_does_not_hold_up_the_vote() -> None:
    given = ((1, 2), (1, 3), (1, 3), (2, 3))
    answers = [{"a": a, "b": b, "why": note(number)} for number, (a, b) in enumerate(given)]
    tallies = field_tallies(*answers)
    assert set(tallies.tallies) == {"/a", "/b"}
    elected = elect_fields(*answers)
    assert (elected.value, elected.fields["/why"].kind) == (answers[1], "text")
    composed = elect_fields(*[{"a": a, "b": b, "c": c, "why": note(a * 100 + b * 10 + c)} for a, b, c in
                       ((1, 1, 0), (1, 0, 1), (0, 1, 1))], compose=True)  # fmt: skip
    assert composed.value == {"a": 1, "b": 1, "c": 1, "why": note(110)}


def test_lists_of_queries_and_strings_of_words_that_differ_are_not_waited_for() -> None:
    queries = [{"queries": [f"who was born in {number}", f"{number} birthdays"], "n": 2} for number in range(4)]
    assert set(field_tallies(*queries).tallies) == {"/n"}
    tagged = [{"tags": ["red wine", "new"]}] * 3 + [{"tags": ["new"]}]
    assert set(field_tallies(*tagged).tallies) == {"/tags/0", "/tags/1"}, "they agree"


def test_long_strings_that_agree_are_voted_on() -> None:
    tallies = field_tallies({"why": note(1)}, {"why": note(1)}, {"why": note(2)})
    assert tallies.tallies["/why"].draws == 3


def test_ignored_fields_come_from_the_nearest_response() -> None:
    answers = [{"a": 0, "b": 1, "id": 5, "at": [1]}, {"a": 1, "b": 1, "id": 7, "at": [2]}, {"a": 1, "b": 0, "id": 5}]
    tallies = field_tallies(*answers, ignore=["/id", "/at"])
    assert set(tallies.tallies) == {"/a", "/b"}
    elected = elect_fields(*answers, ignore=["/id", "/at"])
    assert (elected.value, elected.fields["/id"].kind) == (answers[1], "ignored")
    assert field_tallies({"a": 1}, {"a": 2}, ignore=[""]).tallies.keys() == {""}


def test_what_breaks_the_schema_falls_back_to_the_best_whole_response() -> None:
    answers = [{"a": 1, "b": 0, "c": 1}, {"a": 0, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 1, "c": 1}]
    all_ones = {"properties": {name: {"const": 1} for name in "abc"}, "required": ["a", "b", "c"]}
    assert elect_fields(*answers[:3], compose=True).value == {"a": 1, "b": 1, "c": 1}
    elected = elect_fields(*answers, compose=True, allows=Schema({"type": "object", "not": all_ones}).allows)
    assert elected.response in (1, 3)
    assert not elected.composed


def test_responses_that_break_the_schema_do_not_vote() -> None:
    tallies = field_tallies({"a": 1}, {"a": "x"}, {"a": "x"}, allows=lambda value: isinstance(value["a"], int))
    assert tallies.answers == [{"a": 1}, None, None]
    assert tallies.tallies["/a"].answers == ["1", None, None]
    assert tallies.tallies["/a"].draws == 3


def test_fields_that_never_came_together_are_not_paired_where_the_whole_vote_is_clear() -> None:
    first = [{"x": 1, "y": 1}] * 9
    others = [{"x": 2, "y": number} for number in range(2, 14)]
    elected = elect_fields(*first, *others, compose=True)
    assert {field.choice for field in elected.fields.values()} != {"2", "1"}
    assert not elected.composed
    unclear = [{"x": 1, "y": 1}] * 3 + [{"x": 2, "y": 2}] * 2 + [{"x": 2, "y": 3}] * 2
    assert elect_fields(*unclear, compose=True).value == {"x": 2, "y": 1}
    assert elect_fields(*unclear).value in unclear


def test_without_an_answer_nothing_is_elected() -> None:
    tallies = field_tallies(None, float("nan"), {1: 2})
    assert tallies.elect() is None
    assert tallies.answers == [None] * 3
    assert tallies.tallies[""].draws == 3
    assert FieldTallies().tallies[""].draws == 0


def test_the_most_that_any_field_asks_for_is_drawn() -> None:
    plan = get_controller("plan")
    tallies = field_tallies(*[{"a": 1, "b": number % 2} for number in range(6)])
    asked = [plan.next_round(tally) for tally in tallies.tallies.values()]
    assert tallies.next_round(plan) == max(asked) > min(asked) == 0
    settled = field_tallies(*[{"a": 1, "b": 2}] * 8)
    assert settled.next_round(plan) == 0
    assert FieldTallies().next_round(plan) > 0


def test_a_controller_is_asked_once_for_fields_that_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, rule = list[Tally](), get_controller("sc")
    monkeypatch.setattr(type(rule), "decide", lambda self, tally: [asked.append(tally)] and 1)  # type: ignore[func-returns-value]
    field_tallies(*[{str(field): draw * (field == 7) for field in range(9)} for draw in range(2)]).next_round(rule)
    assert len(asked) == 2


def test_every_tally_knows_the_rounds() -> None:
    tallies = field_tallies({"a": 1, "b": [{"c": 1}]}, None, {"a": 2, "b": []})
    tallies.end_round()
    for tally in (*tallies.tallies.values(), tallies.whole):
        assert (tally.draws, tally.rounds) == (3, 1)


@pytest.mark.parametrize("size", [100, 3000])
def test_large_answers_are_elected(size: int) -> None:
    answers = [{"rows": [{"k": f"key {row}", "v": row * (draw % 3)} for row in range(size)]} for draw in range(8)]
    assert elect_fields(*answers).value in answers


def test_elements_that_share_what_does_not_tell_them_apart_are_others() -> None:
    """Every element is of that kind: it speaks for little that two have it in common, to the letter."""

    def office(*names: str) -> list[dict[str, str]]:
        return [{"kind": "office supplies", "name": name} for name in names]

    pens, desks = office("red pencil", "blue marker", "white chalk"), office("oak desk", "steel lamp", "soft chair")
    tallies = field_tallies(pens, pens, desks)
    assert [tallies.tallies[f"/{place}"].votes for place in range(3)] == [{"{}": 2, "missing": 1}] * 3
    assert [tallies.tallies[f"/{place}"].votes for place in range(3, 6)] == [{"{}": 1, "missing": 2}] * 3
