"""Commands that sample a server: `ask`, `run` and `collect`."""

import gzip
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console

import suffice
from suffice import OptionError
from suffice.answers import get_extractor
from suffice.cli.app import app, need, show
from suffice.flow import get_flow
from suffice.paths import check_writable, is_there, write_whole
from suffice.report import batch_bar, outcome_lines, outcomes_summary, pool_table, vote_display

PLACEHOLDER_KEY = "none"
"""Sent where there is no key: local servers need none, and the client insists on one."""

_BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="An OpenAI-compatible server; the key is OPENAI_API_KEY.")
]
_Model = Annotated[str | None, typer.Option(help="The model; may be left out where the server has just one.")]
_Gguf = Annotated[Path | None, typer.Option(metavar="FILE", help="Serve this GGUF model here (extra local).")]
_Threads = Annotated[int, typer.Option(help="Threads for a model that is served here.")]
_Controller = Annotated[
    str, typer.Option("--controller", metavar="C", help="A controller, as NAME or NAME:key=value,….")
]
_Budget = Annotated[int, typer.Option(help="The most draws for a question.")]
_Answer = Annotated[
    str,
    typer.Option(
        metavar="X", help="How to find the answer: auto, boxed, number, choice, line, json:PATH or regex:PATTERN."
    ),
]
_Prompt = Annotated[
    str | None,
    typer.Option(metavar="P", help="paper, worked, a text with {question} in it, or a file; .json has messages."),
]
_Temperature = Annotated[float | None, typer.Option(help="The sampling temperature; the server's own by default.")]
_TopP = Annotated[float | None, typer.Option(help="Nucleus sampling; the server's own by default.")]
_MaxTokens = Annotated[int | None, typer.Option(help="The most tokens of a response; the server's own by default.")]
_Seed = Annotated[int | None, typer.Option(help="A seed for the server, spread over the draws.")]
_Deadline = Annotated[float | None, typer.Option(help="Stop after so many seconds with what there is.")]
Mode = Annotated[str, typer.Option(metavar="rounds|flow", help="Whole rounds, or a decision on every arrival.")]
Order = Annotated[str, typer.Option(metavar="launch|arrival", help="In flow, the order in which votes count.")]
Extra = Annotated[int, typer.Option(help="In flow, how many more draws than asked for are in flight.")]
_Concurrency = Annotated[int, typer.Option(help="The most draws in flight at once.")]
_Timeout = Annotated[float, typer.Option(help="Give a request so many seconds before it is tried again.")]
_Price = Annotated[float, typer.Option("--price-per-million-tokens", help="What tokens of responses cost.")]
_PromptPrice = Annotated[float, typer.Option("--price-per-million-prompt-tokens", help="What tokens of prompts cost.")]


@dataclass(frozen=True)
class _Upstream:
    """Where to sample: the client's settings, the model, and what suits it."""

    settings: dict[str, Any]
    model: str
    prompt: str
    request: dict[str, Any]


@contextmanager
def _upstream(base_url: str | None, model: str | None, gguf: Path | None, threads: int) -> Iterator[_Upstream]:
    """The server that is named, or the embedded model where none is and there is no key for one."""
    openai = need("openai", "")
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key.isascii():
        raise OptionError("OPENAI_API_KEY has characters in it that no key has; set it again")
    base_url = base_url or (None if gguf else os.environ.get("OPENAI_BASE_URL"))
    if gguf and base_url:
        raise OptionError("give --gguf or --base-url, not both")
    if gguf or not (base_url or key):
        with suffice.LocalServer(gguf, threads=threads) as server:
            settings = {"base_url": server.base_url, "api_key": PLACEHOLDER_KEY}
            small = gguf is None
            yield _Upstream(
                settings, server.model, "worked" if small else "paper", {"max_tokens": 256} if small else {}
            )
        return
    settings = {"api_key": key or PLACEHOLDER_KEY} | (
        {"base_url": whole_url("--base-url", base_url)} if base_url else {}
    )
    yield _Upstream(settings, model or _only_model(openai, settings), "paper", {})


