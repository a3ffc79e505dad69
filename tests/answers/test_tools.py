"""Tool calls as answers."""

import pytest

from suffice import OptionError
from suffice.answers import get_extractor, tool_extractor


def call(name: str, arguments: str) -> dict[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_arguments_are_compared_by_value() -> None:
    extract = tool_extractor("tool").extract
    same = ['{"city": "Paris", "days": 3}', '{"days":3,"city":"Paris"}', '{"city": "Paris", "days": 3.0}']
    assert len({extract([call("weather", arguments)]) for arguments in same}) == 1
    other = ['{"city": "paris", "days": 3}', '{"city": "Paris"}', '{"city": "Paris", "days": "3"}']
    assert len({extract([call("weather", arguments)]) for arguments in [same[0], *other]}) == 4
    assert extract([call("weather", same[0])]) != extract([call("forecast", same[0])])
    assert extract([call("a", "{}"), call("b", "{}")]) != extract([call("a", "{}")])


def test_arguments_can_be_ignored() -> None:
    extract = tool_extractor("tool", ["thought"]).extract
    a, b = '{"q": 1, "thought": "hm"}', '{"q": 1, "thought": "well"}'
    assert extract([call("search", a)]) == extract([call("search", b)])
    names = tool_extractor("tool:name").extract
    assert names([call("search", a)]) == names([call("search", '{"q": 2}')]) == "search"


@pytest.mark.parametrize("calls", ["x", [{}], [{"function": {}}], [call("f", "{")], [call("f", "[1]")]])
def test_what_is_no_tool_call_is_none(calls: object) -> None:
    assert tool_extractor("tool").extract(calls) is None


def test_to_call_no_tool_is_a_choice() -> None:
    for extract in (tool_extractor("tool").extract, tool_extractor("tool:name").extract):
        assert extract(None) == extract([]) == "no tool call"


def test_tool_extractors_have_names() -> None:
    assert get_extractor("tool") == tool_extractor("tool")
    with pytest.raises(OptionError, match="tool:name"):
        get_extractor("tool:nonsense")
