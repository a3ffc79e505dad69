"""`suffice import`: a pool from files of others."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

import suffice
from suffice.cli.app import app, show
from suffice.cli.asking import write_lines
from suffice.importing.formats import TableColumns
from suffice.importing.pools import FORMATS
from suffice.paths import check_writable
from suffice.report.progress import waiting
from suffice.report.tables import pool_table


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files of one format, which make one pool.")],
    out: Annotated[Path, Option(metavar="FILE", help="Where the pool goes.")],
    format: str | None = Option(  # noqa: A002
        None, "--from", metavar="|".join(FORMATS), help="The format; the file shows it by default."
    ),
    answer: str | None = Option(
        None, metavar="X", help="Find answers in the responses, as collect does; those in the file by default."
    ),
    gold: Path | None = Option(
        None, metavar="FILE", help="The gold answers: a JSON line a question, with id and gold."
    ),
    suffix: str | None = Option(
        None, metavar="S", help="What is between the question and the draw in a batch's custom ids."
    ),
    question_column: str = Option("question", metavar="NAME", help="The column that names the question."),
    answer_column: str = Option("answer", metavar="NAME", help="The column with the answer."),
    tokens_column: str | None = Option(
        None, metavar="NAME", help="The column with the tokens; tokens, if there is one."
    ),
    gold_column: str | None = Option(
        None, metavar="NAME", help="The column with the gold answer; gold, if there is one."
    ),
    fewest: int = Option(1, metavar="N", help="Drop questions with fewer responses than this."),
) -> None:
    """Make a pool of an Inspect log, lm-evaluation-harness samples, OpenAI batch output, or a CSV or Parquet table."""
    check_writable(out)
    columns = TableColumns(question_column, answer_column, tokens_column, gold_column)
    with waiting("reading files"):
        made = suffice.import_pool(
            files, format, answer=answer, gold=gold, suffix=suffix, columns=columns, fewest=fewest
        )
    write_lines(out, made.lines())
    show(pool_table([suffice.summarise(suffice.load_pool(out))]))
    typer.echo(f"The pool is in {out}: {made.taken} responses to {len(made.pool.questions)} questions were taken.")
    for why, number in made.dropped.items():
        typer.echo(f"Dropped {number}: {why}.")
    if all(len(question.answers) == 1 for question in made.pool.questions):
        typer.echo("Every question has one response: if custom ids end in the draw's number, give --suffix.", err=True)
