"""The command that learns from labels how often votes are right."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from suffice.cli import options
from suffice.cli.app import app, show
from suffice.replay.calibrating import calibration_of, cross_judge, labelled_votes
from suffice.report.calibrated import calibration_json, calibration_plots, calibration_tables, summary_sentence
from suffice.report.html import Report
from suffice.report.progress import waiting


@app.command()
def calibrate(
    chosen: options.Pools,
    out: Annotated[Path, Option(metavar="FILE", help="Where the calibration goes, as .json.")],
    outputs: options.Pictured,
    draws: options.DrawsOnce,
    labels: Annotated[
        int | None,
        Option(metavar="N", min=1, help="Learn from so many questions with a gold answer; all by default."),
    ] = None,
    controller: str = Option(
        "plan", metavar="C", help="Who stops the votes: what is learned holds for votes that stop like this."
    ),
) -> None:
    """Learn from questions with a gold answer how often votes are right, and from what probability on to answer."""
    outputs.check(out)
    pools = options.load_pools(chosen)
    with waiting("calibrating"):
        votes = labelled_votes(pools, controller, questions=labels, **draws)
        calibration = calibration_of(votes)
        judged = cross_judge(calibration, votes)
    if repeated := votes.card["repeated"]:
        left_out = "1 label is" if repeated == 1 else f"{repeated} labels are"
        typer.echo(f"suffice: {left_out} left out: a question counts once over all pools", err=True)
    calibration.save(out)
    tables, plots, said = calibration_tables(calibration, judged), calibration_plots(judged), summary_sentence(judged)
    sections = [*plots, *(table.section() for table in tables)]
    outputs.write(
        json=lambda: calibration_json(calibration, judged, votes.card),
        figure=lambda: plots,
        report=lambda: Report("How often votes are right", said, sections, dict(votes.card)),
    )
    if not outputs.quiet:
        for table in tables:
            show(table, "")
        typer.echo(said)
        typer.echo(f"The calibration is in {out}: use it as --right {out}, with --risk for what may be wrong.")
