"""A panel's replay: one controller over episodes, as arrays."""

from dataclasses import dataclass

import numpy as np

from suffice.panel.controllers import PanelController
from suffice.panel.episodes import PanelEpisodes
from suffice.panel.tallies import PanelTallies
from suffice.tally import FloatArray, IntArray


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
