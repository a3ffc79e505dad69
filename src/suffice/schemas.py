"""JSON schemas: the values that they allow, and whether they leave room for a text."""

import json
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from suffice.errors import OptionError, install
from suffice.json_values import DEEPEST
from suffice.killable import VALIDATOR


class Schema:
    """A checked JSON schema; references within it work, and none is fetched."""

    def __init__(self, document: Mapping[str, Any] | bool) -> None:
        if find_spec("jsonschema") is None:
            raise OptionError(f"needs another package: {install('structure')}", "schema")
        try:
            self.text = json.dumps(document)
        except (TypeError, ValueError, RecursionError):
            raise OptionError("must be JSON", "schema") from None
        fault = VALIDATOR.run("schema_fault", self.text)
        if fault or fault is None:
            raise OptionError(fault or "takes too long to check", "schema")

    def allows(self, value: Any) -> bool:
        """Whether a value is valid; one that takes too long is not."""
        return VALIDATOR.run("allows", self.text, value) is True


MAX_SHORT_TEXT = 40  # characters that a schema allows a label


def is_closed(schema: Any) -> bool:
    """Whether all fields of a schema are enums, numbers, booleans or short texts.

    >>> is_closed({"properties": {"score": {"type": "integer"}, "label": {"enum": ["a", "b"]}}})
    True
    >>> is_closed({"properties": {"score": {"type": "integer"}, "reason": {"type": "string"}}})
    False
    """
    named = schema.get("$defs") if isinstance(schema, Mapping) else None
    return _is_closed(schema, named if isinstance(named, Mapping) else {}, {})


def _is_closed(schema: Any, named: Mapping[str, Any], known: dict[str, bool], depth: int = 0) -> bool:
    """Look at each named schema once; one that refers to itself has no end."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return False
    inner = partial(_is_closed, named=named, known=known, depth=depth + 1)
    if (reference := str(schema.get("$ref"))).startswith("#/$defs/"):
        if reference not in known:
            known[reference] = False
            known[reference] = inner(named.get(reference.removeprefix("#/$defs/")))
        return known[reference]
    if "enum" in schema or "const" in schema:
        return True
    for inside in ("anyOf", "oneOf"):
        if isinstance(schema.get(inside), list):
            return all(map(inner, schema[inside]))
    if isinstance(fields := schema.get("properties"), Mapping):
        return bool(fields) and all(map(inner, fields.values()))
    if "items" in schema:
        return inner(schema["items"])
    if schema.get("type") == "string":
        length = schema.get("maxLength")
        return "format" in schema or "pattern" in schema or (isinstance(length, int) and length <= MAX_SHORT_TEXT)
    return schema.get("type") in ("number", "integer", "boolean", "null")
