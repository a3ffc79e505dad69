"""How many examples a property test is tried with: those of the profile (60, or 1,000 random ones), within limits."""

from hypothesis import settings


def at_least(number: int) -> settings:
    """For what is quick to try, and hard to find."""
    return settings(max_examples=max(number, settings().max_examples))


def at_most(number: int) -> settings:
    """For what is tried with many controllers, or takes long."""
    return settings(max_examples=min(number, settings().max_examples))