def whole_url(option: str, base_url: str) -> str:
    """A URL that was given by an option, with the path that it nearly always has."""
    try:
        parts = urlsplit(base_url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        shown = base_url.rpartition("@")[2]  # what may stand before it is a password
        raise OptionError(f"{option} {shown}: it must be like http://localhost:8000/v1")
    return base_url if parts.path.strip("/") else f"{base_url.rstrip('/')}/v1"


def _only_model(openai: Any, settings: dict[str, Any]) -> str:
    """The one model that a server has."""
    from suffice.live.server import masked

    try:
        with openai.OpenAI(**settings, timeout=30) as client:
            names = [model.id for model in client.models.list()]
    except Exception as error:  # whatever a server may send in place of a list of models
        reason = masked(" ".join(str(error).split()), settings["api_key"])[:200]
        raise OptionError(f"--model must be given: the server does not tell its models ({reason})") from None
    if len(names) != 1:
        some = ", ".join(names[:10]) + ", …" * (len(names) > 10)
        raise OptionError(f"--model must be given; the server has {some or 'none'}")
    return str(names[0])


def _warn_of_temperature(temperature: float | None) -> None:
    if temperature == 0:
        typer.echo("suffice: at temperature 0 all samples will agree, and voting on them is a waste", err=True)
        warnings.filterwarnings("ignore", message="temperature 0")


def _request(upstream: _Upstream, **options: Any) -> dict[str, Any]:
    return upstream.request | {name: value for name, value in options.items() if value is not None}


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask; - reads it from the input.")],
    base_url: _BaseUrl = None,
    model: _Model = None,
    gguf: _Gguf = None,
    threads: _Threads = 1,
    controller: _Controller = "plan",
    budget: _Budget = 32,
    answer: _Answer = "auto",
    prompt: _Prompt = None,
    temperature: _Temperature = None,
    top_p: _TopP = None,
    max_tokens: _MaxTokens = None,
    seed: _Seed = None,
    mode: Mode = "rounds",
    order: Order = "launch",
    extra: Extra = 0,
    deadline_seconds: _Deadline = None,
    concurrency: _Concurrency = 64,
    timeout: _Timeout = 600.0,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
) -> None:
    """Ask a question just enough times, and watch the vote."""
    from suffice.live import SampleError
    from suffice.live.prompts import get_prompt, put

    try:
        question = sys.stdin.read() if question == "-" else question
        question.encode()
    except UnicodeError:
        raise OptionError("QUESTION is not UTF-8 text") from None
    if not question.strip():
        raise OptionError("QUESTION is empty: there is nothing to ask")
    _warn_of_temperature(temperature)
    chosen = suffice.get_controller(controller)
    get_extractor(answer)
    flow = get_flow(mode, order, extra)
    if flow:
        flow.check(chosen)
    messages = get_prompt(prompt) if prompt else None
    console = Console(highlight=False)
    with _upstream(base_url, model, gguf, threads) as upstream, vote_display(console, quiet=json) as watch:
        client = need("openai", "").OpenAI(**upstream.settings)
        outcome: suffice.Outcome | None
        try:
            outcome = suffice.sample(
                client,
                put(question.strip(), messages or get_prompt(upstream.prompt)),
                model=upstream.model,
                controller=controller,
                budget=budget,
                answer=answer,
                mode=mode,
                order=order,
                extra=extra,
                deadline_seconds=deadline_seconds,
                concurrency=concurrency,
                timeout=timeout,
                watch=watch,
                **_request(upstream, temperature=temperature, top_p=top_p, max_tokens=max_tokens, seed=seed),
            )
            code = 0
        except KeyboardInterrupt as interrupt:
            outcome, code = getattr(interrupt, "outcome", None), 130
        except SampleError as error:
            outcome, code = error.outcome, 1
            typer.echo(f"suffice: {error}", err=True)
    _print_outcome(outcome, console, json)
    if code:
        raise typer.Exit(code)


def _print_outcome(outcome: "suffice.Outcome | None", console: Console, json: bool) -> None:
    if outcome is None:
        return
    if json:
        typer.echo(dumps(outcome.to_json(), ensure_ascii=False))
    else:
        for line in outcome_lines(outcome):
            console.print(line, markup=False, soft_wrap=True)


_Out = Annotated[Path, typer.Option(metavar="FILE", help="Where the result goes; its journal is beside it.")]
_Questions = Annotated[
    Path, typer.Argument(metavar="QUESTIONS", help="A JSON line a question: id, question and, if known, gold.")
]


@app.command()
def run(
    questions: _Questions,
    out: _Out,
    controller: _Controller = "plan",
    base_url: _BaseUrl = None,
    model: _Model = None,
    gguf: _Gguf = None,
    threads: _Threads = 1,
    budget: _Budget = 32,
    answer: _Answer = "auto",
    prompt: _Prompt = None,
    temperature: _Temperature = None,
    top_p: _TopP = None,
    max_tokens: _MaxTokens = None,
    seed: _Seed = None,
    mode: Mode = "rounds",
    order: Order = "launch",
    extra: Extra = 0,
    deadline_seconds: _Deadline = None,
    concurrency: _Concurrency = 8,
    timeout: _Timeout = 600.0,
    price: _Price = 0.0,
    prompt_price: _PromptPrice = 0.0,
    max_tokens_total: Annotated[
        int | None, typer.Option(help="Start nothing more once so many tokens, prompts and all, are spent.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Start nothing more once so much money is spent.")] = None,
) -> None:
    """Answer a file of questions, each just enough times; interrupted, it goes on where it was."""
    chosen = suffice.get_controller(controller)
    if budget < 1:
        raise OptionError(f"--budget must be at least 1, not {budget}")
    flow = get_flow(mode, order, extra)
    if flow:
        flow.check(chosen)
    _warn_of_temperature(temperature)
    if max_cost is not None and not (price or prompt_price):
        raise OptionError("--max-cost needs a price: give --price-per-million-tokens")
    job = _Job(questions, out, answer, prompt, concurrency, timeout, price, prompt_price, max_tokens_total, max_cost)
    with _upstream(base_url, model, gguf, threads) as upstream:
        sampling = _request(upstream, temperature=temperature, top_p=top_p, max_tokens=max_tokens, seed=seed)
        settings = {"controller": controller, "budget": budget, "deadline_seconds": deadline_seconds}
        if flow:
            settings |= {"mode": mode, "order": order, "extra": extra}
        lines = job.run(
            upstream,
            sampling,
            settings,
            len(job.questions.asked),
            lambda batch: batch.answer(job.questions.asked, chosen, budget, deadline_seconds, flow),
            streamed=flow is not None,
        )
    _write_lines(out, lines)
    answered = [line for line in lines if line["samples"] and line["stop_reason"] != "failed"]
    if answered:
        typer.echo(outcomes_summary(answered, budget))
    missing = len(job.questions.asked) - len(answered)
    if missing and job.spent.exhausted:
        typer.echo(f"The limit on spending is reached: {missing} questions are left; raise it to go on.", err=True)
    elif missing:
        typer.echo(f"{missing} questions failed, the last with: {job.spent.failures[-1]}", err=True)
        typer.echo("Run the same command again to try those again.", err=True)
        raise typer.Exit(1)


