"""The command line: parse, call, print."""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

import suffice
from suffice import OptionError, Penalties, Plan, SufficeError
from suffice.paths import check_writable, is_there, write_whole
from suffice.planning import ceiling
from suffice.planning.fit import fit_prior
from suffice.replay import Comparison, reliabilities
from suffice.replay.targets import HELD_OUT_SEED, meet
from suffice.report import (
    controllers_table,
    evaluation_tables,
    pool_table,
    progress_bar,
    results_csv,
    results_json,
    training_bar,
    training_json,
    training_table,
)

TRAINING_POOL = "qwen2.5-coder-1.5b__train"
TEST_POOLS = ["qwen2.5-coder-1.5b__dapo", "qwen2.5-coder-1.5b__gsm8k", "qwen2.5-coder-1.5b__math500"]

MISSED = 0.05
"""A mean that is further off than this share is said to be missed."""

CHECKPOINTS = (4, 8, 16, 24)
"""Numbers of draws after which the confidence is checked."""

WIDE = 120
"""Columns of output that goes to a file or a pipe, where there is no terminal to ask."""


_UsageError: Any = typer.BadParameter.__base__


_Price = Annotated[
    float | None, typer.Option("--price-per-million-tokens", help="What tokens cost, instead of a penalty for a draw.")
]
_Tokens = Annotated[
    float | None, typer.Option("--tokens-per-sample", help="How long a response is; the pools' mean by default.")
]
_Wait = Annotated[
    float | None, typer.Option("--seconds-per-round", help="How long a round takes, instead of a penalty for it.")
]
_Second = Annotated[float | None, typer.Option("--value-of-a-second", help="What a second of waiting costs.")]
_Answer = Annotated[
    float | None, typer.Option("--value-of-an-answer", help="What the right answer is worth, in the same money.")
]


class _Group(TyperGroup):
    """Turns our errors into one sentence and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            raise _refusal(error.format_message()) from None
        except SufficeError as error:
            raise _refusal(str(error)) from None
        except BrokenPipeError:  # whoever read our output has seen enough
            raise typer.Exit(1) from None
        except OSError as error:
            raise _refusal(f"the output can't be written: {error.strerror}") from None


def _refusal(message: str) -> typer.Exit:
    typer.echo("suffice: " + " ".join(message.split()), err=True)
    return typer.Exit(2)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask your LLM just enough times.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(suffice.__version__)
        raise typer.Exit


@app.callback()
def options(
    imports: Annotated[
        list[str],
        typer.Option("--import", metavar="MODULE", help="Import a module, or a .py file, that registers controllers."),
    ] = [],  # noqa: B006
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Ask your LLM just enough times."""
    for name in imports:
        _import(name)


@app.command()
def pools(
    chosen: Annotated[
        list[str],
        typer.Argument(metavar="POOL", help="Names of bundled pools, or paths; all bundled ones by default."),
    ] = [],  # noqa: B006
) -> None:
    """Describe pools: how hard they are and how much their answers differ."""
    summaries = [suffice.summarise(suffice.load_pool(name)) for name in chosen or suffice.bundled_pools()]
    _print(pool_table(summaries))


