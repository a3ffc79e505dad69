"""Sampling a server: the loop from question to outcome, and collecting pools."""

from suffice.live.outcome import Moment as Moment
from suffice.live.outcome import Outcome as Outcome
from suffice.live.outcome import Progress as Progress
from suffice.live.outcome import Watch as Watch
from suffice.live.sample import aparse as aparse
from suffice.live.sample import asample as asample
from suffice.live.sample import parse as parse
from suffice.live.sample import sample as sample
from suffice.live.sampling import Sampling as Sampling
from suffice.live.servers.local import LocalServer as LocalServer
from suffice.live.tracing import trace as trace
from suffice.live.vote import Voting as Voting
