"""What a controller is trained for, and how: it can be said without what the training needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from suffice import settings
from suffice.errors import OptionError, PoolError, whole_number
from suffice.penalties import Penalties
from suffice.pools import Pool, get_pools
from suffice.tally import DEFAULT_BUDGET

TARGETS = ("running", "full", "gold")
KEPT = ("best", "last")


def check_keep(keep: str) -> None:
    if keep not in KEPT:
        raise OptionError(f'must be best or last, not "{keep}"', "keep")


@dataclass(frozen=True)
class Setting:
    """What defines the decision process, beside the pools: everything that a controller's card repeats."""

    penalties: Penalties = Penalties()
    actions: tuple[int, ...] = (1, 2, 4)
    first: int = settings.setting(4, "The draws of the first round.")
    budget: int = settings.setting(DEFAULT_BUDGET, "The most draws for a question.")
    top: int = settings.setting(5, "How many vote counts the controller sees.")
    target: str = settings.setting(
        "running", "What counts as right: the full budget's vote, the pool's, gold.", "running|full|gold"
    )

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise OptionError(f'must be one of {", ".join(TARGETS)}, not "{self.target}"', "target")
        whole_number("budget", self.budget)
        if not 2 <= whole_number("top", self.top) <= self.budget:
            raise OptionError(f"must be at least 2 and at most the budget of {self.budget}, not {self.top}", "top")
        if whole_number("first", self.first) >= self.budget:
            raise OptionError(f"must be below the budget of {self.budget}, not {self.first}", "first")
        for action in self.actions:
            whole_number("actions", action)
        if not self.actions or len(set(self.actions)) < len(self.actions):
            raise OptionError(f"must be different numbers of draws, not {self.actions}", "actions")

    def check(self, pools: Sequence[Pool]) -> None:
        """Refuse pools that this process can't be played on."""
        for pool in pools:
            pool.check_budget(self.budget)
            for question in pool.questions:
                if self.target == "gold" and question.gold is None:
                    raise PoolError(
                        f'{pool.name}: question "{question.id}" has no gold answer, which the target "gold" needs'
                    )


@dataclass(frozen=True)
class TrainingJob:
    """Everything that decides what a run gives."""

    pools: tuple[Pool, ...]
    """Given as anything that stands for pools: one or several, names and paths among them."""
    setting: Setting = Setting()
    preset: str = settings.setting("fast", "How PPO is run.", "fast|paper")
    steps: int = settings.setting(1_000_000, "Decisions to learn from, for each controller.")
    seed: int = settings.setting(0, "The first seed.")
    mean_samples: float | None = settings.setting(
        None, "Find the penalty for a draw with which so many are drawn on average."
    )
    mean_rounds: float | None = settings.setting(
        None, "Find the penalty for a round with which there are at most so many on average."
    )
    """Where a mean is given, the penalty for it is found on the way, from the setting's on."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pools", tuple(get_pools(self.pools)))

    def excess(self, samples: float, rounds: float) -> tuple[float, float]:
        """By which share the samples and the rounds are over what was asked for; 0 where nothing was."""
        over_samples = samples / self.mean_samples - 1 if self.mean_samples else 0.0
        return over_samples, rounds / self.mean_rounds - 1 if self.mean_rounds else 0.0
