"""Reports: tables for the terminal, result files, and progress."""

from suffice.report.files import advice_csv, advice_json, learning_json, results_csv, results_json, training_json
from suffice.report.progress import batch_bar, progress_bar, training_bar
from suffice.report.tables import (
    advice_table,
    choice_options,
    clock_table,
    controllers_table,
    evaluation_tables,
    learning_table,
    pool_table,
    quotable,
    training_table,
)
from suffice.report.votes import outcome_lines, outcomes_summary, vote_display

__all__ = [
    "advice_csv",
    "advice_json",
    "advice_table",
    "batch_bar",
    "choice_options",
    "clock_table",
    "controllers_table",
    "evaluation_tables",
    "learning_json",
    "learning_table",
    "outcome_lines",
    "outcomes_summary",
    "pool_table",
    "progress_bar",
    "quotable",
    "results_csv",
    "results_json",
    "training_bar",
    "training_json",
    "training_table",
    "vote_display",
]
