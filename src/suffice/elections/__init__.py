"""Elections: from the answers of a vote to the one that is given."""

from suffice.elections.accuracy import FieldAccuracy, field_accuracy
from suffice.elections.fields import Field, FieldElection, FieldTallies
from suffice.elections.typical import typical

__all__ = ["Field", "FieldAccuracy", "FieldElection", "FieldTallies", "field_accuracy", "typical"]
