"""The command that runs the gateway."""

from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import app, need


@app.command()
def serve(
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="A server behind, or 'URL weight=2 key_env=NAME models=a,b'; repeat for more; "
            "the embedded model by default (extra local).",
        ),
    ] = None,
    controller: Annotated[
        str | None, typer.Option(metavar="C", help="The controller of a vote.  [default: plan]")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="The most draws of a vote.  [default: 32]")] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="X", help="How the answer is found in a response.  [default: auto]")
    ] = None,
    vote: Annotated[
        str | None,
        typer.Option(
            metavar="auto|always|asked|off",
            help="When to vote: where it helps, on every chat request, where it is asked for, never.  [default: auto]",
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(metavar="rounds|flow", help="Whole rounds, or a decision on every arrival.  [default: rounds]"),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(metavar="launch|arrival", help="In flow, the order in which votes count.  [default: launch]"),
    ] = None,
    extra: Annotated[
        int | None, typer.Option(help="In flow, how many more draws than asked for are in flight.  [default: 0]")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Where to listen.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Where to listen.  [default: 8000]")] = None,
    api_key_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A variable with a key that clients must present; repeat for more."),
    ] = None,
    api_key_file: Annotated[str | None, typer.Option(metavar="FILE", help="A file with such keys, one a line.")] = None,
    keys: Annotated[
        str | None, typer.Option(metavar="FILE", help="A TOML file of keys with names and limits: see suffice keys.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Where what is learned is kept, and the usage of keys: that else in ~/.local/state."
        ),
    ] = None,
    prices: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRICE",
            help="What a million tokens cost, as 'MODEL input=0.15 output=0.60', or gpt-4o* for a MODEL; "
            "repeat for more.",
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file with any of these settings.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many processes.  [default: 1]")] = None,
    gguf: Annotated[Path | None, typer.Option(metavar="FILE", help="Serve this GGUF model as the upstream.")] = None,
    threads: Annotated[int, typer.Option(help="Threads for a model that is served here.")] = 1,
    max_budget: Annotated[
        int | None, typer.Option(help="The most draws that a request may ask for; the budget by default.")
    ] = None,
    deadline_seconds: Annotated[
        float | None, typer.Option(help="The longest that a vote may take.  [default: 600]")
    ] = None,
    timeout_seconds: Annotated[
        float | None, typer.Option(help="The longest that one request to the upstream may take.  [default: 600]")
    ] = None,
    retries: Annotated[int | None, typer.Option(help="How often such a request is tried again.  [default: 4]")] = None,
    max_requests: Annotated[int | None, typer.Option(help="The most votes at once.  [default: 512]")] = None,
    max_queue: Annotated[int | None, typer.Option(help="The most votes that may wait.  [default: 2048]")] = None,
    max_draws: Annotated[int | None, typer.Option(help="The most draws in flight at once.  [default: 2048]")] = None,
    fan_out: Annotated[int | None, typer.Option(help="The most of these for one vote.  [default: 64]")] = None,
    max_body_bytes: Annotated[int | None, typer.Option(help="The longest request.  [default: 16777216]")] = None,
    heartbeat_seconds: Annotated[
        float | None, typer.Option(help="How often a stream that has nothing to say yet says so.  [default: 5]")
    ] = None,
    upload_seconds: Annotated[
        float | None, typer.Option(help="The longest that a request may take to arrive.  [default: 120]")
    ] = None,
    drain_seconds: Annotated[
        float | None, typer.Option(help="How long requests under way may take to end after SIGTERM.  [default: 30]")
    ] = None,
    unready_seconds: Annotated[
        float | None,
        typer.Option(help="How much of that /readyz says no before new connections are refused.  [default: 1]"),
    ] = None,
    forward_auth: Annotated[
        bool | None, typer.Option("--forward-auth", help="Send the client's Authorization to the upstream.")
    ] = None,
    translate: Annotated[
        bool | None,
        typer.Option("--translate", help="Draw Responses and Messages as chat completions, for an upstream without."),
    ] = None,
    cors_origins: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A web site whose pages may ask; repeat for more, * for all."),
    ] = None,
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A Host by which a proxy on this machine may ask without a key; repeat."),
    ] = None,
    allow_no_key: Annotated[
        bool | None, typer.Option("--allow-no-key", help="Listen to others than this machine with no key.")
    ] = None,
    learn: Annotated[
        bool | None,
        typer.Option(
            "--learn/--no-learn",
            help="Learn from votes how a model's answers repeat, as it does unless told otherwise.",
        ),
    ] = None,
    audit: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Draw this share of the votes to the full budget afterwards.  [default: 0]"),
    ] = None,
    min_agreement: Annotated[
        float | None,
        typer.Option(help="Promise that votes agree with the full budget so often, in percent; needs --audit."),
    ] = None,
    max_mean_samples: Annotated[
        float | None, typer.Option(metavar="N", help="Promise no more than so many samples a vote, in the mean.")
    ] = None,
    exact_usage: Annotated[
        bool | None,
        typer.Option("--exact-usage", help="Draw one by one where a server does not count the tokens of each draw."),
    ] = None,
    signals: Annotated[
        bool | None,
        typer.Option("--signals", help="Ask for log probabilities, which the replies do not show unless asked to."),
    ] = None,
    elect: Annotated[
        str | None,
        typer.Option(
            metavar="E",
            help="How votes weigh in the end, as weighted:signal=logprob,strength=0.4.  [default: majority]",
        ),
    ] = None,
    log_text: Annotated[
        bool | None, typer.Option("--log-text", help="Write questions and answers into the access log and traces.")
    ] = None,
    otel: Annotated[
        bool | None,
        typer.Option("--otel", help="Send traces by OTLP, as where OTEL_EXPORTER_OTLP_ENDPOINT is set (extra otel)."),
    ] = None,
) -> None:
    """Serve an OpenAI-compatible endpoint that asks the one behind it just enough times."""
    given = dict(locals())
    gateway = need("suffice.gateway", "serve")
    names = {field.name for field in fields(gateway.Settings)}
    settings: dict[str, Any] = {name: value for name, value in given.items() if name in names and value is not None}
    settings |= {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
    if config:
        settings = gateway.with_file(settings, config)
    if settings.get("upstream") and gguf:
        raise OptionError("give --upstream or --gguf, not both")
    chosen = gateway.Settings(**settings)
    chosen.check_safe()
    if (share := chosen.promised_share) and share == chosen.min_agreement:
        typer.echo(f"suffice: --min-agreement {share:g} has become {100 * share:g}, in percent, and will go", err=True)
    if why := gateway.traces_ignored(chosen):
        typer.echo(f"suffice: a collector of traces is named, and none are sent: it {why}", err=True)
    gateway.check_port(chosen)
    local = None if chosen.upstream else suffice.LocalServer(gguf, threads=threads)
    with local or nullcontext():
        where = f"http://{chosen.host}:{chosen.port}"
        behind = local.model if local else ", ".join(target.url.rpartition("@")[2] for target in chosen.targets)
        typer.echo(f"suffice: {where}/v1 in front of {behind}; a page is at {where}/", err=True)
        gateway.serve(replace(chosen, upstream=local.base_url) if local else chosen)
