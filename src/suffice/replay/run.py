"""The replay itself: one controller over episodes, as arrays where it can and one question at a time where not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.controllers import ArrayController, Controller
from suffice.pools import Episodes
from suffice.tally import NONE, IntArray, Tally


@dataclass(frozen=True)
class Outcomes:
    """How each episode ended: the code of its answer, and what it took."""

    answer: IntArray
    rounds: IntArray
    samples: IntArray
    total_tokens: IntArray
    sequential_tokens: IntArray


def replay(episodes: Episodes, controller: Controller) -> Outcomes:
    """Run a controller over all episodes."""
    if isinstance(controller, ArrayController):
        return replay_arrays(episodes, controller)
    return replay_one_by_one(episodes, controller)


def replay_arrays(episodes: Episodes, controller: ArrayController) -> Outcomes:
    """All episodes in step: each turn decides, and draws, for all that have not stopped."""
    standings, budget = episodes.standings, episodes.answers.shape[1]
    rounds, samples, total, sequential = np.zeros((4, len(episodes.answers)), np.int64)
    running = np.arange(len(episodes.answers))
    while running.size:
        drawn = samples[running]
        asked = controller.next_rounds(standings.at(running, drawn))
        running, drawn, asked = running[asked > 0], drawn[asked > 0], asked[asked > 0]
        longest = np.zeros(len(running), np.int64)
        for ahead in range(asked.max(initial=0)):
            within = asked > ahead
            tokens = episodes.tokens[running[within], drawn[within] + ahead]
            total[running[within]] += tokens
            longest[within] = np.maximum(longest[within], tokens)
        rounds[running] += 1
        samples[running] += asked
        sequential[running] += longest
        running = running[samples[running] < budget]
    answer = standings.leader[np.arange(len(samples)), samples]
    return Outcomes(answer, rounds, samples, total, sequential)


def replay_one_by_one(episodes: Episodes, controller: Controller) -> Outcomes:
    """Each episode through `Controller.decide`, as if it were live."""
    outcomes = Outcomes(*np.zeros((5, len(episodes.answers)), np.int64))
    for row, codes in enumerate(episodes.answers):
        labels = episodes.labels[row // episodes.repeats]
        tally = run(controller, [None if code == NONE else labels[code] for code in codes])
        rounds = np.split(episodes.tokens[row, : tally.draws], tally.round_ends[:-1])
        outcomes.answer[row] = NONE if tally.leader is None else labels.index(tally.leader)
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
