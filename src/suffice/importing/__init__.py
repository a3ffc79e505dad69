"""Pools from files of others: Inspect logs, lm-evaluation-harness samples, OpenAI batch output, CSV and Parquet."""

from suffice.importing.pools import Imported, import_pool

__all__ = ["Imported", "import_pool"]
