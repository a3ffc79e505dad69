"""A package as somebody else may write it: a controller and an extractor that suffice finds by their entry points."""

from dataclasses import dataclass

from suffice import Controller, Tally


@dataclass(frozen=True)
class Steady(Controller):
    """Draws one at a time, so many in all."""

    draws: int = 7

    def decide(self, tally: Tally) -> int:
        return 1 if tally.draws < self.draws else 0


def last_word(text: str) -> str | None:
    return text.split()[-1].strip(".") if text.split() else None
