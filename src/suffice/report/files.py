"""Results as JSON and CSV."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, Any

from suffice.penalties import Penalties
from suffice.replay import Advice, Choice, Comparison, Result, difference, mean_over_pools
from suffice.replay.compare import reliabilities
from suffice.replay.evaluate import METRICS, spread
from suffice.replay.learning import LearningReplay
from suffice.report.tables import replay_sentences

if TYPE_CHECKING:
    from suffice.training.learner import Trained


def results_json(comparisons: Sequence[Comparison], **settings: Any) -> str:
    rows = [
        {
            **_row(result),
            "calibration_error": result.reliability and result.reliability.calibration_error,
            "regret": pool.regret(result),
            "differences": {metric: _gap(result, pool.baseline, metric) for metric in METRICS},
        }
        for pool in comparisons
        for result in pool.results
    ]
    reliability = [
        {"outcomes": name, "calibration_error": known.calibration_error, "deciles": known.deciles}
        for name, known in reliabilities(comparisons).items()
    ]
    told = replay_sentences(comparisons)
    said = {name: told.get(name) for name in ("sentence", "independent")}
    about = {**settings, "baseline": comparisons[0].baseline.controller, **said}
    return _page({**about, "results": rows, "reliability": reliability})


def results_csv(comparisons: Sequence[Comparison]) -> str:
    return table_csv([_row(result) for pool in comparisons for result in pool.results])


def learning_json(replays: Sequence[LearningReplay], penalties: Penalties, **settings: Any) -> str:
    pools = [
        {
            "pool": replay.pool,
            "questions": replay.questions,
            "curve": replay.curve(penalties),
            "plans": [list(run.plans) for run in replay.learning],
            "changes": [list(run.changes) for run in replay.learning],
        }
        for replay in replays
    ]
    return _page({**settings, "pools": pools})


def advice_json(advice: Advice, **settings: Any) -> str:
    choices = [_choice(advice, choice) for choice in advice.choices]
    return _page(
        {**settings, "chosen": _choice(advice, advice.chosen), "once": _choice(advice, advice.once), "choices": choices}
    )


def advice_csv(advice: Advice) -> str:
    return table_csv([_choice(advice, choice) for choice in advice.choices])


def _choice(advice: Advice, choice: Choice) -> dict[str, Any]:
    return {
        "controller": choice.controller,
        "flow": str(choice.flow) if choice.flow else None,
        "latency_tokens": choice.latency,
        "spent_tokens": choice.tokens,
        "agreement": choice.agreement,
        "accuracy": choice.accuracy,
        "front": choice in advice.front,
        "chosen": choice == advice.chosen,
    }


def table_csv(rows: Sequence[dict[str, Any]]) -> str:
    text = StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def training_json(trained: "Sequence[Trained]") -> str:
    rows = [
        {"seed": one.seed, "steps": one.controller.card["steps"]}
        | {metric: mean_over_pools(one.results, metric) for metric in METRICS}
        for one in trained
    ]
    spreads = {metric: spread([row[metric] for row in rows]) for metric in METRICS}
    known = {metric: both for metric, both in spreads.items() if both[0] is not None}
    card = dict(trained[0].controller.card)
    means = {metric: mean for metric, (mean, _) in known.items()}
    deviations = {metric: deviation or 0.0 for metric, (_, deviation) in known.items()}
    page = {"seeds": rows, "mean": means, "std": deviations, "rules": card["rules"], "kept": trained[0].seed}
    return _page({**page, "card": card})


def _page(page: dict[str, Any]) -> str:
    return json.dumps(page, indent=1, allow_nan=False) + "\n"


def _row(result: Result) -> dict[str, Any]:
    return {name: value for name, value in vars(result).items() if name not in ("by_question", "reliability")}


def _gap(result: Result, baseline: Result, metric: str) -> dict[str, Any] | None:
    gap = difference([result], [baseline], metric)
    return None if gap is None else asdict(gap)
