"""Where results go besides the tables that a command prints: the options for that, and writing them."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice.cli.app import arguments, need
from suffice.cli.command import OUTPUT, Fields
from suffice.errors import OptionError
from suffice.paths import check_writable, write_whole
from suffice.report.html import Report, Section, report_html
from suffice.settings import setting


@dataclass(frozen=True)
class OutputFiles:
    """The files that are asked for."""

    json: Path | None = setting(None, "Write the results as JSON; without FILE, print that and no tables.", "[FILE]")
    csv: Path | None = setting(None, "Write the results as CSV.", "FILE")
    figure: Path | None = setting(None, "Draw the results: a .png, .svg or .pdf file.", "FILE")
    report: Path | None = setting(None, "Write a report to open in a browser, as one HTML file.", "FILE")

    @property
    def quiet(self) -> bool:
        """Whether JSON goes to the standard output, where then nothing else goes."""
        return self.json == Path(OUTPUT)

    def check(self, *others: Path | None) -> None:
        """Refuse what can't be written, or not beside the others, before the work begins."""
        check_writable(*others, None if self.quiet else self.json, self.csv, self.figure, self.report)
        if self.figure and self.figure.suffix not in (endings := self._figures.ENDINGS):
            raise OptionError(f"{self.figure}: its ending must be one of {', '.join(endings)}", "figure")

    @property
    def _figures(self) -> Any:
        return need("suffice.report.figures", "plot")

    def write(
        self,
        json: Callable[[], str] | None = None,
        csv: Callable[[], str] | None = None,
        figure: Callable[[], Sequence[Section]] | None = None,
        report: Callable[[], Report] | None = None,
    ) -> None:
        """Write those that are asked for, each as it is made; a figure of the plots of a report."""
        if self.json and json:
            if self.quiet:
                typer.echo(json().rstrip())
            else:
                write_whole(self.json, json().encode())
        if self.csv and csv:
            write_whole(self.csv, csv().encode("utf-8", "surrogateescape"))
        if self.figure and figure:
            self._figures.draw_plots(figure(), self.figure)
        if self.report and report:
            command = shlex.join(["suffice", *arguments()])
            shown = re.sub(r"://[^/@\s]+@", "://…@", command)  # without the password of a URL
            write_whole(self.report, report_html(report(), shown).encode())
            typer.echo(f"The report is in {self.report}: open it in a browser.", err=True)


JsonFile = Annotated[OutputFiles, Fields(OutputFiles, "json")]
ReportFile = Annotated[OutputFiles, Fields(OutputFiles, "report")]
Pictured = Annotated[OutputFiles, Fields(OutputFiles, "json figure report")]
Outputs = Annotated[OutputFiles, Fields(OutputFiles)]
