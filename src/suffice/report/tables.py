"""Tables for the terminal: what a replay measured and what a pool looks like."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from suffice.controllers import ConditionedController
from suffice.penalties import Penalties
from suffice.pools import Summary
from suffice.replay import Advice, Choice, Comparison, Result, difference, mean_over_pools
from suffice.replay.compare import reliabilities
from suffice.replay.learning import LearningReplay
from suffice.report.layout import AVERAGE, Columns
from suffice.report.markdown import gap_text, spreads, text_of

if TYPE_CHECKING:
    from suffice.training.learner import Trained


def evaluation_tables(comparisons: Sequence[Comparison]) -> list[Columns]:
    first = comparisons[0]
    blocks: list[Sequence[Comparison]] = [[pool] for pool in comparisons]
    if len(blocks) > 1:
        blocks.append(comparisons)
    base = first.baseline.controller
    cost = f"change against {base} in brackets"
    for election in {result.election for result in first.results} - {"majority"}:
        cost, base = f"elected by {election}; {cost}", f"{base}, elected by majority"
    answers = ["accuracy", "agreement", "agreement_independent"]
    if any(pool.baseline.field_accuracy is not None for pool in comparisons):
        answers.insert(1, "field_accuracy")
    worth = ["sequential_tokens", "total_tokens", "reward", *["regret"] * bool(first.ceilings)]
    tables = [
        _table(f"Samples and rounds; {cost}", blocks, [*answers, "rounds", "samples"]),
        _table(f"Tokens and reward; {cost}", blocks, worth),
    ]
    if any(result is not first.baseline for result in first.results):
        gap = difference(first.results[:1], [first.baseline], "samples")
        intervals = "with paired 95 % intervals over questions"
        if gap and gap.low is None:
            intervals = "without intervals: there are too few questions"
        title = f"Differences to {base}, {intervals}"
        tables.append(_table(title, blocks, ["accuracy", "samples", "reward"], gaps=True))
    if first.baseline.reliability:
        tables.append(_reliability_table(comparisons))
    return tables


def replay_sentences(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Samples and tokens saved, and how an independent full vote agrees, where known."""
    said = {}
    if without := [pool.baseline.pool for pool in comparisons if not pool.baseline.share]:
        names = ", ".join(without)
        said["sentence"] = (
            f"no response in {names} has an answer: there is nothing to vote on, and none agrees with none"
        )
    if not (found := _best_and_full(comparisons)):
        return said
    best, full = found
    name = best[0].controller

    def means(metric: str) -> tuple[Any, Any]:
        return mean_over_pools(best, metric), mean_over_pools(full, metric)

    samples, draws = means("samples")
    vote = f"SC@{draws:.0f}"
    ours, theirs = means("agreement_independent")
    if ours is not None and theirs is not None:
        said["independent"] = f"an independent {vote} agrees with {name} in {ours:.1f} %, with {vote} in {theirs:.1f} %"
    if without:
        return said
    over = f", over {len(comparisons)} pools" if len(comparisons) > 1 else ""
    same = "answers" if best[0].election == "majority" else "majorities"
    said["sentence"] = (
        f"{name}: {100 * abs(1 - samples / draws):.0f} % {'fewer' if samples <= draws else 'more'} samples than {vote} "
        f"in {means('rounds')[0]:.1f} rounds, {means('agreement')[0]:.1f} % the same {same}{over}"
    )
    spent, whole = means("total_tokens")
    if spent is not None and whole:
        saved = f"saves: {whole - spent:,.0f} of {whole:,.0f} a question ({100 * (1 - spent / whole):.0f} %)"
        more = f"spends more: {spent - whole:,.0f} a question, beside {whole:,.0f}"
        said["tokens"] = f"tokens (prompts not counted) that {name} {saved if spent <= whole else more}"
    return said


