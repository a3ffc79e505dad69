"""The command line: parse, call, print."""

from suffice.cli.app import app

__all__ = ["app"]
