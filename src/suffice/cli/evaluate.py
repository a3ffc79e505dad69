"""The command that replays controllers over pools and compares them."""

from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import Flow, OptionError, Penalties
from suffice.cli.app import app, figures_for, file_of, is_output, show, write_json
from suffice.cli.options import (
    Answer,
    Budget,
    Controllers,
    Csv,
    DrawSeed,
    Elect,
    Extra,
    Json,
    Mode,
    Order,
    PenaltyDraw,
    PenaltyRound,
    Pools,
    Price,
    RayAddress,
    Repeats,
    Second,
    Slots,
    Tokens,
    TokensPerSecond,
    Wait,
    load_pools,
    on_ray,
    penalties_of,
    standing_of,
)
from suffice.cli.reports import ReportFile, write_report
from suffice.controllers.conditioned import LARGEST_BUDGET as LARGEST_LEARNED
from suffice.flow import MODES, get_flow
from suffice.paths import check_writable, write_whole
from suffice.planning import LARGEST_BUDGET as LARGEST_PLANNED
from suffice.replay import DEFAULT_REPEATS, certainty_reliabilities, executor_for, reliabilities
from suffice.replay.advise import DEFAULT_REPEATS as ADVICE_REPEATS
from suffice.replay.advise import MIN_AGREEMENT
from suffice.replay.learning import DEFAULT_ORDERS, replay_learning
from suffice.report import (
    clock_table,
    evaluation_report,
    evaluation_tables,
    learning_json,
    learning_report,
    learning_table,
    progress_bar,
    quotable,
    results_csv,
    results_json,
    saved_tokens,
)
from suffice.tally import DEFAULT_BUDGET

IN_ROUNDS = ["sc", "asc", "esc", "rl", "plan"]
IN_FLOW = ["asc", "boinf", "plan", "rl"]


