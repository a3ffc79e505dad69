"""What `ask`, `run` and `collect` share: how a server is sampled, and the work on a file of questions."""

import gzip
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import replace
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice import OptionError
from suffice.answers import Structure
from suffice.answers.structure import Schema
from suffice.cli.app import need
from suffice.cli.command import Fields
from suffice.cli.options import costs_of
from suffice.cli.servers import ServerChoice
from suffice.flow import get_flow
from suffice.live.batches.asker import Asker, BatchConfig
from suffice.live.batches.batch import Batch, Spent
from suffice.live.batches.journal import Journal
from suffice.live.batches.questions import Questions
from suffice.live.prompts import get_prompt
from suffice.live.sample import json_schema_format, run_in_thread
from suffice.live.sampling import Sampling, priced
from suffice.options import Options, option
from suffice.panel.live import Panel, voters_servers
from suffice.paths import check_writable, is_there, writing_whole
from suffice.report.progress import batch_bar

VOTE = "controller budget answer ignore compose elect flow deadline_seconds patience"
"""The settings of a vote that are options."""

RIGHT = "right risk"
"""Those that say whether to act on its answer."""

Prompt = Annotated[
    str | None,
    typer.Option(metavar="P", help="paper, worked, a text with {question} in it, or a file; .json has messages."),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="Ask for JSON of this schema, and vote on it field by field."),
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where the result goes; its journal is beside it.")]
QuestionsFile = Annotated[
    Path, typer.Argument(metavar="QUESTIONS", help="A JSON line a question: id, question and, if known, gold.")
]


class RequestFields(Options):
    """Fields of every request that are options."""

    temperature: float | None = option(None, "The sampling temperature; the server's own by default.", ge=0)
    top_p: float | None = option(None, "Nucleus sampling; the server's own by default.", ge=0, le=1)
    max_tokens: int | None = option(None, "The most tokens of a response; the server's own by default.", ge=1)
    seed: int | None = option(None, "A seed for the server, spread over the draws.")


Request = Annotated[dict[str, Any], Fields(RequestFields)]


def check_request(request: Mapping[str, Any]) -> None:
    """Refuse fields that no server takes, and say where there is no point in a vote: all responses are the same."""
    RequestFields(**request)
    if request.get("temperature") == 0:
        typer.echo("suffice: at temperature 0 all samples will agree, and voting on them is a waste", err=True)
        warnings.filterwarnings("ignore", message="temperature 0")


BARE = "{question}"
"""How a question is put where JSON is asked for, unless told otherwise."""


