"""Several voters on one question: whom to ask next, how often, and when it is enough."""

from suffice.panel.controllers import Cascade, PanelController, PanelTallies
from suffice.panel.evaluate import PanelComparison, PanelResult, evaluate_panel, panel_controller
from suffice.panel.fitted import FittedPanel, fit_panel, load_panel, save_panel
from suffice.panel.voters import PoolVoter, learn_weights

__all__ = [
    "Cascade",
    "FittedPanel",
    "PanelComparison",
    "PanelController",
    "PanelResult",
    "PanelTallies",
    "PoolVoter",
    "evaluate_panel",
    "fit_panel",
    "learn_weights",
    "load_panel",
    "panel_controller",
    "save_panel",
]
