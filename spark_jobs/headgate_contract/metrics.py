"""The names of what a driver reports: written once, read by the exporter, the operator and its PromQL.

Prometheus conventions: base units (seconds, records), `_total` on counters, a small and bounded set of
labels. A value that is not known is *absent*, never 0: a reader must be able to tell "nothing waits" from
"nobody knows". Every metric also carries the label `application`.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate_contract.newer import StrEnum, dataclass


class MetricType(StrEnum):
    """The Prometheus type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


_SOURCE = ("query", "source")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its full name as scraped (with `_total`), type, labels beside `application`, and help."""

    name: str
    kind: MetricType
    labels: tuple[str, ...]
    help: str
    is_signed: bool = False
    """Whether it may be below zero: event times before 1970 or in the future, and what is reckoned with them."""

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its samples that say something by themselves: of a histogram, sum and count."""
        return (
            (f"{self.name}_sum", f"{self.name}_count") if self.kind is MetricType.HISTOGRAM else (self.name,)
        )

    @property
    def detail(self) -> str:
        """The label beyond query and source that tells its series apart; empty where it has none."""
        return next((label for label in self.labels if label not in _SOURCE), "")


def _labels(name: str, more: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of what is said of a query, a source of it, or neither: its name begins with that."""
    scopes = {"query": ("query",), "source": _SOURCE}
    return (*scopes.get(name.partition("_")[0], ()), *more)


def _gauge(name: str, text: str, *more: str, is_signed: bool = False) -> Metric:
    return Metric(f"headgate_{name}", MetricType.GAUGE, _labels(name, more), text, is_signed)


def _cause(name: str, text: str) -> Metric:
    """Return a gauge that is 1 while something is wrong; its label says what, and what to do."""
    return _gauge(name, text, "cause")


def _counter(name: str, text: str, *more: str) -> Metric:
    return Metric(f"headgate_{name}_total", MetricType.COUNTER, _labels(name, more), text)


def _histogram(name: str, text: str) -> Metric:
    return Metric(f"headgate_{name}", MetricType.HISTOGRAM, _labels(name, ()), text)


# The driver ---------------------------------------------------------------------------------------
CONTROL_GENERATION = _gauge("control_generation", "Generation of the control document in force.")
CONTROL_REFUSED = _counter("control_refused", "Control documents that were not taken, by reason.", "reason")
CONTROL_FAILURES = _counter(
    "control_failures", "Times that a run could not take the control document; it is tried again."
)
PLANNER_DURATION = _histogram("planner_duration_seconds", "Time one planner call took.")
PLANNER_FAILURES = _counter("planner_failures", "Planner calls that failed; the source is held meanwhile.")
DRIVER_STOPPING = _gauge("driver_stopping", "1 while a stop waits for the running batches.")
SPARK_INFO = _gauge("spark_info", "1; version is that of Spark in the driver.", "version")
DRIVER_INFO = _gauge(
    "driver_info",
    "1; version is that of Headgate in the driver, lineage the resource's uid and the attempt.",
    "version",
    "lineage",
)
CONTROL_UNREAD = _cause(
    "control_unread",
    "1 while nothing is read because the control document cannot be; cause says why and what to do.",
)
CONTROL_UNKNOWN = _cause(
    "control_unknown",
    "1 while the control document has members that the driver does not know; cause names them and says what to do.",
)
EXECUTORS_WANTED = _gauge("executors_wanted", "Executors that the driver has asked its cluster for.")
EXECUTORS = _gauge("executors", "Executors that have registered with the driver.")
EXECUTORS_REFUSED = _cause(
    "executors_refused",
    "1 while the cluster takes no request for executors that are missing; cause is what it says.",
)

# A query ------------------------------------------------------------------------------------------
QUERY_ACTIVE = _gauge("query_active", "1 while the query runs, 0 after it ended.")
QUERY_FAILED = _cause(
    "query_failed",
    "1 while the query has failed and is not started again; cause is a sentence with the remedy.",
)
QUERY_STARTED = _gauge(
    "query_started_timestamp_seconds", "When this run of the query started; tells one attempt from the next."
)
QUERY_OWNER = _gauge(
    "query_owner",
    "1; the user and the session of Spark Connect that have started this run of the query.",
    "user",
    "session",
)
QUERY_UNPLANNED = _gauge(
    "query_unplanned",
    "1; with the trigger that the job gave it (continuous, real time) Spark plans no batches.",
)
SETTING_INFO = _gauge(
    "setting_info",
    "1; origin says whose word holds (document, option, property) of a setting that the job itself gives.",
    "query",
    "source",
    "setting",
    "origin",
)
SETTING_UNMATCHED = _cause(
    "setting_unmatched",
    "1; a property names a query or a source that the job does not have; cause names the one that may be meant.",
)
SETTING_UNHEEDED = _cause(
    "setting_unheeded",
    "1; a source cannot do what a setting asks for; cause names both, and says what to do.",
)
CHECKPOINT_UNFENCED = _cause(
    "checkpoint_unfenced",
    "1; nothing, or not enough, keeps a second driver off a checkpoint; cause names it, and says what to do.",
)
QUERY_BACKLOG = _gauge(
    "query_backlog",
    "1 while the query is in backlog: by the document's verdict, by Phase, or by the lag of a source.",
)
QUERY_VOTES = _gauge(
    "query_votes",
    "1 where the driver itself votes by the lag of the query's sources (headgate_source_backlog_vote).",
)
QUERY_REAL_TIME = _gauge(
    "query_real_time",
    "1 while batches run in Spark's real-time mode, 0 while they do not; absent where it is not asked for.",
)
QUERY_REAL_TIME_REFUSED = _cause(
    "query_real_time_refused",
    "1 while the query stays in micro-batches though real-time mode is asked for; cause is a sentence.",
)
QUERY_TRIGGER_PROBLEM = _cause(
    "query_trigger_problem",
    "1 while the query is governed at the job's own trigger, and reacts no faster; cause is a sentence.",
)
QUERY_INTERVAL = _gauge("query_interval_seconds", "Commit interval in force.")
QUERY_GRANT = _gauge("query_grant_records", "Records that the last batch was allowed.")
QUERY_MEMORY_BOUND = _gauge(
    "query_memory_bound_records",
    "The largest batch that memory allows, by what batches have shown; kept over restarts.",
)
QUERY_COST_BOUND = _gauge(
    "query_cost_bound_records",
    "The size of the last grant, if larger batches made records dearer, or a smaller one is tried.",
)
QUERY_SPILLED = _counter(
    "query_spilled_bytes", "Bytes that tasks of batches wrote to disk for want of memory."
)
QUERY_THROUGHPUT = _gauge(
    "query_throughput_records_per_second",
    "Records per second of full batches, without the fixed cost of a batch.",
)
QUERY_WATERMARK = _gauge(
    "query_watermark_timestamp_seconds", "Watermark of the query, as Unix time.", is_signed=True
)
QUERY_WATERMARK_HELD_BY = _gauge(
    "query_watermark_held_by",
    "1; source is silent, its group reads on, and the watermark waits for it.",
    "source",
)
QUERY_STATE_ROWS = _gauge("query_state_rows", "Rows in the state stores after the last batch.")
QUERY_LAST_PROGRESS = _gauge(
    "query_last_progress_timestamp_seconds", "When the last batch ended, as Unix time."
)
QUERY_BATCHES = _counter("query_batches", "Committed batches; kind is data or no_data.", "kind")
QUERY_BATCHES_REPEATED = _counter(
    "query_batches_repeated",
    "Batches that ran again because a run ended in the middle of them; over all runs of the checkpoint.",
)
QUERY_FUTURE_BATCHES = _counter(
    "query_future_batches", "Batches with an event time further ahead than maxFuture, which does not count."
)
QUERY_BATCH_DURATION = _histogram("query_batch_duration_seconds", "How long batches with data took.")

# A source of a query ------------------------------------------------------------------------------
SOURCE_INFO = _gauge(
    "source_info",
    "1; read_limit tells how the source's batches are bounded: offsets, rows, files, bytes (of files) or gate (all).",
    "read_limit",
)
SOURCE_OUT_OF_REACH = _cause(
    "source_out_of_reach",
    "1 while the source cannot be asked what it has; cause is a sentence with the remedy.",
)
SOURCE_PHASE = _gauge("source_phase", "1 while the source is in a historical part or waits behind one.")
SOURCE_SNAPSHOT_PROBLEM = _cause(
    "source_snapshot_problem",
    "1 while the source cannot tell where its snapshot ends; cause is a sentence with partition and remedy.",
)
SOURCE_BACKLOG_VOTE = _gauge(
    "source_backlog_vote",
    "1 while the source's lag puts the query into backlog; voter is WatermarkLag or PendingRecords.",
    "voter",
)
SOURCE_IDLE = _gauge("source_idle_seconds", "How long nothing was pending, in flight or new; 0 while active.")
SOURCE_PENDING = _gauge("source_pending_records", "Latest offset minus committed position.")
SOURCE_RETENTION_MARGIN = _gauge(
    "source_retention_margin_ratio",
    "Part of what its topics keep that was read, of the partition with the least; below 0: records unread are gone.",
)
SOURCE_PLANNED = _counter("source_planned_records", "Records in planned batches.")
SOURCE_PROCESSED = _counter("source_processed_records", "Records in committed batches.")
SOURCE_WATERMARK = _gauge(
    "source_watermark_timestamp_seconds",
    "Event time up to which the source was read, as Unix time.",
    is_signed=True,
)
SOURCE_WATERMARK_LAG = _gauge(
    "source_watermark_lag_seconds", "Now minus the watermark of the source.", is_signed=True
)
SOURCE_WATERMARK_HELD_BY_PARTITION = _gauge(
    "source_watermark_held_by_partition",
    "1; partition is the one whose first unread record is the oldest of the source.",
    "partition",
)
SOURCE_EVENT_TIME_LAG = _gauge(
    "source_event_time_lag_seconds",
    "End of the last batch minus the largest event time in it.",
    is_signed=True,
)
SOURCE_RATE_LIMIT = _gauge(
    "source_rate_limit_records_per_second", "Rate limit in force; absent where there is none."
)
SOURCE_ALIGNMENT_LIMIT = _gauge(
    "source_alignment_limit_timestamp_seconds",
    "No batch reads past this event time, as Unix time.",
    is_signed=True,
)
SOURCE_ALIGNMENT_DRIFT = _gauge(
    "source_alignment_drift_seconds",
    "How far the source has been read ahead of the floor of its group.",
    is_signed=True,
)
SOURCE_PUBLISH_FAILURES = _counter(
    "source_publish_failures",
    "Positions that could not be published to the source's consumer group (publishGroup).",
)
SOURCE_ALIGNMENT_FLOOR = _gauge(
    "source_alignment_floor_timestamp_seconds",
    "Event time that the slowest active partition of its group has reached.",
    is_signed=True,
)
SOURCE_ALIGNMENT_HELD_BY = _gauge(
    "source_alignment_held_by", "1; member is the slowest of its group, as query/source.", "member"
)
SOURCE_ALIGNMENT_HELD_BY_PARTITION = _gauge(
    "source_alignment_held_by_partition",
    "1; partition is the one by which the slowest member of its group is the slowest.",
    "partition",
)
SOURCE_OUT_OF_ORDERNESS = _gauge(
    "source_event_time_out_of_orderness_seconds",
    "The most by which a sampled record's event time was later than one behind it.",
)
SOURCE_UNREADABLE_PARTITIONS = _gauge(
    "source_event_time_unreadable_partitions", "Partitions with records, none of which has an event time."
)
SOURCE_UNREADABLE = _gauge(
    "source_event_time_unreadable_offset",
    "Offset of a record in a partition of which no record that was looked at has an event time (five at most).",
    "partition",
)
SOURCE_FAR_AHEAD = _gauge(
    "source_event_time_far_ahead_offset",
    "Offset of the first record met in partition whose event time is further ahead than maxFuture (five at most).",
    "partition",
)
SOURCE_PAUSED = _gauge("source_paused", "1 while the source is paused by a person.")
SOURCE_FINISHED = _gauge("source_finished", "1 when the source is at its frozen end.")
SOURCE_HELD = _counter("source_held_seconds", "Time for which the source was held, by reason.", "reason")
SOURCE_HELD_BACK = _gauge(
    "source_held_back_seconds",
    "Time of the last minute for which the source was kept from what it could read, by reason.",
    "reason",
)

ALL: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))

SOURCE_FLAGS = (SOURCE_PHASE, SOURCE_PAUSED, SOURCE_FINISHED)
"""0 or 1 of each source that has `SOURCE_INFO`; of almost every one at almost every time 0."""
ONLY_SET = "flags=set"
"""The query of the URL of a scrape that needs these only where they are 1. Else a Prometheus with ten thousand
drivers passes over a hundred thousand zeros at each tick of the operator."""

RENAMED: Mapping[str, str] = {
    SOURCE_WATERMARK_HELD_BY_PARTITION.name: "headgate_source_watermark_held_by_split",
    SOURCE_ALIGNMENT_HELD_BY_PARTITION.name: "headgate_source_alignment_held_by_split",
    SOURCE_UNREADABLE_PARTITIONS.name: "headgate_source_event_time_unreadable_splits",
    "read_limit": "lane",
    "partition": "split",
}
"""Metrics and labels, and what drivers called them before: the operator reads both."""
