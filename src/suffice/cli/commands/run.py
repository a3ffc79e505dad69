"""`suffice run`: a file of questions, each asked just enough times."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from statistics import fmean
from typing import Annotated, Any

import typer
from typer import Option

import suffice
from suffice import OptionError
from suffice.cli import asking
from suffice.cli.app import app
from suffice.cli.command import Fields
from suffice.cli.options import RayAddress, ReportFile, Worth
from suffice.cli.servers import Servers, with_key
from suffice.live.batches.asker import BatchConfig
from suffice.live.batches.batch import Batch, Spent
from suffice.report.questions import KEPT, MOST_QUESTIONS, outcomes_report
from suffice.report.votes import coverage_sentence, outcomes_summary

_FIGURES = (
    *("samples", "rounds", "tokens", "seconds", "over_one", "changed", "samples_saved", "tokens_saved"),
    *("stop_reason", "right", "fields_right", "sure", "audit"),
)
"""What the summary is made of."""


@app.command()
def run(
    questions: asking.QuestionsFile,
    out: asking.Out,
    settings: Annotated[
        dict[str, Any],
        Fields(suffice.Sampling, f"{asking.VOTE} {asking.RIGHT} concurrency timeout_seconds", {"concurrency": 8}),
    ],
    request: asking.Request,
    servers: Servers,
    worth: Worth,
    spent: Annotated[Spent, Fields(Spent)],
    outputs: ReportFile,
    form: asking.Formed,
    learn: bool = Option(False, "--learn", help="Let the plan learn from the questions that are answered."),
    audit: float = Option(
        0.0, metavar="SHARE", help="Draw this share of the questions to the full budget too, to compare."
    ),
    ray: RayAddress = None,
) -> None:
    """Answer a file of questions, each just enough times; interrupted, it goes on where it was."""
    if not 0 <= audit <= 1:
        raise OptionError(f"must be a share between 0 and 1, not {audit:g}", "audit")
    price, prompt_price = spent.price_per_million_tokens, spent.price_per_million_prompt_tokens
    if spent.max_cost is not None and not (price or prompt_price or servers.panel):
        raise OptionError("--max-cost needs a price: give --price-per-million-tokens")
    prices = {"price_per_million_tokens": price, **worth}
    settings = asking.weighed(settings, prices, servers)
    if servers.panel and (learn or ray):
        raise OptionError("does not learn, and works on this machine: leave --learn and --ray out", "panel")
    sampling, fields = form.sampling(settings, request)
    job = asking.Job(questions, out, spent, ray)
    with servers.upstream() as upstream:
        by_calibration = {name: settings[name] for name in asking.RIGHT.split() if name in settings}
        kept = asking.recorded(settings, asking.VOTE) | by_calibration
        if learn:
            names = "\n".join(question.id for question in job.questions)
            # Who learns from whom depends on the order of the questions.
            kept["learn"] = sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if audit:
            kept["audit"] = audit
        if upstream.panel:
            kept["panel"] = str(upstream.panel)
            spent.prices = {voter.name: voter.price for voter in upstream.panel.voters}
        config = BatchConfig(upstream.fields(fields), form.messages(upstream.prompt), sampling, audit=audit)
        told: list[dict[str, Any]] = []
        asked = {question.id: question.question for question in job.questions[:MOST_QUESTIONS]}

        def work(batch: Batch) -> Any:
            return batch.answer(job.questions, learn)

        with job.lines(upstream, config, kept, len(job.questions), "questions", work) as lines:
            asking.write_lines(out, _noted(lines, told, asked if outputs.report else {}))
    answered = [line for line in told if line["samples"] and line["stop_reason"] != "failed"]
    if answered:
        summary = outcomes_summary(answered, price, prompt_price)
        typer.echo(summary)
        if any(line["none"] for line in answered):
            job.tell_cut_off()
        if sampling.risk is not None:
            typer.echo(coverage_sentence(answered, sampling.risk))
        if sampling.voting.election:
            others = sum(line["differs"] for line in answered)
            typer.echo(f"By weight, {others} of {len(answered)} answers are others than most votes are for.")
        if audit:
            typer.echo(f"Audited: {_proved(answered)}.")
        about = {"model": upstream.model, **kept, "questions": questions, **request.given}
        shown = [line for line in answered if "votes" in line]
        outputs.write(report=lambda: outcomes_report(shown, len(answered), summary, about))
    missing = len(job.questions) - len(answered)
    if missing and spent.exhausted:
        typer.echo(f"The limit on spending is reached: {missing} questions are left; raise it to go on.", err=True)
    elif missing:
        typer.echo(with_key(f"{missing} questions failed, the last with: {spent.failures[-1]}"), err=True)
        typer.echo("Run the same command again to try those again.", err=True)
        raise typer.Exit(1)


def _proved(lines: Sequence[dict[str, Any]]) -> str:
    from suffice.live.audits import Audit, prove

    audited = [line for line in lines if line["audit"]]
    said: str = prove(Audit.read(line["audit"]) for line in audited)["said"]
    graded = [(line["right"], line["audit"]["right_full"]) for line in audited if line["right"] is not None]
    if not graded:
        return said
    early, full = (fmean(column) for column in zip(*graded, strict=True))
    return f"{said}; accuracy {early:.1%}, with the full budget {full:.1%}"


def _noted(
    lines: Iterable[dict[str, Any]], told: list[dict[str, Any]], asked: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the lines, and keep their figures, and the votes of the questions that a report shows."""
    for line in lines:
        figures = {name: line.get(name) for name in _FIGURES} | {"right": line.get("graded", line["right"])}
        differs = line.get("majority", line["answer"]) != line["answer"]
        found = {"differs": differs, "none": line["answer"] is None}
        if line["id"] in asked:
            found |= {"question": asked[line["id"]]} | {name: line.get(name) for name in KEPT}
        told.append(figures | found)
        yield line
