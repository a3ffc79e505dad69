"""Learning curves: of training runs, and of plans that learn from traffic."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.replay import Course, Lesson
from suffice.report.html import Axis, Point, Report, Section, panel, percent, plot
from suffice.tally import FloatArray

WINDOWS = 8
"""A learning curve's points are running means over this part of the questions."""

MOST_CURVES = 12
"""More in one plot can't be told apart."""


def curves_of(controllers: Sequence[str | Controller]) -> list[Section]:
    """How learned controllers got better, where their cards tell it."""
    points: dict[str, list[Point]] = {}
    for one in controllers:
        card = getattr(get_controller(one), "card", {})
        if "curve" in card and len(points) < MOST_CURVES:
            points[one if isinstance(one, str) else _run(card)] = [["", *look] for look in card["curve"]]
    if not points:
        return []
    x = [Axis(1, "steps", 0, zero=True)]
    y = [Axis(2, "reward", 3), Axis(3, "samples", zero=True), Axis(4, "rounds", zero=True)]
    note = "On the training pools, while it learned; the best moment is what is kept."
    return [plot("Learning curves", x, y, [panel("", points, line=True)], note)]


def _run(card: Mapping[str, Any]) -> str:
    """What tells one training run from another."""
    pools = ", ".join(pool["name"] for pool in card["pools"])
    return f"seed {card['seed']}, {card['penalties']['draw']:g} a draw, for the {card['target']} target, on {pools}"


def learning_report(lessons: Sequence[Lesson], settings: Mapping[str, Any]) -> Report:
    """Each pool as traffic: with learning and without."""
    panels = [
        panel(lesson.pool, {"without learning": _course(lesson.staying), "learning": _course(lesson.learning)}, True)
        for lesson in lessons
    ]
    staying, learning = (
        np.mean([np.mean([course.samples for course in courses]) for courses in each])
        for each in zip(*((lesson.staying, lesson.learning) for lesson in lessons), strict=True)
    )
    sentence = f"With learning {learning:.1f} samples a question instead of {staying:.1f}."
    x = [Axis(1, "questions seen", 0, zero=True)]
    y = [Axis(2, "samples", zero=True), percent(3, "agreement with the full vote")]
    names = [lesson.pool for lesson in lessons]
    return Report("Learning from traffic", sentence, [plot("Learning curves", x, y, panels)], dict(settings), names)


def _course(courses: Sequence[Course]) -> list[Point]:
    """A hundred points of it at most."""
    rows = np.stack(smoothed(courses), axis=1).tolist()
    return [["", *row] for row in rows[:: -(-len(rows) // 100)]]


def smoothed(courses: Sequence[Course]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The middle of each window of questions, and the running means of samples and of agreement over the orders."""
    samples = np.mean([course.samples for course in courses], axis=0)
    agreement = 100 * np.mean([course.agrees for course in courses], axis=0)
    window = max(1, len(samples) // WINDOWS)
    kernel = np.ones(window) / window
    seen = np.arange(len(samples) - window + 1) + (window + 1) / 2
    return seen, np.convolve(samples, kernel, "valid"), np.convolve(agreement, kernel, "valid")
