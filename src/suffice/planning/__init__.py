"""Planning: exact optimal stopping under a model of answers."""

from suffice.planning.controller import Plan, universal_model
from suffice.planning.model import Model, Prior, build_model
from suffice.planning.values import Policy, plan

__all__ = ["Model", "Plan", "Policy", "Prior", "build_model", "plan", "universal_model"]