@app.command()
def evaluate(
    chosen: Annotated[list[str], typer.Argument(metavar="POOL", help="Names of bundled pools, or paths.")],
    controllers: Annotated[
        list[str],
        typer.Option("--controller", metavar="C", help="A controller, as NAME or NAME:key=value,…; repeat for more."),
    ] = ["sc", "asc", "esc", "doubling", "boinf"],  # noqa: B006
    budget: Annotated[int, typer.Option(help="The most draws for a question.")] = 32,
    repeats: Annotated[int, typer.Option(help="How often each question is replayed.")] = 100,
    seed: Annotated[int, typer.Option(help="Chooses the draws.")] = 0,
    penalty_draw: Annotated[float, typer.Option(help="What a draw costs in the reward.")] = 0.0075,
    penalty_round: Annotated[float, typer.Option(help="What a round costs in the reward.")] = 0.0,
    price: _Price = None,
    tokens: _Tokens = None,
    wait: _Wait = None,
    second: _Second = None,
    answer: _Answer = None,
    baseline: Annotated[
        str, typer.Option(metavar="C", help="The controller that changes and differences are against.")
    ] = "sc",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as CSV.")] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the reliability diagram, as a PNG file.")
    ] = None,
) -> None:
    """Replay controllers over pools, all on the same draws, and compare them."""
    for path in filter(None, (json, csv, figure)):
        check_writable(path)
    figures = _need("suffice.report.figures", "plot") if figure else None
    loaded = [suffice.load_pool(name) for name in chosen]
    for pool in loaded:
        pool.check_budget(budget)
    penalties = _penalties(penalty_draw, penalty_round, loaded, price, tokens, wait, second, answer)
    ceilings = {name: plan for name in controllers if (plan := ceiling(name, penalties))}
    checkpoints = [f"sc:draws={draws}" for draws in CHECKPOINTS if draws < budget]
    asked: list[Any] = list(dict.fromkeys([*controllers, baseline, *checkpoints, *ceilings.values()]))
    comparisons = []
    with progress_bar("replay", len(asked) * sum(len(pool.questions) for pool in loaded)) as advance:
        for pool in loaded:
            results = suffice.evaluate(
                pool,
                asked,
                budget=budget,
                repeats=repeats,
                seed=seed,
                penalties=penalties,
                progress=advance,
            )
            by_name = dict(zip(asked, results, strict=True))
            comparisons.append(
                Comparison(
                    [by_name[name] for name in controllers],
                    by_name[baseline],
                    {name: by_name[plan] for name, plan in ceilings.items()},
                    [by_name[name] for name in checkpoints],
                )
            )
    if json:
        settings = {"penalty_draw": penalties.draw, "penalty_round": penalties.round}
        text = results_json(comparisons, budget=budget, repeats=repeats, seed=seed, **settings)
        write_whole(json, text.encode())
    if csv:
        write_whole(csv, results_csv(comparisons).encode("utf-8", "surrogateescape"))
    if figures:
        figures.draw_reliability(reliabilities(comparisons), figure)
    for table in evaluation_tables(comparisons):
        _print(table, "")


@app.command()
def train(
    chosen: Annotated[list[str], typer.Argument(metavar="POOL", help="Names of bundled pools, or paths.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the controller goes, as a .safetensors file.")],
    algorithm: Annotated[str, typer.Option(metavar="ppo|dqn|a2c", help="The learning algorithm.")] = "ppo",
    preset: Annotated[str, typer.Option(metavar="fast|paper", help="How the algorithm is run.")] = "fast",
    target: Annotated[
        str,
        typer.Option(
            metavar="running|full|gold", help="What counts as right: the full budget's vote, the pool's, gold."
        ),
    ] = "running",
    penalty_draw: Annotated[float, typer.Option(help="What a draw costs.")] = 0.0075,
    penalty_round: Annotated[float, typer.Option(help="What a round costs.")] = 0.0,
    price: _Price = None,
    tokens: _Tokens = None,
    wait: _Wait = None,
    second: _Second = None,
    answer: _Answer = None,
    actions: Annotated[
        str, typer.Option(metavar="1,2,4", help="The numbers of draws that may be asked for.")
    ] = "1,2,4",
    first: Annotated[int, typer.Option(help="The draws of the first round.")] = 4,
    budget: Annotated[int, typer.Option(help="The most draws for a question.")] = 32,
    top: Annotated[int, typer.Option(help="How many vote counts the controller sees.")] = 5,
    mean_samples: Annotated[
        float | None, typer.Option(help="Find the penalty for a draw with which so many are drawn on average.")
    ] = None,
    mean_rounds: Annotated[
        float | None, typer.Option(help="Find the penalty for a round with which there are at most so many on average.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Decisions to learn from, for each seed.")] = 1_000_000,
    seeds: Annotated[int, typer.Option(help="How many controllers to train; the best is kept.")] = 5,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figures of all seeds as JSON.")] = None,
) -> None:
    """Train a controller on pools; Ctrl-C keeps the best so far."""
    training = _need("suffice.training", "train")
    for path in filter(None, (out, json)):
        check_writable(path)
    pools = tuple(suffice.load_pool(name) for name in chosen)
    penalties = _penalties(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer)
    setting = training.Setting(penalties, _whole_numbers("--actions", actions), first, budget, top, target)
    job = training.Job(pools, setting, algorithm, preset, steps, seed, mean_samples, mean_rounds)
    with training_bar(seeds, steps) as watch:
        trained = training.train(job, seeds, watch)
    if not trained:
        raise KeyboardInterrupt  # before there was anything to keep
    best = trained[0].controller
    suffice.save_controller(best, out)
    _print(training_table(trained))
    if json:
        write_whole(json, training_json(trained).encode())
    over = job.excess(best.card["samples"], best.card["rounds"])
    if max(abs(over[0]), over[1]) > MISSED:
        typer.secho("WARNING: the means were missed by more than 5 %: train longer.", fg="red", bold=True, err=True)
    for rule in [] if mean_samples or mean_rounds else best.no_better_than():
        message = (
            f"WARNING: on its own training pools this controller is no better than {rule}: it has learned nothing "
            "worth using. Train longer, with more seeds, or on pools with more agreement."
        )
        typer.secho(message, fg="red", bold=True, err=True)
    if any(one.controller.card["steps"] < steps for one in trained):
        typer.echo("Interrupted: these are the best so far.", err=True)
    typer.echo(f"The controller of seed {trained[0].seed} is in {out}: use it as file:{out}")


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
        _print(controllers_table(suffice.shipped_controllers()))


