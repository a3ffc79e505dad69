"""Pools: the file format, the bundled ones, what they look like, and drawing repeats from them."""

from suffice.pools.episodes import Episodes, check_draws, draw_episodes
from suffice.pools.pool import ABSENT, AnyPool, Pool, Question, bundled_pools, get_pool, get_pools, load_pool
from suffice.pools.summary import Summary, summarise

__all__ = [
    "ABSENT",
    "AnyPool",
    "Episodes",
    "Pool",
    "Question",
    "Summary",
    "bundled_pools",
    "check_draws",
    "draw_episodes",
    "get_pool",
    "get_pools",
    "load_pool",
    "summarise",
]
