"""The streams of one run: by the handle that the shim has for each, by name, and by their place in the query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from headgate_spark.engine.changed_logs import Beginnings, Retention
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.open_source import OpenSource
from headgate_spark.engine.records import RunRecords
from headgate_spark.engine.resumption import Ends
from headgate_spark.engine.services import Services
from headgate_spark.engine.sources import Descriptor, names_of
from headgate_spark.engine.topics import Topics
from headgate_spark.planner.model import Position, Source


class OpenSources:
    """The streams that Spark has opened for one run."""

    def __init__(
        self,
        services: Services,
        state: CheckpointState,
        records: RunRecords,
        topics_came: Callable[[], None],
        occurrences: Sequence[int] = (),
    ) -> None:
        """`topics_came` is called, on a thread of its own, when ids of topics have come that nobody waits for;
        `occurrences` are those of the query (`Started`)."""
        self._services = services
        self._state = state
        self.records = records
        self._topics_came = topics_came
        self._occurrences = tuple(occurrences)
        self.by_handle: dict[int, OpenSource] = {}
        """Replaced as a whole, never changed: a scrape may be reading it."""

    def __iter__(self) -> Iterator[OpenSource]:
        """Yield the streams in the order of their handles."""
        return iter(self.by_handle.values())

    def __getitem__(self, handle: int) -> OpenSource:
        return self.by_handle[handle]

    @property
    def descriptors(self) -> dict[str, Descriptor]:
        return {opened.name: opened.descriptor for opened in self}

    def handle(self, name: str) -> int:
        return next(opened.descriptor.handle for opened in self if opened.name == name)

    def named(self, handles: Collection[int]) -> set[str]:
        return {opened.name for handle, opened in self.by_handle.items() if handle in handles}

    # Opening and closing -----------------------------------------------------------------------------

    def names_with(self, new: Descriptor) -> dict[int, str]:
        """Return how the sources are called, by handle, once one more is open.

        Names follow from what is open, not from the order of the calls: one that comes late may rename those that
        Spark opened after it.
        """
        return names_of([new, *(opened.descriptor for opened in self)])

    def open(self, new: Descriptor) -> None:
        """Add a stream; one that has another name by that is opened anew under it."""
        before = self.by_handle
        descriptors = {handle: opened.descriptor for handle, opened in before.items()} | {new.handle: new}
        self.by_handle = {
            handle: before[handle]
            if handle in before and before[handle].name == name
            else self._opened(descriptors[handle], name)
            for handle, name in self.names_with(new).items()
        }
        for handle, opened in before.items():
            if self.by_handle[handle] is not opened:
                _disconnect(opened)

    def _opened(self, descriptor: Descriptor, name: str) -> OpenSource:
        services, is_kafka = self._services, descriptor.format == "kafka"
        self.records.opened(name, descriptor)
        topics = beginnings = None
        if services.open_topic_ids is not None and is_kafka and descriptor.offset_format is not None:
            connect = partial(services.open_topic_ids, descriptor.options)
            topics = Topics(name, connect, self._state.topics.get(name, {}), self._topics_came)
        if services.find_beginnings is not None and is_kafka:
            beginnings = Beginnings(name, partial(services.find_beginnings, descriptor.options))
        return OpenSource(
            descriptor,
            Source(name, descriptor.read_limit, descriptor.own_rows),
            beginnings=beginnings,
            topics=topics,
            retention=None if topics is None else Retention(name, topics.bounds),
        )

    def close(self) -> None:
        self.records.close()
        for opened in self:
            _disconnect(opened)

    # Where they are by the checkpoint ----------------------------------------------------------------

    def placed(self) -> list[tuple[int, OpenSource]]:
        """Return each source with its place, in the order in which Spark opens sources.

        One that is told of late leaves a gap until it is.
        """
        return [
            (nth if each.descriptor.place is None else each.descriptor.place, each)
            for nth, each in enumerate(self)
        ]

    def ends(self, ends: Ends) -> list[tuple[OpenSource, str | None]]:
        """Return where each source ends by the checkpoint (`None`: it has no offset), as far as that can be told."""
        by_name = ends.are_by_name(each.descriptor.name for each in self)
        found = []
        for place, each in self.placed():
            lines = [line for line, read in enumerate(self._occurrences) if read == place] or [place]
            if ends.tells_of(lines[0]):
                found.append((each, ends.of(lines, each.descriptor.name if by_name else None)))
        return found

    def times_read(self, place: int) -> int:
        """Return how often a batch reads the source in a place: as often as the plan has it."""
        return max(1, self._occurrences.count(place))

    def resumes_at(self, opened: OpenSource) -> str | None:
        """Return the offset at which a source goes on, so that it can be surveyed before Spark asks it.

        `None`: it is new, or what the checkpoint says of it cannot be read.
        """
        ends = self.ends(self._state.resumption.ends)
        offset = next((offset for each, offset in ends if each is opened), None)
        return None if opened.readable(offset) is None else offset

    def resumed(self) -> dict[str, Position] | None:
        """Return where the sources are by the checkpoint, as far as they can be counted; `None`: the query is new."""
        if self._state.resumption.is_new:
            return None
        return self._positions(self._state.resumption.ends)

    def _positions(self, ends: Ends) -> dict[str, Position]:
        positions = {each.name: each.readable(offset) for each, offset in self.ends(ends)}
        return {name: position for name, position in positions.items() if position is not None}

    def offsets_in(self, batch: int) -> dict[str, int]:
        """Return how many offsets a batch goes over that an earlier run has planned, by source; what is not known is
        missing."""
        left = self._state.resumption
        if not left.repeats or batch != left.batch:
            return {}
        begins = self._positions(left.begins)
        both = {
            name: (begins[name], end) for name, end in self._positions(left.ends).items() if name in begins
        }
        return {
            name: sum(max(0, end[partition] - at) for partition, at in begin.items())
            for name, (begin, end) in both.items()
            if begin.keys() == end.keys()
        }

    def unplanned(self) -> list[str] | None:
        """Return the sources that surely have no offset in the checkpoint; `None`: the query is new."""
        if self._state.resumption.is_new:
            return None
        return [each.name for each, offset in self.ends(self._state.resumption.ends) if offset is None]

    # What is known of all of them --------------------------------------------------------------------

    @property
    def out_of_reach(self) -> Mapping[str, str]:
        """The sources that cannot be asked what they have: why, and what to do."""
        return {opened.name: opened.out_of_reach for opened in self if opened.out_of_reach is not None}

    def retention_margins(self) -> Mapping[str, float]:
        """Return by source what it has left before retention removes what it has not read, where that is known."""
        now = self._services.clock()
        margins = {opened.name: opened.retention_margin(now) for opened in self}
        return {name: margin for name, margin in margins.items() if margin is not None}

    def keep_topics(self) -> None:
        """Keep the ids of topics, where there are new ones."""
        every = {opened.name: opened.topics for opened in self if opened.topics is not None}
        if all(topics.is_kept for topics in every.values()):
            return
        self._state.keep_topics({name: topics.known for name, topics in every.items()})
        for topics in every.values():
            topics.is_kept = True


def _disconnect(opened: OpenSource) -> None:
    if opened.topics is not None:
        opened.topics.close()
