"""Elections: from the answers of a vote to the one that is given."""

from suffice.elections.accuracy import FieldAccuracy, field_accuracy
from suffice.elections.election import LENGTH, Election, check_signals
from suffice.elections.fields import Field, FieldElection, FieldTallies
from suffice.elections.learned import LearnedWeights, load_weights, save_weights
from suffice.elections.registry import election_names, get_election, register_election
from suffice.elections.typical import typical
from suffice.elections.weights import Cisc, DeepConf, Majority, Weighted

__all__ = [
    "LENGTH",
    "Cisc",
    "DeepConf",
    "Election",
    "Field",
    "FieldAccuracy",
    "FieldElection",
    "FieldTallies",
    "LearnedWeights",
    "Majority",
    "Weighted",
    "check_signals",
    "election_names",
    "field_accuracy",
    "get_election",
    "load_weights",
    "register_election",
    "save_weights",
    "typical",
]
