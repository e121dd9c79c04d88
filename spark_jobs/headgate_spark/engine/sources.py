"""The sources of a running query, as the shim describes them when Spark opens them.

From the description follow the two things that the rest needs: the name under which a resource speaks of the
source, and its read limit, that is, how exactly a batch of it can be bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import PurePosixPath
from typing import Any

from headgate_contract.newer import dataclass
from headgate_contract.settings.said import is_option
from headgate_spark.planner.model import Position, ReadLimit


class RecordCounts:
    """Offsets as JSON objects, nested or flat, whose leaves count records.

    The planner counts records per partition. A source writes JSON of its own making into the checkpoint, and only
    that may go back to it, since the checkpoint must stay readable without Headgate. Only formats whose integers are
    known to count records are translated; for every other source the planner has coarser means (`ReadLimit`).

    Kafka: `{"orders": {"0": 17}}` is `{"orders/0": 17}`. The replay source: `{"row": 17}` is itself.
    """

    def position(self, offset: str) -> Position:
        """Return the records per partition, partitions being named by the path of the leaf.

        Raises `ValueError` if `offset` is not of this format, `RecursionError` if it is nested too deeply for JSON.
        """
        found: dict[str, int] = {}
        _put_leaves(json.loads(offset), "", found)
        return found

    def offset(self, position: Position, latest: str) -> str:
        """Return `position` as JSON, in the shape of `latest`.

        A partition that the planner has no position for is one that has just appeared: it is taken up to its latest,
        because only the source knows where it begins.
        """
        return json.dumps(_rebuilt(json.loads(latest), "", position), separators=(",", ":"))


def _put_leaves(value: Any, path: str, found: dict[str, int]) -> None:
    """Put what is in an object below `path`, which ends with a slash, into `found`."""
    if not isinstance(value, dict):
        raise ValueError(f"offset member {path[:-1] or '(all)'} is {value!r}; expected a count of records")  # noqa: TRY004 -- of whatever form
    for key, inner in value.items():
        if type(inner) is int:
            found[path + key] = inner
        else:
            _put_leaves(inner, f"{path}{key}/", found)


def _rebuilt(value: Any, path: str, position: Position) -> Any:
    if not isinstance(value, dict):
        return position.get(path[:-1], value)
    return {
        key: position.get(path + key, inner)
        if type(inner) is int
        else _rebuilt(inner, f"{path}{key}/", position)
        for key, inner in value.items()
    }


FORMATS: Mapping[str, RecordCounts] = {"kafka": RecordCounts(), "replay": RecordCounts()}
"""Sources whose offsets are known to count records, by the name given to `readStream.format`."""

OFFSETS_OPTION = "headgate.offsets"
"""A source outside `FORMATS` joins them by this option with the value `records`."""

_READ_LIMITS = {"rows": ReadLimit.ROWS, "files": ReadLimit.FILES}

OWN_SIZE = frozenset({"rate-micro-batch"})
"""Sources whose batches have a size of their own: they name a limit, and do not look at the one they are given."""

ICEBERG = "org.apache.iceberg."
"""Where the stream of an Iceberg table comes from, by whatever name the table is read. It takes a limit in files
whatever limit it was opened with; one in rows it takes as well, and goes beyond it by a file."""


_SUBSCRIPTIONS = {"subscribe": "subscribe", "subscribepattern": "subscribePattern", "assign": "assign"}
"""The options by which a Kafka source says what it reads, as a descriptor has them and as a job writes them."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a Kafka source reads."""

    option: str
    """By which the job says so: `subscribe`, `subscribePattern` or `assign`."""
    topics: tuple[str, ...] = ()
    """That it names; none where it goes by a pattern."""
    pattern: str | None = None
    """A regular expression of Java's, of which Spark looks whether it is found in a name."""

    def reads(self, topic: str) -> bool:
        """Return whether it reads a topic; no where Python does not understand the pattern."""
        try:
            matches = self.pattern is not None and re.search(self.pattern, topic) is not None
        except re.error:
            return False
        return matches or topic in self.topics


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What the shim says of a stream that Spark has opened."""

    handle: int
    checkpoint: str
    """Root of the query's checkpoint, as a URI or path."""
    query_name: str | None
    query_id: str
    run_id: str
    format: str
    name: str | None
    api: str
    stream: str
    """Class of the source's stream."""
    default_limit: str | None
    default_rows: int | None = None
    """Rows in a batch that the source names as its own limit; `None`: it names none."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Its own, by their names in lower case."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Options by which the job says how it is to be read."""
    shuffle_partitions: int | None = None
    """Of the session that the query runs in."""
    place: int | None = None
    """Among the sources of its query, as Spark counts them; `None`: it is not told, as of those that go by name."""

    @classmethod
    def parse(cls, text: str) -> Descriptor:
        members = json.loads(text)
        query = members["query"]
        options: Mapping[str, str] = members.get("options") or {}
        index = members.get("index") or ""
        return cls(
            handle=members["handle"],
            checkpoint=members["checkpoint"],
            query_name=query["name"],
            query_id=query["id"],
            run_id=query["runId"],
            format=members["format"].lower(),
            name=members.get("name"),
            api=members["api"],
            stream=members.get("class", ""),
            default_limit=members.get("defaultLimit"),
            default_rows=members.get("defaultRows"),
            options={key.lower(): value for key, value in options.items() if not is_option(key)},
            settings={key: value for key, value in options.items() if is_option(key)},
            shuffle_partitions=members.get("shufflePartitions"),
            place=int(index) if index.isdecimal() else None,
        )

    @property
    def query(self) -> str:
        """The name of its query, or else the query's id."""
        return self.query_name or self.query_id

    @property
    def offset_format(self) -> RecordCounts | None:
        """How the source writes its offsets, if they can be planned."""
        if self.api != "v2":
            return None
        if self.options.get(OFFSETS_OPTION) == "records":
            return RecordCounts()
        return FORMATS.get(self.format)

    @property
    def read_limit(self) -> ReadLimit:
        """How exactly a batch of the source can be bounded."""
        if self.offset_format is not None:
            return ReadLimit.OFFSETS
        if self.api == "v1":
            # Of the V1 sources those of files and of Delta are in use, and both take a limit in files, whatever
            # limit they were opened with.
            return ReadLimit.FILES if self.default_limit is not None else ReadLimit.GATE
        if self.stream.startswith(ICEBERG):
            return ReadLimit.FILES
        limit = None if self.format in OWN_SIZE else self.default_limit
        return _READ_LIMITS.get(limit or "", ReadLimit.GATE)

    @property
    def own_rows(self) -> int | None:
        """The most rows that its author wants in a batch, where that is the limit by which it is bounded."""
        return self.default_rows if self.read_limit is ReadLimit.ROWS else None

    @property
    def tells_file_bytes(self) -> bool:
        """Whether it tells the size of its files, and takes a limit in bytes: Spark's own source of files does."""
        return self.api == "v1" and self.stream.endswith(".FileStreamSource")

    @property
    def fails_on_data_loss(self) -> bool:
        """Whether a Kafka source is to end its query when records are gone that it has not read: Spark's default."""
        return self.options.get("failondataloss", "true").strip().lower() != "false"

    @property
    def subscription(self) -> Subscription | None:
        """What a Kafka source reads; `None` where its options do not say."""
        key = next((key for key in _SUBSCRIPTIONS if key in self.options), None)
        if key is None:
            return None
        option, text = _SUBSCRIPTIONS[key], self.options[key]
        if key == "subscribe":
            return Subscription(option, tuple(topic.strip() for topic in text.split(",") if topic.strip()))
        if key == "assign":
            return Subscription(option, _assigned(text))
        return Subscription(option, pattern=text)

    def source_name(self, taken: Collection[str]) -> str:
        """Return the name of the source, where those that were opened before it have `taken` theirs."""
        topic = next(
            (self.options[key] for key in ("subscribe", "subscribepattern") if key in self.options), ""
        )
        base = self.name or topic or PurePosixPath(self.options.get("path", "")).name or self.format
        names = [base, *(f"{base}-{n}" for n in range(2, len(taken) + 2))]
        return next(name for name in names if name not in taken)


def names_of(descriptors: Iterable[Descriptor]) -> dict[int, str]:
    """Return by handle how the sources of a query are called, whatever the order in which they are told of.

    Handles rise in the order in which Spark opens streams.
    """
    names: dict[int, str] = {}
    for descriptor in sorted(descriptors, key=lambda each: each.handle):
        names[descriptor.handle] = descriptor.source_name(names.values())
    return names


def _assigned(text: str) -> tuple[str, ...]:
    """Return the topics of an `assign`, `{"orders": [0, 1]}`."""
    try:
        return tuple(json.loads(text))
    except (ValueError, TypeError):  # Spark refuses it in its own words
        return (text,)
