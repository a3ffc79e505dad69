"""The settings of the decision process: what a controller is trained for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.errors import OptionError, PoolError
from suffice.penalties import Penalties
from suffice.pools import Pool
from suffice.tally import IntArray

TARGETS = ("running", "full", "gold")


@dataclass(frozen=True)
class Setting:
    """What defines the decision process, beside the pools: everything that a controller's card repeats."""

    penalties: Penalties = Penalties()
    actions: tuple[int, ...] = (1, 2, 4)
    first: int = 4
    budget: int = 32
    top: int = 5
    target: str = "running"

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise OptionError(f'target must be one of {", ".join(TARGETS)}, not "{self.target}"')
        if not 2 <= self.top <= self.budget:
            raise OptionError(f"top must be at least 2 and at most the budget of {self.budget}, not {self.top}")
        if not 1 <= self.first < self.budget:
            raise OptionError(f"first must be at least 1 and below the budget of {self.budget}, not {self.first}")
        if not self.actions or min(self.actions) < 1 or len(set(self.actions)) < len(self.actions):
            raise OptionError(f"actions must be different numbers of draws, each at least 1, not {self.actions}")

    @property
    def draws_by_action(self) -> IntArray:
        """How many draws each action asks for: action 0 stops."""
        return np.array([0, *self.actions])

    def check(self, pools: Sequence[Pool]) -> None:
        """Refuse pools that this process can't be played on."""
        for pool in pools:
            pool.check_budget(self.budget)
            for question in pool.questions:
                if self.target == "gold" and question.gold is None:
                    raise PoolError(
                        f'{pool.name}: question "{question.id}" has no gold answer, which the target "gold" needs'
                    )
