"""What a learner keeps, without a file."""

from suffice.planning import Learner


def learner_of(data: bytes) -> Learner:
    """A learner that knows what is kept; ValueError where that is broken."""
    learner = Learner()
    learner.sync(lambda change: change(data))
    return learner
