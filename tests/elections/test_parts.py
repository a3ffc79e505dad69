"""Comparing structured answers: what is the same value, and what is left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import OptionError
from suffice.elections.parts import FieldComparison, scalar_key


def same(one: Any, other: Any, *ignore: str, **loose: str) -> bool:
    """Whether two values have one form, less what is ignored; each keyword is loose, by pointer."""
    comparison = FieldComparison(ignore, dict.fromkeys(loose.values(), "loose"))
    first, second = comparison.part(one), comparison.part(other)
    return first is not None and second is not None and first.form == second.form


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (1, 1.0, True),
        (1, 10e-1, True),
        (-0.0, 0, True),
        (10**16 + 1, 1e16, False),
        (10**23, 1e23, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        (None, "null", False),
        ("a  b\n", " a b", True),
        ("é", "e\u0301", True),
        ("Bern", "bern", False),
        ("Bern.", "Bern", False),
        ("①", "1", False),
        ({}, [], False),
        ({"a": None}, {}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
    ],
)
def test_values_are_compared_by_what_they_say(one: Any, other: Any, are_same: bool) -> None:
    assert same({"x": one}, {"x": other}) is are_same


def test_loose_strings_are_compared_without_case_and_punctuation() -> None:
    assert same({"city": "St. Gallen"}, {"city": "ST GALLEN"}, city="/city")
    assert not same({"town": "St. Gallen"}, {"town": "ST GALLEN"}, city="/city")
    assert not same({"city": "!"}, {"city": "?"}, city="/city")
    assert same({"items": [{"name": "A-1"}]}, {"items": [{"name": "a1"}]}, name="/items/*/name")
    assert same([["A"]], [["a"]], all="")


def test_what_is_ignored_is_not_compared() -> None:
    assert same({"note": {"x": 1}, "a": 1, "by/who": 2}, {"a": 1}, "/note", "/by~1who")
    assert same({"items": [{"id": 1}, {"id": 2}]}, {"items": [{"id": 3}, {"id": 4}]}, "/items/0/id")
    assert not same({"items": [{"id": 1}]}, {"items": [{"id": 1}, {"id": 2}]}, "/items/0/id")
    assert same({"items": [1], "a": 1}, {"items": [2, 3], "a": 1}, "/items/*")
    assert same({"a": {"id": 1}}, {"a": {"id": 2}}, "/*/id")


def test_pointers_and_comparisons_are_checked() -> None:
    with pytest.raises(OptionError, match=r'ignore needs a JSON pointer such as "/items/\*/note", not "note"'):
        FieldComparison(["note"])
    with pytest.raises(OptionError, match='compare must say loose for "/a", not "tight"'):
        FieldComparison(compare={"/a": "tight"})


@given(st.text(alphabet="a\u0301\u0316\u0345 e", max_size=2_000))
def test_a_key_is_found_for_any_string(text: str) -> None:
    assert scalar_key(text) == scalar_key(f" {text}\t")
