"""Several voters on one question: whom to ask next, how often, and when it is enough."""

from suffice.panel.controllers import Cascade, panel_controller
from suffice.panel.evaluate import PanelComparison, PanelResult, evaluate_panel
from suffice.panel.tallies import PanelTallies
from suffice.panel.voters import PoolVoter

__all__ = [
    "Cascade",
    "PanelComparison",
    "PanelResult",
    "PanelTallies",
    "PoolVoter",
    "evaluate_panel",
    "panel_controller",
]
