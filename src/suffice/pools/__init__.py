"""Pools: the file format, the bundled ones, what they look like, and drawing repeats from them."""

from suffice.pools.episodes import Episodes, check_draws, draw_episodes
from suffice.pools.pool import AnyPool, Pool, Question, Summary, bundled_pools, get_pools, load_pool, summarise

__all__ = [
    "AnyPool",
    "Episodes",
    "Pool",
    "Question",
    "Summary",
    "bundled_pools",
    "check_draws",
    "draw_episodes",
    "get_pools",
    "load_pool",
    "summarise",
]
