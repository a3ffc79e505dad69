"""What `ask`, `run` and `collect` share: how a server is sampled, and the work on a file of questions."""

import gzip
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice import OptionError
from suffice.answers import Structure, get_extractor
from suffice.answers.schema import Schema
from suffice.cli import completion
from suffice.cli.app import need
from suffice.cli.servers import Upstream
from suffice.paths import check_writable, is_there, writing_whole
from suffice.report import batch_bar

Controller = Annotated[
    str,
    typer.Option(
        "--controller",
        metavar="C",
        help="A controller, as NAME or NAME:key=value,….",
        autocompletion=completion.controllers,
    ),
]
Answer = Annotated[
    str,
    typer.Option(
        metavar="X", help="How to find the answer: auto, boxed, number, choice, line, json:PATH or regex:PATTERN."
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(metavar="P", help="paper, worked, a text with {question} in it, or a file; .json has messages."),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="Ask for JSON of this schema, and vote on it field by field."),
]
Ignore = Annotated[
    list[str], typer.Option("--ignore", metavar="POINTER", help="Leave a field of the JSON out of the vote: /note.")
]
Temperature = Annotated[float | None, typer.Option(help="The sampling temperature; the server's own by default.")]
TopP = Annotated[float | None, typer.Option(help="Nucleus sampling; the server's own by default.")]
MaxTokens = Annotated[int | None, typer.Option(help="The most tokens of a response; the server's own by default.")]
Seed = Annotated[int | None, typer.Option(help="A seed for the server, spread over the draws.")]
Deadline = Annotated[float | None, typer.Option(help="Stop after so many seconds with what there is.")]
Concurrency = Annotated[int, typer.Option(help="The most draws in flight at once.")]
Timeout = Annotated[
    float, typer.Option("--timeout-seconds", help="Give a request so many seconds before it is tried again.")
]
Price = Annotated[float, typer.Option("--price-per-million-tokens", help="What tokens of responses cost.")]
PromptPrice = Annotated[float, typer.Option("--price-per-million-prompt-tokens", help="What tokens of prompts cost.")]


Out = Annotated[Path, typer.Option(metavar="FILE", help="Where the result goes; its journal is beside it.")]
Questions = Annotated[
    Path, typer.Argument(metavar="QUESTIONS", help="A JSON line a question: id, question and, if known, gold.")
]


BARE = "{question}"
"""How a question is put where JSON is asked for, unless told otherwise."""


class Form:
    """What the answer is: what an extractor finds, or, with a schema, an object whose fields are voted on."""

    def __init__(self, answer: str, schema: Path | None, ignore: list[str]) -> None:
        self.extractor = get_extractor(answer)
        self.request: dict[str, Any] = {}
        """What it adds to a request."""
        self.settings: dict[str, Any] = {"answer": answer}
        """What it adds to a journal's settings."""
        self.has_schema = schema is not None
        if schema is None:
            if ignore and not self.extractor.structure:
                raise OptionError("is for fields of JSON: give a schema, or the answer json", "ignore")
            self.extractor = self.extractor.ignoring(ignore)
        else:
            if answer != "auto":
                raise OptionError("can't be given with a schema: the object is the answer", "answer")
            self._read(schema, ignore)
        if ignore:
            self.settings["ignore"] = ignore

    def _read(self, path: Path, ignore: list[str]) -> None:
        from suffice.live.parse import json_schema_format

        try:
            document = loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise OptionError(f"{path}: it can't be read: {error}", "schema") from None
        if not isinstance(document, dict):
            raise OptionError(f"{path}: it must be an object", "schema")
        self.extractor = Structure(ignore=tuple(ignore), allows=Schema(document).allows)
        self.request = {"response_format": json_schema_format(document, path.stem)}


def warn_of_temperature(temperature: float | None) -> None:
    """Say that there is no point in a vote among copies."""
    if temperature == 0:
        typer.echo("suffice: at temperature 0 all samples will agree, and voting on them is a waste", err=True)
        warnings.filterwarnings("ignore", message="temperature 0")


