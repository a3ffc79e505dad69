"""For tests of what is built on suffice: a fake server, and a checker for controllers."""

from suffice.testing.checker import check_controller
from suffice.testing.replies import completion, message, response
from suffice.testing.server import FakeServer, Reply, Script

__all__ = ["FakeServer", "Reply", "Script", "check_controller", "completion", "message", "response"]
