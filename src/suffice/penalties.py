"""What sampling costs, in the unit of the reward."""

from dataclasses import dataclass

from suffice.errors import OptionError


@dataclass(frozen=True)
class Penalties:
    """What one draw and one round cost, where an answer that agrees with the reference is worth 1 and another −1."""

    draw: float = 0.0075
    round: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("draw", self.draw), ("round", self.round)):
            if not 0 <= value <= 1000:
                raise OptionError(f"the penalty for a {name} must be between 0 and 1000, not {value}")
