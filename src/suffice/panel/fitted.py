"""A controller that goes by steps, fitted to recorded draws by regression backwards.

After the last step there is nothing more to gain; before it, what a step gains over stopping is regressed on how the
vote stands, episodes being followed to their end by what was fitted for later steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from suffice.controllers.files import BROKEN, FORMAT, read_tensors, write_tensors
from suffice.errors import ControllerError
from suffice.panel.controllers import PanelController
from suffice.panel.episodes import run_panel
from suffice.panel.process import ends_of, features, panel_process, standing
from suffice.panel.tallies import PanelTallies
from suffice.panel.voters import PoolVoter
from suffice.paths import is_there
from suffice.tally import DEFAULT_BUDGET, FloatArray, IntArray

PULL = 10.0
"""How many episodes' worth the fit of a step is pulled to that of the step after it."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedPanel(PanelController):
    """Asks the voter whose next step gains most; stops where none gains anything."""

    voters: tuple[str, ...]
    weights: tuple[float, ...]
    gains: FloatArray
    """What a step of the voter gains over stopping, at [steps made by all, feature, voter]."""
    value: float
    """What a right answer is worth, in the money of the prices."""
    budget: int = DEFAULT_BUDGET

    def __str__(self) -> str:
        return f"fitted:value={self.value:g}"

    def choose_many(self, tallies: PanelTallies) -> IntArray:
        """The step that gains most; where more steps are made than were fitted, none gains anything."""
        ends = ends_of(tallies.budget)
        made = np.searchsorted(ends, tallies.draws, side="right") - 1
        level = made.sum(axis=1)
        stands = standing(tallies, self.weights)
        gain = np.einsum("rf,rfj->rj", stands, self.gains[np.minimum(level, len(self.gains) - 1)])
        gain[level >= len(self.gains)] = -np.inf
        gain[made >= len(ends) - 1] = -np.inf
        best = gain.argmax(axis=1)
        rows = np.arange(len(tallies))
        goes_on = np.isfinite(gain[rows, best]) & ((gain[rows, best] > 0) | (level == 0))
        asked = np.zeros(tallies.draws.shape, np.intp)
        reached = ends[np.minimum(made[rows, best] + 1, len(ends) - 1)]
        asked[rows, best] = np.where(goes_on, reached - tallies.draws[rows, best], 0)
        return asked


def fit_panel(
    voters: Sequence[PoolVoter],
    value: float,
    *,
    budget: int = DEFAULT_BUDGET,
    labels: bool = True,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> FittedPanel:
    """Fit a controller to what voters said to the same questions.

    Args:
        voters: The voters, with pools and prices.
        value: What a right answer is worth, in the money of the prices.
        budget: The most draws of each voter.
        labels: False takes no notice of gold answers: right is then what the panel's full vote elects, by weights that
            are learned without them.
        seed: Chooses the draws.
        progress: Called with the share of the work that each step was.

    >>> small = PoolVoter.of("small=smollm2-135m__arithmetic,price=1")
    >>> fit_panel([small], value=0.01, budget=8).weights
    (1.0,)
    """
    process = panel_process(voters, value, budget, labels, seed)
    random = np.random.default_rng(seed)
    episodes, ends, last = process.episodes, process.ends, len(process.ends) - 1
    count, rows = len(episodes.voters), np.arange(len(episodes))
    levels = last * count
    gains = np.zeros((levels, features(count), count))
    fitted = FittedPanel(episodes.voters, process.weights, gains, value, budget)
    for level in reversed(range(levels)):
        made = _steps(level, last, len(rows), count, random)
        tallies = process.tallies(rows, made)
        stands, stopped = standing(tallies, process.weights), process.worth(tallies.leader(process.weights), rows)
        spent = episodes.spent(rows, ends[made])
        for voter in range(count):
            open_yet = np.flatnonzero(made[:, voter] < last)
            further = made[open_yet]
            further[:, voter] += 1
            ended = run_panel(episodes, fitted, open_yet, ends[further])
            won = process.worth(ended.answer, open_yet) - (ended.cost - spent[open_yet])
            later = gains[level + 1, :, voter] if level + 1 < levels else np.zeros(stands.shape[1])
            beyond = _ridge(stands[open_yet], won - stopped[open_yet], later, process.counts[open_yet])
            gains[level, :, voter] = later + beyond
        progress(1 / levels)
    return fitted


def _steps(level: int, most: int, rows: int, voters: int, random: np.random.Generator) -> IntArray:
    """So many steps, made by whichever voters, differently in each row; at [row, voter]."""
    shares = random.dirichlet(np.full(voters, 0.7), rows)
    made = np.zeros((rows, voters), np.intp)
    for _ in range(level):
        chances = np.where(made < most, shares + 1e-9, 0).cumsum(axis=1)
        chosen = (chances < random.random((rows, 1)) * chances[:, -1:]).sum(axis=1)
        made[np.arange(rows), chosen] += 1
    return made


def _ridge(stands: FloatArray, gained: FloatArray, later: FloatArray, counts: FloatArray) -> FloatArray:
    """What the gain is beyond that of the step after, by least squares that are pulled to nothing."""
    counted = stands.T * counts
    gram = counted @ stands + PULL * np.eye(stands.shape[1])
    beyond: FloatArray = np.linalg.solve(gram, counted @ (gained - stands @ later))
    return beyond


def save_panel(controller: FittedPanel, path: Path) -> None:
    """Write a controller and its card."""
    about = {"voters": list(controller.voters), "weights": list(controller.weights), "value": controller.value}
    write_tensors(path, {"gains": controller.gains}, {"kind": "panel", "format": FORMAT, **about})


def load_panel(path: str | Path) -> FittedPanel:
    """Read what `save_panel` wrote.

    >>> load_panel("no-such-file.safetensors")
    Traceback (most recent call last):
    ...
    suffice.errors.ControllerError: no-such-file.safetensors: there is no such controller file
    """
    if not is_there(Path(path)):
        raise ControllerError(f"{path}: there is no such controller file")
    try:
        tensors, card = read_tensors(path)
        if card["kind"] != "panel" or card["format"] > FORMAT:
            raise ControllerError(f"{path}: this is no controller of a panel that this suffice knows")
        return FittedPanel(tuple(card["voters"]), tuple(card["weights"]), tensors["gains"], card["value"])
    except BROKEN:
        raise ControllerError(f"{path}: this is not a whole file; make one with suffice panel fit") from None