def _best_and_full(comparisons: Sequence[Comparison]) -> tuple[Sequence[Result], Sequence[Result]] | None:
    """The plan where there is one, else the best by reward; and the full vote."""
    rows = [*zip(*(pool.results for pool in comparisons), strict=True)]
    baselines = [pool.baseline for pool in comparisons]
    full = next((row for row in (baselines, *rows) if row[0].controller == "sc"), None)
    others = [row for row in rows if row[0].controller != "sc"]
    if not full or not others:
        return None

    def merit(row: Sequence[Result]) -> tuple[bool, float]:
        return row[0].controller.partition(":")[0] == "plan", mean_over_pools(row, "reward") or 0.0

    return max(others, key=merit), full


def _reliability_table(comparisons: Sequence[Comparison]) -> Columns:
    figures = dict.fromkeys(("confidence\n%", "agreement\n%", "calibration\nerror"), ".1f")
    table = Columns("Reliability of the confidence, all pools together", "", figures)
    for name, reliability in reliabilities(comparisons).items():
        count, sure, agree = reliability.sums.sum(axis=0)
        table.add_row(name, 100 * sure / count, 100 * agree / count, reliability.calibration_error)
    return table


def pool_table(summaries: Sequence[Summary]) -> Columns:
    figures = {"ques-\ntions": "", "each": "", "one\nright\n%": ".1f", "vote\nright\n%": ".1f"}
    figures |= {"entropy\nnats": ".2f", "none\n%": ".1f", "tokens\nmean": ".0f", "tokens\n95th pct": ".0f"}
    table = Columns("Pools", "pool", figures, gap=1)
    for one in summaries:
        each = "–".join(map(str, dict.fromkeys(one.samples)))
        shares = (one.one_sample_accuracy, one.majority_accuracy, one.entropy, one.none_share)
        table.add_row(one.pool, one.questions, each, *shares, one.mean_tokens, one.tokens_95)
    return table


def training_table(trained: "Sequence[Trained]") -> Columns:
    metrics = ["reward", "accuracy", "agreement", "rounds", "samples"]
    figures = {"steps": ","} | {_HEADINGS[metric]: ".3f" if metric == "reward" else ".1f" for metric in metrics}
    table = Columns("On the training pools", "", figures, least=10, gap=1)
    for one in trained:
        means = (mean_over_pools(one.results, metric) for metric in metrics)
        table.add_row(f"seed {one.seed}", one.controller.card["steps"], *means)
    if len(trained) > 1:
        row = spreads([one.results for one in trained], metrics)
        texts = (f"{text_of(row[one], one)} ± {text_of(row[f'{one}_std'], one)}" for one in metrics)
        table.add_row("mean ± std", "", *("–" if text.startswith("–") else text for text in texts))
    for rule, known in trained[0].controller.card["rules"].items():
        table.add_row(rule, "", known["reward"], "", "", known["rounds"], known["samples"])
    return table


def controllers_table(shipped: ConditionedController) -> Columns:
    headings = ["budgets", "penalty\ndraw", "penalty\nround", "actions", "first", "trained on"]
    table = Columns("The shipped controller", "name", dict.fromkeys(headings, ""), least=4)
    table.add_row(
        "rl",
        *(f"{low:g}–{high:g}" for low, high in shipped.ranges.values()),
        "+".join(map(str, shipped.card["actions"])),
        shipped.first,
        ", ".join(pool["name"] for pool in shipped.card["pools"]),
    )
    return table


def _table(title: str, blocks: Sequence[Sequence[Comparison]], metrics: Sequence[str], gaps: bool = False) -> Columns:
    """A row a controller in each block of pools; the baseline has no differences."""
    table = Columns(title, "", {_HEADINGS[metric]: "" for metric in metrics}, least=6 if gaps else 14)
    cell = _interval if gaps else _figure
    for pools in blocks:
        table.add_title(AVERAGE if len(pools) > 1 else pools[0].baseline.pool)
        for results in zip(*(pool.results for pool in pools), strict=True):
            if not gaps or results[0] is not pools[0].baseline:
                table.add_row(f"  {results[0].controller}", *(cell(metric, results, pools) for metric in metrics))
    return table


