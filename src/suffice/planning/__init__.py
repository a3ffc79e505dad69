"""Planning: optimal stopping under a model of answers."""

from suffice.planning.confidence import (
    certainties,
    certainty,
    confidence,
    confidences,
    is_certainty_known,
    is_ready,
    prepare,
)
from suffice.planning.controller import Plan, prior_of
from suffice.planning.learning import Learner
from suffice.planning.model import EXACT_BUDGET, FIRST_SIGHT, LARGEST_BUDGET, UNIVERSAL, Prior

__all__ = [
    "EXACT_BUDGET",
    "FIRST_SIGHT",
    "LARGEST_BUDGET",
    "UNIVERSAL",
    "Learner",
    "Plan",
    "Prior",
    "certainties",
    "certainty",
    "confidence",
    "confidences",
    "is_certainty_known",
    "is_ready",
    "prepare",
    "prior_of",
]
