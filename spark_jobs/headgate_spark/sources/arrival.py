"""When a recorded row arrives: what lies before a cut is there at once, the rest comes at a multiple of real time.

    arrival of a row = zero + (event time of the row - cut) / speed

where `zero` is the wall-clock time at which the replay begins. Pure: the replay source hands in the time and
what the file system says, and the demo computes the staleness of its batches by the same formula.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MICROS_PER_SECOND = 1_000_000


@dataclass(frozen=True)
class Schedule:
    """What has arrived when, relative to `zero`."""

    cut_micros: int
    """Event time at which the replay begins, in microseconds since 1970-01-01 UTC."""
    speed: float
    """Seconds of event time that arrive in one second."""

    def event_time_reached(self, elapsed_seconds: float) -> int:
        """Return the event time, in microseconds, before which everything has arrived."""
        return self.cut_micros + math.floor(max(0.0, elapsed_seconds) * self.speed * MICROS_PER_SECOND)

    def seconds_until(self, event_time_micros: int) -> float:
        """Return how long after `zero` an event time arrives; 0 for what lies before the cut."""
        return max(0.0, (event_time_micros - self.cut_micros) / (self.speed * MICROS_PER_SECOND))


@dataclass(frozen=True)
class ReplayOptions:
    """The options of `format("replay")`, checked."""

    path: Path
    """A Parquet file or a directory of them, sorted by event time over all files in order of name."""
    event_time: str | None
    """The event-time column; needed with `cut`."""
    schedule: Schedule | None
    """None where no `cut` is set: then all rows are there at once."""
    started_at: float | None
    """`zero` in seconds since 1970-01-01 UTC; None where it is not fixed."""
    started_by: Path | None
    """A file: `zero` is the time of its last change, and nothing arrives after the cut until it exists."""
    rows_per_batch: int | None
    """The most rows of one batch of a query that nobody else governs; None for all that has arrived."""
    partitions: int
    """The most tasks that read one batch."""


DEFAULT_PARTITIONS = 4
KNOWN_OPTIONS = (
    "path",
    "eventTime",
    "cut",
    "speed",
    "startedAt",
    "startedBy",
    "rowsPerBatch",
    "numPartitions",
)


def parse_options(options: Mapping[str, str]) -> ReplayOptions:
    """Check the options of a stream; names are looked up as given, so pass a mapping that ignores case.

    Raises ValueError that names the option and what to set.
    """
    if "path" not in options:
        raise ValueError(
            "replay source: option path is not set; set it to a Parquet file or a directory of them"
        )
    if "startedAt" in options and "startedBy" in options:
        raise ValueError("replay source: options startedAt and startedBy are both set; keep one of them")
    schedule = parse_schedule(options)
    if schedule and "eventTime" not in options:
        raise ValueError(
            "replay source: option cut is set but eventTime is not; set eventTime to the timestamp column"
        )
    return ReplayOptions(
        path=Path(options["path"].removeprefix("file:")),
        event_time=options.get("eventTime"),
        schedule=schedule,
        started_at=positive(options, "startedAt", "seconds since 1970"),
        started_by=Path(options["startedBy"]) if "startedBy" in options else None,
        rows_per_batch=whole(options, "rowsPerBatch"),
        partitions=whole(options, "numPartitions") or DEFAULT_PARTITIONS,
    )


def parse_schedule(options: Mapping[str, str]) -> Schedule | None:
    """Read `cut` and `speed`; None where there is no cut."""
    speed = positive(options, "speed", "seconds of event time that arrive per second")
    if "cut" not in options:
        if speed is not None:
            raise ValueError(
                "replay source: option speed is set but cut is not; set cut to the time where it begins"
            )
        return None
    return Schedule(parse_time(options["cut"]), 1.0 if speed is None else speed)


def parse_time(text: str) -> int:
    """Read an ISO 8601 timestamp, UTC where it names no zone, as microseconds since 1970-01-01 UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as unreadable:
        hint = "write a timestamp such as 2013-11-30T00:00:00Z"
        raise ValueError(f"replay source: option cut is {text!r}; {hint}") from unreadable
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since_epoch = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (since_epoch.days * 86_400 + since_epoch.seconds) * MICROS_PER_SECOND + since_epoch.microseconds


def positive(options: Mapping[str, str], name: str, unit: str) -> float | None:
    """Read a number above 0; None where the option is not set."""
    if name not in options:
        return None
    try:
        value = float(options[name])
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(
            f"replay source: option {name} is {options[name]!r}; set it to a number above 0 ({unit})"
        )
    return value


def whole(options: Mapping[str, str], name: str) -> int | None:
    """Read a whole number above 0; None where the option is not set."""
    if name not in options:
        return None
    if not options[name].isascii() or not options[name].isdigit() or int(options[name]) == 0:
        raise ValueError(
            f"replay source: option {name} is {options[name]!r}; set it to a whole number above 0"
        )
    return int(options[name])
