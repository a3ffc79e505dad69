"""Sampling a server: the loop from question to outcome, and collecting pools."""

from suffice.live.local import LocalServer
from suffice.live.loop import Moment, Watch
from suffice.live.outcome import Outcome, SampleError
from suffice.live.response import Response
from suffice.live.sample import asample, sample

__all__ = ["LocalServer", "Moment", "Outcome", "Response", "SampleError", "Watch", "asample", "sample"]
