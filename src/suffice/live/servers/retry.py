"""Retries: how requests fail, and which are sent again, after how long, how often."""

import math
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

RETRIES = 4
MAX_PAUSE_SECONDS = 120.0  # rate limits are by the minute: a longer Retry-After is a quota that is used up
MAX_WAIT_SECONDS = 10.0  # with patience somebody waits for the reply, and a 429 usually clears within seconds
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.25, 8.0  # after a first failure, and at most; it doubles with each
BUSY = (429, 503)  # statuses of a refusal for now


class StatusError(Exception):
    """A server replied with an error."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def retry_after(self) -> float:
        """The pause that the server asks for, in seconds; 0 if it asks for none."""
        seconds = 0.0
        with suppress(KeyError, ValueError, TypeError):
            seconds = parsedate_to_datetime(self.headers["retry-after"]).timestamp() - time.time()
        with suppress(KeyError, ValueError):
            seconds = float(self.headers["retry-after"])
        with suppress(KeyError, ValueError):
            seconds = float(self.headers["retry-after-ms"]) / 1000
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0


class TooLongError(Exception):
    """A reply is longer than any answer."""


class PausedError(StatusError):
    """A request that was not sent, for it can't wait for the end of a pause."""

    def __init__(self, seconds: float) -> None:
        words = f"the server asks for a pause of {seconds:.0f} seconds"
        super().__init__(429, words, {"retry-after": str(math.ceil(seconds))})


@dataclass(frozen=True)
class RetryPolicy:
    """Which failed requests are sent again, after how long, how often.

    Draws, scouts and relayed requests all go by it: for other rules, give `Server` a subclass.

    Args:
        retries: The most retries of one request.
        max_pause_seconds: The longest `Retry-After` that is waited for.
        max_wait_seconds: The longest wait of a request for a server that refuses, all tries together.
        interactive: A client waits, who may retry: only 429 and 503 are retried, and the timeout bounds all tries
            together. Otherwise each try has the timeout, and whatever may pass is retried.

    >>> busy, broken = StatusError(429, "busy", {"retry-after": "3"}), StatusError(401, "no such key", {})
    >>> RetryPolicy().wait(busy, 0), RetryPolicy().wait(broken, 0), RetryPolicy(retries=2).wait(busy, 2)
    (3.0, None, None)
    """

    retries: int = RETRIES
    max_pause_seconds: float = MAX_PAUSE_SECONDS
    max_wait_seconds: float = math.inf
    interactive: bool = False

    def for_patience(self, patience: float) -> "RetryPolicy":
        """Return the policy of a vote with this patience: 0 waits for any refusal to pass."""
        return replace(self, max_wait_seconds=MAX_WAIT_SECONDS if patience else math.inf)

    def wait(self, error: Exception, failures: int) -> float | None:
        """Return the seconds to wait after an error and so many failures before; None for no retry."""
        if isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError) and not failures:
            return 0.0  # the server may have closed it while it was idle
        if failures >= self.retries or isinstance(error, TooLongError | PausedError):
            return None
        if isinstance(error, StatusError) and error.status in BUSY:
            asked = error.retry_after
            return None if asked > self.max_pause_seconds else asked or backoff(failures)
        if isinstance(error, StatusError) and error.status < 500 and error.status not in (408, 409, 425):
            return None
        return None if self.interactive else backoff(failures)

    def moves(self, error: Exception) -> bool:
        """Return whether a request that failed at one server may succeed at another."""
        if isinstance(error, TimeoutError):
            return not self.interactive
        if isinstance(error, StatusError):
            return error.status in (401, 403, 404, 408, 429) or error.status >= 500
        return not isinstance(error, TooLongError)


def backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures, jittered to spread requests out."""
    return min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** min(failures, 30)) * random.uniform(0.5, 1.0)  # noqa: S311
