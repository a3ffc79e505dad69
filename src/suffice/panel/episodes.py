"""Episodes of a panel: each question with the draws of all its voters, which all controllers share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from suffice.panel.controllers import PanelController, PanelTallies
from suffice.panel.voters import PoolVoter
from suffice.pools import Episodes, Question, draw_episodes
from suffice.tally import FloatArray, IntArray


@dataclass(frozen=True)
class PanelEpisodes:
    """Some questions in several orders of arrival, a row each, as in `Episodes`."""

    voters: tuple[str, ...]
    answers: IntArray
    """At [row, voter, place], in codes that the voters share."""
    money: FloatArray
    """What the first n responses of a voter cost, at [row, voter, n]."""
    gold: IntArray
    """The code of each row's gold answer: ABSENT where nobody gave it, NONE where it is not known."""
    alone: tuple[Episodes, ...] = ()
    """The draws of each voter, in the same codes; their questions have the responses of all voters."""

    def __len__(self) -> int:
        return len(self.answers)

    def spent(self, rows: IntArray, draws: IntArray) -> FloatArray:
        return self.money[rows[:, None], np.arange(draws.shape[1]), draws].sum(axis=1)

    def full_vote(self, weights: Sequence[float]) -> IntArray:
        """What the panel elects when every voter has drawn all of its budget."""
        return PanelTallies(self.answers, np.full(self.answers.shape[:2], self.answers.shape[2])).leader(weights)


def draw_panel(voters: Sequence[PoolVoter], budget: int, repeats: int, seed: int) -> Iterator[PanelEpisodes]:
    """Draw `budget` responses of each voter to each question, `repeats` times, in batches of questions.

    The voters must be `aligned`; each draws as it would alone.
    """
    for drawn in zip(*(draw_episodes(voter.pool, budget, repeats, seed) for voter in voters), strict=True):
        questions = tuple(map(_together, *(one.questions for one in drawn)))
        sizes = [[len(question.answers) for question in one.questions] for one in drawn]
        starts = np.cumsum([[0] * len(questions), *sizes[:-1]], axis=0)
        alone = tuple(
            replace(one, questions=questions, orders=one.orders + start[:, None, None])
            for one, start in zip(drawn, starts, strict=True)
        )
        answers = np.stack([one.answers for one in alone], axis=1)
        money = [one.spent.T * voter.price / 1_000_000 for one, voter in zip(alone, voters, strict=True)]
        names = tuple(voter.name for voter in voters)
        yield PanelEpisodes(names, answers, np.stack(money, axis=1), alone[0].gold, alone)


def _together(*same: Question) -> Question:
    """The question with the responses of all voters, one after the other."""
    answers = tuple(answer for question in same for answer in question.answers)
    tokens = tuple(count for question in same for count in question.tokens or ())
    return Question(same[0].id, same[0].gold, answers, tokens)


@dataclass(frozen=True)
class PanelOutcomes:
    """How each episode ended; `draws` are those of each voter."""

    answer: IntArray
    draws: IntArray
    rounds: IntArray
    cost: FloatArray


def run_panel(
    episodes: PanelEpisodes, controller: PanelController, rows: IntArray | None = None, begun: IntArray | None = None
) -> PanelOutcomes:
    """Run a controller over all episodes, or over these rows from there on where they are begun."""
    rows = np.arange(len(episodes)) if rows is None else rows
    begun = np.zeros((len(rows), len(episodes.voters)), np.intp) if begun is None else begun
    order = np.array([episodes.voters.index(name) for name in controller.voters])
    draws, rounds, answer = begun.copy(), np.zeros(len(rows), np.intp), np.zeros(len(rows), np.intp)
    running = np.arange(len(rows))
    while running.size:
        tallies = PanelTallies(episodes.answers[np.ix_(rows[running], order)], draws[np.ix_(running, order)])
        asked = controller.next_draws(tallies)
        stops = ~asked.any(axis=1)
        answer[running[stops]] = tallies.leader(controller.weights)[stops]
        running, asked = running[~stops], asked[~stops]
        draws[np.ix_(running, order)] += asked
        rounds[running] += 1
    return PanelOutcomes(answer, draws, rounds, episodes.spent(rows, draws))
