"""Reading structured answers, within bounds."""

import json
import tracemalloc
from typing import Any

import pytest
from helpers.tallies import at
from hypothesis import given
from hypothesis import strategies as st

from suffice.json_values import DEEPEST, MOST_VALUES, is_bounded, leaves, read_json

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


@given(VALUES)
def test_leaves_hold_all_that_a_value_holds(value: Any) -> None:
    found = leaves(value)
    assert all(not isinstance(leaf, dict | list) or not leaf for leaf in found.values())
    for pointer, leaf in found.items():
        assert at(value, pointer) is leaf
