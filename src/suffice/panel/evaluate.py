"""Figures for controllers of a panel, and for each voter alone, over shared draws."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.errors import ControllerError
from suffice.panel.controllers import Cascade, PanelController
from suffice.panel.episodes import PanelEpisodes, PanelOutcomes, draw_panel, run_panel
from suffice.panel.fitted import load_panel
from suffice.panel.voters import PoolVoter, aligned, learn_weights
from suffice.replay.compare import Difference, paired
from suffice.replay.evaluate import concatenated, known_mean
from suffice.replay.run import replay
from suffice.settings import read_arguments
from suffice.tally import DEFAULT_BUDGET, NONE, FloatArray, IntArray

REPEATS = 20
"""How often each question is replayed: there are many controllers, and several voters' draws."""

ALONE = ("once", "sc", *(f"plan:penalty_draw={price:g}" for price in (0.003, 0.01, 0.02, 0.03, 0.05, 0.1)))
"""What each voter is replayed with alone."""


@dataclass(frozen=True)
class PanelResult:
    """One controller of a panel, or of a voter alone, as means over questions and repeats; shares in percent.

    Accuracy is over the questions with a gold answer, None where there are none; agreement is with the panel's full
    weighted vote; cost is money a question.
    """

    controller: str
    voter: str | None
    """Who is alone; None for the panel."""
    accuracy: float | None
    agreement: float
    cost: float
    rounds: float
    samples: dict[str, float]
    """Draws by voter."""
    by_question: dict[str, FloatArray] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.controller if self.voter is None else f"{self.voter}: {self.controller}"

    def difference(self, baseline: "PanelResult") -> Difference | None:
        """How much more accurate it is, with a 95 % interval over questions; None without gold answers."""
        return paired([self.by_question["accuracy"] - baseline.by_question["accuracy"]])


@dataclass(frozen=True)
class PanelComparison:
    """The results of one panel's controllers, voters alone first."""

    voters: tuple[str, ...]
    weights: tuple[float, ...]
    questions: int
    results: list[PanelResult]

    @property
    def baseline(self) -> PanelResult:
        """The full vote of the most accurate voter; without gold answers, of the one that agrees most."""
        full = [one for one in self.results if one.controller == "sc"]
        return max(full, key=lambda one: (one.accuracy or 0.0, one.agreement))

    def best_alone(self, cost: float) -> PanelResult | None:
        """The best that a voter alone does for no more money, other than by asking a fixed number of times."""
        cheaper = [one for one in self.results if one.controller.startswith("plan") and one.cost <= cost]
        return max(cheaper, key=lambda one: (one.accuracy or 0.0, one.agreement), default=None)


def panel_controller(spec: str | PanelController, voters: Sequence[str], budget: int) -> PanelController:
    """The controller that `cascade`, `cascade:key=value,…` or `file:PATH` describes; a cascade asks in this order."""
    name, _, rest = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if isinstance(spec, PanelController):
        found: Any = replace(spec, budget=budget)  # type: ignore[type-var]
    elif name == "cascade":
        try:
            found = Cascade(tuple(voters), budget=budget, **read_arguments(Cascade, rest))
        except (TypeError, ValueError) as error:
            raise ControllerError(f'controller "{spec}": {error}') from None
    elif name == "file":
        found = replace(load_panel(rest), budget=budget)
    else:
        raise ControllerError(f'unknown controller of a panel "{spec}": there are cascade and file:PATH')
    if sorted(found.voters) != sorted(voters):
        raise ControllerError(f'"{spec}" is for the voters {", ".join(found.voters)}, not {", ".join(voters)}')
    return found


def evaluate_panel(
    voters: Sequence[PoolVoter],
    controllers: Sequence[str | PanelController],
    *,
    budget: int = DEFAULT_BUDGET,
    repeats: int = REPEATS,
    seed: int = 0,
    alone: Sequence[str] = ALONE,
    progress: Callable[[float], None] = lambda share: None,
) -> PanelComparison:
    """Replay controllers of a panel, and each voter alone, over the same draws.

    Args:
        voters: The voters, with pools and prices; the questions that all of them have are replayed.
        controllers: `cascade`, `file:PATH`, or controllers.
        budget: The most draws of each voter.
        repeats: How often each question is replayed, each time with the responses in another order.
        seed: Chooses the draws.
        alone: The controllers that each voter is replayed with alone.
        progress: Called with the share of the work that each step was.

    >>> small = PoolVoter.of("small=smollm2-135m__arithmetic,price=1")
    >>> compared = evaluate_panel([small], ["cascade:first=2,then=0"], budget=8, repeats=2, alone=["sc"])
    >>> [(one.name, one.samples["small"]) for one in compared.results]
    [('small: sc', 8.0), ('cascade:first=2,then=0', 2.0)]
    """
    voters = aligned(voters)
    by_price = [voter.name for voter in sorted(voters, key=lambda voter: voter.price)]
    panels = [(str(spec), panel_controller(spec, by_price, budget)) for spec in controllers]
    singles = [(place, spec, get_controller(spec)) for place in range(len(voters)) for spec in alone]
    fitted = next((one for _, one in panels if not isinstance(one, Cascade)), None)
    names = [voter.name for voter in voters]
    weights = learn_weights(voters, labels=False)
    if fitted:
        weights = tuple(fitted.weights[fitted.voters.index(name)] for name in names)
    parts: list[list[dict[str, FloatArray]]] = []
    for episodes in draw_panel(voters, budget, repeats, seed):
        full = episodes.full_vote(weights)
        measured = [_measure(episodes, full, _alone(episodes, place, controller)) for place, _, controller in singles]
        measured += [_measure(episodes, full, run_panel(episodes, controller)) for _, controller in panels]
        parts.append(measured)
        progress(len(episodes.alone[0].questions) / len(voters[0].pool))
    rows: list[tuple[str, str | None]] = [(spec, names[place]) for place, spec, _ in singles]
    rows += [(spec, None) for spec, _ in panels]
    found = zip(rows, zip(*parts, strict=True), strict=True)
    results = [_result(spec, voter, names, some) for (spec, voter), some in found]
    return PanelComparison(tuple(names), weights, len(voters[0].pool), results)


def _alone(episodes: PanelEpisodes, voter: int, controller: Controller) -> PanelOutcomes:
    ended = replay(episodes.alone[voter], controller)
    draws = np.zeros(episodes.answers.shape[:2], np.intp)
    draws[:, voter] = ended.samples
    return PanelOutcomes(ended.answer, draws, ended.rounds, episodes.spent(np.arange(len(draws)), draws))


def _measure(episodes: PanelEpisodes, full: IntArray, ended: PanelOutcomes) -> dict[str, FloatArray]:
    columns = {
        "accuracy": np.where(episodes.gold == NONE, np.nan, 100.0 * (ended.answer == episodes.gold)),
        "agreement": 100.0 * (ended.answer == full),
        "cost": ended.cost,
        "rounds": ended.rounds,
    } | {f"samples {voter}": ended.draws[:, place] for place, voter in enumerate(episodes.voters)}
    return {name: values.reshape(-1, episodes.alone[0].repeats).mean(axis=1) for name, values in columns.items()}


def _result(
    controller: str, voter: str | None, voters: Sequence[str], parts: Sequence[dict[str, FloatArray]]
) -> PanelResult:
    by_question = concatenated(parts)
    means: dict[str, Any] = {name: known_mean(values) for name, values in by_question.items()}
    samples = {name: means.pop(f"samples {name}") for name in voters}
    return PanelResult(controller, voter, **means, samples=samples, by_question=by_question)
