"""`suffice collect`: a pool of a server's responses to a file of questions."""

from shlex import quote
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import app, show
from suffice.cli.options import RayAddress
from suffice.cli.sampling import (
    Answer,
    Concurrency,
    Form,
    Ignore,
    Job,
    MaxTokens,
    Out,
    Price,
    Prompt,
    PromptPrice,
    Questions,
    SchemaFile,
    Seed,
    Temperature,
    Timeout,
    TopP,
    warn_of_temperature,
    write_lines,
)
from suffice.cli.servers import BaseUrl, Gguf, Model, Threads, upstream_of
from suffice.report import pool_table
from suffice.tally import DEFAULT_BUDGET


@app.command()
def collect(
    questions: Questions,
    out: Out,
    samples: Annotated[int, typer.Option(help="How many responses to each question.")] = 128,
    base_url: BaseUrl = None,
    model: Model = None,
    gguf: Gguf = None,
    threads: Threads = 1,
    answer: Answer = "auto",
    schema: SchemaFile = None,
    ignore: Ignore = [],  # noqa: B006
    prompt: Prompt = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    concurrency: Concurrency = 8,
    timeout: Timeout = 600.0,
    price: Price = 0.0,
    prompt_price: PromptPrice = 0.0,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Keep the responses' text in the pool.")] = False,
    signals: Annotated[
        bool, typer.Option("--signals", help="Ask for log probabilities, and keep what they tell of each response.")
    ] = False,
    ray: RayAddress = None,
) -> None:
    """Make a pool: sample a server many times for each question; interrupted, it goes on where it was."""
    if samples < 1:
        raise OptionError(f"--samples must be at least 1, not {samples}")
    warn_of_temperature(temperature)
    form = Form(answer, schema, ignore)
    job = Job(questions, out, form, prompt, concurrency, timeout, price, prompt_price, keep_text=keep_text, ray=ray)
    with upstream_of(base_url, model, gguf, threads) as upstream:
        fields = upstream.fields(temperature=temperature, top_p=top_p, max_tokens=max_tokens, seed=seed)
        settings: dict[str, Any] = {"samples": samples, "keep_text": keep_text}
        if signals:
            settings["signals"] = True
        total = samples * len(job.questions)

        def work(batch: Any) -> Any:
            return batch.collect(job.questions, samples)

        with job.lines(upstream, fields, settings, total, work, signals=signals) as lines:
            missing = total - job.spent.responses
            if missing:
                typer.echo(f"{missing} draws failed, the last with: {job.spent.failures[-1]}", err=True)
                typer.echo("Run the same command again to try those again; the rest is in the journal.", err=True)
                raise typer.Exit(1)
            write_lines(out, lines)
    show(pool_table([suffice.summarise(suffice.load_pool(out))]))
    typer.echo(f"The pool is in {out}: {total} responses, {job.spent.tokens:,} tokens.")
    budget = f" --budget {samples}" if samples < DEFAULT_BUDGET else ""
    typer.echo(f"What it saves to stop early is told by: suffice evaluate {quote(str(out))}{budget}")
