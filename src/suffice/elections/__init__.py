"""Elections: from the answers of a vote to the one that is given."""

from suffice.elections.election import (
    LENGTH,
    Election,
    Majority,
    check_signals,
    get_election,
    register_election,
)
from suffice.elections.fields import FieldElection, FieldTallies, field_accuracy
from suffice.elections.learned import LearnedWeights, load_weights, save_weights
from suffice.response import typical

__all__ = [
    "LENGTH",
    "Election",
    "FieldElection",
    "FieldTallies",
    "LearnedWeights",
    "Majority",
    "check_signals",
    "field_accuracy",
    "get_election",
    "load_weights",
    "register_election",
    "save_weights",
    "typical",
]
