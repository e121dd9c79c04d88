"""The unread records of one run's Kafka sources: who looks at them, and at whose.

They tell how far a source is behind, and where the snapshot of a change stream ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate_contract import QueryControl
from headgate_spark.engine.sources import Descriptor
from headgate_spark.event_time import Decoder
from headgate_spark.planner.asked import AskedOfSources
from headgate_spark.planner.snapshots import SnapshotEnds
from headgate_spark.planner.unread import UnreadTimes


class RunRecords:
    """The records of one run's Kafka sources: who looks something up in them, and that they are told of all alike."""

    def __init__(self, times: AskedOfSources, unread: UnreadTimes, snapshots: SnapshotEnds) -> None:
        """`times` are the event times of alignment."""
        self.unread = unread
        self.snapshots = snapshots
        self._every = (times, unread, snapshots)

    def decode_by(self, decoders: Mapping[str, Decoder]) -> None:
        """Take the decoders that the query names for its sources."""
        for each in self._every:
            each.decode_by(decoders)

    def opened(self, source: str, descriptor: Descriptor) -> None:
        """A stream was opened."""
        if descriptor.format == "kafka" and descriptor.offset_format is not None:
            for each in self._every:
                each.open(source, descriptor.options)

    def follow(self, control: QueryControl | None) -> None:
        """Take a document: whose lag counts is to be looked at."""
        for name, source in ({} if control is None else control.sources).items():
            if source.asks_for_lag:
                self.unread.prepare(name, source.max_future_seconds, source.event_time)

    def forget(self, source: str) -> None:
        """The records of a source are others than those that were looked at."""
        for each in self._every:
            each.forget(source)

    def close(self) -> None:
        """The run has ended."""
        for each in self._every:
            each.close()
