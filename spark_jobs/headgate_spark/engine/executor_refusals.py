"""Why the cluster takes none of the executors that Spark asks for, in the words of its API server.

A quota that is used up, a right that the driver's account has not, an admission policy: nothing comes of such a
request, so there is no pod to look at. Spark asks again each second, and tells its log alone; the shim listens to
that.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import structlog

from headgate_spark.engine.shim import DriverJvm

log = structlog.get_logger("headgate")

CURRENT_SECONDS = 60.0
"""How long what was said counts: Spark asks again much sooner than that for what is missing."""
LONGEST = 400

_OF_FABRIC8 = re.compile(r"Message: (?P<said>.*?)\.? Received status:", re.DOTALL)
"""The API server's own sentence in the one that Spark's client makes of it."""
_NAMED = re.compile(r'\bpods "[^"]*"')
"""Each request has a pod name of its own: told with it, one refusal would be a new series each second."""


class ExecutorRefusals:
    """What was said last, while it counts."""

    def __init__(self, jvm: DriverJvm, clock: Callable[[], float] = time.time) -> None:
        """Listen from now on, where Spark logs by Log4j; elsewhere nothing is ever known."""
        self._clock = clock
        self._java: Any = None
        try:
            java = jvm.shim("ExecutorRefusals")
            java.listen()
        except Exception as error:  # another logging library, another version of Log4j
            log.debug("refused executors stay in Spark's log", error=str(error))
        else:
            self._java = java

    def current(self) -> str | None:
        """Return why the last request was refused; `None`: none was lately, as far as is known."""
        return None if self._java is None else current(str(self._java.last()), self._clock())


def current(last: str, now: float) -> str | None:
    """Return the sentence in what the shim has heard last, unless it is older than `CURRENT_SECONDS` at `now`."""
    at, _, said = last.partition(" ")
    if not at or now - float(at) / 1000 > CURRENT_SECONDS:
        return None
    found = _OF_FABRIC8.search(said)
    sentence = " ".join(_NAMED.sub("pods", said if found is None else found["said"]).split())
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…"
