"""`suffice run`: a file of questions, each asked just enough times."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from statistics import fmean
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import app
from suffice.cli.options import Budget, Elect, Extra, Mode, Order, RayAddress
from suffice.cli.reports import ReportFile, write_report
from suffice.cli.sampling import (
    Answer,
    Concurrency,
    Controller,
    Deadline,
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
from suffice.flow import MODES, Flow, get_flow
from suffice.paths import check_writable
from suffice.report import outcomes_report, outcomes_summary, told_of
from suffice.report.questions import MOST_QUESTIONS
from suffice.tally import DEFAULT_BUDGET

_FIGURES = (
    *("samples", "rounds", "tokens", "seconds", "samples_saved", "tokens_saved"),
    *("stop_reason", "right", "fields_right", "audit"),
)
"""What the summary is made of."""


@app.command()
def run(
    questions: Questions,
    out: Out,
    controller: Controller = "plan",
    base_url: BaseUrl = None,
    model: Model = None,
    gguf: Gguf = None,
    threads: Threads = 1,
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
    learn: Annotated[
        bool,
        typer.Option("--learn", help="Let the plan learn from the questions that are answered."),
    ] = False,
    audit: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Draw this share of the questions to the full budget too, to compare."),
    ] = 0.0,
    concurrency: Concurrency = 8,
    timeout: Timeout = 600.0,
    price: Price = 0.0,
    prompt_price: PromptPrice = 0.0,
    max_tokens_total: Annotated[
        int | None, typer.Option(help="Start nothing more once so many tokens, prompts and all, are spent.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Start nothing more once so much money is spent.")] = None,
    report: ReportFile = None,
    ray: RayAddress = None,
) -> None:
    """Answer a file of questions, each just enough times; interrupted, it goes on where it was."""
    from suffice.live.vote import Voting, election_of

    if not 0 <= audit <= 1:
        raise OptionError(f"must be a share between 0 and 1, not {audit:g}", "audit")
    check_writable(report)
    flow = get_flow(mode, order, extra)
    form = Form(answer, schema, ignore)
    voting = Voting(
        suffice.get_controller(controller), form.extractor, budget, flow, election=election_of(elect, form.extractor)
    )
    warn_of_temperature(temperature)
    if max_cost is not None and not (price or prompt_price):
        raise OptionError("--max-cost needs a price: give --price-per-million-tokens")
    prices = price, prompt_price, max_tokens_total, max_cost
    job = Job(questions, out, form, prompt, concurrency, timeout, *prices, ray=ray)
    with upstream_of(base_url, model, gguf, threads) as upstream:
        fields = upstream.fields(temperature=temperature, top_p=top_p, max_tokens=max_tokens, seed=seed)
        settings = {"controller": controller, "budget": budget, "deadline_seconds": deadline_seconds}
        if flow:
            settings |= {"mode": mode, "order": order, "extra": extra}
        if elect != "majority":
            settings["elect"] = elect
        if learn:
            names = "\n".join(question.id for question in job.questions)
            # Who learns from whom depends on the order of the questions.
            settings["learn"] = sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if audit:
            settings["audit"] = audit
        total = len(job.questions)
        work = job.lines(
            upstream,
            fields,
            settings,
            total,
            lambda batch: batch.answer(job.questions, learn),
            voting=voting,
            deadline_seconds=deadline_seconds,
            audit=audit,
        )
        told: list[dict[str, Any]] = []
        asked = {question.id: question.question for question in job.questions[:MOST_QUESTIONS]}
        with work as lines:
            write_lines(out, _noted(lines, told, asked if report else {}))
    answered = [line for line in told if line["samples"] and line["stop_reason"] != "failed"]
    if answered:
        typer.echo(outcomes_summary(answered))
        if elect != "majority":
            others = sum(line["differs"] for line in answered)
            typer.echo(f"By weight, {others} of {len(answered)} answers are others than most votes are for.")
        if audit:
            typer.echo(f"Audited: {_proved(answered)}.")
        if report:
            about = {"model": upstream.model, **settings, "questions": questions, "temperature": temperature}
            shown = [line for line in answered if "votes" in line]
            made = outcomes_report(shown, len(answered), budget, outcomes_summary(answered), about)
            write_report(report, made)
    missing = len(job.questions) - len(answered)
    if missing and job.spent.exhausted:
        typer.echo(f"The limit on spending is reached: {missing} questions are left; raise it to go on.", err=True)
    elif missing:
        typer.echo(f"{missing} questions failed, the last with: {job.spent.failures[-1]}", err=True)
        typer.echo("Run the same command again to try those again.", err=True)
        raise typer.Exit(1)


def _proved(lines: Sequence[dict[str, Any]]) -> str:
    """What the audits prove of all answers."""
    from suffice.live.audits import Audit, Proof

    audited = [line for line in lines if line["audit"]]
    said = str(Proof.of(Audit.read(line["audit"]) for line in audited))
    graded = [(line["right"], line["audit"]["right_full"]) for line in audited if line["right"] is not None]
    if not graded:
        return said
    early, full = (fmean(column) for column in zip(*graded, strict=True))
    return f"{said}; accuracy {early:.1%}, with the full budget {full:.1%}"


def _noted(
    lines: Iterable[dict[str, Any]], told: list[dict[str, Any]], asked: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The lines as they pass by; their figures are kept, and the votes of those that a report shows."""
    for line in lines:
        shown = told_of(line, asked[line["id"]]) if line["id"] in asked else {}
        differs = line.get("majority", line["answer"]) != line["answer"]
        told.append({name: line.get(name) for name in _FIGURES} | {"differs": differs} | shown)
        yield line
