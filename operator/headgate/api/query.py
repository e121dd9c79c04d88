"""What is declared for one streaming query: when it commits, how large a batch is, what counts as a backlog.

The words are those of Flink's proposals where they have one (FLIP-309 `intervalDuringBacklog`, FLIP-328
`watermarkLag`); what differs on Spark is that a commit is the end of a micro-batch, so that the commit interval and
the length of a batch are one thing. Fields that cross several of these objects are judged in `rules`.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from headgate.api.duration import ZERO, Duration
from headgate.api.model import ApiModel, Name, Records, list_map
from headgate.api.source import Source
from headgate_contract.document import MOST_GROWTH, UNSAID

Growth = Annotated[float, Field(gt=1, le=MOST_GROWTH)]


class Checkpoint(ApiModel):
    """When the query commits. In Spark a commit is the end of a micro-batch."""

    interval: Duration | None = None
    """Time between commits while the query is live: how long new records wait. At least 10ms; below the
    trigger base of 100ms the base holds. Default: the trigger interval of the job itself, so that a job
    without this setting keeps its pace."""
    interval_during_backlog: Duration | None = None
    """How long a batch should take while the query is in backlog; nothing waits for it. 0s: no commit until
    the records that made up the backlog have been read, in one micro-batch. Otherwise at least `interval`.
    Default: `interval`, so that nothing changes in a backlog unless it is asked for."""
    min_pause: Duration = timedelta(seconds=UNSAID.min_pause_seconds)
    """Least time between the end of a batch and the start of the next one, live and in backlog. Default 0s:
    batches may follow each other at once."""

    @property
    def one_batch_spans_backlog(self) -> bool:
        """Whether there is no commit in a backlog before that is read."""
        return self.interval_during_backlog == ZERO


class Batch(ApiModel):
    """How many records a micro-batch takes, sized from what this query was measured to do."""

    target_duration: Duration = timedelta(seconds=UNSAID.batch.target_seconds)
    """How long a batch should take at most while the query is live; `checkpoint.interval` holds where it is shorter.
    Default 10s: after an hour's stall the first batch is then ten seconds of work instead of everything there is."""
    initial_records: Records = UNSAID.batch.initial_records
    """Records of the first batch, before anything has been measured. Default 100,000: seconds of work for
    most queries, and enough to measure by."""
    max_growth: Growth = int(UNSAID.batch.max_growth)  # whole, as the CRD writes it
    """Largest factor from one batch to the next, or from the largest one that earlier runs have shown.
    Default 4: a wrong estimate cannot plan a batch a hundred times too large, and seven batches still lead
    from 100,000 records to a billion."""
    max_records: Records = UNSAID.batch.max_records
    """Largest batch in records, whatever was measured and whatever the interval is. Default 100,000,000."""


class ReentryPolicy(StrEnum):
    """Whether a query that has been live may fall back into backlog by its lag in the same attempt."""

    ALLOWED = "Allowed"
    NEVER = "Never"


class Reentry(ApiModel):
    """When a query that has been live falls back into backlog by its lag.

    Without a second, higher threshold a lag that hovers around the first one would switch the query to and fro.
    """

    above: Duration | None = None
    """Watermark lag above which a source falls back into backlog, if it stays above it for `dwell`. Not
    below any `watermarkLag` of the query's sources. Default: twice the source's own `watermarkLag`."""
    pending_records_above: Records | None = None
    """Pending records above which a source falls back into backlog, if it stays above them for `dwell`. Not
    below any `pendingRecords` of the query's sources. Default: twice the source's own `pendingRecords`."""
    dwell: Duration = timedelta(seconds=UNSAID.reentry.dwell_seconds)
    """How long the value has to stay above without interruption. Default 1m: longer than a slow batch or a
    pause of garbage collection, short against the backlogs that are worth a switch."""
    policy: ReentryPolicy = ReentryPolicy.ALLOWED
    """`Never` is the rule of FLIP-328: once live, always live, until the next attempt. Default `Allowed`,
    because Spark can switch back."""


class QueryBacklog(ApiModel):
    """What the verdict on the query needs beyond the thresholds of its sources."""

    reentry: Reentry = Reentry()
    """When a query that has been live falls back into backlog."""


class LiveMode(StrEnum):
    """How a query runs while it is live."""

    MICRO_BATCH = "MicroBatch"
    REAL_TIME = "RealTime"


class Live(ApiModel):
    """How the query runs while it is live: in no backlog, and caught up."""

    mode: LiveMode = LiveMode.MICRO_BATCH
    """`RealTime`: the live query runs in Spark's real-time mode, in the same run and on the same checkpoint, and in
    micro-batches again when it is in backlog or falls behind. If Spark cannot run it in that mode, it stays in
    micro-batches, and the status says why. Default `MicroBatch`."""
    batch: Duration = timedelta(seconds=UNSAID.live.batch_seconds)
    """How long a batch of real-time mode lasts: how often the query commits then, how much is repeated after a
    failure, and how long a stop, a pause or the way back waits at most. At least 5s. Default 1m."""


class Query(ApiModel):
    """One streaming query of the application."""

    name: Name
    """Name that the job gives the query: `queryName("...")`."""
    checkpoint: Checkpoint = Checkpoint()
    """When the query commits, live and in backlog."""
    batch: Batch = Batch()
    """How many records a micro-batch takes."""
    backlog: QueryBacklog = QueryBacklog()
    """When the query counts as being in backlog, beyond the thresholds of its sources."""
    live: Live = Live()
    """How the query runs while it is live."""
    sources: Annotated[tuple[Source, ...], Field(max_length=32, json_schema_extra=list_map("name"))] = ()
    """The sources of the query that have settings of their own. Order matters only where several give a
    reason for the same verdict: the first is reported."""
