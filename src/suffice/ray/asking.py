"""A vote as a stage of a Ray Data pipeline: a batch of questions comes in, and goes out with its answers.

Nothing of Ray is needed here: Ray Data makes an actor of the class, and calls it in the actor's event loop.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.controllers import question_random
from suffice.errors import OptionError, SampleError
from suffice.live.prompts import Messages, get_prompt, put
from suffice.live.sampling import Sampling, split_settings, takes_sampling
from suffice.live.servers.server import Server
from suffice.live.servers.targets import Target, read_targets

_KINDS: dict[str, type] = {
    "answer": str,
    "majority": str,
    "confidence": float,
    "certainty": float,
    "samples": int,
    "rounds": int,
    "tokens": int,
    "stop_reason": str,
    "error": str,
    "response": str,
}
"""The columns that are added, and what is in each."""


class ask:  # noqa: N801 - it is used as a function is
    r"""Answer each question of a batch, asking just enough times: a stage for Ray Data's `Dataset.map_batches`.

    Of all batches that an actor has at once, no more than `concurrency` draws are in flight. A question that fails has
    its `error`, and fails nothing else unless `strict`.

    Args:
        model: The model's name.
        base_url: The servers, named as for `suffice run`; OPENAI_BASE_URL by default.
        question: The column with texts, which are put into the `prompt`, or with lists of messages.
        prompt: `paper`, `worked`, a text with {question} in it, or a file.
        response: Whether the text of a typical response is a column too.
        prefix: What goes before the names of the columns that are added: `answer`, `confidence`, `certainty`,
            `samples`, `rounds`, `tokens`, `stop_reason`, `error`, and `majority`, the plain winner, where `elect`
            weighs the votes.
        strict: Whether a question that fails ends it all.
        sampling: How to ask.
        settings: Its fields by name (`controller`, `budget`, `answer`, …); all else goes into every request.

    Raises:
        OptionError: where an argument is wrong; SampleError, where a question fails and it is strict.

    >>> import asyncio
    >>> from suffice.testing import FakeServer
    >>> async def main(base_url):
    ...     stage = ask(base_url=base_url, model="fake")
    ...     async for batch in stage({"question": np.array(["What is 6 * 7?"])}):
    ...         print(batch["answer"], batch["samples"], batch["error"])
    ...     await stage.close()
    >>> with FakeServer(lambda request, number: r"\boxed{42}") as server:
    ...     asyncio.run(main(server.base_url))
    ['42'] [4] [None]
    """

    @takes_sampling
    def __init__(
        self,
        *,
        model: str,
        base_url: str | Iterable[str | Mapping[str, Any] | Target] | None = None,
        question: str = "question",
        prompt: str = "paper",
        response: bool = False,
        prefix: str = "",
        strict: bool = False,
        sampling: Sampling | None = None,
        **settings: Any,
    ) -> None:
        self._sampling, request = split_settings(sampling, settings)
        given = os.environ.get("OPENAI_BASE_URL", "") if base_url is None else base_url
        self._targets = read_targets(given, "base_url") or (Target(),)
        self._prompt = get_prompt(prompt)
        self._question = question
        self._fields = {**request, "model": model}
        wanted = {"response": response, "majority": self._sampling.voting.election is not None}
        self._columns = {name: prefix + name for name in _KINDS if wanted.get(name, True)}
        self._strict = strict
        self._clients: list[Any] = []
        self._server: Server | None = None

    async def __call__(self, batch: Any) -> AsyncIterator[Any]:
        """The batch with the columns added: a dict of arrays, or a table of pandas or Arrow, as it came."""
        names = list(batch) if isinstance(batch, Mapping) else list(getattr(batch, "column_names", batch))
        if self._question not in names:
            raise OptionError(f'must be one of {", ".join(names)}, not "{self._question}"', "question")
        if taken := sorted(set(names) & set(self._columns.values())):
            raise OptionError(f"must be given: there is a column {taken[0]} already", "prefix")
        column = batch[self._question]
        rows = await self._ask_all(column.to_pylist() if hasattr(column, "to_pylist") else list(column))
        yield _with(batch, {to: (_KINDS[name], [row[name] for row in rows]) for name, to in self._columns.items()})

    async def close(self) -> None:
        """Close the connections; where an actor ends, that does so too."""
        for client in self._clients:
            await client.close()
        self._clients, self._server = [], None

    async def _ask_all(self, questions: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows of all questions in their order, so many at once that no server is idle."""
        server = self._server = self._server or self._open()
        under_way = asyncio.Semaphore(self._sampling.concurrency)

        async def row(question: Any) -> dict[str, Any]:
            async with under_way:
                return await self._ask(server.for_question(), question)

        try:
            async with asyncio.TaskGroup() as group:
                rows = [group.create_task(row(question)) for question in questions]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [one.result() for one in rows]

    def _open(self) -> Server:
        import openai

        self._clients = [openai.AsyncOpenAI(**one.client_settings("base_url")) for one in self._targets]
        return self._sampling.server(self._clients, weights=[one.weight for one in self._targets])

    async def _ask(self, server: Server, question: Any) -> dict[str, Any]:
        try:
            messages = _messages(question, self._prompt)
            random = question_random(0, str(question))
            vote = self._sampling.voting.begin(server, {**self._fields, "messages": messages}, random)
            outcome, error = await vote.outcome(self._sampling.deadline_seconds), None
            if not outcome.samples:
                raise SampleError("no response before the deadline", outcome)
        except (OptionError, SampleError) as failed:
            if self._strict:
                raise
            if isinstance(failed, OptionError):
                return {**dict.fromkeys(_KINDS), "samples": 0, "rounds": 0, "tokens": 0, "error": str(failed)}
            outcome, error = failed.outcome, str(failed)
        row = {name: getattr(outcome, name) for name in _KINDS if name not in ("error", "response")}
        return {**row, "error": error, "response": outcome.response.text if outcome.response else None}


def _messages(question: Any, prompt: Messages) -> Messages:
    """A question as it is sent: a text in the prompt's place for it, or the messages that it is."""
    if isinstance(question, str) and question.strip():
        return put(str(question), prompt)
    is_list = isinstance(question, list | tuple | np.ndarray) and len(question) > 0
    if is_list and all(isinstance(one, Mapping) for one in question):
        return [dict(one) for one in question]
    raise OptionError("must be a text, or a list of messages", "question")


def _with(batch: Any, columns: Mapping[str, tuple[type, list[Any]]]) -> Any:
    """A batch with more columns; missing numbers are NaN, or null where the format has that."""
    if hasattr(batch, "append_column"):
        import pyarrow

        types = {str: pyarrow.string(), float: pyarrow.float64(), int: pyarrow.int64()}
        for name, (kind, values) in columns.items():
            batch = batch.append_column(name, pyarrow.array(values, types[kind]))
        return batch
    arrays: dict[str, Any] = {
        name: np.array(values, object if kind is str else kind) for name, (kind, values) in columns.items()
    }
    return {**batch, **arrays} if isinstance(batch, Mapping) else batch.assign(**arrays)
