"""Committed positions, published to a consumer group of the user's name (`kafka.publishGroup`). Nothing reads them
back.

Spark asks for the next batch when the last one has been committed, so the position that it hands in is what is
published; when a query ends it is the one in the checkpoint. `committed` leaves it here, and a thread of its own
writes the newest ones, at most once a second. A write that fails is counted, logged once until one succeeds, and
tried again.

A group that is in use is left alone. The broker refuses a write to one with members by itself, and it alone can tell
without a race; so a refused write is what makes the publisher look for members. One whose consumers are stopped is
known by the marks of its offsets (`problem_of`), read before the first write and after each failure.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field

import structlog

from headgate_contract.newer import dataclass
from headgate_spark.kafka.failures import in_words, is_refusal, of_a_commit
from headgate_spark.kafka.groups import PREFIX, JvmGroups, Offsets, problem_of

log = structlog.get_logger("headgate")

PAUSE_SECONDS = 1.0
"""Seconds between two writes: finer than any exporter looks, and far from being a load."""
RETRY_SECONDS = 10.0
"""Seconds from a failure or a refusal to the next try."""
REFRESH_SECONDS = 3600.0
"""Positions that do not move are written again: a broker forgets offsets that nobody commits
(`offsets.retention.minutes`, a week by default)."""
MOST_ENDED = 50
"""Publications of queries that have ended whose last positions are tried again, the last ones: a query without a name
has another one at each start, and a group may be somebody else's for good."""
LAST_SECONDS = 5.0
"""How long the end of a driver waits for its last positions to be written."""


Connect = Callable[[Mapping[str, str]], JvmGroups]


@dataclass(frozen=True, slots=True)
class Publication:
    """One source whose positions are published."""

    query: str
    source: str
    group: str
    options: Mapping[str, str] = field(hash=False)
    """As the source was opened with."""

    @property
    def cluster(self) -> str:
        """Where the group is."""
        return self.options.get("kafka.bootstrap.servers", "")


@dataclass(slots=True)
class _Progress:
    """What is known of one publication. Guarded by the publisher's lock, but for `written`."""

    waiting: str | None = None
    is_being_written: bool = False
    has_ended: bool = False
    """The query has, and its last positions may not be written yet."""
    seen: str | None = None
    not_before: float = 0.0
    written_at: float | None = None
    written: Offsets = field(default_factory=dict)
    is_ours: bool = False
    """The group was looked at, and is not somebody else's; until a write fails."""
    failures: int = 0
    complaint: str | None = None
    """The problem that was logged last; `None` since a write succeeded."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to write, and nothing will come."""
        return self.has_ended and self.waiting is None and not self.is_being_written


