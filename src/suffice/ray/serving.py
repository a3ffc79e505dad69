"""x

y."""

from typing import Any


def deployment(settings: Any) -> Any:
    """z."""
