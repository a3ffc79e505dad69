"""The replay of structured answers: an episode at a time, with the controller asked about every field."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from suffice.controllers import Controller
from suffice.elections import FieldElection, FieldTallies, field_accuracy
from suffice.planning import Prior, certainty, confidence, prior_of
from suffice.pools import Episodes, Question
from suffice.replay.run import CERTAINTY_REPEATS, COSTS, SHARES, Measures, controllers_of
from suffice.tally import IntArray


class FieldEpisode:
    """A structured question in one order of arrival; what controllers look at on the way is counted once for all."""

    def __init__(self, question: Question, order: IntArray) -> None:
        self.values = [None if code < 0 else question.values[code] for code in order]
        self._options = {name: question.extra[name] for name in ("ignore", "compare") if question.extra.get(name)}
        self._after = [FieldTallies(len(self.values), **self._options)]

    def after(self, draws: int, ends: Sequence[int] = ()) -> FieldTallies:
        """The tallies after so many draws, in rounds that ended here."""
        while len(self._after) <= draws:
            self._after.append(self._after[-1].joined_by(self.values[len(self._after) - 1]))
        tallies = self._after[draws]
        tallies.round_ends[:] = ends
        return tallies

    def full_vote(self) -> FieldElection | None:
        return self.after(len(self.values)).elect()

    def agrees(self, election: FieldElection | None, full: FieldElection | None) -> float:
        return self.right(election, full.value)[0] if full else float(election is None)

    def right(self, election: FieldElection | None, gold: Any) -> tuple[float, float]:
        """Whether all of what is elected is as in gold, and which share of its fields; NaN where that is not known."""
        if gold is None:
            return np.nan, np.nan
        found = field_accuracy(election and election.value, gold, self.values, **self._options)
        return float(found.whole), found.share


def replay_fields(
    episodes: Episodes, controllers: Sequence[Controller], check: Callable[[], None] = lambda: None
) -> list[Measures]:
    """Run controllers over episodes of structured questions; the votes of an answer are those of all of it."""
    rows = len(episodes.answers)
    measured: list[Measures] = [{name: np.full(rows, np.nan) for name in COSTS + SHARES} for _ in controllers]
    second = dict(zip(*episodes.second, strict=True))
    serving = [controllers_of(episodes, controller) for controller in controllers]
    for row in range(rows):
        check()
        question = episodes.question(row)
        gold = None if question.gold is None else json.loads(question.gold)
        episode = FieldEpisode(question, episodes.answers[row])
        full = episode.full_vote()
        other = FieldEpisode(question, second[row]).full_vote() if row in second else None
        for found, chosen in zip(measured, serving, strict=True):
            draws, ends = 0, list[int]()
            while asked := episode.after(draws, ends).next_round(chosen[row]):
                draws += asked
                ends.append(draws)
            election = episode.after(draws).elect()
            rounds = np.split(episodes.tokens[row, :draws], ends[:-1])
            found["rounds"][row], found["samples"][row], found["launched"][row] = len(ends), draws, draws
            found["total_tokens"][row] = sum(tokens.sum() for tokens in rounds)
            found["sequential_tokens"][row] = sum(tokens.max(initial=0) for tokens in rounds)
            found["agreement"][row] = episode.agrees(election, full)
            if row in second:
                found["agreement_independent"][row] = episode.agrees(election, other)
            found["accuracy"][row], found["field_accuracy"][row] = episode.right(election, gold)
            found["share"][row] = election.whole.top(1)[0] / draws if election else 0
            certain = row % episodes.repeats < CERTAINTY_REPEATS
            found["confidence"][row], found["certainty"][row] = _sureness(election, certain, prior_of(chosen[row]))
    return measured


def _sureness(election: FieldElection | None, certain: bool, prior: Prior) -> tuple[float, float]:
    """Confidence, and certainty if wanted, of the least sure field; 0 and NaN without an answer."""
    if election is None:
        return 0.0, np.nan
    tallies = [field.tally for field in election.fields.values() if field.leads] or [election.whole]
    sure = min(confidence(tally, prior) or 0.0 for tally in tallies)
    return sure, min(certainty(tally, prior) or 0.0 for tally in tallies) if certain else np.nan
