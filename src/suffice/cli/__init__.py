"""The command line: parse, call, print."""

# Each module adds its commands; the help lists them in this order.
from suffice.cli import ask, run, collect, import_, serve, top, keys, pools, evaluate, advise, controllers  # noqa: F401, I001
from suffice.cli import train, plan, fit, weigh, reproduce  # noqa: F401
from suffice.cli.app import app


__all__ = ["app", "main"]


def main() -> None:
    """The `suffice` command."""
    app()