class Job:
    """A file of questions, and what `run` and `collect` do alike with it."""

    def __init__(
        self,
        questions: Path,
        out: Path,
        form: Form,
        prompt: str | None,
        concurrency: int,
        timeout: float,
        price: float,
        prompt_price: float,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        keep_text: bool = True,
        ray: str | None = None,
    ) -> None:
        from suffice.live.batch import Spent
        from suffice.live.limiter import Limiter
        from suffice.live.prompts import get_prompt
        from suffice.live.questions import load_questions

        check_writable(out)
        self.questions = load_questions(questions)
        self.spent = Spent(price, prompt_price, max_tokens, max_cost)
        self._journal = out.with_name(f"{out.name}.journal")
        if is_there(out) and not is_there(self._journal):
            raise OptionError(f"--out {out}: it is there already, and has no journal to go on from; move it away")
        self._form = form
        self._prompt = get_prompt(prompt or BARE) if prompt or form.has_schema else None
        self._limiter = Limiter(concurrency)
        self._timeout = timeout
        self._keep_text = keep_text
        self._ray = ray

    @contextmanager
    def lines(
        self,
        upstream: Upstream,
        fields: dict[str, Any],
        settings: dict[str, Any],
        total: int,
        work: Callable[[Any], Awaitable[Iterator[dict[str, Any]]]],
        **more: Any,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Open the journal and do the work; its lines are read from the journal as they are needed.

        Ctrl-C leaves it ready to go on.
        """
        from suffice.live.asker import Terms
        from suffice.live.batch import Batch
        from suffice.live.journal import Journal
        from suffice.live.prompts import get_prompt
        from suffice.live.sample import run_in_thread

        prompt = self._prompt or get_prompt(upstream.prompt)
        fields = fields | self._form.request
        terms = Terms(fields, prompt, self._form.extractor, self._keep_text, **more)
        crew = self._crew(upstream, terms)
        journal = Journal(self._journal, {**settings, **self._form.settings, "prompt": prompt, **fields})

        async def main() -> Iterator[dict[str, Any]]:
            async with AsyncExitStack() as stack:
                if crew:
                    stack.push_async_callback(crew.close)
                shards = crew.shards if crew else [await self._asker(upstream, terms, stack)]
                return await work(Batch(shards, terms, journal, self.spent, advance))

        title = self._journal.name.removesuffix(".journal")
        try:
            with batch_bar(title, total, self.spent, lambda: crew.standing if crew else "") as advance:
                lines: Iterator[dict[str, Any]] = run_in_thread(main)
            yield lines
        except KeyboardInterrupt:
            typer.echo("Interrupted: run the same command again to go on.", err=True)
            raise
        finally:
            journal.close()

    def _crew(self, upstream: Upstream, terms: Any) -> Any:
        """Those who ask on a Ray cluster, where that is asked for."""
        if not self._ray:
            return None
        if upstream.is_here:
            raise OptionError("needs a server that all nodes can reach: give --base-url", "ray")
        from suffice.live.shards import Crew

        return Crew(self._ray, upstream.settings, upstream.weights, terms, self._limiter.limit, self._timeout)

    async def _asker(self, upstream: Upstream, terms: Any, stack: AsyncExitStack) -> Any:
        """The one who asks in this process."""
        from suffice.live.asker import Asker
        from suffice.live.clients import server_of

        openai = need("openai", "")
        clients = [await stack.enter_async_context(openai.AsyncOpenAI(**one)) for one in upstream.settings]
        return Asker(server_of(clients, self._limiter, timeout=self._timeout, weights=upstream.weights), terms)


def write_lines(out: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines, whole or not at all, and none longer in memory than it takes."""
    with writing_whole(out) as file, ExitStack() as stack:
        packed = out.suffix == ".gz"
        target: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)) if packed else file
        for line in lines:
            target.write((dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
