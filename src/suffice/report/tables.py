"""Tables for the terminal: what a replay measured and what a pool looks like."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from suffice.controllers import ConditionedController
from suffice.penalties import Penalties
from suffice.pools import Summary
from suffice.replay import Advice, Choice, Comparison, Result, difference, mean_over_pools
from suffice.replay.compare import Difference, reliabilities
from suffice.replay.evaluate import spread
from suffice.replay.learning import LearningReplay
from suffice.report.layout import AVERAGE, Columns
from suffice.report.markdown import gap_text, text_of

if TYPE_CHECKING:
    from suffice.training.learner import Trained


class ControllerRow(NamedTuple):
    """A controller's results on one or more pools, the baseline's on the same, and the regrets of a learned one."""

    controller: str
    results: list[Result]
    baselines: list[Result]
    regrets: list[float]

    @property
    def is_baseline(self) -> bool:
        """Whether it is what the others are compared with: there is no change against itself."""
        return self.results[0] is self.baselines[0]


def evaluation_tables(comparisons: Sequence[Comparison]) -> list[Columns]:
    """The comparison in samples and rounds, the one in tokens, the differences to the baseline, the reliability."""
    blocks = [(pool.baseline.pool, controller_rows([pool])) for pool in comparisons]
    if len(blocks) > 1:
        blocks.append((AVERAGE, controller_rows(comparisons)))
    base = comparisons[0].baseline.controller
    others = [(title, [row for row in rows if not row.is_baseline]) for title, rows in blocks]
    cost = f"change against {base} in brackets"
    for election in {result.election for result in comparisons[0].results} - {"majority"}:
        cost, base = f"elected by {election}; {cost}", f"{base}, elected by majority"
    answers = ["accuracy", "agreement", "agreement_independent"]
    if any(pool.baseline.field_accuracy is not None for pool in comparisons):
        answers.insert(1, "field_accuracy")
    worth = ["sequential_tokens", "total_tokens", "reward", *["regret"] * bool(comparisons[0].ceilings)]
    tables = [
        _table(f"Samples and rounds; {cost}", blocks, [*answers, "rounds", "samples"], _figure),
        _table(f"Tokens and reward; {cost}", blocks, worth, _figure),
    ]
    if any(rows for _, rows in others):
        known = difference(comparisons[0].results[:1], [comparisons[0].baseline], "samples")
        title = f"Differences to {base}, {intervals_told(known)}"
        tables.append(_table(title, others, ["accuracy", "samples", "reward"], _interval, least=6))
    if comparisons[0].baseline.reliability:
        tables.append(_reliability_table(comparisons))
    return tables


def intervals_told(gap: Difference | None) -> str:
    """Whether differences such as this one have intervals."""
    few = gap is not None and gap.low is None
    return "without intervals: there are too few questions" if few else "with paired 95 % intervals over questions"


def replay_sentences(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """What a replay came to: samples saved, how often an independent full vote agrees, and tokens saved.

    Each only where it is known: there must be a full vote, and something to compare with it.
    """
    said = {}
    if without := [pool.baseline.pool for pool in comparisons if not pool.baseline.share]:
        names = ", ".join(without)
        said["sentence"] = (
            f"no response in {names} has an answer: there is nothing to vote on, and none agrees with none"
        )
    if not (found := _best_and_full(comparisons)):
        return said
    best, full = found
    name = best.controller

    def means(metric: str) -> tuple[Any, Any]:
        return mean_over_pools(best.results, metric), mean_over_pools(full, metric)

    samples, draws = means("samples")
    vote = f"SC@{draws:.0f}"
    ours, theirs = means("agreement_independent")
    if ours is not None and theirs is not None:
        said["independent"] = f"an independent {vote} agrees with {name} in {ours:.1f} %, with {vote} in {theirs:.1f} %"
    if without:
        return said
    over = f", over {len(comparisons)} pools" if len(comparisons) > 1 else ""
    same = "answers" if best.results[0].election == "majority" else "majorities"
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


def _best_and_full(comparisons: Sequence[Comparison]) -> tuple[ControllerRow, list[Result]] | None:
    """The plan where there is one, else the best by reward; and the full vote."""
    rows = controller_rows(comparisons)
    full = next((row.baselines for row in rows if row.baselines[0].controller == "sc"), None)
    full = full or next((row.results for row in rows if row.controller == "sc"), None)
    others = [row for row in rows if row.controller != "sc"]
    if not full or not others:
        return None

    def merit(row: ControllerRow) -> tuple[bool, float]:
        return row.controller.partition(":")[0] == "plan", mean_over_pools(row.results, "reward") or 0.0

    return max(others, key=merit), full


def _reliability_table(comparisons: Sequence[Comparison]) -> Columns:
    """How sure outcomes are, and how often they agree with the full vote; all pools together."""
    title = "Reliability of the confidence, all pools together"
    table = Columns(title, "", ["confidence\n%", "agreement\n%", "calibration\nerror"])
    found = reliabilities(comparisons)
    for name, reliability in found.items():
        count, sure, agree = reliability.sums.sum(axis=0)
        figures = (100 * sure / count, 100 * agree / count, reliability.calibration_error)
        table.add_row(Text(name), *(f"{figure:.1f}" for figure in figures))
    return table


def pool_table(summaries: Sequence[Summary]) -> Columns:
    """Pools in figures."""
    figures = {
        "one\nright\n%": ("one_sample_accuracy", ".1f"),
        "vote\nright\n%": ("majority_accuracy", ".1f"),
        "entropy\nnats": ("entropy", ".2f"),
        "none\n%": ("none_share", ".1f"),
        "tokens\nmean": ("mean_tokens", ".0f"),
        "tokens\n95th pct": ("tokens_95", ".0f"),
    }
    table = Columns("Pools", "pool", ["ques-\ntions", "each", *figures], gap=1)
    for summary in summaries:
        each = "–".join(map(str, dict.fromkeys(summary.samples)))
        cells = (_number(getattr(summary, name), places) for name, places in figures.values())
        table.add_row(summary.pool, str(summary.questions), each, *cells)
    return table


def training_table(trained: "Sequence[Trained]") -> Columns:
    """What each seed's controller does on the training pools, their mean and deviation, and the rules' rewards."""
    metrics = ["reward", "accuracy", "agreement", "rounds", "samples"]
    table = Columns("On the training pools", "", ["steps", *(_HEADINGS[metric] for metric in metrics)], least=10, gap=1)
    for one in trained:
        figures = (mean_over_pools(one.results, metric) for metric in metrics)
        texts = map(_number, figures, (_FORMATS.get(metric, ".1f") for metric in metrics))
        table.add_row(f"seed {one.seed}", f"{one.controller.card['steps']:,}", *texts)
    if len(trained) > 1:
        table.add_row("mean ± std", "", *(_spread(trained, metric) for metric in metrics))
    for rule, known in trained[0].controller.card["rules"].items():
        table.add_row(rule, "", f"{known['reward']:.3f}", "", "", f"{known['rounds']:.1f}", f"{known['samples']:.1f}")
    return table


def controllers_table(shipped: ConditionedController) -> Columns:
    """The shipped controller, and what it can be asked for."""
    headings = ["budgets", "penalty\ndraw", "penalty\nround", "actions", "first", "trained on"]
    table = Columns("The shipped controller", "name", headings, least=4)
    table.add_row(
        "rl",
        *(f"{low:g}–{high:g}" for low, high in shipped.ranges.values()),
        "+".join(map(str, shipped.card["actions"])),
        str(shipped.first),
        ", ".join(pool["name"] for pool in shipped.card["pools"]),
    )
    return table


def controller_rows(comparisons: Sequence[Comparison]) -> list[ControllerRow]:
    """A row a controller, over all of these pools."""
    baselines = [pool.baseline for pool in comparisons]
    rows = []
    names = [result.controller for result in comparisons[0].results]
    for name, *results in zip(names, *(pool.results for pool in comparisons), strict=True):
        found = [pool.regret(result) for pool, result in zip(comparisons, results, strict=True)]
        regrets = [regret for regret in found if regret is not None]
        rows.append(ControllerRow(name, results, baselines, regrets))
    return rows


def _table(
    title: str,
    blocks: list[tuple[str, list[ControllerRow]]],
    metrics: Sequence[str],
    cell: Callable[[str, ControllerRow], str],
    least: int = 14,
) -> Columns:
    table = Columns(title, "", [_HEADINGS[metric] for metric in metrics], least)
    for name, rows in blocks:
        table.add_title(name)
        for row in rows:
            table.add_row(f"  {row.controller}", *(cell(metric, row) for metric in metrics))
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
_FORMATS = {"reward": ".3f", "sequential_tokens": "k", "total_tokens": "k"}
_COSTS = ("rounds", "samples", "sequential_tokens", "total_tokens")


def _figure(metric: str, row: ControllerRow) -> str:
    """The mean over pools and, for what costs, its change against the baseline."""
    if metric == "regret":  # of learned controllers only
        return f"{fmean(row.regrets):+.4f}" if row.regrets else ""
    value, base = mean_over_pools(row.results, metric), mean_over_pools(row.baselines, metric)
    text = _number(value, _FORMATS.get(metric, ".1f"))
    if metric in _COSTS and value is not None and base and not row.is_baseline:
        text += f" ({100 * (value / base - 1):+.0f} %)" if value < 10 * base else f" (×{value / base:.0f})"
    return text


def _interval(metric: str, row: ControllerRow) -> str:
    return gap_text(difference(row.results, row.baselines, metric), metric, 3 if metric == "reward" else 2)


def _spread(trained: "Sequence[Trained]", metric: str) -> str:
    mean, deviation = spread([mean_over_pools(one.results, metric) for one in trained])
    places = _FORMATS.get(metric, ".1f")
    return "–" if mean is None else f"{mean:{places}} ± {deviation:{places}}"


def _number(value: float | None, places: str, unknown: str = "–") -> str:
    if value is None:
        return unknown
    if places == "k":
        return text_of(value, "tokens")
    return f"{value:{places}}"


def clock_table(comparisons: Sequence[Comparison], tokens_per_second: float | None) -> Columns:
    """What the clock says: the critical path, all that was generated, and the draws that were started."""
    seconds = ["latency\nseconds"] if tokens_per_second else []
    table = Columns("The clock", "", ["latency\ntokens", *seconds, "spent\ntokens", "launched", "counted"])
    for pool in comparisons:
        for result in [*pool.results, *[pool.baseline] * all(pool.baseline is not one for one in pool.results)]:
            latency, spent = result.latency_tokens, result.spent_tokens
            waited = None if latency is None or not tokens_per_second else latency / tokens_per_second
            cells = [_number(latency, ".0f", ""), *(_number(waited, ".1f", "") for _ in seconds)]
            cells += [_number(spent, ".0f", ""), f"{result.launched:.1f}", f"{result.samples:.1f}"]
            table.add_row(Text(f"{result.controller}, {pool.baseline.pool}"), *cells)
    return table


def choice_options(choice: Choice) -> str:
    """A way to sample as it is given on the command line."""
    flow = f"--flow {choice.flow} " if choice.flow else ""
    return f"{flow}--controller {choice.controller}"


def advice_table(advice: Advice, tokens_per_second: float, every: bool = False) -> Columns:
    """The ways that no other beats in both latency and tokens, or every way, and asking once beside them."""
    unit = "tokens" if tokens_per_second == 1 else "seconds"
    headings = [f"latency\n{unit}", "spent\ntokens", "agreement\n%", "accuracy\n%"]
    table = Columns("All that was tried" if every else "Neither quicker nor cheaper", "", headings)
    for choice in [advice.once, *(advice.choices if every else advice.front)]:
        latency = choice.latency / tokens_per_second
        cells = (
            f"{latency:.0f}" if unit == "tokens" else f"{latency:.1f}",
            f"{choice.tokens:.0f}",
            f"{choice.agreement:.1f}",
            _number(choice.accuracy, ".1f"),
        )
        table.add_row(Text(choice_options(choice), style="bold" if choice == advice.chosen else ""), *cells)
    return table


def learning_table(replay: LearningReplay, penalties: Penalties) -> Columns:
    """What a pool as traffic took, by the number of questions seen: without learning → with it."""
    headings = ["samples", "agreement\n%", "reward"]
    table = Columns(f"{replay.pool} as traffic: without learning → with it", "questions", headings)
    for means in replay.curve(penalties):
        cells = [
            f"{means[f'staying_{metric}']:.{places}f} → {means[f'learning_{metric}']:.{places}f}"
            for metric, places in (("samples", 2), ("agreement", 2), ("reward", 4))
        ]
        table.add_row(f"{means['from'] + 1:.0f} to {means['to']:.0f}", *cells)
    return table
