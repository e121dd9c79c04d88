"""Waiting for something to be there, never longer than a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(what: str, look: Callable[[], T | None], seconds: float, every: float = 0.1) -> T:
    """Return the first answer of `look` that is not None; raises TimeoutError that names `what`."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(every)
    return found
