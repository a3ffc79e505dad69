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

from suffice.live.outcome import SETTLED, with_prompts
from suffice.notebook import many, short
from suffice.planning import confidence, is_ready
from suffice.tally import Tally

if TYPE_CHECKING:
    from suffice.live import Moment, Outcome, Watch
    from suffice.live.ballots import FieldOutcome

WIDTH = 32

HARD = 0.5  # below this certainty a question is called hard
SURE = 0.95  # from this confidence on a field is shown as settled
MOST_ANSWERS = 8
MOST_FIELDS = 20
LONGEST = 40


@contextmanager
def vote_display(console: Console, quiet: bool = False) -> Iterator["Watch"]:
    """Give a function that shows each moment of a vote, unless it shall be quiet."""
    if quiet or not console.is_terminal:

        def print_line(moment: "Moment") -> None:
            if not quiet and (line := _decided(moment)):
                console.print(Text(line), soft_wrap=True)

        yield print_line
        return
    rounds: list[Text] = []
    with Live(console=console, auto_refresh=False) as live:

        def watch(moment: "Moment") -> None:
            if line := _decided(moment):
                rounds.append(Text(line, style="dim"))
            waiting = [Text(f"{moment.in_flight} on the way", style="dim")] * (moment.in_flight > 0)
            bars = _field_bars(moment.fields) if moment.fields else _bars(moment.tally)
            live.update(Group(*rounds, bars, *waiting), refresh=True)

        yield watch


def _decided(moment: "Moment") -> str:
    """A round in one line, where it is decided on: the votes, how sure that is, and the decision."""
    tally = moment.tally
    if moment.decision is None or not tally.draws:
        return ""
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
    table = Table.grid(padding=(0, 1))
    for answer, count in list(tally.votes.items())[:MOST_ANSWERS]:
        weight, colour = ("bold", "green") if answer == tally.leader else ("", "blue")
        bar = "█" * max(1, round(WIDTH * count / tally.budget))
        table.add_row(Text(_short(answer), weight), Text(bar, colour), str(count))
    return table


def _field_bars(fields: "Mapping[str, Tally]") -> Table:
    """A bar for each field: what leads there, in green once it is settled."""
    table = Table.grid(padding=(0, 1))
    least_settled = list(_least_settled(fields))[:MOST_FIELDS]
    for pointer in (name for name in fields if name in least_settled):
        tally = fields[pointer]
        count = tally.top(1)[0]
        sure = confidence(tally) if count and is_ready(tally.budget) else None
        weight, colour = ("bold", "green") if sure is not None and sure >= SURE else ("", "blue")
        shown = "" if sure is None else f"{sure:.1%}"
        bar = Text("█" * round(WIDTH * count / tally.budget), colour)
        leader = Text(_short(tally.leader or "–"), weight)
        table.add_row(_short(pointer) or "/", leader, bar, f"{count} of {tally.draws}", shown)
    if len(fields) > len(least_settled):
        table.add_row(Text(f"{len(fields) - len(least_settled)} more, more settled", style="dim"))
    return table


def _least_settled(fields: "Mapping[str, Tally]") -> "dict[str, Tally]":
    """The fields, those with the least lead first."""
    return dict(sorted(fields.items(), key=lambda one: one[1].top(1)[0] - one[1].top(2)[1]))


def _short(answer: str) -> str:
    return printable(short(answer, LONGEST))


