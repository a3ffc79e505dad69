"""Planning: exact optimal stopping under a model of answers."""

from suffice.planning.confidence import LARGEST_BUDGET, confidence, confidences, universal_model
from suffice.planning.controller import Plan, ceiling
from suffice.planning.model import Model, Prior, build_model
from suffice.planning.values import Policy, plan

__all__ = [
    "LARGEST_BUDGET",
    "Model",
    "Plan",
    "Policy",
    "Prior",
    "build_model",
    "ceiling",
    "confidence",
    "confidences",
    "plan",
    "universal_model",
]
