"""Reports: tables for the terminal, result files, and progress."""

from suffice.report.advised import advice_report
from suffice.report.answered import outcomes_report, told_of
from suffice.report.curves import learning_report
from suffice.report.files import advice_csv, advice_json, learning_json, results_csv, results_json, training_json
from suffice.report.pages import shown_page
from suffice.report.progress import batch_bar, progress_bar, training_bar, waiting
from suffice.report.replayed import evaluation_report
from suffice.report.reproduced import experiments_report
from suffice.report.tables import (
    advice_table,
    choice_options,
    clock_table,
    controllers_table,
    evaluation_tables,
    learning_table,
    pool_table,
    quotable,
    saved_tokens,
    training_table,
)
from suffice.report.votes import outcome_lines, outcomes_summary, vote_display

__all__ = [
    "advice_csv",
    "advice_json",
    "advice_report",
    "advice_table",
    "batch_bar",
    "choice_options",
    "clock_table",
    "controllers_table",
    "evaluation_report",
    "evaluation_tables",
    "experiments_report",
    "learning_json",
    "learning_report",
    "learning_table",
    "outcome_lines",
    "outcomes_report",
    "outcomes_summary",
    "pool_table",
    "progress_bar",
    "quotable",
    "results_csv",
    "results_json",
    "saved_tokens",
    "shown_page",
    "told_of",
    "training_bar",
    "training_json",
    "training_table",
    "vote_display",
    "waiting",
]
