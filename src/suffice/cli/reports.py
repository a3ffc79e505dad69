"""The option for a report, and writing it."""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.app import arguments
from suffice.paths import write_whole
from suffice.report.html import Report, report_html

ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write a report to open in a browser, as one HTML file."),
]


def write_report(path: Path, report: Report) -> None:
    """Write the file, and say how to look at it."""
    command = re.sub(r"://[^/@\s]+@", "://…@", shlex.join(["suffice", *arguments()]))  # with no password of a URL
    write_whole(path, report_html(report, command).encode())
    typer.echo(f"The report is in {path}: open it in a browser.", err=True)
