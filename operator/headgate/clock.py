"""The clock by which a process judges how old its own knowledge is: the age of a decision, and of its lease.

Durations alone are measured on it. Nobody sets it, and it goes on while the machine is suspended: another replica
takes over in that time, so a process that wakes up must not think that none has passed.
"""

import time

CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_seconds() -> float:
    """Return seconds since some moment, the same one for the whole process."""
    return time.clock_gettime(CLOCK)
