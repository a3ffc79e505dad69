"""The report of a sweep: every way to sample that was tried, in tokens, time and agreement."""

from collections.abc import Mapping
from typing import Any

from suffice.replay import Advice, Choice
from suffice.report.html import Axis, Point, Report, figures, panel, percent, plot, table, words
from suffice.report.tables import choice_options


def advice_report(advice: Advice, settings: Mapping[str, Any]) -> Report:
    """Every way that was tried: tokens against latency, and agreement."""
    points: dict[str, list[Point]] = {"front": [_point(one) for one in advice.front]}  # below the marks of its ways
    for choice in advice.choices:
        kind = f"flow, by {choice.flow.order}" if choice.flow else "rounds"
        points.setdefault(kind, []).append(_point(choice))
    points["advised"] = [_point(advice.chosen)]
    shown = panel("", points)
    shown["series"][0]["line"] = True
    x = [Axis(1, "latency (tokens on the critical path)", 0, zero=True)]
    y = [Axis(2, "tokens spent", 0, zero=True), percent(3, "agreement with the full vote", places=2)]
    told = [*x, *y, percent(4, "accuracy")]
    columns = [words("way"), words("on the front"), figures("latency tokens", 0), figures("tokens spent", 0)]
    columns += [figures("agreement %", 2), figures("accuracy %", 1)]
    rows = [
        [choice_options(one), "advised" if one == advice.chosen else "yes" if one in advice.front else "", *_taken(one)]
        for one in advice.choices
    ]
    note = "The front has, of what agrees often enough, the ways that no other beats in both."
    sections = [
        plot("Tokens against time", x, y, [shown], note, told),
        table("All that was tried", columns, [{"name": "", "rows": rows}]),
    ]
    chosen = advice.chosen
    sentence = (
        f"Use {choice_options(chosen)}: {chosen.tokens:,.0f} tokens in the time of {chosen.latency:,.0f}, "
        f"{chosen.agreement:.1f} % the same answers as the full vote."
    )
    return Report("How to sample", sentence, sections, dict(settings))


def _point(choice: Choice) -> Point:
    return [choice_options(choice), *_taken(choice)]


def _taken(choice: Choice) -> list[float | None]:
    return [choice.latency, choice.tokens, choice.agreement, choice.accuracy]
