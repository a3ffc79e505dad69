"""The OpenAI-compatible server in front of another: each question is sampled just enough times."""

from suffice.gateway.app import Gateway
from suffice.gateway.serve import check_port, serve
from suffice.gateway.settings import Settings, with_file
from suffice.gateway.traces import ignored as traces_ignored

__all__ = ["Gateway", "Settings", "check_port", "serve", "traces_ignored", "with_file"]
