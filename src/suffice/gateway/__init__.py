"""The OpenAI-compatible server in front of another: each question is sampled just enough times."""

from suffice.gateway.app import Gateway
from suffice.gateway.serve import serve
from suffice.gateway.settings import Settings, with_file

__all__ = ["Gateway", "Settings", "serve", "with_file"]
