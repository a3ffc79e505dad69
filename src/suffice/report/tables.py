"""Tables for the terminal: what a replay measured and what a pool looks like."""

from collections.abc import Callable, Sequence
from statistics import fmean

from rich.table import Table

from suffice.pools import Summary
from suffice.replay import Comparison, Result, difference

Row = tuple[str, list[Result], list[Result]]
"""A controller, its results on one or more pools, and the baseline's on the same."""


def evaluation_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """The comparison in samples and rounds, the one in tokens, and the differences to the baseline."""
    blocks = _blocks(comparisons)
    base = comparisons[0].baseline.controller
    others = [(title, [row for row in rows if row[0] != base]) for title, rows in blocks]
    cost = f"change against {base} in brackets"
    tables = [
        _table(
            f"Samples and rounds; {cost}",
            blocks,
            ["accuracy", "agreement", "rounds", "samples", "reward"],
            _figure,
        ),
        _table(f"Tokens; {cost}", blocks, ["accuracy", "sequential_tokens", "total_tokens"], _figure),
    ]
    if any(rows for _, rows in others):
        title = f"Differences to {base}, with paired 95 % intervals over questions"
        tables.append(_table(title, others, ["accuracy", "samples", "reward"], _interval))
    return tables


def pool_table(summaries: Sequence[Summary]) -> Table:
    """Pools in figures."""
    table = Table(title="Pools", title_justify="left")
    table.add_column("pool", overflow="fold")
    for heading in (
        "questions",
        "samples\neach",
        "one sample\nright %",
        "majority\nright %",
        "entropy\nnats",
        "none %",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("tokens\nmean", "tokens\n95th pct"):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in summaries:
        least, most = summary.samples
        table.add_row(
            summary.pool,
            str(summary.questions),
            str(least) if least == most else f"{least}–{most}",
            _number(summary.one_sample_accuracy, ".1f"),
            _number(summary.majority_accuracy, ".1f"),
            _number(summary.entropy, ".2f"),
            _number(summary.none_share, ".1f"),
            _number(summary.mean_tokens, ".0f"),
            _number(summary.tokens_95, ".0f"),
        )
    return table


def _blocks(comparisons: Sequence[Comparison]) -> list[tuple[str, list[Row]]]:
    """A titled block a pool and, where there are several, their average."""
    blocks = [
        (pool.baseline.pool, [(result.controller, [result], [pool.baseline]) for result in pool.results])
        for pool in comparisons
    ]
    if len(comparisons) > 1:
        by_controller = zip(*(pool.results for pool in comparisons), strict=True)
        baselines = [pool.baseline for pool in comparisons]
        blocks.append(("average", [(results[0].controller, list(results), baselines) for results in by_controller]))
    return blocks


def _table(
    title: str,
    blocks: list[tuple[str, list[Row]]],
    metrics: Sequence[str],
    cell: Callable[[str, list[Result], list[Result]], str],
) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False)
    table.add_column("", overflow="fold")
    for metric in metrics:
        table.add_column(_HEADINGS[metric], justify="right", no_wrap=True)
    for name, rows in blocks:
        table.add_row(f"[bold]{name}[/bold]")
        for controller, ours, theirs in rows:
            table.add_row(f"  {controller}", *(cell(metric, ours, theirs) for metric in metrics))
        table.add_section()
    return table


_HEADINGS = {
    "accuracy": "accuracy %",
    "agreement": "agreement %",
    "rounds": "rounds",
    "samples": "samples",
    "sequential_tokens": "sequential tokens",
    "total_tokens": "total tokens",
    "reward": "reward",
}
_FORMATS = {"reward": ".3f", "sequential_tokens": "k", "total_tokens": "k"}
_COSTS = ("rounds", "samples", "sequential_tokens", "total_tokens")


def _figure(metric: str, ours: list[Result], theirs: list[Result]) -> str:
    """The mean over pools and, for what costs, its change against the baseline."""
    value, base = _mean(metric, ours), _mean(metric, theirs)
    text = _number(value, _FORMATS.get(metric, ".1f"))
    if metric in _COSTS and value is not None and base and ours[0].controller != theirs[0].controller:
        text += f" ({100 * (value / base - 1):+.0f} %)"
    return text


def _interval(metric: str, ours: list[Result], theirs: list[Result]) -> str:
    gap = difference(ours, theirs, metric)
    places = _FORMATS.get(metric, ".2f")
    return "–" if gap is None else f"{gap.mean:+{places}} [{gap.low:+{places}}, {gap.high:+{places}}]"


def _mean(metric: str, results: list[Result]) -> float | None:
    values = [getattr(result, metric) for result in results]
    return None if None in values else fmean(values)


def _number(value: float | None, places: str) -> str:
    if value is None:
        return "–"
    if places == "k":
        return f"{value:.0f}" if value < 1000 else f"{value / 1000:.1f}k"
    return f"{value:{places}}"
