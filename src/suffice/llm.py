"""A plugin for the `llm` command: any model that it knows, asked just enough times (extra: llm).

`llm suffice QUESTION -m MODEL -n 32`, or `llm -m MODEL --suffice 32 QUESTION`.
"""

import asyncio
import json
import sys
from typing import Any

import click
from click.core import ParameterSource
from pluggy import HookimplMarker

from suffice.errors import SufficeError
from suffice.live.sample import run_in_thread, vote_on
from suffice.live.sampling import Sampling
from suffice.response import Response
from suffice.tally import DEFAULT_BUDGET

UNDERSTOOD = {"prompt", "system", "model_id", "options", "key", "no_stream", "no_log", "log", "suffice"}
"""The options of `llm prompt` that go together with --suffice."""


@HookimplMarker("llm")
def register_commands(cli: Any) -> None:
    """Add the command, and the option to `llm prompt`, which is what `llm` does by itself."""
    cli.add_command(suffice)
    prompt = cli.commands["prompt"]
    plain = prompt.callback
    prompt.params.append(click.Option(["--suffice"], type=int, metavar="N", help="Ask up to N times, just enough."))

    def asked(**given: Any) -> Any:
        budget = given.pop("suffice")
        if budget is None:
            return plain(**given)
        context = click.get_current_context()
        typed = [name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        other = [name for name in typed if name not in UNDERSTOOD]
        for parameter in prompt.params:
            if parameter.name in other:
                raise click.ClickException(f"--suffice can't be given with {parameter.opts[-1]}")
        same = {name: given[name] for name in ("system", "options", "key")}
        return context.invoke(suffice, question=given["prompt"], model=given["model_id"], budget=budget, **same)

    prompt.callback = asked


@click.command()
@click.argument("question", required=False)
@click.option("-m", "--model", metavar="MODEL", help="A model that llm knows; its default one by default.")
@click.option("-n", "--budget", default=DEFAULT_BUDGET, show_default=True, help="The most draws.")
@click.option("-s", "--system", help="A system prompt.")
@click.option("-o", "--option", "options", type=(str, str), multiple=True, help="An option of the model, as KEY VALUE.")
@click.option("--key", help="An API key, or the name of a stored one.")
@click.option("--controller", default="plan", show_default=True, help="Who decides when it is enough.")
@click.option("--answer", default="auto", show_default=True, help="How to find the answer.")
@click.option("--concurrency", default=8, show_default=True, help="The most draws in flight at once.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def suffice(
    question: str | None,
    model: str | None,
    system: str | None,
    options: Any,
    key: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Ask just enough times, and print the response that a vote elects."""
    import llm  # not above: this module can be looked at without it

    question = question or sys.stdin.read()
    try:
        sampling = Sampling(**how)
        found: Any = llm.get_model(model)
        settings = {name: value for name, value in found.Options(**dict(options)) if value is not None}
        key = llm.get_key(explicit_key=key, key_alias=found.needs_key, env_var=found.key_env_var) if key else None

        def draw() -> Response:
            reply = found.prompt(question, system=system, stream=False, **settings, **({"key": key} if key else {}))
            text, usage = reply.text(), reply.usage()
            return Response(text, None, usage.output, prompt_tokens=usage.input or 0)

        outcome = run_in_thread(lambda: vote_on(lambda number: asyncio.to_thread(draw), question, sampling))
    except (SufficeError, llm.UnknownModelError, llm.ModelError, ValueError) as error:
        raise click.ClickException(str(error).strip("'\"")) from None
    if as_json:
        click.echo(json.dumps(outcome.to_json(), ensure_ascii=False))
        return
    click.echo(outcome.response.text if outcome.response else "")
    votes = ", ".join(f"{name}: {number}" for name, number in outcome.votes.items())
    click.echo(
        f"{outcome.samples} of {sampling.budget} samples in {outcome.rounds} rounds; votes: {votes or 'none'}", err=True
    )
