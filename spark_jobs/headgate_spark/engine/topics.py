"""Topics that were deleted and created anew under their names, known by the ids that Kafka gives them.

Once the new log has grown past the old offset nothing shows, and what comes before it would be missing without a
word. So the ids of topics are compared: when a source is first looked at, with those that are kept beside the
checkpoint; after an outage; and every few seconds in between.

Kafka is asked on a thread of its own. A planning waits for it only where a topic may have become another than the
one whose id is known, and not for long. Where no id is known yet nobody waits: ids are kept when they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from headgate_spark.engine.changed_logs import REMEDY, Bounds
from headgate_spark.engine.side_folder import tolerated
from headgate_spark.planner.model import Position

EVERY_SECONDS = 5.0
"""Between two questions at least; a question is two small requests to the broker."""
EVERY_SECONDS_PER_TOPIC = 0.1
"""The same for many topics: each takes a millisecond."""

TopicId = tuple[str, str]
"""The cluster, and the id that a topic has in it."""
Ids = Mapping[str, TopicId]
"""By topic; one whose id is not known is missing."""


class TopicIds(Protocol):
    """Asks one cluster about topics, by one client."""

    def ids(self, topics: Collection[str]) -> Ids:
        """Return the ids of those that there are; may take long and raise anything."""

    def bounds(self, partitions: Collection[str]) -> Mapping[str, Bounds]:
        """Return where the logs of partitions begin and end; may take long and raise anything."""

    def close(self) -> None:
        """Give everything back."""


OpenTopicIds = Callable[[Mapping[str, str]], TopicIds]
"""Connect to the cluster that a source with these options reads; may take long and raise anything."""


class Topics:
    """The topics of one source. Times are seconds on one monotonic clock."""

    def __init__(
        self,
        source: str,
        open_ids: Callable[[], TopicIds],
        known: Ids,
        came: Callable[[], None] = lambda: None,
    ) -> None:
        """`known` are the ids by which the position of the source was reached; `open_ids` is called on the thread,
        and so is `came`, when there is an answer that nobody waits for: `take` takes it."""
        self._source = source
        self._open_ids = open_ids
        self._came = came
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-topics-{source}")
        self._ids: TopicIds | None = None
        self.known = dict(known)
        """The topics that are being read."""
        self.is_kept = True
        """Whether all of them have been kept beside the checkpoint, as far as this object knows."""
        self._anew: dict[str, TopicId] = {}
        """Topics of which records were read, and that are others now."""
        self._have_changed = False
        self._present: frozenset[str] = frozenset()
        self._answer: Future[Ids] | None = None
        self._due = 0.0
        self._is_prepared = False

    def prepare(self) -> None:
        """The source is about to be looked at: connect. Returns at once."""
        if not self._is_prepared:
            self._is_prepared = True
            self._thread.submit(self._connected)

    def look(self, position: Position, latest: Position, now: float, deadline: float) -> None:
        """Compare the topics that the source has now, if it is time to; wait until `deadline` (`time.monotonic`)."""
        present = frozenset(topics_of(latest))
        appeared, self._present = present - self._present, present
        if self._answer is None and (appeared or now >= self._due):
            self._answer = self._thread.submit(lambda: self._connected().ids(present))
            self._due = now + max(EVERY_SECONDS, EVERY_SECONDS_PER_TOPIC * len(present))
        if self._answer is None:
            return
        if appeared and appeared.isdisjoint(self.known):
            self._answer.add_done_callback(lambda _: self._came())
        else:
            wait((self._answer,), max(0.0, deadline - time.monotonic()) if appeared else 0.0)
        self.take(position)

    def take(self, position: Position) -> None:
        if self._answer is not None and self._answer.done():
            answer, self._answer = self._answer, None
            self._compare(answer, position)

    def lost_sight(self) -> None:
        """The source could not be asked: when it can be again, its topics may be others."""
        self._present, self._answer = frozenset(), None

    @property
    def are_new(self) -> bool:
        """Whether a topic is another than the one that was read."""
        return bool(self._anew)

    def take_change(self) -> bool:
        """Tell whether a topic is another than it was when this was asked last, read or not."""
        changed, self._have_changed = self._have_changed, False
        return changed

    def accept(self) -> None:
        """Go on with the topics that there are now."""
        self.known |= self._anew
        self._anew, self.is_kept = {}, False

    def message(self, position: Position, latest: Position) -> str:
        told = ", ".join(
            f"{partition} ends at offset {latest[partition]} and was read up to {at}"
            for partition, at in sorted(position.items())
            if topic_of(partition) in self._anew and partition in latest
        )
        names = ", ".join(sorted(self._anew))
        return f"source {self._source}: {told}: topic {names} was created anew; {REMEDY}"

    def bounds(self, partitions: Collection[str]) -> Mapping[str, Bounds]:
        """Return where the logs of partitions begin and end, by the same client; may be called on any thread.

        Raises what the client raises, and RuntimeError before it is connected and after it is closed.
        """
        ids = self._ids
        if ids is None:
            raise RuntimeError(f"source {self._source} is not connected")
        return ids.bounds(partitions)

    def close(self) -> None:
        """End the thread when it has done what it is doing."""
        self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=False)

    def _compare(self, answer: Future[Ids], position: Position) -> None:
        told: Ids = {}
        with tolerated("the ids of topics are not known", source=self._source):
            told = answer.result()
        read = set(topics_of(partition for partition, at in position.items() if at > 0))
        for topic, found in told.items():
            before = self.known.get(topic, found)
            self._have_changed |= self._anew.get(topic, before) != found
            if before != found and before[0] == found[0] and topic in read:
                self._anew[topic] = found
            elif self.known.get(topic) != found:
                self.known[topic], self.is_kept = found, False

    # On the thread ---------------------------------------------------------------------------

    def _connected(self) -> TopicIds:
        if self._ids is None:
            self._ids = self._open_ids()
        return self._ids

    def _disconnect(self) -> None:
        ids, self._ids = self._ids, None  # the last runs are kept for what they tell, and not their clients
        if ids is not None:
            ids.close()


def ids_in(kept: Any) -> Mapping[str, Ids]:
    """Return the ids by source that were kept as JSON. Raises ValueError."""
    try:
        return {
            source: {topic: (cluster, found) for topic, (cluster, found) in ids.items()}
            for source, ids in kept.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError("it has no ids of topics by source") from error


def topic_of(partition: str) -> str:
    """Return the topic of a partition (`orders/0`)."""
    return partition.rpartition("/")[0]


def topics_of(partitions: Iterable[str]) -> Iterable[str]:
    return map(topic_of, partitions)
