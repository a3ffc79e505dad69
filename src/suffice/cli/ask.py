"""`suffice ask`: one question, and the vote before one's eyes."""

import sys
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import suffice
from suffice import OptionError
from suffice.cli.app import app, file_of, is_output, need, write_json
from suffice.cli.options import Budget, Elect, Extra, Json, Mode, Order
from suffice.cli.sampling import (
    BARE,
    Answer,
    Concurrency,
    Controller,
    Deadline,
    Form,
    Ignore,
    MaxTokens,
    Prompt,
    SchemaFile,
    Seed,
    Temperature,
    Timeout,
    TopP,
    warn_of_temperature,
)
from suffice.cli.servers import BaseUrl, Gguf, Model, Threads, upstream_of
from suffice.flow import MODES, Flow, get_flow
from suffice.paths import check_writable
from suffice.planning import LARGEST_BUDGET
from suffice.report import outcome_lines, vote_display, waiting
from suffice.tally import DEFAULT_BUDGET, Tally


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask; - reads it from the input.")],
    base_url: BaseUrl = None,
    model: Model = None,
    gguf: Gguf = None,
    threads: Threads = 1,
    controller: Controller = "plan",
    budget: Budget = DEFAULT_BUDGET,
    answer: Answer = "auto",
    schema: SchemaFile = None,
    ignore: Ignore = [],  # noqa: B006
    elect: Elect = "majority",
    prompt: Prompt = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    mode: Mode = MODES[0],
    order: Order = Flow.order,
    extra: Extra = Flow.extra,
    deadline_seconds: Deadline = None,
    concurrency: Concurrency = 64,
    timeout: Timeout = 600.0,
    json: Json = None,
) -> None:
    """Ask a question just enough times, and watch the vote."""
    from suffice.live.prompts import get_prompt, put
    from suffice.live.vote import election_of

    try:
        question = sys.stdin.read() if question == "-" else question
        question.encode()
    except UnicodeError:
        raise OptionError("QUESTION is not UTF-8 text") from None
    if not question.strip():
        raise OptionError("QUESTION is empty: there is nothing to ask")
    warn_of_temperature(temperature)
    chosen = suffice.get_controller(controller)
    form = Form(answer, schema, ignore)
    flow = get_flow(mode, order, extra)
    election_of(elect, form.extractor)
    if flow:
        flow.check(chosen)
    if isinstance(chosen, suffice.Plan) and 0 < budget <= LARGEST_BUDGET:
        with waiting("planning"):  # a first plan takes seconds, and the vote finds it ready then
            chosen.next_round(Tally(budget))
    messages = get_prompt(prompt or BARE) if prompt or form.has_schema else None
    console = Console(highlight=False)
    check_writable(file_of(json))
    with upstream_of(base_url, model, gguf, threads) as upstream, vote_display(console, is_output(json)) as watch:
        openai = need("openai", "")
        clients = [openai.OpenAI(**settings) for settings in upstream.settings]
        outcome: suffice.Outcome | None
        try:
            outcome = suffice.sample(
                clients,
                put(question.strip(), messages or get_prompt(upstream.prompt)),
                controller=controller,
                budget=budget,
                answer=form.extractor,
                elect=elect,
                flow=flow,
                deadline_seconds=deadline_seconds,
                concurrency=concurrency,
                timeout=timeout,
                watch=watch,
                **form.request,
                **upstream.fields(temperature=temperature, top_p=top_p, max_tokens=max_tokens, seed=seed),
            )
            code = 0
        except KeyboardInterrupt as interrupt:
            outcome, code = getattr(interrupt, "outcome", None), 130
        except suffice.SampleError as error:
            outcome, code = error.outcome, 1
            typer.echo(f"suffice: {error}", err=True)
    _print_outcome(outcome, console, json)
    if code:
        raise typer.Exit(code)


def _print_outcome(outcome: "suffice.Outcome | None", console: Console, json: Path | None) -> None:
    if outcome is None:
        return
    if json:
        write_json(json, dumps(outcome.to_json(), ensure_ascii=False) + "\n")
    if not is_output(json):
        for line in outcome_lines(outcome):
            console.print(line, markup=False, soft_wrap=True)