class Publisher:
    """Writes positions behind the queries' backs; `committed` is called from their threads."""

    def __init__(
        self, connect: Connect, name: Callable[[], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`connect` gives the groups of the cluster that a source with such options reads; called once for each.

        `name` says who publishes: the same at each start, and nobody else's."""
        self._connect = connect
        self._name = name
        self._clock = clock
        self._changed = threading.Condition()
        self._progress: dict[Publication, _Progress] = {}
        self._owners: dict[tuple[str, str, str, int], Publication] = {}
        """Who publishes a partition, by cluster, group, topic and partition."""
        self._groups: dict[str, JvmGroups] = {}
        self._thread: threading.Thread | None = None
        self._closing = False

    def committed(
        self, *, query: str, source: str, group: str, options: Mapping[str, str], offset: str
    ) -> None:
        publication = Publication(query, source, group, options)
        with self._changed:
            self._replace_others(publication)
            progress = self._progress.setdefault(publication, _Progress())
            progress.has_ended = False
            if offset == progress.seen and not self._is_forgotten(progress):
                return
            progress.seen = progress.waiting = offset
            self._start()
            self._changed.notify_all()

    def ended(self, query: str) -> None:
        """The run of a query has ended: when its last positions are written, another may publish its partitions."""
        with self._changed:
            for publication, progress in self._progress.items():
                progress.has_ended |= publication.query == query
            self._let_go()
            self._changed.notify_all()

    @property
    def failures(self) -> dict[tuple[str, str], int]:
        with self._changed:
            return {(p.query, p.source): progress.failures for p, progress in self._progress.items()}

    def close(self) -> None:
        """Write what waits, and end; waits a few seconds at most."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(LAST_SECONDS)

    def _replace_others(self, publication: Publication) -> None:
        """Forget what the same source published to before: another group, or by other options."""
        if publication in self._progress:
            return
        same = (publication.query, publication.source)
        for other in [p for p in self._progress if (p.query, p.source) == same]:
            del self._progress[other]
            self._owners = {key: owner for key, owner in self._owners.items() if owner != other}

    def _let_go(self) -> None:
        """Forget queries that have ended and have nothing left to write, and give up their partitions."""
        ended = [p for p, progress in self._progress.items() if progress.has_ended]
        waiting = [p for p in ended if not self._progress[p].is_over]
        for publication in {*ended} - {*waiting[-MOST_ENDED:]}:
            del self._progress[publication]
        self._owners = {key: owner for key, owner in self._owners.items() if owner in self._progress}

    # The thread ------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name="headgate-publisher", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._due() or self._unused(), self._patience()
                )
                closing = self._closing
            self.publish()
            if closing:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._closing, PAUSE_SECONDS)

    def publish(self) -> None:
        """Write every position that is due; in tests without a thread."""
        with self._changed:
            due = [
                (p, self._progress[p], offset) for p in self._due() if (offset := self._progress[p].waiting)
            ]
            for _, progress, _ in due:
                progress.waiting, progress.is_being_written = None, True
        for publication, progress, offset in due:
            self._publish(publication, progress, offset)
        with self._changed:
            unused = self._unused()
        for key in unused:
            self._give_back(key)

    def _give_back(self, key: str) -> None:
        try:
            self._groups.pop(key).close()
        except Exception as error:  # a JVM that is ending has closed it
            log.debug("a client of consumer groups was not closed", error=in_words(error))

    def _unused(self) -> set[str]:
        """Return which clients nobody needs: those of queries that have ended and have nothing left to write, and at
        the end all. Called on the thread, with the lock held."""
        used = set() if self._closing else {_client(p) for p in self._progress}
        return self._groups.keys() - used

    def _due(self) -> list[Publication]:
        now = self._clock()
        waiting = [p for p, progress in self._progress.items() if progress.waiting is not None]
        return [p for p in waiting if self._closing or self._progress[p].not_before <= now]

    def _patience(self) -> float | None:
        """Return the seconds until a retry is due; `None`: nothing is to be tried again."""
        retries = [p.not_before for p in self._progress.values() if p.waiting is not None]
        return max(0.0, min(retries) - self._clock()) if retries else None

    def _publish(self, publication: Publication, progress: _Progress, offset: str) -> None:
        offsets = partitions(offset)
        fresh = offsets if self._is_forgotten(progress) else _changed(offsets, progress.written)
        problem = self._other_owner(publication, offsets) or self._commit(publication, progress, fresh)
        with self._changed:
            progress.is_being_written = False
            if problem is None:
                progress.written, progress.written_at = offsets, self._clock()
            else:
                progress.is_ours = False
                progress.failures += 1
                progress.waiting = progress.waiting or offset
                progress.not_before = self._clock() + RETRY_SECONDS
            self._let_go()
        self._tell(publication, progress, problem)

    def _commit(self, publication: Publication, progress: _Progress, offsets: Offsets) -> str | None:
        """Write; return why that could not be done."""
        mark = PREFIX + self._name()
        try:
            if not progress.is_ours:
                marks = self._groups_of(publication).marks(publication.group)
                if (problem := problem_of(publication.group, marks, offsets.keys(), mark)) is not None:
                    return self._in_use(publication) or problem
                progress.is_ours = True
            if offsets:
                self._groups_of(publication).commit(publication.group, offsets, mark)
        except Exception as error:  # a client fails in many ways, and none of them concerns the query
            if is_refusal(error):
                self._give_back(_client(publication))
            return self._in_use(publication) or (
                f"positions of source {publication.source} cannot be written to group {publication.group}: "
                f"{of_a_commit(error, publication.cluster)}"
            )
        return None

    def _in_use(self, publication: Publication) -> str | None:
        """Return what is to be done about a group that has consumers; `None`: it has none, or nobody can tell."""
        try:
            members = self._groups_of(publication).members(publication.group)
        except Exception as error:
            log.debug(
                "members of a group could not be counted", group=publication.group, error=in_words(error)
            )
            return None
        if not members:
            return None
        return (
            f"group {publication.group} has active consumers ({members}), whose own positions would be overwritten; "
            "set publishGroup to a name that nobody consumes with"
        )

    def _other_owner(self, publication: Publication, offsets: Offsets) -> str | None:
        """Return who else publishes one of the partitions; if nobody does, this publication owns them from now on."""
        keys = [(publication.cluster, publication.group, *partition) for partition in offsets]
        with self._changed:
            others = (owner for key in keys if (owner := self._owners.get(key, publication)) != publication)
            if (other := next(others, None)) is None:
                self._owners |= dict.fromkeys(keys, publication)
                return None
        return (
            f"query {other.query}, source {other.source} publishes the same partitions to group {other.group}; give "
            "one of them another publishGroup"
        )

    def _groups_of(self, publication: Publication) -> JvmGroups:
        key = _client(publication)
        if key not in self._groups:
            self._groups[key] = self._connect(publication.options)
        return self._groups[key]

    @staticmethod
    def _tell(publication: Publication, progress: _Progress, problem: str | None) -> None:
        before, progress.complaint = progress.complaint, problem
        about = {"query": publication.query, "source": publication.source, "group": publication.group}
        if problem is None and before is not None:
            log.info("positions are published again", **about)
        elif problem is not None and before is None:
            log.warning("positions are not published; the query goes on", problem=problem, **about)

    def _is_forgotten(self, progress: _Progress) -> bool:
        return progress.written_at is not None and self._clock() - progress.written_at >= REFRESH_SECONDS


def partitions(offset: str) -> Offsets:
    """Return the offsets in `offset`, the JSON of Spark's Kafka source: `{"topic": {"0": 17}}`."""
    found = json.loads(offset)
    return {(topic, int(p)): int(n) for topic, of_topic in found.items() for p, n in of_topic.items()}


def _client(publication: Publication) -> str:
    """Return what tells the client of one publication from that of another."""
    return json.dumps(dict(publication.options), sort_keys=True)


def _changed(offsets: Offsets, written: Offsets) -> Offsets:
    return {partition: n for partition, n in offsets.items() if written.get(partition) != n}
