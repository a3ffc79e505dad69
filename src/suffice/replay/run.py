"""The replay itself: one controller over episodes, as arrays where it can and one question at a time where not."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from suffice.controllers import ArrayController, Controller
from suffice.flow import Flow
from suffice.planning import Mixture, confidence, confidences
from suffice.pools import Episodes
from suffice.replay.flow import flow_one, rounds_one
from suffice.tally import NONE, FloatArray, IntArray, Tally


@dataclass(frozen=True)
class Outcomes:
    """How each episode ended: the code of its answer, and what it took."""

    answer: IntArray
    rounds: IntArray
    samples: IntArray
    total_tokens: IntArray
    sequential_tokens: IntArray

    @property
    def launched(self) -> IntArray:
        """How many draws were started."""
        return self.samples

    @property
    def spent_tokens(self) -> IntArray:
        """The tokens that were generated."""
        return self.total_tokens

    @property
    def latency_tokens(self) -> IntArray:
        """The tokens on the critical path."""
        return self.sequential_tokens

    def leader_votes(self, episodes: Episodes) -> IntArray:
        """The votes of each answer."""
        votes: IntArray = episodes.standings.votes[self.samples, np.arange(len(self.samples)), 0]
        return votes

    def confidences(self, episodes: Episodes) -> FloatArray:
        """How sure each outcome is that the full budget would elect its answer."""
        return confidences(episodes.standings.at(np.arange(len(self.samples)), self.samples))


@dataclass(frozen=True)
class ClockedOutcomes(Outcomes):
    """How each episode ended on a clock, where what was counted need not be what was started first."""

    started: IntArray
    votes: IntArray
    sure: FloatArray

    @property
    def launched(self) -> IntArray:
        """How many draws were started."""
        return self.started

    def leader_votes(self, episodes: Episodes) -> IntArray:
        """The votes of each answer."""
        return self.votes

    def confidences(self, episodes: Episodes) -> FloatArray:
        """How sure each outcome is."""
        return self.sure


def replay_clocked(episodes: Episodes, controller: Controller, flow: Flow | None, slots: int | None) -> ClockedOutcomes:
    """Each episode on a clock of tokens: in flow, or in rounds."""
    columns = ("answer", "rounds", "samples", "total_tokens", "sequential_tokens", "started", "votes")
    found = {name: np.zeros(len(episodes.answers), np.int64) for name in columns}
    sure = np.full(len(episodes.answers), np.nan)
    for row, codes in enumerate(episodes.answers):
        question = episodes.questions[row // episodes.repeats]
        answers = [None if code == NONE else question.labels[code] for code in codes]
        tokens = episodes.tokens[row].tolist()
        chosen = controller.for_question(np.random.default_rng([episodes.seed, row]))
        one = flow_one(chosen, answers, tokens, flow) if flow else rounds_one(chosen, answers, tokens, slots)
        leader, votes = question.code(one.tally.leader), one.tally.top(1)[0]
        figures = (leader, one.launches, one.tally.draws, one.spent, one.latency, one.launched, votes)
        for name, figure in zip(columns, figures, strict=True):
            found[name][row] = figure
        known = confidence(one.tally)
        sure[row] = np.nan if known is None else known
    return ClockedOutcomes(**found, sure=sure)


def replay(episodes: Episodes, controller: Controller) -> Outcomes:
    """Run a controller over all episodes."""
    if isinstance(controller, Mixture):
        return _replay_mixture(episodes, controller)
    if isinstance(controller, ArrayController):
        return replay_arrays(episodes, controller)
    return replay_one_by_one(episodes, controller)


def replay_arrays(episodes: Episodes, controller: ArrayController) -> Outcomes:
    """All episodes in step: each turn decides, and draws, for all that have not stopped."""
    standings, tokens = episodes.standings, episodes.tokens
    every = np.arange(len(tokens))
    rounds, samples, sequential = np.zeros((3, len(tokens)), np.int64)
    running, drawn, waited, turn = every, samples, sequential, 0
    while running.size:
        asked = controller.next_rounds(standings.at(running, drawn))
        stops = asked == 0
        ended = running[stops]
        rounds[ended], samples[ended], sequential[ended] = turn, drawn[stops], waited[stops]
        running, drawn, waited, asked = (array[~stops] for array in (running, drawn, waited, asked))
        waited += _longest(tokens, running, drawn, asked)
        drawn += asked
        turn += 1
    return Outcomes(standings.leader[samples, every], rounds, samples, episodes.spent[samples, every], sequential)


def _longest(tokens: IntArray, rows: IntArray, drawn: IntArray, asked: IntArray) -> IntArray:
    """The longest of the next responses of each row, as many as are asked for."""
    longest = tokens[rows, drawn]
    for ahead in range(1, asked.max(initial=0)):
        more = np.flatnonzero(asked > ahead)
        longest[more] = np.maximum(longest[more], tokens[rows[more], drawn[more] + ahead])
    return longest


def _replay_mixture(episodes: Episodes, mixture: Mixture) -> Outcomes:
    """Each episode with the plan that is drawn for it."""
    name = "/".join(question.id for question in episodes.questions)
    random = np.random.default_rng([episodes.seed, zlib.crc32(name.encode("utf-8", "surrogatepass"))])
    chosen = mixture.choose(random, len(episodes.answers))
    outcomes = [replay_arrays(episodes, plan) for plan in mixture.plans]
    columns = ([getattr(outcome, field.name) for outcome in outcomes] for field in fields(Outcomes))
    return Outcomes(*(np.choose(chosen, column) for column in columns))


def replay_one_by_one(episodes: Episodes, controller: Controller) -> Outcomes:
    """Each episode through `Controller.decide`, as if it were live."""
    outcomes = Outcomes(*np.zeros((5, len(episodes.answers)), np.int64))
    for row, codes in enumerate(episodes.answers):
        question = episodes.questions[row // episodes.repeats]
        tally = run(controller, [None if code == NONE else question.labels[code] for code in codes])
        rounds = np.split(episodes.tokens[row, : tally.draws], tally.round_ends[:-1])
        outcomes.answer[row] = question.code(tally.leader)
        outcomes.rounds[row] = tally.rounds
        outcomes.samples[row] = tally.draws
        outcomes.total_tokens[row] = sum(tokens.sum() for tokens in rounds)
        outcomes.sequential_tokens[row] = sum(tokens.max(initial=0) for tokens in rounds)
    return outcomes


def run(controller: Controller, answers: Sequence[str | None]) -> Tally:
    """Draw from answers known beforehand, the budget being their number, until the controller stops."""
    tally = Tally(budget=len(answers))
    while tally.left and (asked := controller.next_round(tally)):
        tally.add_round(answers[tally.draws : tally.draws + asked])
    return tally
