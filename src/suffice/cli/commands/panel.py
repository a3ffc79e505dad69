"""The commands for panels: replaying several voters on the same questions, and fitting a controller to them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from suffice.cli import options
from suffice.cli.app import CommandApp, Group, app, show
from suffice.panel import evaluate_panel, fit_panel, save_panel
from suffice.panel.evaluate import REPEATS
from suffice.paths import check_writable
from suffice.report.html import Report
from suffice.report.panels import panel_json, panel_plot, panel_sentences, panel_table, pictured
from suffice.report.progress import progress_bar
from suffice.tally import DEFAULT_BUDGET

panel = CommandApp(cls=Group, no_args_is_help=True, help="Several voters on one question: models, or prompts of one.")
app.add_typer(panel, name="panel")


@panel.command()
def evaluate(
    voters: options.Voters,
    outputs: options.Pictured,
    controllers: Annotated[
        list[str],
        Option("--controller", metavar="C…", help="Controllers of the panel: cascade[:key=value,…], file:PATH."),
    ] = ["cascade"],  # noqa: B006
    budget: int = Option(DEFAULT_BUDGET, metavar="N", help="The most draws of each voter."),
    repeats: int = Option(REPEATS, metavar="N", help="How often each question is replayed."),
    seed: int = Option(0, metavar="N", help="Chooses the draws."),
) -> None:
    """Replay controllers of a panel, and each voter alone, all on the same draws."""
    loaded = options.load_voters(voters)
    with progress_bar("replay", 1) as advance:
        compared = evaluate_panel(loaded, controllers, budget=budget, repeats=repeats, seed=seed, progress=advance)
    about: dict[str, Any] = {"voter": voters, "budget": budget, "repeats": repeats, "seed": seed}
    table, said = panel_table(compared), panel_sentences(compared)
    outputs.write(
        json=lambda: panel_json(compared, **about),
        figure=lambda: pictured(compared),
        report=lambda: Report("A panel of voters", "; ".join(said), [table.section(), panel_plot(compared)], about),
    )
    if not outputs.quiet:
        show(table, "")
        for sentence in said:
            typer.echo(sentence)


@panel.command()
def fit(
    voters: options.Voters,
    value: Annotated[
        float,
        Option("--value-of-an-answer", metavar="N", help="What a right answer is worth, in the money of the prices."),
    ],
    out: Annotated[Path, Option(metavar="FILE", help="Where the controller goes, as a .safetensors file.")],
    budget: int = Option(DEFAULT_BUDGET, metavar="N", help="The most draws of each voter."),
    labels: bool = Option(True, "--labels/--no-labels", help="Whether to go by gold answers, where there are any."),
    seed: int = Option(0, metavar="N", help="Chooses the draws."),
) -> None:
    """Fit a controller to what voters said: whom to ask next, and when an answer is worth no more money."""
    check_writable(out)
    loaded = options.load_voters(voters)
    with progress_bar("fitting", 1) as advance:
        fitted = fit_panel(loaded, value, budget=budget, labels=labels, seed=seed, progress=advance)
    save_panel(fitted, out)
    weights = ", ".join(f"{name} {weight:g}" for name, weight in zip(fitted.voters, fitted.weights, strict=True))
    typer.echo(f"A vote weighs: {weights}. The controller is in {out}: use it as file:{out}")
