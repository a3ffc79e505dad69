"""Reading structured answers, within bounds, and comparing them."""

import json
import tracemalloc
from typing import Any

import pytest
from helpers.tallies import at
from hypothesis import given
from hypothesis import strategies as st

from suffice import OptionError
from suffice.answers.fields import (
    DEEPEST,
    MOST_VALUES,
    FieldComparison,
    is_bounded,
    leaves,
    read_json,
    scalar_key,
)
from suffice.answers.structure import Schema

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": [1, {"b": null}]}\n', {"a": [1, {"b": None}]}),
        ("[1, 2]", [1, 2]),
        ('"yes"', "yes"),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("First:\n```\n[1]\n```\nthen:\n```json\n[2]\n```\nDone.", [2]),
        ("```python\nprint(1)\n```\n```json\n[2]\n```", [2]),
        ('It is {"a": 1}, see [3].', {"a": 1}),
        ('Draft: {"a": 1}. Final: {"a": 2}.', {"a": 2}),
        ('In the form {"a": <number>}: {"a": 5}', {"a": 5}),
        ("The set {x, y} has {} in it", {}),
        ('{"line": "one\ntwo"}', {"line": "one\ntwo"}),
        ("The answer is 42.", None),
        ("see [1]", None),
        ("", None),
        ("null", None),
    ],
)
def test_reads_json_with_prose_and_fences_around_it(text: str, value: Any) -> None:
    assert read_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}, "c": ',
        '{"a": {"b": 1}, "c": "it was {\\"d\\": 1}',
        'Draft: {"a": 1}. Final: {"a": {"b": 1}',
        '{"a": {"b": 1}, oops',
        '{"a": 1, "a": 2}',
        '{"b": {"a": 1, "a": 1}}',
        '{"a": NaN}',
        "[-Infinity]",
        '{"a": 1e999}',
        f'{{"a": {"9" * 5_000}}}',
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        '{"a": "\ud800"}',
        "[" * 10_000 + "]" * 10_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        "[" * 100 + "]" * 100,
        "[" * 1_000_000,
        '{"' * 400_000,
        "{" * 1_000_000,
        '{"a":[' * 150_000,
        "```\n" * 250_000,
        "[" + "0," * 400_000 + "0]",
        json.dumps({"text": "x" * 10_000_000}),
        '{"a": 1}' + " " * 10_000_000,
    ],
    ids=lambda text: f"{text[:12]}…{len(text)}",
)
def test_hostile_json_and_the_pieces_of_an_object_that_breaks_off_are_no_answer(text: str) -> None:
    tracemalloc.start()
    try:
        assert read_json(text) is None
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()


def test_what_is_read_is_within_its_bounds() -> None:
    deep: Any = 1
    for _ in range(DEEPEST - 1):
        deep = [deep]
    assert is_bounded(deep)
    assert not is_bounded([deep])
    assert is_bounded([0] * (MOST_VALUES - 1))
    assert not is_bounded([0] * MOST_VALUES)
    for value in ((1, 2), {1: 2}, float("nan"), 10**2_000, object(), {"a": {"b": b""}}):
        assert not is_bounded(value)


AROUND = ["{}", "```json\n{}\n```", "So:\n```\n{}\n```\nas it stands."]


@given(VALUES, st.sampled_from(AROUND), st.dictionaries(st.text(), VALUES, min_size=1), st.booleans())
def test_reads_whatever_is_written_and_an_object_in_prose(value: Any, around: str, named: Any, plain: bool) -> None:
    assert read_json(around.format(json.dumps(value))) == value
    assert read_json(f"It is {json.dumps(named, ensure_ascii=plain)}, I think.") == named


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


@given(VALUES)
def test_leaves_hold_all_that_a_value_holds(value: Any) -> None:
    found = leaves(value)
    assert all(not isinstance(leaf, dict | list) or not leaf for leaf in found.values())
    for pointer, leaf in found.items():
        assert at(value, pointer) is leaf


def test_a_schema_may_refer_to_itself() -> None:
    tree = Schema({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["n"]}},
    })  # fmt: skip
    assert tree.allows({"n": 1, "next": {"n": 2}})
    assert not tree.allows({"n": 1, "next": {}})
    assert Schema(True).allows(None)
    assert not Schema(False).allows({})
    draft_7 = Schema({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]})
    assert not draft_7.allows([1])
    assert Schema({"properties": {"$ref": {"type": "string"}}}).allows({"$ref": "x"}), "a property may be called that"


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"type": "objekt"}, "schema is no JSON schema at /type: 'objekt' is not valid"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}, 'refers to "http://127.0.0.1:1/x", which is not in'),
        ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, "gone"),
        ({"a": {1}}, "schema must be JSON"),
    ],
)
def test_a_schema_is_checked_and_nothing_fetched(document: Any, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint.replace("$", r"\$")):
        Schema(document)


def test_a_schema_says_which_package_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.answers.structure.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"schema needs another package: pip install 'suffice\[structure\]'"):
        Schema({})


@pytest.mark.parametrize(
    "document",
    [
        {"pattern": "^(a+)+$"},
        {"$ref": "#"},
        {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
         "$ref": "#/$defs/d0"},
    ],
    ids=["pattern", "circle", "many"],
)  # fmt: skip
def test_a_schema_that_takes_for_ever_allows_nothing(document: Any) -> None:
    assert not Schema(document).allows("a" * 40 + "!")
    assert Schema({"type": "string"}).allows("a")
