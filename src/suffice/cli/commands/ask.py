"""`suffice ask`: one question, and the vote before one's eyes."""

import sys
from contextlib import ExitStack
from json import dumps
from typing import Annotated, Any

import typer
from rich.console import Console

import suffice
from suffice import OptionError
from suffice.cli import asking
from suffice.cli.app import app, need
from suffice.cli.command import Fields
from suffice.cli.options import JsonFile, Prices
from suffice.cli.servers import Servers, is_key_refused, with_key
from suffice.live import Moment
from suffice.live.prompts import put
from suffice.panel.live import ask_panel
from suffice.planning import LARGEST_BUDGET
from suffice.report.progress import waiting
from suffice.report.votes import outcome_lines, vote_display
from suffice.tally import Tally


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask; - reads it from the input.")],
    settings: Annotated[dict[str, Any], Fields(suffice.Sampling, f"{asking.VOTE} {asking.RIGHT}")],
    request: asking.Request,
    servers: Servers,
    prices: Prices,
    outputs: JsonFile,
    form: asking.Formed,
) -> None:
    """Ask a question just enough times, and watch the vote."""
    try:
        question = sys.stdin.read() if question == "-" else question
        question.encode()
    except UnicodeError:
        raise OptionError("QUESTION is not UTF-8 text") from None
    if not question.strip():
        raise OptionError("QUESTION is empty: there is nothing to ask")
    sampling, fields = form.sampling(asking.weighed(settings, prices, servers), request)
    chosen = sampling.voting.controller
    if isinstance(chosen, suffice.Plan) and sampling.budget <= LARGEST_BUDGET and not servers.panel:
        with waiting("planning"):  # a first plan takes seconds, and the vote finds it ready then
            chosen.next_round(Tally(sampling.budget))
    console = Console(highlight=False)
    with (
        servers.upstream() as upstream,
        vote_display(console, outputs.quiet) as display,
        ExitStack() as stack,
    ):
        openai = need("openai", "")
        clients = [stack.enter_context(openai.OpenAI(**one)) for one in upstream.settings]
        asked = put(question.strip(), form.messages(upstream.prompt))
        outcome: suffice.Outcome | None
        ended: list[suffice.Outcome] = []

        def watch(moment: Moment) -> None:
            display(moment)
            if moment.outcome:
                ended.append(moment.outcome)

        try:
            fields = upstream.fields(fields)
            if upstream.panel:
                asking.check_panel(upstream.panel, sampling)
                outcome = ask_panel(upstream.panel, upstream.settings, asked, sampling=sampling, watch=watch, **fields)
            else:
                outcome = suffice.sample(clients, asked, sampling=sampling, watch=watch, **fields)
            code = 0
        except KeyboardInterrupt:
            outcome, code = next(iter(ended), None), 130
        except suffice.SampleError as error:
            outcome, code = error.outcome, 2 if is_key_refused(str(error)) else 1
            typer.echo(with_key(f"suffice: {error}"), err=True)
    if outcome:
        told = dumps(outcome.to_json(), ensure_ascii=False)
        outputs.write(json=lambda: f"{told}\n")
        for line in [] if outputs.quiet else outcome_lines(outcome):
            console.print(line, markup=False, soft_wrap=True)
    if code:
        raise typer.Exit(code)
