"""The replay itself: one controller over episodes, as arrays where it can and one question at a time where not."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.controllers import ArrayController, Controller, question_random
from suffice.elections import LENGTH, Election, Majority
from suffice.flow import Flow
from suffice.planning import Prior, certainties, confidences
from suffice.pools import Episodes
from suffice.replay.flow import flow_one, rounds_one
from suffice.tally import NONE, FloatArray, IntArray, Standings, Tally


@dataclass(frozen=True)
class Outcomes:
    """How each episode ended: the code of its answer, and what it took."""

    answer: IntArray
    rounds: IntArray
    samples: IntArray
    total_tokens: IntArray
    sequential_tokens: IntArray
    launched: IntArray
    """How many draws were started."""

    def agrees(self, episodes: Episodes) -> NDArray[Any]:
        """Whether each answer is the one that the full budget elects."""
        return self.answer == episodes.standings.reference

    def agrees_independent(self, episodes: Episodes) -> FloatArray:
        """Whether each answer is what a second full vote elects, of other draws; NaN where a pool has too few."""
        reference = episodes.second_reference
        return np.where(np.isnan(reference), np.nan, self.answer == reference)

    def right(self, episodes: Episodes) -> FloatArray:
        """Whether each answer is the gold one; NaN where that is not known."""
        golds = [question.gold for question in episodes.questions]
        known = np.repeat([gold is not None for gold in golds], episodes.repeats)
        return np.where(known, self.answer == episodes.codes(golds), np.nan)

    def counted(self, episodes: Episodes) -> IntArray:
        """The draws that each outcome rests on, in the order in which they count, and NONE for what was not drawn."""
        draws = np.arange(episodes.answers.shape[1])
        return np.where(draws < self.samples[:, None], draws, NONE)

    def elected(self, episodes: Episodes, election: Election) -> "Outcomes":
        """The same outcomes, with the answers that an election by weight gives."""
        if isinstance(election, Majority):
            return self
        counted = self.counted(episodes)

        def of(values: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(values, np.maximum(counted, 0), axis=1)

        signals = {name: of(episodes.signal(name)) for name in election.signals if name != LENGTH}
        codes = in_order(episodes.answers, counted)
        return replace(self, answer=election.elect(codes, signals, of(episodes.lengths)))

    def standings(self, episodes: Episodes) -> Standings:
        """The votes after each draw, in the order in which draws count."""
        return episodes.standings

    def leader_votes(self, episodes: Episodes) -> IntArray:
        """The votes of each answer."""
        return self.standings(episodes).votes[self.samples, np.arange(len(self.samples)), 0]

    def confidences(self, episodes: Episodes, prior: Prior) -> FloatArray:
        """How sure each outcome is that the full budget would elect its answer."""
        return confidences(self.standings(episodes).at(np.arange(len(self.samples)), self.samples), prior)

    def certainties(self, episodes: Episodes, prior: Prior) -> FloatArray:
        """How sure each outcome is that unlimited sampling would; NaN where there is no answer, or it is not told."""
        rows = np.flatnonzero(np.arange(len(episodes.answers)) % episodes.repeats < CERTAINTY_REPEATS)
        found = np.full(len(self.samples), np.nan)
        found[rows] = certainties(self.standings(episodes).at(rows, self.samples[rows]), prior)
        return found


CERTAINTY_REPEATS = 10
"""Certainties are worked out for so many repeats of a question: each takes as long as a thousand decisions."""


@dataclass(frozen=True)
class ClockedOutcomes(Outcomes):
    """How each episode ended on a clock, where what was counted need not be what was started first."""

    order: IntArray
    counted_standings: Standings

    def counted(self, episodes: Episodes) -> IntArray:
        """The draws that each outcome rests on."""
        return self.order

    def standings(self, episodes: Episodes) -> Standings:
        """The votes after each draw that counted."""
        return self.counted_standings


SHARES = (
    *("accuracy", "field_accuracy", "agreement", "agreement_independent"),
    *("confidence", "certainty", "share"),
)
MEASURED = ("rounds", "samples", "launched", "total_tokens", "sequential_tokens", *SHARES)
"""What is measured of each episode, NaN where it is not known; these are shares of 1."""

Measures = dict[str, FloatArray]


def controllers_of(episodes: Episodes, controller: Controller) -> Sequence[Controller]:
    """The controller that serves each episode: `Controller.for_question`, asked for each question and repeat."""
    if _serves_all(controller):
        return [controller] * len(episodes.answers)
    return [
        controller.for_question(question_random(episodes.seed, question.id, repeat))
        for question in episodes.questions
        for repeat in range(episodes.repeats)
    ]


def _serves_all(controller: Controller) -> bool:
    """Whether it need not be asked who serves a question."""
    return type(controller).for_question is Controller.for_question


def replay_clocked(episodes: Episodes, controller: Controller, flow: Flow | None, slots: int | None) -> ClockedOutcomes:
    """Each episode on a clock of tokens: in flow, or in rounds."""
    found = []
    order = np.full(episodes.answers.shape, NONE)
    for row, chosen in enumerate(controllers_of(episodes, controller)):
        answers, tokens = episodes.row(row), episodes.tokens[row].tolist()
        one = flow_one(chosen, answers, tokens, flow, slots) if flow else rounds_one(chosen, answers, tokens, slots)
        leader = episodes.question(row).code(one.tally.leader)
        found.append((leader, one.launches, one.tally.draws, one.spent, one.latency, one.launched))
        order[row, : one.tally.draws] = one.counted
    standings = Standings(in_order(episodes.answers, order))
    answer, rounds, samples, spent, waited, launched = np.array(found, np.int64).T
    return ClockedOutcomes(answer, rounds, samples, spent, waited, launched, order, standings)


def in_order(answers: IntArray, counted: IntArray) -> IntArray:
    """The codes of the draws that are counted, in their order; NONE for what was not drawn."""
    return np.where(counted == NONE, NONE, np.take_along_axis(answers, np.maximum(counted, 0), axis=1))


def replay(episodes: Episodes, controller: Controller) -> Outcomes:
    """Run a controller over all episodes; those that another serves for it are grouped by that one."""
    if _serves_all(controller):
        return _replay(episodes, controller)
    groups: dict[int, tuple[Controller, list[int]]] = {}
    for row, chosen in enumerate(serving := controllers_of(episodes, controller)):
        groups.setdefault(id(chosen), (chosen, []))[1].append(row)
    outcomes = Outcomes(*np.zeros((len(fields(Outcomes)), len(serving)), np.int64))
    for chosen, rows in groups.values():
        found = _replay(episodes, chosen, np.array(rows))
        for field in fields(Outcomes):
            getattr(outcomes, field.name)[rows] = getattr(found, field.name)
    return outcomes


def _replay(episodes: Episodes, controller: Controller, rows: IntArray | None = None) -> Outcomes:
    if isinstance(controller, ArrayController):
        return replay_arrays(episodes, controller, rows)
    return replay_one_by_one(episodes, controller, rows)


def replay_arrays(episodes: Episodes, controller: ArrayController, rows: IntArray | None = None) -> Outcomes:
    """These episodes, or all, in step: each turn decides, and draws, for all that have not stopped."""
    standings, tokens = episodes.standings, episodes.tokens
    rows = np.arange(len(tokens)) if rows is None else rows
    rounds, samples, sequential = np.zeros((3, len(rows)), np.int64)
    running, drawn, waited, turn = np.arange(len(rows)), samples, sequential, 0
    while running.size:
        asked = controller.next_rounds(standings.at(rows[running], drawn))
        stops = asked == 0
        ended = running[stops]
        rounds[ended], samples[ended], sequential[ended] = turn, drawn[stops], waited[stops]
        running, drawn, waited, asked = (array[~stops] for array in (running, drawn, waited, asked))
        waited += _longest(tokens, rows[running], drawn, asked)
        drawn += asked
        turn += 1
    spent = episodes.spent[samples, rows]
    return Outcomes(standings.leader[samples, rows], rounds, samples, spent, sequential, samples)


def _longest(tokens: IntArray, rows: IntArray, drawn: IntArray, asked: IntArray) -> IntArray:
    """The longest of the next responses of each row, as many as are asked for."""
    longest = tokens[rows, drawn]
    for ahead in range(1, asked.max(initial=0)):
        more = np.flatnonzero(asked > ahead)
        longest[more] = np.maximum(longest[more], tokens[rows[more], drawn[more] + ahead])
    return longest


def replay_one_by_one(episodes: Episodes, controller: Controller, rows: IntArray | None = None) -> Outcomes:
    """Each of these episodes, or all, through `Controller.decide`, as if it were live."""
    rows = np.arange(len(episodes.answers)) if rows is None else rows
    outcomes = Outcomes(*np.zeros((len(fields(Outcomes)), len(rows)), np.int64))
    for place, row in enumerate(rows):
        tally = run(controller, episodes.row(row))
        rounds = np.split(episodes.tokens[row, : tally.draws], tally.round_ends[:-1])
        outcomes.answer[place] = episodes.question(row).code(tally.leader)
        outcomes.rounds[place] = tally.rounds
        outcomes.samples[place] = outcomes.launched[place] = tally.draws
        outcomes.total_tokens[place] = sum(tokens.sum() for tokens in rounds)
        outcomes.sequential_tokens[place] = sum(tokens.max(initial=0) for tokens in rounds)
    return outcomes


def run(controller: Controller, answers: Sequence[str | None]) -> Tally:
    """Draw from answers known beforehand, the budget being their number, until the controller stops."""
    tally = Tally(budget=len(answers))
    while tally.left and (asked := controller.next_round(tally)):
        tally.add_round(answers[tally.draws : tally.draws + asked])
    return tally
