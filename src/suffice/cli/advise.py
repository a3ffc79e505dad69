"""The command that says how to sample."""

from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import app, figures_for, file_of, is_output, show, write_json
from suffice.cli.options import (
    Budget,
    Controllers,
    Csv,
    DrawSeed,
    Json,
    Pools,
    RayAddress,
    Repeats,
    Slots,
    TokensPerSecond,
    load_pools,
    on_ray,
    standing_of,
)
from suffice.cli.reports import ReportFile, write_report
from suffice.paths import check_writable, write_whole
from suffice.replay import executor_for
from suffice.replay.advise import DEFAULT_REPEATS, FLOWS, MIN_AGREEMENT, PLANS
from suffice.report import advice_csv, advice_json, advice_report, advice_table, choice_options, progress_bar
from suffice.tally import DEFAULT_BUDGET


@app.command()
def advise(
    chosen: Pools,
    controllers: Controllers = [],  # noqa: B006
    max_latency: Annotated[
        float | None, typer.Option(help="The longest wait, in tokens, or in seconds with --tokens-per-second.")
    ] = None,
    max_tokens: Annotated[
        float | None, typer.Option("--max-mean-tokens", help="The most tokens for a question, on average.")
    ] = None,
    min_agreement: Annotated[
        float, typer.Option(help="How often to agree with the full vote, in percent.")
    ] = MIN_AGREEMENT,
    budget: Budget = DEFAULT_BUDGET,
    repeats: Repeats = DEFAULT_REPEATS,
    seed: DrawSeed = 0,
    slots: Slots = None,
    tokens_per_second: TokensPerSecond = None,
    json: Json = None,
    csv: Csv = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw tokens against latency as a PNG file.")
    ] = None,
    report: ReportFile = None,
    ray: RayAddress = None,
) -> None:
    """Say which mode, order, extra and controller to use for pools: the cheapest in time, or the quickest in budget.

    Without --controller it tries plans, with several penalties.
    """
    if (max_latency is None) == (max_tokens is None):
        raise OptionError("give --max-latency or --max-mean-tokens, one of the two")
    check_writable(file_of(json), csv, figure, report)
    figures = figures_for(figure)
    pools = load_pools(chosen)
    speed = tokens_per_second or 1.0
    tried = controllers or PLANS
    cluster = on_ray(ray)
    with progress_bar("sweep", 1, standing_of(cluster)) as advance:
        advice = suffice.advise(
            pools,
            tried,
            max_latency=max_latency and max_latency * speed,
            max_tokens=max_tokens,
            min_agreement=min_agreement,
            budget=budget,
            repeats=repeats,
            seed=seed,
            slots=slots,
            progress=advance,
            executor=cluster or executor_for(pools, len(tried) * len(FLOWS), repeats, clocked=True),
        )
    settings = {"budget": budget, "repeats": repeats, "seed": seed, "slots": slots, "min_agreement": min_agreement}
    settings |= {"max_latency": max_latency, "max_tokens": max_tokens}
    if json:
        write_json(json, advice_json(advice, **settings))
    if csv:
        write_whole(csv, advice_csv(advice).encode())
    if figures:
        figures.draw_front(advice, figure)
    if report:
        write_report(report, advice_report(advice, {"pools": [pool.name for pool in pools], **settings}))
    if is_output(json):
        return
    show(advice_table(advice, speed))
    typer.echo(f"Use {choice_options(advice.chosen)}")
