"""A condition before it has a moment: what is so, why in one word, and why in a sentence."""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.api.status import ConditionStatus

TRUE: Final = ConditionStatus.TRUE
FALSE: Final = ConditionStatus.FALSE
UNKNOWN: Final = ConditionStatus.UNKNOWN

METRICS_UNAVAILABLE: Final = "MetricsUnavailable"
NOTHING_KNOWN: Final = "nothing is known that could tell"


class Answer(NamedTuple):
    """A condition without its moments."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