class _ManyValues(TyperCommand):
    """Lets `--train A B` stand for `--train A --train B`, and likewise for the other options that take pools."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spread: list[str] = []
        option = ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg in ("--train", "--test", "--fit") else ""
            if option and arg != option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        parsed: list[str] = super().parse_args(ctx, spread)
        return parsed


@app.command(cls=_ManyValues)
def plan(
    chosen: Annotated[
        list[str], typer.Argument(metavar="POOL", help="Pools to meet the means on; the model's own by default.")
    ] = [],  # noqa: B006
    mean_samples: Annotated[float | None, typer.Option(help="Draw so many on average.")] = None,
    mean_rounds: Annotated[float | None, typer.Option(help="Take at most so many rounds on average.")] = None,
    min_agreement: Annotated[float | None, typer.Option(help="Agree with the full vote so often, in percent.")] = None,
    budget: Annotated[int, typer.Option(help="The most draws for a question.")] = 32,
    penalty_draw: Annotated[float, typer.Option(help="What a draw costs.")] = Plan.penalty_draw,
    penalty_round: Annotated[float, typer.Option(help="What a round costs.")] = Plan.penalty_round,
    price: _Price = None,
    tokens: _Tokens = None,
    wait: _Wait = None,
    second: _Second = None,
    answer: _Answer = None,
    actions: Annotated[
        str, typer.Option(metavar="1,2,4", help="The numbers of draws that may be asked for.")
    ] = ",".join(map(str, Plan.actions)),
    fit: Annotated[list[str], typer.Option(metavar="POOL…", help="Fit the prior to these pools.")] = [],  # noqa: B006
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the controller goes, as .safetensors.")
    ] = None,
) -> None:
    """Compute the best policy exactly, with no training: for penalties, or for means that it shall meet."""
    if out:
        check_writable(out)
    pools = [suffice.load_pool(name) for name in chosen]
    penalties = _penalties(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer)
    base = Plan(penalties.draw, penalties.round, _whole_numbers("--actions", actions))
    if fit:
        base = _fitted(base, [suffice.load_pool(name) for name in fit], budget)
    result: suffice.SavedController = base
    if mean_samples is not None or mean_rounds is not None or min_agreement is not None:
        found = meet(base, budget, pools, mean_samples, mean_rounds, min_agreement)
        result = found.controller
        typer.echo(found.report)
    for pool in pools:
        (measured,) = suffice.evaluate(pool, result, budget=budget, seed=HELD_OUT_SEED)
        typer.echo(
            f"{pool.name}: {measured.samples:.2f} samples in {measured.rounds:.2f} rounds, "
            f"{measured.agreement:.2f} % agreement, measured on other draws"
        )
    if out:
        suffice.save_controller(result, out)
        typer.echo(f"The plan is in {out}: use it as file:{out}")
    else:
        typer.echo(f"Use it as {result}" if isinstance(result, Plan) and not fit else "Say --out FILE to keep it.")


def _fitted(base: Plan, pools: list[suffice.Pool], budget: int) -> Plan:
    """The plan with a prior fitted to pools, and what that changes on them."""
    fitted = fit_prior(pools)
    after = replace(base, prior=fitted.prior)
    concentration, discount = fitted.typical
    typer.echo(
        f"Fitted to {sum(len(pool.questions) for pool in pools)} questions: concentration {concentration:.3g}, "
        f"discount {discount:.2f}; a question's answers are {fitted.nats_gained:.2f} nats likelier than before."
    )
    penalties = Penalties(base.penalty_draw, base.penalty_round)
    for pool in pools:
        old, new = suffice.evaluate(pool, [base, after], budget=budget, penalties=penalties)
        typer.echo(
            f"{pool.name}: reward {old.reward:.4f} → {new.reward:.4f}, samples {old.samples:.1f} → {new.samples:.1f}, "
            f"rounds {old.rounds:.1f} → {new.rounds:.1f}"
        )
    return after


@app.command(cls=_ManyValues)
def reproduce(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="main, scaling, frontier, ablation, explain, transfer or all.")
    ],
    train: Annotated[list[str], typer.Option(metavar="POOL…", help="Pools to train on.")] = [TRAINING_POOL],  # noqa: B006
    test: Annotated[list[str], typer.Option(metavar="POOL…", help="Pools to test on.")] = TEST_POOLS,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the pages, tables and pictures go.")] = Path(
        "reproduced"
    ),
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Train for each test pool on the same model's others.")
    ] = False,
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Let training and test share questions.")
    ] = False,
    preset: Annotated[str, typer.Option(metavar="fast|paper", help="How PPO is run.")] = "fast",
    steps: Annotated[int, typer.Option(help="Decisions to learn from, for each controller.")] = 1_000_000,
    seeds: Annotated[int, typer.Option(help="How many controllers the tables are means of.")] = 5,
    repeats: Annotated[int, typer.Option(help="How often each question is replayed.")] = 100,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
) -> None:
    """Run the paper's experiments on any pools; interrupted, it goes on where it was."""
    experiments = _need("suffice.report.experiments", "train,plot")
    if what not in (*experiments.EXPERIMENTS, "all"):
        raise OptionError(f'WHAT must be one of {", ".join(experiments.EXPERIMENTS)} or all, not "{what}"')
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--out {out}: it can't be made a folder: {error.strerror}") from None
    bench = experiments.Bench(
        train=tuple(map(suffice.load_pool, train)),
        test=tuple(map(suffice.load_pool, test)),
        out=out,
        leave_one_out=leave_one_out,
        steps=steps,
        seeds=seeds,
        repeats=repeats,
        seed=seed,
        preset=preset,
    )
    bench.check(allow_overlap)
    try:
        experiments.reproduce(what, bench)
    except KeyboardInterrupt:
        typer.echo("Interrupted: run the same command again to go on.", err=True)
        raise
    typer.echo((out / f"{'index' if what == 'all' else what}.md").read_text())
    typer.echo(f"All of it is in {out}.")


