"""Episodes of a panel: each question with the draws of all its voters, which all controllers share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.panel.controllers import PanelController, PanelTallies
from suffice.panel.voters import PoolVoter
from suffice.pools import ABSENT, Episodes, Question, draw_episodes
from suffice.tally import NONE, FloatArray, IntArray


@dataclass(frozen=True)
class PanelEpisodes:
    """Some questions in several orders of arrival, a row each, as in `Episodes`."""

    voters: tuple[str, ...]
    answers: IntArray
    """At [row, voter, place], in codes that the voters share."""
    money: FloatArray
    """What the first n responses of a voter cost, at [row, voter, n]."""
    gold: IntArray
    """The code of each row's gold answer: ABSENT where nobody gave it or it is not known."""
    known: np.ndarray
    """Whether the gold answer is known."""

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def budget(self) -> int:
        """The most draws of each voter."""
        return int(self.answers.shape[2])

    def spent(self, rows: IntArray, draws: IntArray) -> FloatArray:
        """What so many draws of each voter cost."""
        spent: FloatArray = self.money[rows[:, None], np.arange(draws.shape[1]), draws].sum(axis=1)
        return spent

    def full_vote(self, weights: Sequence[float]) -> IntArray:
        """What the panel elects when every voter has drawn all of its budget."""
        return PanelTallies(self.answers, np.full(self.answers.shape[:2], self.budget)).leader(weights)

    @staticmethod
    def joined(parts: Sequence["PanelEpisodes"]) -> "PanelEpisodes":
        """Several as one."""
        columns = ("answers", "money", "gold", "known")
        arrays = (np.concatenate([getattr(one, name) for one in parts]) for name in columns)
        return PanelEpisodes(parts[0].voters, *arrays)


@dataclass(frozen=True)
class PanelBatch:
    """Some questions' episodes: of the panel, and of each voter alone, with its codes."""

    panel: PanelEpisodes
    alone: tuple[Episodes, ...]
    maps: tuple[IntArray, ...]
    """For each voter, at [question, its own code], the code that the voters share; the last column is for NONE."""

    def shared(self, voter: int, codes: IntArray) -> IntArray:
        """A voter's own codes of answers, one a row, as those that the voters share."""
        return self.maps[voter][np.arange(len(codes)) // self.alone[voter].repeats, codes]


def draw_panel(voters: Sequence[PoolVoter], budget: int, repeats: int, seed: int) -> Iterator[PanelBatch]:
    """Draw `budget` responses of each voter to each question, `repeats` times, in batches of questions.

    The voters must be `aligned`; each draws as it would alone.
    """
    for alone in zip(*(draw_episodes(voter.pool, budget, repeats, seed) for voter in voters), strict=True):
        yield _together(alone, voters)


def _together(alone: tuple[Episodes, ...], voters: Sequence[PoolVoter]) -> PanelBatch:
    repeats, same = alone[0].repeats, list(zip(*(one.questions for one in alone), strict=True))
    answers_of = [dict.fromkeys(label for one in questions for label in one.labels) for questions in same]
    labels = [{answer: code for code, answer in enumerate(given)} for given in answers_of]
    maps = tuple(_map(one.questions, labels) for one in alone)
    rows = np.arange(len(alone[0].answers))[:, None] // repeats
    answers = np.stack([codes[rows, one.answers] for one, codes in zip(alone, maps, strict=True)], axis=1)
    money = [one.spent.T * voter.price / 1_000_000 for one, voter in zip(alone, voters, strict=True)]
    golds = [next((one.gold for one in questions if one.gold is not None), None) for questions in same]
    gold = [ABSENT if one is None else known.get(one, ABSENT) for one, known in zip(golds, labels, strict=True)]
    known = np.repeat([one is not None for one in golds], repeats)
    names = tuple(voter.name for voter in voters)
    panel = PanelEpisodes(names, answers, np.stack(money, axis=1), np.repeat(gold, repeats), known)
    return PanelBatch(panel, alone, maps)


def _map(questions: Sequence[Question], labels: Sequence[dict[str, int]]) -> IntArray:
    most = max(len(question.labels) for question in questions)
    codes = np.full((len(questions), most + 1), NONE)
    for row, (question, shared) in enumerate(zip(questions, labels, strict=True)):
        codes[row, : len(question.labels)] = [shared[label] for label in question.labels]
    return codes


@dataclass(frozen=True)
class PanelOutcomes:
    """How each episode ended: the code of its answer, the draws of each voter, rounds, and what they cost."""

    answer: IntArray
    draws: IntArray
    rounds: IntArray
    cost: FloatArray


def run_panel(
    episodes: PanelEpisodes, controller: PanelController, rows: IntArray | None = None, begun: IntArray | None = None
) -> PanelOutcomes:
    """Run a controller over all episodes; or over these rows, after so many draws of each voter."""
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