def sampling_of(settings: Mapping[str, Any], schema: Path | None) -> tuple[Sampling, dict[str, Any]]:
    """How to sample by options: with a schema the answer is an object of it. And what that adds to a request."""
    if schema is None:
        return _told(settings), {}
    if "answer" in settings:
        raise OptionError("can't be given with a schema: the object is the answer", "answer")
    try:
        document = loads(schema.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{schema}: it can't be read: {error}", "schema") from None
    if not isinstance(document, dict):
        raise OptionError(f"{schema}: it must be an object", "schema")
    sampling = _told({**settings, "answer": Structure(allows=Schema(document).allows)})
    return sampling, {"response_format": json_schema_format(document, schema.stem)}


def _told(settings: Mapping[str, Any]) -> Sampling:
    """The sampling, of which is said in a sentence what may not hold."""
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        sampling = Sampling(**settings)
    for doubt in doubts:
        typer.echo(f"suffice: {doubt.message}", err=True)
    return sampling


def check_panel(panel: Panel, sampling: Sampling) -> None:
    """Refuse votes that a panel can't hold, and say where a calibration is of others than it holds."""
    panel.check(sampling.voting)
    for doubt in sampling.calibration.doubts(panel.controller, sampling.budget) if sampling.calibration else ():
        typer.echo(f"suffice: {doubt}", err=True)


def weighed(settings: Mapping[str, Any], prices: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a vote by prices, where a second has one."""
    costs = costs_of(prices)
    if "value_of_a_second" not in prices:
        return dict(settings)
    if "value_of_an_answer" not in prices:
        raise OptionError("must be given for costs to be weighed against it", "value_of_an_answer")
    return priced(settings, costs)


def recorded(settings: Mapping[str, Any], names: str) -> dict[str, Any]:
    """These settings as a journal keeps them, to be gone on with by the same alone."""
    found = {name: settings.get(name, Sampling.model_fields[name].default) for name in names.split()}
    if found.get("flow"):
        found["flow"] = str(get_flow(found["flow"]))
    return found | {"ignore": list(found["ignore"])}


class Job:
    """A file of questions, and what `run` and `collect` do alike with it."""

    def __init__(self, questions: Path, out: Path, sampling: Sampling, spent: Spent, ray: str | None) -> None:
        check_writable(out)
        self.questions = Questions(questions)
        self.spent = spent
        self._sampling = sampling
        self._journal = out.with_name(f"{out.name}.journal")
        if is_there(out) and not is_there(self._journal):
            raise OptionError(f"--out {out}: it is there already, and has no journal to go on from; move it away")
        self._ray = ray

    @contextmanager
    def lines(
        self,
        upstream: ServerChoice,
        prompt: str | None,
        fields: dict[str, Any],
        settings: dict[str, Any],
        total: int,
        unit: str,
        work: Callable[[Batch], Awaitable[Iterator[dict[str, Any]]]],
        **more: Any,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Open the journal and do the work; its lines are read from the journal as they are needed.

        Ctrl-C leaves it ready to go on.
        """
        if upstream.panel:
            check_panel(upstream.panel, self._sampling)
        else:
            self._sampling.voting.controller.check_budget(self._sampling.budget)
        messages = get_prompt(prompt or upstream.prompt)
        config = BatchConfig(fields, messages, self._sampling, **more)
        ray_shards = None
        if self._ray:
            if upstream.is_here:
                raise OptionError("needs a server that all nodes can reach: give --base-url", "ray")
            from suffice.live.batches.shards import RayShards

            ray_shards = RayShards(self._ray, upstream.settings, upstream.weights, config)
        journal = Journal(self._journal, {**settings, "prompt": messages, **fields})

        async def main() -> Iterator[dict[str, Any]]:
            async with AsyncExitStack() as stack:
                if ray_shards:
                    stack.push_async_callback(ray_shards.close)
                shards = ray_shards.shards if ray_shards else [await self._asker(upstream, config, stack)]
                return await work(Batch(shards, config, journal, self.spent, advance))

        title = self._journal.name.removesuffix(".journal")
        try:
            with batch_bar(title, total, unit, self.spent, ray_shards) as advance:
                lines = run_in_thread(main)
            yield lines
        except KeyboardInterrupt:
            typer.echo("Interrupted: run the same command again to go on.", err=True)
            raise
        finally:
            journal.close()

    def tell_cut_off(self) -> None:
        """Say how many responses gave no answer because they were cut off, where any were."""
        if self.spent.cut_off:
            cut_off = f"{self.spent.cut_off:,} of {self.spent.responses:,} responses were cut off before their answer"
            typer.echo(f"{cut_off}: --max-tokens is too small; give a larger one, and another --out.")

    async def _asker(self, upstream: ServerChoice, config: BatchConfig, stack: AsyncExitStack) -> Any:
        if upstream.panel:
            voters = await voters_servers(upstream.panel, upstream.settings, self._sampling, stack)
            voting = self._sampling.voting
            held = replace(voting, **upstream.panel.held(voting, voters))
            return Asker(next(iter(voters.values())), config, held)
        openai = need("openai", "")
        clients = [await stack.enter_async_context(openai.AsyncOpenAI(**one)) for one in upstream.settings]
        return Asker(self._sampling.server(clients, weights=upstream.weights), config)


def write_lines(out: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines, whole or not at all, and none longer in memory than it takes."""
    with writing_whole(out) as file, ExitStack() as stack:
        packed = out.suffix == ".gz"
        target: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)) if packed else file
        for line in lines:
            target.write((dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
