"""What `ask`, `run` and `collect` share: how a server is sampled, and the work on a file of questions."""

import gzip
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice import OptionError
from suffice.answers import get_extractor
from suffice.cli.app import need
from suffice.cli.servers import Upstream
from suffice.paths import check_writable, is_there, write_whole
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
        answer: str,
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
        self._answer = answer
        self.extractor = get_extractor(answer)
        self._prompt = get_prompt(prompt) if prompt else None
        self._limiter = Limiter(concurrency)
        self._timeout = timeout
        self._keep_text = keep_text

    def run(
        self,
        upstream: Upstream,
        fields: dict[str, Any],
        settings: dict[str, Any],
        total: int,
        work: Callable[[Any], Awaitable[list[dict[str, Any]]]],
    ) -> list[dict[str, Any]]:
        """Open the journal and do the work; Ctrl-C leaves it ready to go on."""
        from suffice.live.batch import Batch
        from suffice.live.clients import server_of
        from suffice.live.journal import Journal
        from suffice.live.prompts import get_prompt
        from suffice.live.sample import run_in_thread

        prompt = self._prompt or get_prompt(upstream.prompt)
        journal = Journal(self._journal, {**settings, "answer": self._answer, "prompt": prompt, **fields})

        async def main() -> list[dict[str, Any]]:
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
                    self.extractor,
                    self.spent,
                    keep_text=self._keep_text,
                    progress=advance,
                )
                return await work(batch)

        with batch_bar(self._journal.name.removesuffix(".journal"), total, self.spent) as advance:
            try:
                lines: list[dict[str, Any]] = run_in_thread(main)
            except KeyboardInterrupt:
                typer.echo("Interrupted: run the same command again to go on.", err=True)
                raise
            finally:
                journal.close()
        return lines


def write_lines(out: Path, lines: list[dict[str, Any]]) -> None:
    """Write JSON lines, whole or not at all."""
    data = "".join(dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "surrogatepass")
    write_whole(out, gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)
