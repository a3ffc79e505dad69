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
from suffice.cli.app import need
from suffice.cli.servers import Upstream
from suffice.paths import check_writable, is_there, writing_whole
from suffice.report import batch_bar

Controller = Annotated[
    str, typer.Option("--controller", metavar="C", help="A controller, as NAME or NAME:key=value,….")
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
Timeout = Annotated[float, typer.Option(help="Give a request so many seconds before it is tried again.")]
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

    @contextmanager
    def lines(
        self,
        upstream: Upstream,
        fields: dict[str, Any],
        settings: dict[str, Any],
        total: int,
        work: Callable[[Any], Awaitable[Iterator[dict[str, Any]]]],
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Open the journal and do the work; its lines are read from the journal as they are needed.

        Ctrl-C leaves it ready to go on.
        """
        from suffice.live.batch import Batch
        from suffice.live.clients import server_of
        from suffice.live.journal import Journal
        from suffice.live.prompts import get_prompt
        from suffice.live.sample import run_in_thread

        prompt = self._prompt or get_prompt(upstream.prompt)
        fields = fields | self._form.request
        journal = Journal(self._journal, {**settings, **self._form.settings, "prompt": prompt, **fields})

        async def main() -> Iterator[dict[str, Any]]:
            openai = need("openai", "")
            async with AsyncExitStack() as stack:
                clients = [
                    await stack.enter_async_context(openai.AsyncOpenAI(**settings)) for settings in upstream.settings
                ]
                server = server_of(clients, self._limiter, timeout=self._timeout, weights=upstream.weights)
                batch = Batch(
                    server,
                    fields,
                    journal,
                    prompt,
                    self._form.extractor,
                    self.spent,
                    keep_text=self._keep_text,
                    progress=advance,
                )
                return await work(batch)

        try:
            with batch_bar(self._journal.name.removesuffix(".journal"), total, self.spent) as advance:
                lines: Iterator[dict[str, Any]] = run_in_thread(main)
            yield lines
        except KeyboardInterrupt:
            typer.echo("Interrupted: run the same command again to go on.", err=True)
            raise
        finally:
            journal.close()


def write_lines(out: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines, whole or not at all, and none longer in memory than it takes."""
    with writing_whole(out) as file, ExitStack() as stack:
        packed = out.suffix == ".gz"
        target: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)) if packed else file
        for line in lines:
            target.write((dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
