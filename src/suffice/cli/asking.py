"""What `ask`, `run` and `collect` share: how a server is sampled, and the work on a file of questions."""

import gzip
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice import OptionError
from suffice.answers import Structure
from suffice.cli.app import need
from suffice.cli.command import Fields
from suffice.cli.options import costs_of
from suffice.cli.servers import ServerChoice, ServerOptions
from suffice.flow import get_flow
from suffice.live.batches.asker import Asker, BatchConfig
from suffice.live.batches.batch import Batch, Spent
from suffice.live.batches.journal import Journal
from suffice.live.batches.questions import Questions
from suffice.live.prompts import Messages, get_prompt
from suffice.live.sample import json_schema_format, run_in_thread
from suffice.live.sampling import Sampling, priced
from suffice.options import Options, option
from suffice.panel.live import Panel, voters_servers
from suffice.paths import check_writable, is_there, writing_whole
from suffice.report.progress import batch_bar
from suffice.schemas import Schema
from suffice.settings import setting

BARE = "{question}"
"""How a question is put where JSON is asked for, unless told otherwise."""

VOTE = "controller budget answer ignore compose elect flow deadline_seconds patience"
"""The settings of a vote that are options."""

RIGHT = "right risk"
"""Those that say whether to act on its answer."""

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


@dataclass(frozen=True)
class Form:
    """Options that say how a question is put, and in what form its answer comes."""

    schema: Path | None = setting(None, "Ask for JSON of this schema, and vote on it field by field.", "FILE")
    prompt: str | None = setting(
        None, "paper, worked, a text with {question} in it, or a file; .json has messages.", "P"
    )

    def messages(self, suited: str) -> Messages:
        """The prompt that is named, or what suits the model; of a question alone where JSON is asked for."""
        return get_prompt(self.prompt or (BARE if self.schema else suited))

    def sampling(self, settings: Mapping[str, Any], request: RequestFields) -> tuple[Sampling, dict[str, Any]]:
        """How to sample, and the fields of a request; what may not hold is said in a sentence."""
        self.messages("paper")  # a wrong one is refused before any work
        fields = request.given
        if self.schema:
            if "answer" in settings:
                raise OptionError("can't be given with a schema: the object is the answer", "answer")
            document = self._document(self.schema)
            settings = {**settings, "answer": Structure(allows=Schema(document).allows)}
            fields["response_format"] = json_schema_format(document, self.schema.stem)
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            sampling = Sampling(**settings)
        for doubt in doubts:
            typer.echo(f"suffice: {doubt.message}", err=True)
        if request.temperature == 0:
            typer.echo("suffice: at temperature 0 all samples will agree, and voting on them is a waste", err=True)
            warnings.filterwarnings("ignore", message="temperature 0")
        return sampling, fields

    def _document(self, path: Path) -> dict[str, Any]:
        try:
            document = loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise OptionError(f"{path}: it can't be read: {error}", "schema") from None
        if not isinstance(document, dict):
            raise OptionError(f"{path}: it must be an object", "schema")
        return document


Request = Annotated[RequestFields, Fields(RequestFields)]
Formed = Annotated[Form, Fields(Form)]


def check_panel(panel: Panel, sampling: Sampling) -> None:
    """Refuse votes that a panel can't hold, and say where a calibration is of others than it holds."""
    panel.check(sampling.voting)
    for doubt in sampling.calibration.doubts(panel.controller, sampling.budget) if sampling.calibration else ():
        typer.echo(f"suffice: {doubt}", err=True)


def weighed(settings: Mapping[str, Any], prices: Mapping[str, Any], servers: ServerOptions) -> dict[str, Any]:
    """The settings of a vote by prices, where a second has one; a panel has its own."""
    if servers.panel and ("controller" in settings or any(prices.values())):
        raise OptionError("takes no controller, price or value of an answer: those are in the panel's file", "panel")
    if servers.panel and "flow" in settings:
        raise OptionError("decides when a round is in: there is no flow with it", "panel")
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

    def __init__(self, questions: Path, out: Path, spent: Spent, ray: str | None) -> None:
        check_writable(out)
        self.questions = Questions(questions)
        self._spent = spent
        self._journal = out.with_name(f"{out.name}.journal")
        if is_there(out) and not is_there(self._journal):
            raise OptionError(f"--out {out}: it is there already, and has no journal to go on from; move it away")
        self._ray = ray

    @contextmanager
    def lines(
        self,
        upstream: ServerChoice,
        config: BatchConfig,
        settings: dict[str, Any],
        total: int,
        unit: str,
        work: Callable[[Batch], Awaitable[Iterator[dict[str, Any]]]],
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Open the journal and do the work; its lines are read from the journal as they are needed.

        Ctrl-C leaves it ready to go on.
        """
        if upstream.panel:
            check_panel(upstream.panel, config.sampling)
        else:
            config.sampling.voting.controller.check_budget(config.sampling.budget)
        ray_shards = None
        if self._ray:
            if upstream.is_here:
                raise OptionError("needs a server that all nodes can reach: give --base-url", "ray")
            from suffice.live.batches.shards import RayShards

            ray_shards = RayShards(self._ray, upstream.settings, upstream.weights, config)
        journal = Journal(self._journal, {**settings, "prompt": config.prompt, **config.fields})

        async def main() -> Iterator[dict[str, Any]]:
            async with AsyncExitStack() as stack:
                if ray_shards:
                    stack.push_async_callback(ray_shards.close)
                shards = ray_shards.shards if ray_shards else [await _asker(upstream, config, stack)]
                return await work(Batch(shards, config, journal, self._spent, advance))

        title = self._journal.name.removesuffix(".journal")
        try:
            with batch_bar(title, total, unit, self._spent, ray_shards) as advance:
                lines = run_in_thread(main)
            yield lines
        except KeyboardInterrupt:
            typer.echo("Interrupted: run the same command again to go on.", err=True)
            raise
        finally:
            journal.close()

    def tell_cut_off(self) -> None:
        """Say how many responses gave no answer because they were cut off, where any were."""
        if self._spent.cut_off:
            cut_off = f"{self._spent.cut_off:,} of {self._spent.responses:,} responses were cut off before their answer"
            typer.echo(f"{cut_off}: --max-tokens is too small; give a larger one, and another --out.")


async def _asker(upstream: ServerChoice, config: BatchConfig, stack: AsyncExitStack) -> Asker:
    sampling, voting = config.sampling, config.sampling.voting
    if upstream.panel:
        voters = await voters_servers(upstream.panel, upstream.settings, sampling, stack)
        held = upstream.panel.voting(voting, voters)
        return Asker(next(iter(voters.values())), config, held)
    openai = need("openai", "")
    clients = [await stack.enter_async_context(openai.AsyncOpenAI(**one)) for one in upstream.settings]
    return Asker(sampling.server(clients, weights=upstream.weights), config)


def write_lines(out: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines, whole or not at all, and none longer in memory than it takes."""
    with writing_whole(out) as file, ExitStack() as stack:
        packed = out.suffix == ".gz"
        target: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)) if packed else file
        for line in lines:
            target.write((dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