_HEADINGS = {
    "accuracy": "accu-\nracy %",
    "field_accuracy": "fields\nright %",
    "agreement": "agree-\nment %",
    "agreement_independent": "indepen-\ndent %",
    "rounds": "rounds",
    "samples": "samples",
    "sequential_tokens": "sequential\ntokens",
    "total_tokens": "total\ntokens",
    "reward": "reward",
    "regret": "regret",
}
_COSTS = ("rounds", "samples", "sequential_tokens", "total_tokens")


def _figure(metric: str, results: Sequence[Result], pools: Sequence[Comparison]) -> str:
    """The mean over pools and, for what costs, its change against the baseline."""
    if metric == "regret":  # of learned controllers only
        regrets = [pool.regret(result) for pool, result in zip(pools, results, strict=True)]
        known = [regret for regret in regrets if regret is not None]
        return f"{fmean(known):+.4f}" if known else ""
    value, base = mean_over_pools(results, metric), mean_over_pools([pool.baseline for pool in pools], metric)
    text = text_of(value, metric)
    if metric in _COSTS and value is not None and base and results[0] is not pools[0].baseline:
        text += f" ({100 * (value / base - 1):+.0f} %)" if value < 10 * base else f" (×{value / base:.0f})"
    return text


def _interval(metric: str, results: Sequence[Result], pools: Sequence[Comparison]) -> str:
    gap = difference(results, [pool.baseline for pool in pools], metric)
    return gap_text(gap, metric, 3 if metric == "reward" else 2)


def clock_table(comparisons: Sequence[Comparison], tokens_per_second: float | None) -> Columns:
    seconds = {"latency\nseconds": ".1f"} if tokens_per_second else {}
    figures = {"latency\ntokens": ".0f", **seconds, "spent\ntokens": ".0f", "launched": ".1f", "counted": ".1f"}
    table = Columns("The clock", "", figures)
    for pool in comparisons:
        for result in [*pool.results, *[pool.baseline] * all(pool.baseline is not one for one in pool.results)]:
            tokens = [result.latency_tokens, result.spent_tokens]
            if tokens_per_second:
                tokens.insert(1, tokens[0] and tokens[0] / tokens_per_second)
            known = ("" if one is None else one for one in tokens)
            table.add_row(f"{result.controller}, {pool.baseline.pool}", *known, result.launched, result.samples)
    return table


def choice_options(choice: Choice) -> str:
    """A way to sample as it is given on the command line."""
    flow = f"--flow {choice.flow} " if choice.flow else ""
    return f"{flow}--controller {choice.controller}"


def advice_table(advice: Advice, tokens_per_second: float, every: bool = False) -> Columns:
    """The ways that no other beats in both latency and tokens, or every way, beside asking once."""
    latency = {"latency\ntokens": ".0f"} if tokens_per_second == 1 else {"latency\nseconds": ".1f"}
    figures = latency | {"spent\ntokens": ".0f", "agreement\n%": ".1f", "accuracy\n%": ".1f"}
    table = Columns("All that was tried" if every else "Neither quicker nor cheaper", "", figures)
    for choice in [advice.once, *(advice.choices if every else advice.front)]:
        took = (choice.latency / tokens_per_second, choice.tokens, choice.agreement, choice.accuracy)
        table.add_row(choice_options(choice), *took, style="bold" if choice == advice.chosen else "")
    return table


def learning_table(replay: LearningReplay, penalties: Penalties) -> Columns:
    figures = dict.fromkeys(("samples", "agreement\n%", "reward"), "")
    table = Columns(f"{replay.pool} as traffic: without learning → with it", "questions", figures)
    for means in replay.curve(penalties):
        cells = [
            f"{means[f'staying_{metric}']:.{places}f} → {means[f'learning_{metric}']:.{places}f}"
            for metric, places in (("samples", 2), ("agreement", 2), ("reward", 4))
        ]
        table.add_row(f"{means['from'] + 1:.0f} to {means['to']:.0f}", *cells)
    return table
