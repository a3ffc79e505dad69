"""Options that several commands share, each declared once: what is read, what it costs, and where results go."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import Costs, OptionError, Penalties, Plan
from suffice.cli.app import arguments, need
from suffice.cli.command import OUTPUT, Fields, offered_controllers, offered_pools
from suffice.executors import Executor, Ray
from suffice.panel.voters import PoolVoter
from suffice.paths import check_writable, write_whole
from suffice.replay.evaluate import DEFAULT_REPEATS, Replay
from suffice.report.html import Report, Section, report_html
from suffice.report.progress import waiting
from suffice.settings import setting
from suffice.tally import DEFAULT_BUDGET

DRAWN = {"budget": DEFAULT_BUDGET, "repeats": DEFAULT_REPEATS, "seed": 0}


def pool_argument(about: str) -> Any:
    return typer.Argument(metavar="POOL", help=about, autocompletion=offered_pools)


def _above_0(value: float | None) -> float | None:
    if value is not None and not 0 < value < inf:
        raise typer.BadParameter(f"must be above 0, not {value:g}")
    return value


Pools = Annotated[list[str], pool_argument("Names of bundled pools, or paths.")]
Controllers = Annotated[
    list[str],
    typer.Option(
        "--controller",
        metavar="C…",
        help="Controllers, each as NAME or NAME:key=value,….",
        autocompletion=offered_controllers,
    ),
]
Voters = Annotated[
    list[str],
    typer.Option(
        "--voter",
        metavar="NAME=POOL[+POOL…],price=P",
        help="A voter with its pools, and its price for a million tokens; repeat it.",
    ),
]
Draws = Annotated[dict[str, int], Fields(Replay, "budget repeats seed", DRAWN)]
"""How a pool is drawn from; `DrawsOnce` where nothing is repeated."""
DrawsOnce = Annotated[dict[str, int], Fields(Replay, "budget seed", {"budget": DEFAULT_BUDGET, "seed": 0})]
RayAddress = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Work on a Ray cluster: auto, ray://HOST:PORT or local (extra ray)."),
]
Slots = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many responses to a question the server works on at once; all by default."),
]
TokensPerSecond = Annotated[
    float | None, typer.Option(metavar="N", help="How quick a response is, for latency in seconds.", callback=_above_0)
]

_UNTOLD = dict.fromkeys(one.name for one in fields(Costs))
Prices = Annotated[dict[str, Any], Fields(Costs, defaults=_UNTOLD)]
Worth = Annotated[
    dict[str, Any],
    Fields(Costs, "tokens_per_sample seconds_per_round value_of_a_second value_of_an_answer", _UNTOLD),
]
"""The same where the price is one of the command's own."""


def load_pools(names: Sequence[str]) -> list[suffice.Pool]:
    with waiting("reading pools"):
        return [suffice.load_pool(name) for name in names]


def load_voters(texts: Sequence[str]) -> list[PoolVoter]:
    with waiting("reading pools"):
        return [PoolVoter.of(text) for text in texts]


def on_ray(address: str | None) -> Executor | None:
    return Ray(address) if address else None


def costs_of(prices: Mapping[str, Any]) -> Costs:
    """The costs that prices make; responses without tokens cost nothing, which nobody means."""
    if prices.get("tokens_per_sample") == 0:
        raise OptionError("must be above 0", "tokens_per_sample")
    return Costs(**prices)


@dataclass(frozen=True)
class Process:
    """The options of a decision process."""

    penalty_draw: float = setting(Penalties.draw, "What a draw costs.")
    penalty_round: float = setting(Penalties.round, "What a round costs.")
    actions: str = setting("1,2,4", "The numbers of draws that may be asked for.", "1,2,4")

    @property
    def draws(self) -> tuple[int, ...]:
        """The actions as numbers."""
        try:
            return tuple(int(part) for part in self.actions.split(","))
        except ValueError:
            raise OptionError(f'must be whole numbers with commas between, not "{self.actions}"', "actions") from None

    def penalties(self, pools: Sequence[suffice.Pool], prices: Mapping[str, Any], quiet: bool = False) -> Penalties:
        """The penalties, or what they stand for where any of that is given, which is then told."""
        if not prices:
            return Penalties(self.penalty_draw, self.penalty_round)
        if "value_of_an_answer" not in prices:
            raise OptionError("must be given for costs to be weighed against it", "value_of_an_answer")
        if "price_per_million_tokens" in prices and "tokens_per_sample" not in prices:
            counts = [count for pool in pools for one in pool.questions for count in one.tokens or ()]
            counted = [count for count in counts if count is not None]
            if not counted:
                raise OptionError("must be given: there is no pool that tells it", "tokens_per_sample")
            prices = {**prices, "tokens_per_sample": sum(counted) / len(counted)}
        costs = costs_of(prices)
        typer.echo(f"Penalties: {costs.penalties.draw:.4g} a draw, {costs.penalties.round:.4g} a round.", err=quiet)
        return costs.penalties


OF_PLANS = Process(Plan.penalty_draw, Plan.penalty_round, ",".join(map(str, Plan.actions)))
Trained = Annotated[Process, Fields(Process)]
Planned = Annotated[Process, Fields(Process, defaults=vars(OF_PLANS))]


@dataclass(frozen=True)
class OutputFiles:
    """The files that are asked for."""

    json: Path | None = setting(None, "Write the results as JSON; without FILE, print that and no tables.", "[FILE]")
    csv: Path | None = setting(None, "Write the results as CSV.", "FILE")
    figure: Path | None = setting(None, "Draw the results: a .png, .svg or .pdf file.", "FILE")
    report: Path | None = setting(None, "Write a report to open in a browser, as one HTML file.", "FILE")

    def __post_init__(self) -> None:
        self.check()

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
            command = shlex.join(["suffice", *arguments])
            shown = re.sub(r"://[^/@\s]+@", "://…@", command)  # without the password of a URL
            write_whole(self.report, report_html(report(), shown).encode())
            typer.echo(f"The report is in {self.report}: open it in a browser.", err=True)


JsonFile = Annotated[OutputFiles, Fields(OutputFiles, "json")]
ReportFile = Annotated[OutputFiles, Fields(OutputFiles, "report")]
Pictured = Annotated[OutputFiles, Fields(OutputFiles, "json figure report")]
Outputs = Annotated[OutputFiles, Fields(OutputFiles)]
