"""Tool calls as answers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from suffice import Response
from suffice.answers import get_extractor


def call(name: str, arguments: str) -> dict[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def read(calls: Any, form: str = "tool", ignore: Sequence[str] = ()) -> str | None:
    return get_extractor(form).ignoring(ignore).extract(Response(None, tool_calls=calls))


def test_arguments_are_compared_by_value() -> None:
    same = ['{"city": "Paris", "days": 3}', '{"days":3,"city":"Paris"}', '{"city": "Paris", "days": 3.0}']
    assert len({read([call("weather", arguments)]) for arguments in same}) == 1
    other = ['{"city": "paris", "days": 3}', '{"city": "Paris"}', '{"city": "Paris", "days": "3"}']
    assert len({read([call("weather", arguments)]) for arguments in [same[0], *other]}) == 4
    assert read([call("weather", same[0])]) != read([call("forecast", same[0])])
    assert read([call("a", "{}"), call("b", "{}")]) != read([call("a", "{}")])


def test_arguments_can_be_ignored() -> None:
    extract = partial(read, ignore=["thought"])
    a, b = '{"q": 1, "thought": "hm"}', '{"q": 1, "thought": "well"}'
    assert extract([call("search", a)]) == extract([call("search", b)])
    names = partial(read, form="tool:name")
    assert names([call("search", a)]) == names([call("search", '{"q": 2}')]) == "search"


def test_calls_are_read_field_by_field() -> None:
    fields = get_extractor("tool:fields").structure
    assert fields and fields.value(Response(None, tool_calls=[call("f", '{"x": [1]}'), call("g", "")])) == [
        {"name": "f", "arguments": {"x": [1]}},
        {"name": "g", "arguments": {}},
    ]
    assert fields.value(Response("None.")) == []


@pytest.mark.parametrize("calls", ["x", 7, [1], [{}], [{"function": {}}], [call("f", "{")], [call("f", "[1]")]])
def test_what_is_no_tool_call_is_none(calls: object) -> None:
    assert read(calls) is None


def test_to_call_no_tool_is_a_choice() -> None:
    for form in ("tool", "tool:name"):
        assert get_extractor(form).reads_tools
        assert read(None, form) == read([], form) == "no tool call"
