"""What is looked up in the Kafka sources of one run, whatever it is: told of them as they come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate_contract import EventTimeControl


class AskedOfSources:
    """Holds the clients of one run's sources. None of it waits; here nobody asks, and nothing is done."""

    def decode_by(self, decoders: Mapping[str, Callable[[bytes], object]]) -> None:
        """The payloads of these sources are decoded so, and those of no others; before a source of them is opened."""

    def open(self, source: str, options: Mapping[str, str]) -> None:
        """Take note of a Kafka source that was opened with these options."""

    def prepare(self, source: str, max_future_seconds: float, event_time: EventTimeControl | None) -> None:
        """A source is to be asked about soon. Event times beyond now and that do not count.

        `event_time` is where in its records they are; `None`: where the source itself can tell them.
        """

    def forget(self, source: str) -> None:
        """The records of a source are others than those that were asked about."""

    def close(self) -> None:
        """The run has ended."""