def _import(name: str) -> None:
    """Run a module or file for what it registers."""
    path = Path(name)
    sys.path.insert(0, str(path.parent) if name.endswith(".py") else "")
    try:
        if name.endswith(".py") and not is_there(path):
            raise FileNotFoundError("there is no such file")
        importlib.import_module(path.stem if name.endswith(".py") else name)
    except SufficeError:
        raise
    except Exception as error:
        raise OptionError(f"--import {name}: {error}") from None


def _penalties(
    draw: float,
    round_: float,
    pools: Sequence[suffice.Pool],
    price: float | None,
    tokens: float | None,
    wait: float | None,
    second: float | None,
    answer: float | None,
) -> Penalties:
    """The penalties, or what they stand for where any of that is given."""
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
    typer.echo(f"Penalties: {costs.penalties.draw:.4g} a draw, {costs.penalties.round:.4g} a round.")
    return costs.penalties


def _need(module: str, extra: str) -> Any:
    """Import what lives behind an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs {error.name}, of the extra {extra}: pip install 'suffice[{extra}]'") from None


def _whole_numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f'{option} must be whole numbers with commas between, not "{text}"') from None


def _print(*parts: Any) -> None:
    """Print tables, each as wide as it needs to be: a narrow terminal folds lines, but nothing is cut."""
    console = Console(width=None if sys.stdout and sys.stdout.isatty() else WIDE, markup=False, emoji=False)
    for part in parts:
        console.print(part, width=max(console.width, console.measure(part).minimum), crop=False, no_wrap=True)


def main() -> None:
    """The `suffice` command."""
    app()
