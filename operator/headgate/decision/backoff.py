"""How long to wait after a failure: before a driver is started again, or an application is looked at again.

    wait = (1 - jitter / 2) * min(max backoff, backoff * 2^(failures - 1))

Doubling, because what did not pass in ten seconds may take minutes; capped, because somebody waits for it;
and spread by `jitter` in 0..1, so that a hundred drivers that lost the same broker do not come back at once.
The spread only shortens, so that `maxBackoff` is never exceeded.
"""

from dataclasses import dataclass
from enum import StrEnum

LARGEST_EXPONENT = 64
"""Doubling 64 times exceeds any cap, and 2.0 ** 64 is still a number."""


class RestartWhen(StrEnum):
    """Which ends of a driver are followed by a new start."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"


def wait_seconds(first: float, longest: float, failures: int, jitter: float) -> float:
    """Return how long to wait after this many failures in a row, by the formula above; `jitter` is in 0..1."""
    doublings = min(max(failures - 1, 0), LARGEST_EXPONENT)
    return min(longest, first * 2.0**doublings) * (1 - jitter / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often, and how fast, a driver is started again."""

    policy: RestartWhen = RestartWhen.ON_FAILURE
    max_retries: int = 5
    """Starts after the first one that a row of failures may use up."""
    backoff_seconds: float = 10.0
    max_backoff_seconds: float = 300.0
    reset_after_seconds: float = 1800.0
    """A driver that ran longer than this ends the row of failures."""

    def wait_seconds(self, failures: int, jitter: float) -> float:
        """Return how long to wait after this many failures in a row; `jitter` is in 0..1."""
        return wait_seconds(self.backoff_seconds, self.max_backoff_seconds, failures, jitter)
