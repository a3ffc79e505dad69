"""`suffice collect`: a pool of a server's responses to a file of questions."""

from shlex import quote
from typing import Annotated, Any

import typer
from typer import Option

import suffice
from suffice.cli import asking
from suffice.cli.app import app, show
from suffice.cli.command import Fields
from suffice.cli.options import RayAddress
from suffice.cli.servers import PlainServers, with_key
from suffice.errors import whole_number
from suffice.live.batches.asker import BatchConfig
from suffice.live.batches.batch import Batch, Spent
from suffice.report.tables import pool_table
from suffice.tally import DEFAULT_BUDGET


@app.command()
def collect(
    questions: asking.QuestionsFile,
    out: asking.Out,
    settings: Annotated[
        dict[str, Any],
        Fields(suffice.Sampling, "answer ignore signals concurrency timeout_seconds", {"concurrency": 8}),
    ],
    request: asking.Request,
    servers: PlainServers,
    spent: Annotated[Spent, Fields(Spent, "price_per_million_tokens price_per_million_prompt_tokens")],
    form: asking.Formed,
    samples: int = Option(128, metavar="N", help="How many responses to each question."),
    keep_text: bool = Option(False, "--keep-text", help="Keep the responses' text in the pool."),
    ray: RayAddress = None,
) -> None:
    """Make a pool: sample a server many times for each question; interrupted, it goes on where it was."""
    whole_number("samples", samples)
    sampling, fields = form.sampling(settings, request)
    job = asking.Job(questions, out, spent, ray)
    with servers.upstream() as upstream:
        kept = {"samples": samples, "keep_text": keep_text, **asking.recorded(settings, "answer ignore signals")}
        config = BatchConfig(upstream.fields(fields), form.messages(upstream.prompt), sampling, keep_text)
        total = samples * len(job.questions)

        def work(batch: Batch) -> Any:
            return batch.collect(job.questions, samples)

        with job.lines(upstream, config, kept, total, "responses", work) as lines:
            missing = total - spent.responses
            if missing:
                typer.echo(with_key(f"{missing} draws failed, the last with: {spent.failures[-1]}"), err=True)
                typer.echo("Run the same command again to try those again; the rest is in the journal.", err=True)
                raise typer.Exit(1)
            asking.write_lines(out, lines)
    show(pool_table([suffice.summarise(suffice.load_pool(out))]))
    typer.echo(f"The pool is in {out}: {total} responses, {spent.tokens:,} tokens.")
    job.tell_cut_off()
    budget = f" --budget {samples}" if samples < DEFAULT_BUDGET else ""
    typer.echo(f"What it saves to stop early is told by: suffice evaluate {quote(str(out))}{budget}")
