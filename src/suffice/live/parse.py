"""`parse` and `aparse`: from messages to an object, elected field by field, as an instance of a model."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from suffice.answers import Structure
from suffice.answers.structure import Schema
from suffice.errors import OptionError
from suffice.live.outcome import Outcome
from suffice.live.sample import asample, with_async_client
from suffice.live.sampling import takes_sampling

Model = Any
"""A Pydantic model's class, or a JSON schema."""


@takes_sampling
async def aparse(
    client: Any, messages: Iterable[Mapping[str, Any]], *, model: str, response_format: Model, **settings: Any
) -> Outcome:
    """Ask for an object just enough times.

    Args:
        client: The client, or clients, as for `asample`.
        messages: The conversation.
        model: The model's name.
        response_format: A Pydantic model or a JSON schema; a response that does not fit it is a draw without an answer.
        settings: What else `asample` takes, but for `answer`, which the object is. By JSON pointer, `ignore` leaves
            fields out of the vote (`["/note"]`), and `compare` compares them loosely (`{"/city": "loose"}`). With
            `compose`, where no object that was drawn has all the elected fields, one is put together.

    Returns:
        The outcome: `parsed` is the object that was drawn with most of the elected fields, and `fields` tells how sure
        each leaf is.

    Raises:
        OptionError: where an argument is wrong; ControllerError, where the controller is.
        SampleError: where all draws of a round failed; it has the outcome of those before.

    >>> import asyncio, openai
    >>> from suffice.testing import FakeServer
    >>> async def main(base_url):
    ...     async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
    ...         messages = [{"role": "user", "content": "Who wrote Emma, and when?"}]
    ...         return await aparse(client, messages, model="fake", response_format={"type": "object"})
    >>> with FakeServer(lambda request, number: '{"author": "Austen", "year": 1815}') as server:
    ...     asyncio.run(main(server.base_url)).parsed
    {'author': 'Austen', 'year': 1815}
    """
    if "answer" in settings:
        raise OptionError("can't be given here: the object is the answer", "answer")
    form = _Form(response_format)
    structure = Structure(allows=form.allows)
    outcome = await asample(client, messages, model=model, answer=structure, response_format=form.request, **settings)
    return outcome if outcome.composed is None else replace(outcome, parsed=form.parsed(outcome.value))


@takes_sampling
def parse(
    client: Any, messages: Iterable[Mapping[str, Any]], *, model: str, response_format: Model, **settings: Any
) -> Outcome:
    """Ask for an object just enough times, with a synchronous client.

    Args:
        client: The client, or clients, as for `sample`.
        messages: The conversation.
        model: The model's name.
        response_format: A Pydantic model or a JSON schema; a response that does not fit it is a draw without an answer.
        settings: What else `aparse` takes.

    Returns:
        The outcome: `parsed` is the object, elected field by field, and `fields` tells how sure each leaf is.

    Raises:
        OptionError: where an argument is wrong; ControllerError, where the controller is.
        SampleError: where all draws of a round failed; it has the outcome of those before.

    >>> import openai
    >>> from suffice.testing import FakeServer
    >>> with FakeServer(lambda request, number: '{"author": "Austen", "year": 1815}') as server:
    ...     with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
    ...         messages = [{"role": "user", "content": "Who wrote Emma, and when?"}]
    ...         outcome = parse(client, messages, model="fake", response_format={"type": "object"})
    >>> outcome.parsed["year"], outcome.fields["/year"].votes, outcome.composed
    (1815, 4, False)
    """
    return with_async_client(
        client, lambda other: aparse(other, messages, model=model, response_format=response_format, **settings)
    )


class _Form:
    """What an object must be like: how the server is told, whether one is, and one as the caller wants it."""

    def __init__(self, wanted: Model) -> None:
        self._model: Any
        self._model, schema = (None, wanted) if isinstance(wanted, Mapping) else _pydantic(wanted)
        self._schema = Schema(schema) if self._model is None else None
        self.request = json_schema_format(schema, getattr(wanted, "__name__", ""))

    def allows(self, value: Any) -> bool:
        """Whether a value fits."""
        if self._schema:
            return self._schema.allows(value)
        try:
            self.parsed(value)
        except ValueError:
            return False
        return True

    def parsed(self, value: Any) -> Any:
        """The value as an instance of the model; as it is where there is only a schema."""
        return value if self._model is None else self._model.validate_json(json.dumps(value))


def json_schema_format(schema: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """A request's `response_format` that asks for an object of this schema, under a name that servers take."""
    named = re.sub(r"[^A-Za-z0-9_-]+", "_", name or str(schema.get("title") or "object"))[:64]
    return {"type": "json_schema", "json_schema": {"name": named, "schema": schema}}


def _pydantic(model: Any) -> tuple[Any, dict[str, Any]]:
    """Return the validator of a Pydantic model, or of any other type that Pydantic knows, and its JSON schema."""
    try:
        adapter = TypeAdapter(model)
        return adapter, adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation):
        raise OptionError("must be a Pydantic model or a JSON schema", "response_format") from None
