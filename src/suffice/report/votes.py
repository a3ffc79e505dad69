"""How a vote stands, as bars on a terminal and as plain lines elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from json import dumps
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from suffice.planning import confidence, is_ready
from suffice.tally import Tally

if TYPE_CHECKING:
    from suffice.live import Moment, Outcome, Watch
    from suffice.live.ballots import FieldOutcome

WIDTH = 32

HARD = 0.5
"""Below this certainty a question is called hard."""
SETTLED = 0.95
"""From this confidence on a field is shown as settled."""
MOST_ANSWERS = 8
MOST_FIELDS = 20
LONGEST = 40


@contextmanager
def vote_display(console: Console, quiet: bool = False) -> Iterator["Watch"]:
    """Give a function that is told of every moment of a run, and shows it unless it shall be quiet."""
    if quiet or not console.is_terminal:
        yield (lambda moment: None) if quiet else (lambda moment: _print_line(console, moment))
        return
    rounds: list[Text] = []
    with Live(console=console, auto_refresh=False) as live:

        def watch(moment: "Moment") -> None:
            if moment.decision is not None and moment.tally.draws:
                rounds.append(Text(_decided(moment), style="dim"))
            waiting = [Text(f"{moment.in_flight} on the way", style="dim")] * (moment.in_flight > 0)
            bars = _field_bars(moment.fields) if moment.fields else _bars(moment.tally)
            live.update(Group(*rounds, bars, *waiting), refresh=True)

        yield watch


def _print_line(console: Console, moment: "Moment") -> None:
    if moment.decision is not None and moment.tally.draws:
        console.print(Text(_decided(moment)), soft_wrap=True)


def _decided(moment: "Moment") -> str:
    """A round in one line: how the votes stand, how sure that is, and what the controller makes of it."""
    tally = moment.tally
    if moment.fields:
        led = {pointer: (one.leader, one.top(1)[0]) for pointer, one in _least_settled(moment.fields).items()}
        votes = [f"{_short(name)} {_short(leader)} ×{count}" for name, (leader, count) in led.items() if leader]
    else:
        votes = [f"{_short(answer)} ×{count}" for answer, count in tally.votes.items()]
    more = f" and {len(votes) - MOST_ANSWERS} others" * (len(votes) > MOST_ANSWERS)
    standing = ", ".join(votes[:MOST_ANSWERS]) + more if votes else "no answers"
    sure = "" if moment.confidence is None else f"; {moment.confidence:.1%} sure"
    decision = f"{moment.decision} more" if moment.decision else "enough"
    return f"round {tally.rounds}, {tally.draws} drawn: {standing}{sure}; {decision}"


def _bars(tally: Tally) -> Table:
    """The answers with the most votes, a bar each."""
    table = Table.grid(padding=(0, 1))
    for answer, count in list(tally.votes.items())[:MOST_ANSWERS]:
        leads = answer == tally.leader
        bar = "█" * max(1, round(WIDTH * count / tally.budget))
        table.add_row(
            Text(_short(answer), style="bold" if leads else ""), Text(bar, "green" if leads else "blue"), str(count)
        )
    return table


def _field_bars(fields: "Mapping[str, Tally]") -> Table:
    """A bar for each field: what leads there, in green once it is settled."""
    table = Table.grid(padding=(0, 1))
    shown = list(_least_settled(fields))[:MOST_FIELDS]
    for pointer in (name for name in fields if name in shown):
        tally = fields[pointer]
        count = tally.top(1)[0]
        sure = confidence(tally) if count and is_ready(tally.budget) else None
        settled = sure is not None and sure >= SETTLED
        bar = "█" * round(WIDTH * count / tally.budget)
        cells = (_short(pointer) or "/", Text(_short(tally.leader or "–"), style="bold" if settled else ""))
        table.add_row(*cells, Text(bar, "green" if settled else "blue"), f"{count} of {tally.draws}", _percent(sure))
    if len(fields) > len(shown):
        table.add_row(Text(f"{len(fields) - len(shown)} more, more settled", style="dim"))
    return table


def _least_settled(fields: "Mapping[str, Tally]") -> "dict[str, Tally]":
    """The fields, first those whose leader has the least lead."""
    return dict(sorted(fields.items(), key=lambda one: one[1].top(1)[0] - one[1].top(2)[1]))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _short(answer: str) -> str:
    text = printable(" ".join(answer.split()))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def printable(text: str) -> str:
    """The text with nothing in it that a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def outcome_lines(outcome: "Outcome") -> list[str]:
    """The answer, and what it took against the full budget."""
    sure = (
        ""
        if outcome.confidence is None or not outcome.samples
        else f"; {outcome.confidence:.1%} sure that {outcome.budget} samples would elect the same"
    )
    if outcome.certainty is not None:
        hard = ": a hard question" * (outcome.certainty < HARD)
        sure += f", {outcome.certainty:.0%} that any number would{hard}"
    lines = [
        f"Answer: {'none' if outcome.answer is None else printable(outcome.answer)}",
        *map(_field_line, outcome.fields, outcome.fields.values()),
        f"{_many(outcome.samples, 'sample')} in {_many(outcome.rounds, 'round')}, {outcome.tokens} tokens, "
        f"{outcome.seconds:.1f} s{sure}.",
    ]
    if outcome.majority != outcome.answer and outcome.weighed:
        lines.append(f"Most votes, and what is said of how sure it is, are for: {printable(outcome.majority or '')}")
    if outcome.stop_reason == "no answer":
        lines.append("There is nothing to vote on: no response gave an answer.")
    elif outcome.stop_reason == "repeats":
        lines.append("All responses are the same to the letter: there is nothing to vote on.")
    elif outcome.stop_reason in ("controller", "budget"):
        saved = f"{outcome.samples_saved} of {outcome.budget} samples ({outcome.samples_saved / outcome.budget:.0%})"
        lines.append(f"Saved {saved}{_about(outcome.tokens_saved, outcome.tokens)}.")
    else:
        lines.append(f"Stopped before it was settled: {outcome.stop_reason}.")
    if outcome.launched > outcome.samples + len(outcome.failures):
        cancelled = outcome.launched - outcome.samples - len(outcome.failures)
        lines.append(f"{_many(cancelled, 'draw')} cancelled at the stop, after {outcome.cancelled_tokens} tokens.")
    if outcome.runs_on:
        lines.append("The server does not stream: what was cancelled may have run on there.")
    if outcome.failures:
        last = printable(outcome.failures[-1])
        lines.append(f"{_many(len(outcome.failures), 'draw')} failed, the last with: {last}")
    return lines


