"""What sampling costs, in the unit of the reward."""

from dataclasses import dataclass, fields
from math import inf

from suffice.errors import OptionError
from suffice.settings import setting

ROUND_IN_USE = 0.005
"""What a round costs for `plan` and `rl` where nothing is said; in the paper's process, and its reward, it is free."""


@dataclass(frozen=True)
class Penalties:
    """What one draw and one round cost, where an answer that agrees with the reference is worth 1 and another −1.

    >>> Penalties(draw=0.01)
    Penalties(draw=0.01, round=0.0)
    """

    draw: float = 0.0075
    round: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("draw", self.draw), ("round", self.round)):
            if not 0 <= value <= 1000:
                raise OptionError(f"must be between 0 and 1000, not {value}", f"penalty_{name}")


@dataclass(frozen=True)
class Costs:
    """What sampling really costs: money for tokens, and time at the worth of a second; what an answer is worth.

    An answer that agrees with the full vote gains 2 over one that doesn't, in the unit of the reward; so a cost of so
    much money is a penalty of 2 × cost / value of an answer.

    >>> Costs(seconds_per_round=40, value_of_a_second=0.0005, value_of_an_answer=4).penalties
    Penalties(draw=0.0, round=0.01)
    """

    price_per_million_tokens: float = setting(0.0, "What tokens cost, instead of a penalty for a draw.")
    tokens_per_sample: float = setting(0.0, "How long a response is; the pools' mean by default.")
    seconds_per_round: float = setting(0.0, "How long a round takes, instead of a penalty for it.")
    value_of_a_second: float = setting(0.0, "What a second of waiting costs.")
    value_of_an_answer: float = setting(1.0, "What the right answer is worth, in the same money.")

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= getattr(self, field.name) < inf:
                raise OptionError(f"must be 0 or more, not {getattr(self, field.name)}", field.name)
        if self.value_of_an_answer == 0:
            raise OptionError("must be above 0: else nothing is worth a sample", "value_of_an_answer")

    @property
    def penalties(self) -> Penalties:
        """The same as penalties.

        >>> Costs(price_per_million_tokens=2, tokens_per_sample=5000, value_of_an_answer=4).penalties
        Penalties(draw=0.005, round=0.0)
        """
        draw = self.price_per_million_tokens * self.tokens_per_sample / 1e6
        wait = self.seconds_per_round * self.value_of_a_second
        return Penalties(2 * draw / self.value_of_an_answer, 2 * wait / self.value_of_an_answer)
