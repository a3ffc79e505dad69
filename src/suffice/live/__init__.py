"""Sampling a server: the loop from question to outcome, and collecting pools."""

from suffice.live.outcome import Moment, Outcome, Progress, Watch
from suffice.live.sample import aparse, asample, parse, sample
from suffice.live.sampling import Sampling
from suffice.live.servers.local import LocalServer
from suffice.live.tracing import trace
from suffice.live.vote import Vote, Voting
from suffice.response import Response

__all__ = [
    "LocalServer",
    "Moment",
    "Outcome",
    "Progress",
    "Response",
    "Sampling",
    "Vote",
    "Voting",
    "Watch",
    "aparse",
    "asample",
    "parse",
    "sample",
    "trace",
]
