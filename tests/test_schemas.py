"""JSON schemas: what they allow, within bounds, and whether they leave no room for a text."""

from typing import Any

import pytest

from suffice import OptionError
from suffice.schemas import Schema, is_closed


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
    monkeypatch.setattr("suffice.schemas.find_spec", lambda name: None)
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


LABEL, NUMBER, TEXT = {"enum": ["a", "b"]}, {"type": "number"}, {"type": "string"}

CLOSED: list[Any] = [
    LABEL,
    {"const": 1},
    {"type": "boolean"},
    {"type": "string", "maxLength": 20},
    {"type": "string", "format": "date"},
    {"properties": {"label": LABEL, "score": {"anyOf": [NUMBER, {"type": "null"}]}}},
    {"type": "array", "items": LABEL},
    {"$ref": "#/$defs/one", "$defs": {"one": {"properties": {"score": NUMBER}}}},
]
OPEN: list[Any] = [
    TEXT,
    {"type": "string", "maxLength": 400},
    {"properties": {"score": NUMBER, "why": TEXT}},
    {"properties": {}},
    {"type": "array", "items": TEXT},
    {"anyOf": [NUMBER, TEXT]},
    {"$ref": "#", "properties": {"of": {"$ref": "#"}}},
    {"$ref": "#/$defs/gone"},
    {},
    True,
    None,
]


@pytest.mark.parametrize("document", CLOSED)
def test_a_schema_of_labels_and_numbers_names_its_answer(document: Any) -> None:
    assert is_closed(document)


@pytest.mark.parametrize("document", OPEN)
def test_a_schema_with_room_for_a_text_does_not(document: Any) -> None:
    assert not is_closed(document)
