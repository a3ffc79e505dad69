"""The report of a replay: what controllers came to, where the samples went, and how each question was voted on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import entr

from suffice.pools import Pool, Question
from suffice.replay import (
    Comparison,
    Result,
    certainty_reliabilities,
    difference,
    mean_over_pools,
    reliabilities,
)
from suffice.report.curves import curves_of
from suffice.report.html import Axis, Point, Report, Section, figures, panel, percent, plot, table, words
from suffice.report.questions import MOST_QUESTIONS, questions_section, short, votes
from suffice.report.tables import quotable, saved_tokens

FIGURES = {
    "samples": ("samples", 1),
    "rounds": ("rounds", 1),
    "agreement": ("agreement %", 2),
    "accuracy": ("accuracy %", 2),
    "total_tokens": ("total tokens", 0),
    "sequential_tokens": ("sequential tokens", 0),
    "reward": ("reward", 3),
}
X = [
    Axis(1, "samples", zero=True),
    Axis(2, "rounds", log=True),
    Axis(5, "total tokens", 0, zero=True),
    Axis(6, "sequential tokens", 0, log=True),
]
Y = [percent(3, "agreement with the full vote", places=2), percent(4, "accuracy", places=2), Axis(7, "reward", 3)]


def evaluation_report(comparisons: Sequence[Comparison], pools: Sequence[Pool], settings: Mapping[str, Any]) -> Report:
    """Controllers on pools: side by side, against what they cost, and question by question."""
    base = comparisons[0].baseline.controller
    sections = [
        _comparison(comparisons),
        plot(
            "What it takes, and what it gives",
            X,
            Y,
            [_front("", comparisons), *(_front(one.baseline.pool, [one]) for one in comparisons)],
            "Up and to the left is better. Point at a mark to read it; a name below hides or shows its marks.",
        ),
        _differences(comparisons, base),
        _by_question(comparisons, pools),
        *_reliability(comparisons, pools),
        *curves_of([one.controller for one in comparisons[0].results]),
        _questions(comparisons, pools),
        _pools(pools),
    ]
    sentence = "; ".join(filter(None, (quotable(comparisons), saved_tokens(comparisons))))
    return Report("Controllers side by side", sentence, sections, dict(settings), _names(pools))


def _names(pools: Sequence[Pool]) -> list[str]:
    return [pool.name for pool in pools]


def _row(results: Sequence[Result]) -> list[float | None]:
    return [mean_over_pools(results, metric) for metric in FIGURES]


def _comparison(comparisons: Sequence[Comparison]) -> Section:
    """Every figure of every controller, and its change against the baseline."""
    base = comparisons[0].baseline.controller
    columns = [words("controller"), *(figures(*heading) for heading in FIGURES.values())]
    columns += [figures(f"samples against {base} %"), figures("confidence %"), figures("regret", 4)]

    def rows(some: Sequence[Comparison]) -> list[list[Any]]:
        found = []
        against = mean_over_pools([pool.baseline for pool in some], "samples") or 1
        for results in zip(*(pool.results for pool in some), strict=True):
            regrets = [pool.regret(result) for pool, result in zip(some, results, strict=True)]
            known = [regret for regret in regrets if regret is not None]
            more = [
                100 * ((mean_over_pools(results, "samples") or 0) / against - 1),
                mean_over_pools(results, "confidence"),
                float(np.mean(known)) if known else None,
            ]
            found.append([results[0].controller, *_row(results), *more])
        return found

    panels = [{"name": "", "rows": rows(comparisons)}]
    panels += [{"name": pool.baseline.pool, "rows": rows([pool])} for pool in comparisons]
    note = "All on the same draws. Agreement is with the vote of the full budget; click a heading to sort."
    return table("Controllers", columns, panels, note)


def _front(name: str, comparisons: Sequence[Comparison]) -> Section:
    """A point a controller, and fixed numbers of draws as a line."""
    points: dict[str, list[Point]] = {}
    for results in zip(*(pool.results for pool in comparisons), strict=True):
        points.setdefault(results[0].controller, []).append(["", *_row(results)])
    made = panel(name, points)
    fewer: list[Point] = [
        [results[0].controller, *_row(results)]
        for results in zip(*([*pool.checkpoints, pool.baseline] for pool in comparisons), strict=True)
        if results[0].controller.startswith("sc")
    ]
    line = panel(name, {"sc with fewer draws": fewer}, line=True)["series"]
    return {**made, "series": [*line, *made["series"]] if len(fewer) > 1 else made["series"]}


def _differences(comparisons: Sequence[Comparison], base: str) -> Section:
    """Paired differences to the baseline, averaged over the pools."""
    metrics = {"accuracy": 2, "agreement": 2, "samples": 2, "rounds": 2, "reward": 3}
    baselines = [pool.baseline for pool in comparisons]
    rows: list[list[Any]] = []
    for results in zip(*(pool.results for pool in comparisons), strict=True):
        if results[0] is baselines[0]:
            continue
        gaps = [(difference(results, baselines, metric), places) for metric, places in metrics.items()]
        cells = [gap and [gap.mean, f"{gap.mean:+.{p}f} [{gap.low:+.{p}f}, {gap.high:+.{p}f}]"] for gap, p in gaps]
        rows.append([results[0].controller, *cells])
    columns = [words("controller"), *(figures(metric) for metric in metrics)]
    note = "The mean over the pools, with paired 95 % intervals over questions."
    return table(f"Differences to {base}", columns, [{"name": "", "rows": rows}], note)


def _entropy(question: Question) -> float:
    counts = np.bincount(question.codes[question.codes >= 0])
    return float(entr(counts / max(counts.sum(), 1)).sum())


def _by_question(comparisons: Sequence[Comparison], pools: Sequence[Pool]) -> Section:
    """A mark for each question and controller: the samples against how divided its answers are."""
    panels = []
    left = MOST_QUESTIONS
    for pool, one in zip(comparisons, pools, strict=True):
        step = max(1, -(-len(one.questions) // max(left // len(pools), 1)))
        points: dict[str, list[Point]] = {}
        for result in pool.results:
            told = [result.by_question[metric].tolist() for metric in ("samples", "rounds", "agreement")]
            points[result.controller] = [
                [question.id, _entropy(question), _majority(question), *row]
                for question, *row in list(zip(one.questions, *told, strict=True))[::step]
            ]
        panels.append(panel(one.name, points))
    shown = sum(len(series["points"]) for made in panels for series in made["series"][:1])
    total = sum(len(pool.questions) for pool in pools)
    some = f" Of {total:,} questions every so many is shown, {shown:,} in all." if shown < total else ""
    x = [Axis(1, "how divided the answers are (entropy, nats)", 2, zero=True), percent(2, "votes of the leader")]
    y = [Axis(3, "samples", zero=True), Axis(4, "rounds", zero=True), percent(5, "agreement")]
    note = f"A mark for each question, the mean over the repeats.{some}"
    return plot("Where the samples go", x, y, panels, note)


def _majority(question: Question) -> float:
    """The leader's part of a question's responses, in percent."""
    counts = np.bincount(question.codes[question.codes >= 0], minlength=1)
    return 100 * float(counts.max()) / max(len(question.codes), 1)


def _reliability(comparisons: Sequence[Comparison], pools: Sequence[Pool]) -> list[Section]:
    """Confidence and certainty against what came true."""
    found = []
    for sure, known, note in (
        ("confidence", reliabilities(comparisons), "the full vote"),
        ("certainty", certainty_reliabilities(pools), "the majority of all responses"),
    ):
        if not known:
            continue
        points: dict[str, Sequence[Point]] = {
            f"{name} (error {one.calibration_error:.1f} points)": [
                ["", decile["confidence"], decile["agreement"], decile["share"]] for decile in one.deciles
            ]
            for name, one in known.items()
        }
        said = f"By decile, all pools together: how sure, and how often it agrees with {note}. The diagonal is perfect."
        x, y, share = percent(1, sure, 100), percent(2, "agreement", 100), Axis(3, "% of the outcomes")
        shown = [panel("", points, line=True)]
        found.append(plot(f"Can the {sure} be trusted?", [x], [y], shown, said, [x, y, share], diagonal=True))
    return found


def _favourite(results: Sequence[Result]) -> int:
    """The place of the controller that questions are told of first."""
    names = [result.controller.split(":")[0] for result in results]
    return next((names.index(name) for name in ("plan", "rl") if name in names), len(names) - 1)


def _questions(comparisons: Sequence[Comparison], pools: Sequence[Pool]) -> Section:
    """Each question's votes in the pool, and what each controller took of them."""
    place = _favourite(comparisons[0].results)
    name = comparisons[0].results[place].controller
    found = []
    for comparison, pool in zip(comparisons, pools, strict=True):
        for number, question in enumerate(pool.questions[: MOST_QUESTIONS // len(pools)]):
            rows: list[list[Any]] = [
                [result.controller, *(float(result.by_question[metric][number]) for metric in list(FIGURES)[:4])]
                for result in comparison.results
            ]
            own = rows[place]
            made = votes(pool.name, question.id, question.extra.get("question"), question.gold, _counted(question))
            leader = f"{short(made['votes'][0][0])} ({_majority(question):.0f} %), " if made["votes"] else ""
            told = f"{leader}{own[1]:.1f} samples, {own[3]:.0f} % agreement"
            order = [own[1], -float(own[3]), _entropy(question)]
            found.append({**made, "told": told, "order": order, "rows": rows})
    orders = (f"most samples ({name})", f"least agreement ({name})", "most divided")
    columns = [words("controller"), *(figures(*heading) for heading in list(FIGURES.values())[:4])]
    return questions_section(found, sum(len(pool.questions) for pool in pools), orders, columns, "in the pool")


def _counted(question: Question) -> dict[str | None, int]:
    counts: dict[str | None, int] = {}
    for answer in question.answers:
        counts[answer] = counts.get(answer, 0) + 1
    return counts


def _pools(pools: Sequence[Pool]) -> Section:
    rows = [[pool.name, len(pool.questions), pool.sha256[:16] or None] for pool in pools]
    columns = [words("pool"), figures("questions", 0), words("SHA-256 begins with")]
    return table("Pools", columns, [{"name": "", "rows": rows}])