@app.command()
def evaluate(
    chosen: Pools,
    controllers: Controllers = [],  # noqa: B006
    budget: Budget = DEFAULT_BUDGET,
    repeats: Repeats = DEFAULT_REPEATS,
    seed: DrawSeed = 0,
    penalty_draw: PenaltyDraw = Penalties.draw,
    penalty_round: PenaltyRound = Penalties.round,
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
    mode: Mode = MODES[0],
    order: Order = Flow.order,
    extra: Extra = Flow.extra,
    slots: Slots = None,
    elect: Elect = "majority",
    tokens_per_second: TokensPerSecond = None,
    baseline: Annotated[
        str, typer.Option(metavar="C", help="The controller that changes and differences are against.")
    ] = "sc",
    learn: Annotated[
        bool, typer.Option("--learn", help="Replay each pool as traffic, in random order, with a plan that learns.")
    ] = False,
    json: Json = None,
    csv: Csv = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the reliability diagram, or the learning curves, as a PNG file."),
    ] = None,
    report: ReportFile = None,
    ray: RayAddress = None,
    advise: Annotated[bool, typer.Option("--advise", hidden=True)] = False,
    max_latency: Annotated[float | None, typer.Option(hidden=True)] = None,
    max_tokens: Annotated[float | None, typer.Option(hidden=True)] = None,
    min_agreement: Annotated[float, typer.Option(hidden=True)] = MIN_AGREEMENT,
) -> None:
    """Replay controllers over pools, all on the same draws, and compare them."""
    if advise:
        from suffice.cli import advise as advice  # here, so that the help lists it after this command

        typer.echo("suffice: --advise has become a command of its own, suffice advise, and will go", err=True)
        advice.advise(
            chosen,
            controllers,
            max_latency,
            max_tokens,
            min_agreement,
            budget,
            ADVICE_REPEATS if repeats == DEFAULT_REPEATS else repeats,
            seed,
            slots,
            tokens_per_second,
            json,
            csv,
            figure,
            report,
            ray,
        )
        return
    flow = get_flow(mode, order, extra)
    if learn:
        if flow or slots or csv:
            raise OptionError("is for rounds with no clock, and writes no CSV", "learn")
        if elect != "majority":
            raise OptionError("tells samples and agreement, which an election by weight doesn't change", "learn")
        orders = DEFAULT_ORDERS if repeats == DEFAULT_REPEATS else repeats
        pools = load_pools(chosen)
        penalties = penalties_of(
            penalty_draw, penalty_round, pools, price, tokens, wait, second, answer, is_output(json)
        )
        _learn(pools, controllers, penalties, json, figure, report, budget=budget, orders=orders, seed=seed)
        return
    controllers = controllers or _serving(IN_FLOW if flow else IN_ROUNDS, budget)
    check_writable(file_of(json), csv, figure, report)
    figures = figures_for(figure)
    pools = load_pools(chosen)
    penalties = penalties_of(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer, is_output(json))
    cluster = on_ray(ray)
    with progress_bar("replay", 1, standing_of(cluster)) as advance:
        comparisons = suffice.compare(
            pools,
            controllers,
            baseline=baseline,
            budget=budget,
            repeats=repeats,
            seed=seed,
            penalties=penalties,
            flow=flow,
            slots=slots,
            elect=elect,
            progress=advance,
            executor=cluster or executor_for(pools, len(controllers), repeats, clocked=bool(flow or slots)),
        )
    about: dict[str, Any] = {"budget": budget, "repeats": repeats, "seed": seed}
    about |= {"penalty_draw": penalties.draw, "penalty_round": penalties.round, "mode": mode, "elect": elect}
    if flow:
        about |= {"order": order, "extra": extra}
    if slots or tokens_per_second:
        about |= {"slots": slots, "tokens_per_second": tokens_per_second}
    if json:
        write_json(json, results_json(comparisons, **about))
    if csv:
        write_whole(csv, results_csv(comparisons).encode("utf-8", "surrogateescape"))
    if figures:
        figures.draw_reliability(reliabilities(comparisons), certainty_reliabilities(pools), figure)
    if report:
        write_report(report, evaluation_report(comparisons, pools, about))
    if is_output(json):
        return
    for table in evaluation_tables(comparisons):
        show(table, "")
    if flow or slots or tokens_per_second:
        show(clock_table(comparisons, tokens_per_second), "")
    for sentence in filter(None, (saved_tokens(comparisons), quotable(comparisons))):
        typer.echo(sentence)


def _serving(controllers: list[str], budget: int) -> list[str]:
    """Those of them that serve a budget: a network and a plan have their largest."""
    largest = {"rl": LARGEST_LEARNED, "plan": LARGEST_PLANNED}
    return [one for one in controllers if budget <= largest.get(one, budget) and (one != "rl" or budget > 1)]


def _learn(
    pools: list[suffice.Pool],
    controllers: list[str],
    penalties: Penalties,
    json: Path | None,
    figure: Path | None,
    report: Path | None,
    **settings: int,
) -> None:
    """Each pool as traffic: what a plan that learns from it takes, against one that doesn't."""
    if len(controllers) > 1:
        raise OptionError("can be given once: it is the plan that learns", "controller")
    check_writable(file_of(json), figure, report)
    figures = figures_for(figure)
    plan = (controllers or ["plan"])[0]
    with progress_bar("traffic", settings["orders"] * len(pools)) as advance:
        lessons = [replay_learning(pool, plan, **settings, progress=advance) for pool in pools]
    about = {"controller": plan, "penalty_draw": penalties.draw, "penalty_round": penalties.round}
    if json:
        write_json(json, learning_json(lessons, penalties, **settings, **about))
    if figures:
        figures.draw_learning(lessons, figure)
    if report:
        write_report(report, learning_report(lessons, settings | about))
    if not is_output(json):
        show(*(learning_table(lesson, penalties) for lesson in lessons))
