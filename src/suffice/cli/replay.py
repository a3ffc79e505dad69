"""Commands about pools and controllers: `pools`, `evaluate`, `controllers`."""

from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import app, need, show
from suffice.cli.costs import Answer, Price, Second, Tokens, Wait, penalties_of
from suffice.cli.sampling import Extra, Mode, Order
from suffice.flow import get_flow
from suffice.paths import check_writable, is_there, write_whole
from suffice.planning import ceiling
from suffice.replay import Comparison, reliabilities
from suffice.report import (
    advice_table,
    clock_table,
    controllers_table,
    evaluation_tables,
    pool_table,
    progress_bar,
    results_csv,
    results_json,
)

RULES = ["sc", "asc", "esc", "doubling", "boinf"]

CHECKPOINTS = (4, 8, 16, 24)
"""Numbers of draws after which the confidence is checked."""


@app.command()
def pools(
    chosen: Annotated[
        list[str],
        typer.Argument(metavar="POOL", help="Names of bundled pools, or paths; all bundled ones by default."),
    ] = [],  # noqa: B006
) -> None:
    """Describe pools: how hard they are and how much their answers differ."""
    summaries = [suffice.summarise(suffice.load_pool(name)) for name in chosen or suffice.bundled_pools()]
    show(pool_table(summaries))


@app.command()
def evaluate(
    chosen: Annotated[list[str], typer.Argument(metavar="POOL", help="Names of bundled pools, or paths.")],
    controllers: Annotated[
        list[str],
        typer.Option(
            "--controller",
            metavar="C",
            help="A controller, as NAME or NAME:key=value,…; repeat for more.",
        ),
    ] = [],  # noqa: B006
    budget: Annotated[int, typer.Option(help="The most draws for a question.")] = 32,
    repeats: Annotated[int, typer.Option(help="How often each question is replayed.")] = 100,
    seed: Annotated[int, typer.Option(help="Chooses the draws.")] = 0,
    penalty_draw: Annotated[float, typer.Option(help="What a draw costs in the reward.")] = 0.0075,
    penalty_round: Annotated[float, typer.Option(help="What a round costs in the reward.")] = 0.0,
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
    mode: Mode = "rounds",
    order: Order = "launch",
    extra: Extra = 0,
    slots: Annotated[
        int | None, typer.Option(help="How many responses to a question the server works on at once; all by default.")
    ] = None,
    tokens_per_second: Annotated[
        float | None, typer.Option(help="How quick a response is, for latency in seconds.")
    ] = None,
    baseline: Annotated[
        str, typer.Option(metavar="C", help="The controller that changes and differences are against.")
    ] = "sc",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as CSV.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the reliability diagram, or the advice's front, as a PNG file."),
    ] = None,
    advise: Annotated[
        bool, typer.Option("--advise", help="Say which mode, order, extra and penalties to use for these pools.")
    ] = False,
    max_latency: Annotated[
        float | None,
        typer.Option(help="With --advise: the longest wait, in tokens, or in seconds with --tokens-per-second."),
    ] = None,
    max_tokens: Annotated[float | None, typer.Option(help="With --advise: the most tokens for a question.")] = None,
    min_agreement: Annotated[
        float, typer.Option(help="With --advise: how often to agree with the full vote, in percent.")
    ] = 99.0,
) -> None:
    """Replay controllers over pools, all on the same draws, and compare them."""
    flow = get_flow(mode, order, extra, slots)
    controllers = controllers or (["asc", "boinf", "plan", "rl"] if flow else RULES)
    for path in filter(None, (json, csv, figure)):
        check_writable(path)
    figures = need("suffice.report.figures", "plot") if figure else None
    loaded = [suffice.load_pool(name) for name in chosen]
    for pool in loaded:
        pool.check_budget(budget)
    if advise:
        speed = tokens_per_second or 1.0
        _advise(loaded, budget, repeats, seed, slots, speed, max_latency, max_tokens, min_agreement, figures, figure)
        return
    penalties = penalties_of(penalty_draw, penalty_round, loaded, price, tokens, wait, second, answer)
    ceilings = {name: plan for name in controllers if (plan := ceiling(name, penalties))}
    checkpoints = [f"sc:draws={draws}" for draws in CHECKPOINTS if draws < budget]
    asked: list[Any] = list(dict.fromkeys([*controllers, baseline, *checkpoints, *ceilings.values()]))
    flowing = {name for name in controllers if flow}  # what they are compared with is always in rounds
    comparisons = []
    with progress_bar("replay", len(asked) * sum(len(pool.questions) for pool in loaded)) as advance:
        for pool in loaded:
            settings: dict[str, Any] = {"budget": budget, "repeats": repeats, "seed": seed, "penalties": penalties}
            by_name: dict[Any, suffice.Result] = {}
            for in_flow, names in ((True, [*flowing]), (False, [name for name in asked if name not in flowing])):
                found = suffice.evaluate(
                    pool, names, flow=flow if in_flow else None, slots=slots, progress=advance, **settings
                )
                by_name |= zip(names, found, strict=True)
            comparisons.append(
                Comparison(
                    [by_name[name] for name in controllers],
                    by_name[baseline],
                    {name: by_name[plan] for name, plan in ceilings.items()},
                    [by_name[name] for name in checkpoints],
                )
            )
    if json:
        about = {"penalty_draw": penalties.draw, "penalty_round": penalties.round, "mode": mode}
        if flow:
            about |= {"order": order, "extra": extra}
        if slots or tokens_per_second:
            about |= {"slots": slots, "tokens_per_second": tokens_per_second}
        text = results_json(comparisons, budget=budget, repeats=repeats, seed=seed, **about)
        write_whole(json, text.encode())
    if csv:
        write_whole(csv, results_csv(comparisons).encode("utf-8", "surrogateescape"))
    if figures:
        figures.draw_reliability(reliabilities(comparisons), figure)
    for table in evaluation_tables(comparisons):
        show(table, "")
    if flow or slots or tokens_per_second:
        show(clock_table(comparisons, tokens_per_second), "")


def _advise(
    pools: list[suffice.Pool],
    budget: int,
    repeats: int,
    seed: int,
    slots: int | None,
    speed: float,
    max_latency: float | None,
    max_tokens: float | None,
    min_agreement: float,
    figures: Any,
    figure: Path | None,
) -> None:
    """Sweep the ways to sample, print the best of them, and say which to use."""
    from suffice.replay.advise import advise, front, steps, sweep

    if (max_latency is None) == (max_tokens is None):
        raise OptionError("--advise needs --max-latency or --max-tokens, one of the two")
    with progress_bar("sweep", steps(pools)) as advance:
        choices = sweep(pools, budget, min(repeats, 20), seed, slots, advance)
    chosen = advise(choices, max_latency and max_latency * speed, max_tokens, min_agreement)
    best = front([choice for choice in choices if choice.agreement >= min_agreement])
    show(advice_table(best, chosen, speed))
    if figures:
        figures.draw_front(choices, best, chosen, figure)
    typer.echo(f"Use {chosen.options}")


@app.command()
def controllers(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A controller file, or a shipped one's name: its card is printed."),
    ] = None,
) -> None:
    """List the shipped controllers, or print the card of a controller file."""
    if file:
        known = not is_there(Path(file)) and file.partition(":")[0] in suffice.controller_names()
        chosen = suffice.get_controller(file) if known else suffice.load_controller(file)
        if not isinstance(chosen, suffice.SavedController):
            raise OptionError(f"{file} is a rule: it has parameters, and no card")
        typer.echo(dumps(dict(chosen.card), indent=2))
    else:
        show(controllers_table(suffice.shipped_controllers()))
