"""JSON schemas: which structured answers are allowed, told by `jsonschema` in a process that can be killed."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from suffice.answers.worker import VALIDATOR
from suffice.errors import OptionError, install


class Schema:
    """A JSON schema that was found to be one; references within it work, and none is ever fetched.

    >>> schema = Schema({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})
    >>> schema.allows({"age": 41}), schema.allows({"age": "41"})
    (True, False)
    """

    def __init__(self, document: Mapping[str, Any] | bool) -> None:
        if find_spec("jsonschema") is None:
            raise OptionError(f"needs another package: {install('structure')}", "schema")
        try:
            self.text = json.dumps(document)
        except (TypeError, ValueError, RecursionError):
            raise OptionError("must be JSON", "schema") from None
        fault = VALIDATOR.schema_fault(self.text)
        if fault:
            raise OptionError(fault, "schema")

    def allows(self, value: Any) -> bool:
        """Whether a value is valid; not where that takes too long to tell."""
        return VALIDATOR.allows(self.text, value)
