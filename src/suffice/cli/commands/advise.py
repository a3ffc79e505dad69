"""The command that says how to sample."""

from typing import Annotated

import typer
from typer import Option

import suffice
from suffice import OptionError
from suffice.cli import options
from suffice.cli.app import app, show
from suffice.cli.command import Fields
from suffice.replay.advise import DEFAULT_REPEATS, FLOWS, MIN_AGREEMENT, PLANS
from suffice.replay.evaluate import Replay, executor_for
from suffice.report.files import advice_csv, advice_json
from suffice.report.html import Report, apart
from suffice.report.progress import progress_bar
from suffice.report.replayed import advice_plot
from suffice.report.tables import advice_table, choice_options

Draws = Annotated[dict[str, int], Fields(Replay, "budget repeats seed", options.DRAWN | {"repeats": DEFAULT_REPEATS})]


@app.command()
def advise(
    chosen: options.Pools,
    outputs: options.Outputs,
    draws: Draws,
    controllers: options.Controllers = [],  # noqa: B006
    max_latency: float | None = Option(
        None, metavar="N", help="The longest wait, in tokens, or in seconds with --tokens-per-second."
    ),
    max_tokens: Annotated[
        float | None, Option("--max-mean-tokens", metavar="N", help="The most tokens for a question, on average.")
    ] = None,
    min_agreement: float = Option(
        MIN_AGREEMENT, metavar="N", help="How often to agree with the full vote, in percent."
    ),
    slots: options.Slots = None,
    tokens_per_second: options.TokensPerSecond = None,
    ray: options.RayAddress = None,
) -> None:
    """Say which flow and controller to use for pools: the cheapest in time, or the quickest in budget.

    Without --controller it tries plans, with several penalties.
    """
    if (max_latency is None) == (max_tokens is None):
        raise OptionError("give --max-latency or --max-mean-tokens, one of the two")
    pools = options.load_pools(chosen)
    speed = tokens_per_second or 1.0
    tried = controllers or PLANS
    cluster = options.on_ray(ray)
    with progress_bar("sweep", 1, cluster) as advance:
        advice = suffice.advise(
            pools,
            tried,
            max_latency=max_latency and max_latency * speed,
            max_tokens=max_tokens,
            min_agreement=min_agreement,
            **draws,
            slots=slots,
            progress=advance,
            executor=cluster or executor_for(pools, len(tried) * len(FLOWS), draws["repeats"], clocked=True),
        )
    settings = {**draws, "slots": slots, "min_agreement": min_agreement}
    settings |= {"max_latency": max_latency, "max_tokens": max_tokens}
    outputs.write(
        json=lambda: advice_json(advice, **settings),
        csv=lambda: advice_csv(advice),
        figure=lambda: apart(advice_plot(advice))[:1],
        report=lambda: Report(
            "How to sample",
            f"Use {choice_options(advice.chosen)}",
            [advice_plot(advice), advice_table(advice, speed, every=True).section()],
            {"pools": [pool.name for pool in pools], **settings},
        ),
    )
    if not outputs.quiet:
        show(advice_table(advice, speed))
        typer.echo(f"Use {choice_options(advice.chosen)}")