def printable(text: str) -> str:
    """The text with nothing in it that a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def outcome_lines(outcome: "Outcome") -> list[str]:
    sure, repeats = "", outcome.stop_reason == "repeats"
    if outcome.confidence is not None and outcome.samples and not repeats:
        sure = f"; {outcome.confidence:.1%} sure that {outcome.budget} samples would elect the same"
    if outcome.certainty is not None and not repeats:
        hard = ": a hard question" * (outcome.certainty < HARD)
        sure += f", {outcome.certainty:.0%} that any number would{hard}"
    lines = [
        f"Answer: {'none' if outcome.answer is None else printable(outcome.answer)}",
        *map(_field_line, outcome.fields, outcome.fields.values()),
        f"{many(outcome.samples, 'sample')} in {many(outcome.rounds, 'round')}, {outcome.tokens} tokens, "
        f"{outcome.seconds:.1f} s{sure}.",
    ]
    if outcome.samples > 1:
        samples, tokens, again = outcome.over_one
        prompts = f" and {again} of prompts sent again" if again else ""
        first = "the first says something else" if outcome.changed else "the first says the same"
        lines.append(f"Over one response: +{many(samples, 'sample')}, {tokens} tokens{prompts}; {first}.")
    for voter, votes in outcome.by_voter.items():
        said = ", ".join(f"{_short(answer)} ×{count}" for answer, count in votes.items())
        lines.append(f"{printable(voter)} said: {said or 'no answer'}.")
    if outcome.right is not None:
        enough = {None: "", True: ": sure enough", False: ": not sure enough"}[outcome.sure]
        lines.append(f"{outcome.right:.0%} probable to be right{enough}.")
    elif outcome.sure is False:
        lines.append("Not sure enough: nothing is known of whether it is right.")
    if outcome.majority != outcome.answer and outcome.weighed:
        lines.append(f"Most votes, and what is said of how sure it is, are for: {printable(outcome.majority or '')}")
    if outcome.stop_reason == "no answer":
        lines.append("There is nothing to vote on: no response gave an answer.")
    elif repeats:
        lines.append("All responses are the same to the letter, which is no evidence: there is nothing to vote on.")
    elif outcome.stop_reason in SETTLED:
        saved = f"{outcome.samples_saved} of {outcome.budget} samples ({outcome.samples_saved / outcome.budget:.0%})"
        about = _about(outcome.tokens_saved, outcome.tokens, outcome.over_one.prompt_tokens)
        lines.append(f"Saved {saved}{about}.")
    else:
        lines.append(f"Stopped before it was settled: {outcome.stop_reason}.")
    cancelled = outcome.launched - outcome.samples - len(outcome.failures)
    if cancelled > 0:
        lines.append(f"{many(cancelled, 'draw')} cancelled at the stop, after {outcome.cancelled_tokens} tokens.")
    if outcome.runs_on:
        lines.append("The server does not stream: what was cancelled may have run on there.")
    if outcome.failures:
        last = printable(outcome.failures[-1])
        lines.append(f"{many(len(outcome.failures), 'draw')} failed, the last with: {last}")
    return lines


def _field_line(pointer: str, field: "FieldOutcome") -> str:
    sure = "not voted on"
    if field.confidence is not None:
        sure = f"{field.share:.0%} of the votes, {field.confidence:.1%} sure"
    return f"  {_short(pointer) or '/'}: {_short(dumps(field.value, ensure_ascii=False))} ({sure})"


def outcomes_summary(lines: Sequence[dict[str, Any]], price: float = 0.0, prompt_price: float = 0.0) -> str:
    """What answers took over asking once, changed and saved; prices are of a million tokens."""
    graded = [line["right"] for line in lines if line["right"] is not None]
    accuracy = f"accuracy {fmean(graded):.1%} ({sum(graded)} of {len(graded)} with gold), " if graded else ""
    fields = [line["fields_right"] for line in lines if line.get("fields_right") is not None]
    accuracy += f"{fmean(fields):.1%} of fields right, " if fields else ""
    samples, rounds, tokens, seconds = (
        fmean(line[name] for line in lines) for name in ("samples", "rounds", "tokens", "seconds")
    )
    took = (
        f"{many(len(lines), 'question')}: {accuracy}{samples:.1f} samples in {rounds:.1f} rounds, {tokens:.0f} tokens "
        f"and {seconds:.1f} s each."
    )
    settled = [line for line in lines if line["stop_reason"] in SETTLED and not line["none"]]
    told = [took, _cost(lines, price, prompt_price), _unsettled(lines, settled), _saved(lines, settled)]
    return "\n".join(filter(None, told))


def coverage_sentence(lines: Sequence[dict[str, Any]], risk: float) -> str:
    sure = [line for line in lines if line["sure"]]
    graded = [line["right"] for line in sure if line["right"] is not None]
    right = f"; {sum(graded)} of {len(graded)} with gold are right" if graded else ""
    share = f"{len(sure)} of {len(lines)} answers ({len(sure) / len(lines):.0%})"
    return f"Sure enough for a risk of {risk:g}: {share}{right}."


def _cost(lines: Sequence[dict[str, Any]], price: float, prompt_price: float) -> str:
    samples, tokens, again = (
        fmean(line["over_one"][name] for line in lines) for name in ("samples", "tokens", "prompt_tokens")
    )
    prompts = f" and {again:.0f} of prompts sent again" if again else ""
    changed = fmean(line["changed"] for line in lines)
    money = len(lines) * (price * tokens + prompt_price * again) / 1e6
    paid = f", for {money:.4f} in all" if money else ""
    spent = f"+{samples:.1f} samples, {tokens:.0f} tokens{prompts} each{paid}"
    return f"Over one response: {spent}; {changed:.0%} of answers changed."


def _unsettled(lines: Sequence[dict[str, Any]], settled: Sequence[dict[str, Any]]) -> str:
    """How many votes were never settled, and why."""
    none = sum(line["none"] for line in lines)
    copies = sum(line["stop_reason"] == "repeats" and not line["none"] for line in lines)
    counts = {
        "had no answer": none,
        "came back the same to the letter, which is no evidence": copies,
        "stopped before they were settled": len(lines) - none - copies - len(settled),
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    return f"Of these {', '.join(said)}." if said else ""


def _saved(lines: Sequence[dict[str, Any]], settled: Sequence[dict[str, Any]]) -> str:
    """What settled votes saved of their budgets, less prompts that were sent again."""
    if not settled:
        return ""
    spent, saved, tokens, unspent = (
        sum(line[name] for line in settled) for name in ("samples", "samples_saved", "tokens", "tokens_saved")
    )
    again = sum(line["over_one"]["prompt_tokens"] for line in settled)
    who = "Together they" if len(settled) == len(lines) else f"The other {len(settled)}"
    share = f"{saved:,} of {saved + spent:,} samples ({saved / (saved + spent):.0%})"
    return f"{who} saved {share} of the budget{_about(unspent, tokens, again)}."


def _about(unspent: int, spent: int, again: int) -> str:
    """Nothing where the server tells no tokens, or none were saved."""
    if not unspent:
        return ""
    balance = f"; {with_prompts(unspent, again)}" if again else ""
    return f", about {unspent:,} of {unspent + spent:,} tokens{balance}"