@app.command()
def collect(
    questions: _Questions,
    out: _Out,
    samples: Annotated[int, typer.Option(help="How many responses to each question.")] = 128,
    base_url: _BaseUrl = None,
    model: _Model = None,
    gguf: _Gguf = None,
    threads: _Threads = 1,
    answer: _Answer = "auto",
    prompt: _Prompt = None,
    temperature: _Temperature = None,
    top_p: _TopP = None,
    max_tokens: _MaxTokens = None,
    seed: _Seed = None,
    concurrency: _Concurrency = 8,
    timeout: _Timeout = 600.0,
    price: _Price = 0.0,
    prompt_price: _PromptPrice = 0.0,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Keep the responses' text in the pool.")] = False,
) -> None:
    """Make a pool: sample a server many times for each question; interrupted, it goes on where it was."""
    if samples < 1:
        raise OptionError(f"--samples must be at least 1, not {samples}")
    _warn_of_temperature(temperature)
    job = _Job(questions, out, answer, prompt, concurrency, timeout, price, prompt_price, keep_text=keep_text)
    with _upstream(base_url, model, gguf, threads) as upstream:
        sampling = _request(upstream, temperature=temperature, top_p=top_p, max_tokens=max_tokens, seed=seed)
        settings = {"samples": samples, "keep_text": keep_text}
        total = samples * len(job.questions.asked)
        lines = job.run(upstream, sampling, settings, total, lambda batch: batch.collect(job.questions.asked, samples))
    missing = total - job.spent.responses
    if missing:
        typer.echo(f"{missing} draws failed, the last with: {job.spent.failures[-1]}", err=True)
        typer.echo("Run the same command again to try those again; the rest is in the journal.", err=True)
        raise typer.Exit(1)
    _write_lines(out, lines)
    show(pool_table([suffice.summarise(suffice.load_pool(out))]))
    typer.echo(f"The pool is in {out}: {total} responses, {job.spent.tokens:,} tokens.")


class _Job:
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
        self._extractor = get_extractor(answer)
        self._prompt = get_prompt(prompt) if prompt else None
        self._limiter = Limiter(concurrency)
        self._timeout = timeout
        self._keep_text = keep_text

    def run(
        self,
        upstream: _Upstream,
        sampling: dict[str, Any],
        settings: dict[str, Any],
        total: int,
        work: Callable[[Any], Awaitable[list[dict[str, Any]]]],
        streamed: bool = False,
    ) -> list[dict[str, Any]]:
        """Open the journal and do the work; Ctrl-C leaves it ready to go on."""
        from suffice.live.batch import Batch
        from suffice.live.clients import server_of
        from suffice.live.journal import Journal
        from suffice.live.prompts import get_prompt
        from suffice.live.sample import run_in_thread

        prompt = self._prompt or get_prompt(upstream.prompt)
        settings |= {"questions": self.questions.sha256, "model": upstream.model, "answer": self._answer}
        journal = Journal(self._journal, {**settings, "prompt": prompt, **sampling})

        async def main() -> list[dict[str, Any]]:
            async with need("openai", "").AsyncOpenAI(**upstream.settings) as client:
                server = server_of(
                    client,
                    upstream.model,
                    sampling,
                    limiter=self._limiter,
                    timeout=self._timeout,
                    single="samples" in settings,
                    streamed=streamed,
                )
                batch = Batch(
                    server, journal, prompt, self._extractor, self.spent, keep_text=self._keep_text, progress=advance
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


def _write_lines(out: Path, lines: list[dict[str, Any]]) -> None:
    data = "".join(dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "surrogatepass")
    write_whole(out, gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)
