"""How right structured answers are, field by field."""

from typing import Any

from suffice.elections import field_accuracy

GOLD: dict[str, Any] = {
    "name": "Ann",
    "home": {"city": "Bern", "zip": 3011},
    "tags": ["a", "b"],
    "lines": [{"sku": "pen", "n": 1}, {"sku": "ink", "n": 2}],
}


def wrong(answer: Any, gold: Any = GOLD, *responses: Any, **options: Any) -> list[str]:
    judged = field_accuracy(answer, gold, responses, **options).fields
    return [pointer for pointer, right in judged.items() if not right]


def test_every_field_of_gold_is_judged() -> None:
    accuracy = field_accuracy(GOLD | {"home": {"city": "Basel", "zip": 3011.0}}, GOLD)
    assert accuracy.fields == {
        "/name": True, "/home/city": False, "/home/zip": True, "/tags/0": True, "/tags/1": True,
        "/lines/0/n": True, "/lines/0/sku": True, "/lines/1/n": True, "/lines/1/sku": True,
    }  # fmt: skip
    assert accuracy.share == 8 / 9
    assert not accuracy.whole


def test_what_is_missing_and_what_is_too_much_are_wrong() -> None:
    assert wrong({name: value for name, value in GOLD.items() if name != "home"}) == ["/home/city", "/home/zip"]
    assert wrong(GOLD | {"home": "Bern"}) == ["/home/city", "/home/zip"]
    assert wrong(GOLD | {"age": {"years": 4}}) == ["/age/years"]
    assert wrong(GOLD | {"lines": [*GOLD["lines"], {"sku": "nib", "n": 9}]}) == ["/lines/2/sku", "/lines/2/n"]
    assert wrong(GOLD | {"lines": []}) == ["/lines/0/sku", "/lines/0/n", "/lines/1/sku", "/lines/1/n"]
    assert wrong(None) == list(field_accuracy(GOLD, GOLD).fields)


def test_the_order_of_objects_in_lists_does_not_count() -> None:
    assert wrong(GOLD | {"lines": GOLD["lines"][::-1]}) == []
    assert wrong(GOLD | {"lines": [{"sku": "ink", "n": 2}, {"sku": "pen", "n": 7}]}) == ["/lines/0/n"]


def test_the_order_of_scalars_counts_unless_it_varies_among_the_responses() -> None:
    turned = GOLD | {"tags": ["b", "a"]}
    assert wrong(turned)
    assert wrong(turned, GOLD, turned, turned)
    assert wrong(turned, GOLD, GOLD, turned) == []


def test_fields_may_be_ignored_or_compared_loosely() -> None:
    answer = GOLD | {"name": "ANN", "home": {"city": "bern!", "zip": 0}}
    assert wrong(answer, compare={"/name": "loose", "/home": "loose"}, ignore=["/home/zip"]) == []


def test_any_value_may_be_gold() -> None:
    assert field_accuracy([], []).whole
    assert field_accuracy(3, 3.0).fields == {"": True}
    assert not field_accuracy(list(range(500)), list(range(501))).whole
