"""The OpenAI-compatible server in front of another: each question is sampled just enough times."""

from typing import TYPE_CHECKING, Any

from suffice.gateway.settings import Settings, with_file

if TYPE_CHECKING:
    from suffice.gateway.app import Gateway

__all__ = ["Gateway", "Settings", "with_file"]


def __getattr__(name: str) -> Any:
    """The gateway is imported when it is first used: its settings are options of the command line without it."""
    if name == "Gateway":
        from suffice.gateway.app import Gateway

        return Gateway
    raise AttributeError(f"module 'suffice.gateway' has no attribute {name!r}")
