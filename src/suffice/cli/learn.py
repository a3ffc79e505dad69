"""Commands that make controllers: `train` and `plan`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import Penalties, Plan
from suffice.cli.app import ManyValues, app, need, show, whole_numbers
from suffice.cli.costs import Answer, Price, Second, Tokens, Wait, penalties_of
from suffice.paths import check_writable, write_whole
from suffice.planning.fit import fit_prior
from suffice.replay.targets import HELD_OUT_SEED, meet
from suffice.report import training_bar, training_json, training_table

MISSED = 0.05
"""A mean that is further off than this share is said to be missed."""


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
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
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
    training = need("suffice.training", "train")
    for path in filter(None, (out, json)):
        check_writable(path)
    pools = tuple(suffice.load_pool(name) for name in chosen)
    penalties = penalties_of(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer)
    setting = training.Setting(penalties, whole_numbers("--actions", actions), first, budget, top, target)
    job = training.Job(pools, setting, algorithm, preset, steps, seed, mean_samples, mean_rounds)
    with training_bar(seeds, steps) as watch:
        trained = training.train(job, seeds, watch)
    if not trained:
        raise KeyboardInterrupt  # before there was anything to keep
    best = trained[0].controller
    suffice.save_controller(best, out)
    show(training_table(trained))
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


@app.command(cls=ManyValues)
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
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
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
    penalties = penalties_of(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer)
    base = Plan(penalties.draw, penalties.round, whole_numbers("--actions", actions))
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
