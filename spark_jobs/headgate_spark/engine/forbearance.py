"""How long sources are borne with that do not answer, as the shim is told when their query begins.

A broker that is restarted is back within a minute, so a source whose client says that its failure may pass is held,
and not its query's end. The shim goes by this without asking again: a planner may be gone just when a broker is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from headgate_contract import durations
from headgate_contract.newer import dataclass
from headgate_contract.settings.table import OUTAGE, PROPERTY

RETRIABLE = ("org.apache.kafka.common.errors.RetriableException",)
"""What may pass, by the class that others are derived from. Kafka's own word is believed; of no other client is it
known what mends by waiting."""
ONCE_ANSWERED = ("org.apache.kafka.common.config.ConfigException",)
"""The same of a source that has answered before. Its options were right, so a name in them is not resolved now: Spark
makes another client after each failure, and a name service may know no broker of a cluster that restarts."""


@dataclass(frozen=True, slots=True)
class Forbearance:
    """What a driver does about sources that do not answer."""

    bears: tuple[str, ...] = RETRIABLE
    bears_once_answered: tuple[str, ...] = ONCE_ANSWERED
    outage_seconds: float = 300.0
    """How long a source that cannot be asked what it has is held; then its query fails."""
    silence_seconds: float = 5.0
    """How long a source may be asked before somebody is told that it is silent: Kafka's client tries for minutes."""

    def said_by(self, properties: Mapping[str, str]) -> Forbearance:
        """Return what holds of a query with these properties.

        Raises `ValueError`, with the name of the property, where it is no duration.
        """
        text = properties.get(PROPERTY + OUTAGE)
        try:
            return self if text is None else replace(self, outage_seconds=durations.seconds(text))
        except ValueError as error:
            raise ValueError(f"property {PROPERTY}{OUTAGE}: {error}") from None

    @property
    def words(self) -> str:
        """As the shim reads it: `Forbearance.java`."""
        borne = {"bears": self.bears, "bearsOnceAnswered": self.bears_once_answered}
        millis = {
            "outageMillis": round(self.outage_seconds * 1000),
            "silenceMillis": round(self.silence_seconds * 1000),
        }
        return json.dumps({**borne, **millis})
