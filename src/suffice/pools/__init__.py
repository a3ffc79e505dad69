"""Pools: the file format, the bundled ones, what they look like, and drawing repeats from them."""

from suffice.pools.episodes import Episodes, draw_episodes
from suffice.pools.pool import ABSENT, Pool, Question, bundled_pools, load_pool
from suffice.pools.summary import Summary, summarise

__all__ = [
    "ABSENT",
    "Episodes",
    "Pool",
    "Question",
    "Summary",
    "bundled_pools",
    "draw_episodes",
    "load_pool",
    "summarise",
]
