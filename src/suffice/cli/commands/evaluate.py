"""The command that replays controllers over pools and compares them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

import suffice
from suffice import OptionError, Penalties
from suffice.cli import options
from suffice.cli.app import app, show
from suffice.cli.command import Fields
from suffice.controllers.conditioned import LARGEST_BUDGET as LARGEST_LEARNED
from suffice.elections import get_election
from suffice.flow import ABOUT, METAVAR, get_flow
from suffice.planning import LARGEST_BUDGET as LARGEST_PLANNED
from suffice.replay import DEFAULT_REPEATS
from suffice.replay.calibrating import judge_pools
from suffice.replay.evaluate import executor_for
from suffice.replay.learning import DEFAULT_ORDERS, replay_learning
from suffice.report.calibrated import judged_json, judged_table
from suffice.report.files import learning_json, results_csv, results_json
from suffice.report.html import Report, apart
from suffice.report.progress import progress_bar
from suffice.report.replayed import evaluation_report, learning_plot, reliability_plots
from suffice.report.tables import clock_table, evaluation_tables, learning_table, replay_sentences

IN_ROUNDS = ["once", "sc", "asc", "esc", "rl", "plan"]
ELECT = "How the answer is elected: majority, weighted:signal=logprob,strength=0.4, …"
IN_FLOW = ["once", "asc", "boinf", "plan", "rl"]


@app.command()
def evaluate(
    chosen: options.Pools,
    prices: options.Prices,
    outputs: options.Outputs,
    draws: options.Draws,
    process: Annotated[options.Process, Fields(options.Process, "penalty_draw penalty_round")],
    controllers: options.Controllers = [],  # noqa: B006
    flow: str | None = Option(None, metavar=METAVAR, help=ABOUT),
    slots: options.Slots = None,
    elect: str = Option("majority", metavar="E", help=ELECT),
    tokens_per_second: options.TokensPerSecond = None,
    baseline: str = Option("sc", metavar="C", help="The controller that changes and differences are against."),
    right: Path | None = Option(
        None, metavar="FILE", help="A calibration: tell how true it is on the gold of these pools."
    ),
    risk: float | None = Option(None, metavar="SHARE", help="Tell what it answers at this risk; needs --right."),
    learn: bool = Option(
        False, "--learn", help="Replay each pool as traffic, in random order, with a plan that learns."
    ),
    ray: options.RayAddress = None,
) -> None:
    """Replay controllers over pools, all on the same draws, and compare them."""
    flowing = get_flow(flow)
    if learn:
        if flowing or slots or outputs.csv:
            raise OptionError("is for rounds with no clock, and writes no CSV", "learn")
        if elect != "majority":
            raise OptionError("tells samples and agreement, which an election by weight doesn't change", "learn")
        if len(controllers) > 1:
            raise OptionError("can be given once: it is the plan that learns", "controller")
    if risk is not None and right is None:
        raise OptionError("needs a calibration: make one with suffice calibrate, and give it too (right)", "risk")
    calibration = suffice.load_calibration(right) if right else None
    pools = options.load_pools(chosen)
    penalties = process.penalties(pools, prices, outputs.quiet)
    if learn:
        orders = DEFAULT_ORDERS if draws["repeats"] == DEFAULT_REPEATS else draws["repeats"]
        settings = {"budget": draws["budget"], "orders": orders, "seed": draws["seed"]}
        _learn(pools, (controllers or ["plan"])[0], penalties, outputs, **settings)
        return
    budget, largest = draws["budget"], {"rl": LARGEST_LEARNED, "plan": LARGEST_PLANNED}
    usual = [one for one in (IN_FLOW if flowing else IN_ROUNDS) if budget <= largest.get(one, budget)]
    controllers = controllers or [one for one in usual if one != "rl" or budget > 1]
    learned: dict[str, object] = {name: suffice.get_controller(name) for name in controllers}
    learned |= {elect: get_election(elect), str(right): calibration}
    warnings = [warning for name, one in learned.items() for warning in _trained_on_them(name, one, pools)]
    for warning in warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    cluster = options.on_ray(ray)
    with progress_bar("replay", 1, cluster) as advance:
        comparisons = suffice.compare(
            pools,
            controllers,
            baseline=baseline,
            **draws,
            penalties=penalties,
            flow=flowing,
            slots=slots,
            elect=elect,
            progress=advance,
            executor=cluster or executor_for(pools, len(controllers), draws["repeats"], clocked=bool(flowing or slots)),
        )
    about: dict[str, Any] = {**draws, "penalty_draw": penalties.draw, "penalty_round": penalties.round, "elect": elect}
    about |= {"flow": str(flowing) if flowing else None, "warnings": warnings}
    if slots or tokens_per_second:
        about |= {"slots": slots, "tokens_per_second": tokens_per_second}
    judged = judge_pools(calibration, pools, draws["budget"], draws["seed"]) if calibration else {}
    if calibration:
        about["right"] = judged_json(calibration, judged, risk)
    outputs.write(
        json=lambda: results_json(comparisons, **about),
        csv=lambda: results_csv(comparisons),
        figure=lambda: reliability_plots(comparisons, pools, "after"),
        report=lambda: evaluation_report(comparisons, pools, about),
    )
    if outputs.quiet:
        return
    for table in evaluation_tables(comparisons):
        show(table, "")
    if flowing or slots or tokens_per_second:
        show(clock_table(comparisons, tokens_per_second), "")
    if calibration:
        show(judged_table(calibration, judged, risk), "")
    told = replay_sentences(comparisons)
    for kind in (kind for kind in ("independent", "tokens", "sentence") if kind in told):
        typer.echo(told[kind])


def _trained_on_them(name: str, learned: object, pools: list[suffice.Pool]) -> list[str]:
    """What to say where the card of something learned names a tested pool as one that it was trained on."""
    card = getattr(learned, "card", {})
    known = {told for pool in card.get("pools", ()) for told in (pool["name"], pool["sha256"]) if told}
    return [
        f"{name} was trained on {pool.name}: its figures there are not of new questions"
        for pool in pools
        if pool.name in known or pool.sha256 in known
    ]


def _learn(
    pools: list[suffice.Pool], plan: str, penalties: Penalties, outputs: options.OutputFiles, **settings: int
) -> None:
    """Each pool as traffic: what a plan that learns from it takes, against one that doesn't."""
    with progress_bar("traffic", settings["orders"] * len(pools)) as advance:
        replays = [replay_learning(pool, plan, **settings, progress=advance) for pool in pools]
    about = {"controller": plan, "penalty_draw": penalties.draw, "penalty_round": penalties.round}
    tables = [learning_table(replay, penalties) for replay in replays]
    sections = [learning_plot(replays), *(table.section() for table in tables)]
    names = [replay.pool for replay in replays]
    outputs.write(
        json=lambda: learning_json(replays, penalties, **settings, **about),
        figure=lambda: apart(sections[0]),
        report=lambda: Report("Learning from traffic", "", sections, settings | about, names),
    )
    if not outputs.quiet:
        show(*tables)
