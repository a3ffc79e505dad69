"""The reports of replays: controllers side by side and question by question, advice, and learning curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.controllers import get_controller
from suffice.pools import Pool
from suffice.replay import Advice, Choice, Comparison, Result, mean_over_pools
from suffice.replay.compare import reliabilities
from suffice.replay.learning import LearningReplay, TrafficRun
from suffice.replay.reliability import certainty_reliabilities
from suffice.report.html import Axis, Point, Report, Section, figures, panel, percent, plot, words
from suffice.report.questions import MOST_QUESTIONS, leader_share, questions_section, votes_in_pool
from suffice.report.style import LOOKS, looks
from suffice.report.tables import choice_options, evaluation_tables, replay_sentences

X = {
    "samples": Axis("samples", zero=True),
    "rounds": Axis("rounds", log=True),
    "total_tokens": Axis("total tokens", 0, zero=True),
    "sequential_tokens": Axis("sequential tokens", 0, log=True),
}
Y = {
    "agreement": percent("agreement with the full vote", places=2),
    "accuracy": percent("accuracy", places=2),
    "agreement_independent": percent("agreement with an independent full vote", places=2),
    "reward": Axis("reward", 3),
}
BY_QUESTION = {
    "samples": figures("samples", 1),
    "rounds": figures("rounds", 1),
    "agreement": figures("agreement %", 2),
    "accuracy": figures("accuracy %", 2),
}

WINDOWS = 8  # a learning curve's points are means over an eighth of the questions


def evaluation_report(comparisons: Sequence[Comparison], pools: Sequence[Pool], settings: Mapping[str, Any]) -> Report:
    first, *others = (one.section() for one in evaluation_tables(comparisons))
    front = plot(
        "What it takes, and what it gives",
        list(X.values()),
        list(Y.values()),
        [_front("", comparisons), *(_front(one.baseline.pool, [one]) for one in comparisons)],
        "Up and to the left is better. Point at a mark to read it; a name below hides or shows its marks.",
    )
    sections = [first, front, *others, _by_question(comparisons, pools)]
    sections += [*reliability_plots(comparisons, pools), *_training_curves(comparisons[0].results)]
    sections.append(_questions(comparisons, pools))
    told = replay_sentences(comparisons)
    sentence = "; ".join(told[kind] for kind in ("sentence", "independent", "tokens") if kind in told)
    return Report("Controllers side by side", sentence, sections, dict(settings), [pool.name for pool in pools])


def _row(results: Sequence[Result]) -> list[float | None]:
    return [mean_over_pools(results, metric) for metric in (*X, *Y)]


def _front(name: str, comparisons: Sequence[Comparison]) -> Section:
    """A point a controller, and fixed numbers of draws as a line."""
    points: dict[str, list[Point]] = {}
    for results in zip(*(pool.results for pool in comparisons), strict=True):
        points.setdefault(results[0].controller, []).append(["", *_row(results)])
    styles, line = looks(list(points)), "sc with fewer draws"
    fewer: list[Point] = [
        [results[0].controller, *_row(results)]
        for results in zip(*([*pool.checkpoints, pool.baseline] for pool in comparisons), strict=True)
        if results[0].controller.startswith("sc")
    ]
    if len(fewer) > 1:
        points, styles = {line: fewer, **points}, [LOOKS["sc"], *styles]
    return panel(name, points, line, styles)


def _by_question(comparisons: Sequence[Comparison], pools: Sequence[Pool]) -> Section:
    """A mark a question and controller: the samples against how divided the answers are."""
    panels = []
    for comparison, pool in zip(comparisons, pools, strict=True):
        step = -(-len(pool.questions) // max(MOST_QUESTIONS // len(pools), 1))
        points: dict[str, list[Point]] = {}
        for result in comparison.results:
            columns = [result.by_question[metric].tolist() for metric in ("samples", "rounds", "agreement")]
            points[result.controller] = [
                [question.id, question.entropy, leader_share(question), *row]
                for question, *row in list(zip(pool.questions, *columns, strict=True))[::step]
            ]
        panels.append(panel(pool.name, points))
    shown = sum(len(series["points"]) for made in panels for series in made["series"][:1])
    total = sum(len(pool.questions) for pool in pools)
    some = f" Of {total:,} questions every so many is shown, {shown:,} in all." if shown < total else ""
    x = [Axis("how divided the answers are (entropy, nats)", 2, zero=True), percent("votes of the leader")]
    y = [Axis("samples", zero=True), Axis("rounds", zero=True), percent("agreement")]
    note = f"A mark for each question, the mean over the repeats.{some}"
    return plot("Where the samples go", x, y, panels, note)


def _training_curves(results: Sequence[Result]) -> list[Section]:
    """How trained controllers got better, by their cards."""
    cards = {one.controller: getattr(get_controller(one.controller), "card", {}) for one in results}
    points: dict[str, list[Point]] = {
        name: [["", *look] for look in card["curve"]] for name, card in cards.items() if "curve" in card
    }
    if not points:
        return []
    x = [Axis("steps", 0, zero=True)]
    y = [Axis("reward", 3), Axis("samples", zero=True), Axis("rounds", zero=True)]
    note = "On the training pools, during training; the best moment is kept."
    return [plot("Learning curves", x, y, [panel("", points, line=True)], note)]


def reliability_plots(comparisons: Sequence[Comparison], pools: Sequence[Pool], begins: str = "") -> list[Section]:
    """Confidence, of names that begin so, and certainty against what came true."""
    confidence = {name: known for name, known in reliabilities(comparisons).items() if name.startswith(begins)}
    found = []
    for sure, known, note in (
        ("confidence", confidence, "the full vote"),
        ("certainty", certainty_reliabilities(pools), "the majority of all responses"),
    ):
        if not known:
            continue
        points: dict[str, Sequence[Point]] = {
            f"{name} (error {one.calibration_error:.1f} points)": [
                ["", decile["confidence"], decile["agreement"], decile["outcomes"], decile["share"]]
                for decile in one.deciles
            ]
            for name, one in known.items()
        }
        said = (
            f"By decile, all pools together: how sure, and how often it agrees with {note}. The diagonal is perfect; "
            "the larger a mark, the more outcomes it stands for."
        )
        x, y = percent(sure, 100), percent(f"agreement with {note}", 100)
        more = [Axis("outcomes", 0), Axis("% of the outcomes")]
        shown = [panel("", points, line=True)]
        found.append(plot(f"Can the {sure} be trusted?", [x], [y], shown, said, more, diagonal=True, sizes=4))
    return found


def _questions(comparisons: Sequence[Comparison], pools: Sequence[Pool]) -> Section:
    names = [result.controller for result in comparisons[0].results]
    kinds = [name.split(":")[0] for name in names]
    place = next((kinds.index(kind) for kind in ("plan", "rl") if kind in kinds), len(kinds) - 1)  # told of first
    name = names[place]
    found = []
    for comparison, pool in zip(comparisons, pools, strict=True):
        for number, question in enumerate(pool.questions[: MOST_QUESTIONS // len(pools)]):
            rows: list[list[Any]] = [
                [result.controller, *(float(result.by_question[metric][number]) for metric in BY_QUESTION)]
                for result in comparison.results
            ]
            own, made = rows[place], votes_in_pool(pool, question)
            took = f"{own[1]:.1f} samples, {own[3]:.0f} % agreement"
            summary = ", ".join(filter(None, [made["summary"], took]))
            found.append({**made, "summary": summary, "order": [own[1], -own[3], *made["order"]], "rows": rows})
    orders = (f"most samples ({name})", f"least agreement ({name})", "most divided")
    columns = [words("controller"), *BY_QUESTION.values()]
    return questions_section(found, sum(len(pool.questions) for pool in pools), orders, columns)


def advice_plot(advice: Advice) -> Section:
    points: dict[str, list[Point]] = {"front": [_point(one) for one in advice.front]}  # below the marks of its ways
    for choice in advice.choices:
        kind = f"flow, by {choice.flow.order}" if choice.flow else "rounds"
        points.setdefault(kind, []).append(_point(choice))
    points |= {"once": [_point(advice.once)], "advised": [_point(advice.chosen)]}
    x = [Axis("latency (tokens on the critical path)", 0, zero=True)]
    y = [Axis("tokens spent", 0, zero=True), percent("agreement with the full vote", places=2)]
    note = "The front has, of what agrees often enough, the ways that no other beats in both."
    return plot("Tokens against time", x, y, [panel("", points, line="front")], note, [percent("accuracy")])


def _point(choice: Choice) -> Point:
    return [choice_options(choice), choice.latency, choice.tokens, choice.agreement, choice.accuracy]


def learning_plot(replays: Sequence[LearningReplay]) -> Section:
    served = {
        one.pool: {"without learning": _traffic_points(one.staying), "learning": _traffic_points(one.learning)}
        for one in replays
    }
    x = [Axis("questions seen", 0, zero=True)]
    y = [Axis("samples", zero=True), percent("agreement with the full vote")]
    return plot("Learning curves", x, y, [panel(pool, points, line=True) for pool, points in served.items()])


def _traffic_points(runs: Sequence[TrafficRun]) -> list[Point]:
    """Running means over the orders, against the middle of each window: 100 points at most."""
    samples = np.mean([run.samples for run in runs], axis=0)
    agreement = 100 * np.mean([run.agrees for run in runs], axis=0)
    window = max(1, len(samples) // WINDOWS)
    kernel = np.ones(window) / window
    seen = np.arange(len(samples) - window + 1) + (window + 1) / 2
    rows = np.stack([seen, *(np.convolve(means, kernel, "valid") for means in (samples, agreement))], axis=1).tolist()
    return [["", *row] for row in rows[:: -(-len(rows) // 100)]]
