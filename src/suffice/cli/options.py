"""Options that several commands share, each declared once; their defaults are those of what they configure."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import OptionError, Penalties
from suffice.cli import completion
from suffice.executors import Executor, Ray
from suffice.report import waiting
from suffice.training.setting import Setting

PAPER_ACTIONS = ",".join(map(str, Setting.actions))

Pools = Annotated[
    list[str],
    typer.Argument(metavar="POOL", help="Names of bundled pools, or paths.", autocompletion=completion.pools),
]
Controllers = Annotated[
    list[str],
    typer.Option(
        "--controller",
        metavar="C…",
        help="Controllers, each as NAME or NAME:key=value,….",
        autocompletion=completion.controllers,
    ),
]
Elect = Annotated[
    str,
    typer.Option(metavar="E", help="How the answer is elected: majority, weighted:signal=logprob,strength=0.4, …"),
]
Budget = Annotated[int, typer.Option(help="The most draws for a question.")]
Repeats = Annotated[int, typer.Option(help="How often each question is replayed.")]
DrawSeed = Annotated[int, typer.Option(help="Chooses the draws.")]
FirstSeed = Annotated[int, typer.Option(help="The first seed.")]
Actions = Annotated[str, typer.Option(metavar="1,2,4", help="The numbers of draws that may be asked for.")]
Algorithm = Annotated[str, typer.Option(metavar="ppo|dqn|a2c", help="The learning algorithm.")]
First = Annotated[int, typer.Option(help="The draws of the first round.")]
Steps = Annotated[int, typer.Option(help="Decisions to learn from, for each controller.")]
Keep = Annotated[
    str, typer.Option(metavar="best|last", help="The best network of each training, or the last, as in the paper.")
]
Preset = Annotated[str, typer.Option(metavar="fast|paper", help="How the algorithm is run.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="[FILE]", help="Write the results as JSON; without FILE, print that and no tables."),
]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as CSV.")]
RayAddress = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Work on a Ray cluster: auto, ray://HOST:PORT or local (extra ray)."),
]

Mode = Annotated[str, typer.Option(metavar="rounds|flow", help="Whole rounds, or a decision on every arrival.")]
Order = Annotated[str, typer.Option(metavar="launch|arrival", help="In flow, the order in which votes count.")]
Extra = Annotated[int, typer.Option(help="In flow, how many more draws than asked for are in flight.")]
Slots = Annotated[
    int | None, typer.Option(help="How many responses to a question the server works on at once; all by default.")
]
TokensPerSecond = Annotated[float | None, typer.Option(help="How quick a response is, for latency in seconds.")]

PenaltyDraw = Annotated[float, typer.Option(help="What a draw costs.")]
PenaltyRound = Annotated[float, typer.Option(help="What a round costs.")]
Price = Annotated[
    float | None, typer.Option("--price-per-million-tokens", help="What tokens cost, instead of a penalty for a draw.")
]
Tokens = Annotated[
    float | None, typer.Option("--tokens-per-sample", help="How long a response is; the pools' mean by default.")
]
Wait = Annotated[
    float | None, typer.Option("--seconds-per-round", help="How long a round takes, instead of a penalty for it.")
]
Second = Annotated[float | None, typer.Option("--value-of-a-second", help="What a second of waiting costs.")]
Answer = Annotated[
    float | None, typer.Option("--value-of-an-answer", help="What the right answer is worth, in the same money.")
]


def load_pools(names: Sequence[str]) -> list[suffice.Pool]:
    """The pools of these names or paths."""
    with waiting("reading pools"):
        return [suffice.load_pool(name) for name in names]


def on_ray(address: str | None) -> Executor | None:
    """The Ray cluster at an address, where one is given."""
    return Ray(address) if address else None


def standing_of(executor: Executor | None) -> Callable[[], str]:
    """What a progress bar shows of where the work is."""
    return lambda: executor.standing if executor else ""


def penalties_of(
    draw: float,
    round_: float,
    pools: Sequence[suffice.Pool],
    price: float | None,
    tokens: float | None,
    wait: float | None,
    second: float | None,
    answer: float | None,
    quiet: bool = False,
) -> Penalties:
    """The penalties, or what they stand for where any of that is given, which is then told."""
    if (price, tokens, wait, second, answer) == (None,) * 5:
        return Penalties(draw, round_)
    if answer is None:
        raise OptionError("--value-of-an-answer must be given for costs to be weighed against it")
    if price is not None and tokens is None:
        counted = [count for pool in pools for one in pool.questions for count in one.tokens or () if count is not None]
        if not counted:
            raise OptionError("--tokens-per-sample must be given: there is no pool that tells it")
        tokens = sum(counted) / len(counted)
    costs = suffice.Costs(price or 0.0, tokens or 0.0, wait or 0.0, second or 0.0, answer)
    typer.echo(f"Penalties: {costs.penalties.draw:.4g} a draw, {costs.penalties.round:.4g} a round.", err=quiet)
    return costs.penalties
