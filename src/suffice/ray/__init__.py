"""On Ray: a vote as a stage of a Ray Data pipeline, and the gateway as a Ray Serve application (extra: ray)."""

from suffice.ray.asking import ask
from suffice.ray.serving import deployment

__all__ = ["ask", "deployment"]