def _field_line(pointer: str, field: "FieldOutcome") -> str:
    sure = (
        "not voted on" if field.confidence is None else f"{field.share:.0%} of the votes, {field.confidence:.1%} sure"
    )
    return f"  {_short(pointer) or '/'}: {_short(dumps(field.value, ensure_ascii=False))} ({sure})"


def outcomes_summary(lines: Sequence[dict[str, Any]]) -> str:
    """What answering a file of questions came to, and what was saved against the full budget."""

    def mean(name: str) -> float:
        return fmean(line[name] for line in lines)

    graded = [line["right"] for line in lines if line["right"] is not None]
    accuracy = f"accuracy {fmean(graded):.1%} ({sum(graded)} of {len(graded)} with gold), " if graded else ""
    fields = [line["fields_right"] for line in lines if line.get("fields_right") is not None]
    accuracy += f"{fmean(fields):.1%} of fields right, " if fields else ""
    # A journal of before this was told has no such figures.
    saved, tokens = (sum(line[name] or 0 for line in lines) for name in ("samples_saved", "tokens_saved"))
    share = saved / (saved + sum(line["samples"] for line in lines))
    return (
        f"{_many(len(lines), 'question')}: {accuracy}{mean('samples'):.1f} samples in {mean('rounds'):.1f} rounds, "
        f"{mean('tokens'):.0f} tokens and {mean('seconds'):.1f} s each.\n"
        f"Saved {share:.0%} of the samples of the full budget{_about(tokens, sum(line['tokens'] for line in lines))}."
    )


def _about(unspent: int, spent: int) -> str:
    """Nothing where the server tells no tokens, or none were saved."""
    return f", about {unspent:,} of {unspent + spent:,} tokens" if unspent else ""


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
