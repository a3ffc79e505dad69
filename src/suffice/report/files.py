"""Results as JSON and CSV files, written whole or not at all."""

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path
from typing import Any

from suffice.errors import OptionError
from suffice.replay import METRICS, Comparison, Result, difference

COLUMNS = [field.name for field in fields(Result) if field.name != "by_question"]


def results_json(comparisons: Sequence[Comparison], **settings: Any) -> str:
    """The settings of a replay and its results, each with its differences to the baseline on the same pool."""
    rows = [
        {**_row(result), "differences": _differences(result, pool.baseline)}
        for pool in comparisons
        for result in pool.results
    ]
    base = comparisons[0].baseline.controller
    return json.dumps({**settings, "baseline": base, "results": rows}, indent=1) + "\n"


def results_csv(comparisons: Sequence[Comparison]) -> str:
    """A line a result, under a line of names."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_row(result) for pool in comparisons for result in pool.results)
    return text.getvalue()


def _row(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in COLUMNS}


def _differences(result: Result, baseline: Result) -> dict[str, Any]:
    gaps = {metric: difference([result], [baseline], metric) for metric in METRICS}
    return {metric: gap and asdict(gap) for metric, gap in gaps.items()}


def check_writable(path: Path) -> None:
    """Refuse a path that can't be written, before the work that fills it."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OptionError(f"{path}: it can't be written; name a file in a folder that exists and is yours")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a crash half-way leaves what was there before."""
    if path.exists() and not path.is_file():  # a device or a pipe
        path.write_text(text, encoding="utf-8")
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
