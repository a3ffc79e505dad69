"""Reports: tables for the terminal, result files, and progress."""

from suffice.report.files import check_writable, results_csv, results_json, write_whole
from suffice.report.progress import progress_bar
from suffice.report.tables import evaluation_tables, pool_table

__all__ = [
    "check_writable",
    "evaluation_tables",
    "pool_table",
    "progress_bar",
    "results_csv",
    "results_json",
    "write_whole",
]
