"""Several voters on one question: whom to ask next, how often, and when it is enough."""

from suffice.panel.controllers import PanelController
from suffice.panel.evaluate import PanelComparison, PanelResult, evaluate_panel
from suffice.panel.fitted import fit_panel, save_panel
from suffice.panel.voters import PoolVoter

__all__ = [
    "PanelComparison",
    "PanelController",
    "PanelResult",
    "PoolVoter",
    "evaluate_panel",
    "fit_panel",
    "save_panel",
]
