"""Elections: from the answers of a vote to the one that is given."""

from suffice.elections.typical import typical

__all__ = ["typical"]
