"""The figures that documents quote: of which file, what a reader is told they are, and what stands beside them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Variant:
    """Whose seconds are in the details of a figure: of which figure, and under what name."""

    id: str
    name: str


@dataclass(frozen=True)
class Line:
    """One row of the table: which result, and what a reader is told it is."""

    file: str
    id: str
    says: str
    form: str = "{:.1f}x"
    capped: Variant | None = None
    """The small batches that it is taken against, where it is."""
    default: Variant | None = None
    """Plain Spark without a cap, of the same rounds."""


def beside_default(file: str, figure: str, says: str, capped: str, default: str | None = None) -> Line:
    """Return a line of a figure that is taken against small batches; `default` has the times without a cap.

    They are in the details of that very figure unless another one is named.
    """
    return Line(
        file,
        figure,
        says,
        capped=Variant(figure, capped),
        default=Variant(default or figure, "plain_uncapped"),
    )


CATCH_UP: Final = "catchup_vs_low_latency"
LINES: Final = (
    beside_default(
        "local",
        CATCH_UP,
        "count and sum of a million keys, ten million records, `intervalDuringBacklog: 2m`, against batches of 50k",
        "plain_low_latency",
        "catchup_vs_uncapped",
    ),
    beside_default(
        "local",
        "catchup_0s_vs_low_latency",
        "the same, `intervalDuringBacklog: 0s`",
        "plain_low_latency",
        "catchup_0s_vs_uncapped",
    ),
    beside_default(
        "backlog",
        "aggregation_vs_low_latency",
        "the same on Kafka, one batch, told from the start that it is a backlog, against batches of 50k",
        "plain_50k",
    ),
    beside_default(
        "backlog",
        "windows_vs_low_latency",
        "count and sum per key and ten minutes, one batch, against batches of 50k",
        "plain_50k",
    ),
    beside_default(
        "backlog",
        "deduplication_vs_low_latency",
        "deduplication, one batch, against batches of 50k",
        "plain_50k",
    ),
    beside_default(
        "backlog",
        "cogroup_vs_low_latency_40k",
        "coGroup, one batch, against batches of 40k",
        "plain_40k",
    ),
    beside_default(
        "backlog",
        "join_vs_low_latency",
        "interval join, with `headgate_spark.backfill` written into the job, against batches of 20k",
        "plain_20k",
    ),
    Line("backlog", "join_vs_batch", "the same, against a batch job over the same records", "{:.2f}x"),
    Line(
        "alternatives",
        "backfill_hot_keys",
        "the same with 30,000 rows a key: time of each pair that it finds, against that with 30 rows a key",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "aggregation_vs_default",
        "the same aggregation on Kafka, one batch: time, against plain Spark's default",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "windows_vs_default",
        "count and sum per key and ten minutes, one batch: time, against the same",
        "{:.2f}x",
    ),
    Line("alternatives", "deduplication_vs_default", "deduplication: time, against the same", "{:.2f}x"),
    Line("alternatives", "cogroup_vs_default", "coGroup: time, against the same", "{:.2f}x"),
    *(
        Line("alternatives", f"{name}_growth", says, "{:.2f}x")
        for name, says in (
            (
                "aggregation",
                "the aggregation: that ratio in the later five pairs of runs over that in the earlier five",
            ),
            ("windows", "the same of the windows"),
            ("deduplication", "the same of the deduplication"),
            ("cogroup", "the same of coGroup"),
        )
    ),
    Line(
        "local",
        "demo_vs_default",
        "the demo, in a quarter of the heap: time for its backlog, against plain Spark's default",
        "{:.2f}x",
    ),
    Line("local", "demo_same_heap_vs_default", "the same in the default's heap, against the same", "{:.2f}x"),
    Line(
        "alternatives",
        "catchup_vs_default",
        "a restart on a backlog, `intervalDuringBacklog: 2m`, driver and JVM cold: time, against the same",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "outage_vs_default",
        "a backlog on ten million keys in the state: time, against plain Spark's default",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "outage_vs_50k",
        "the same: speed, against batches of 50k",
    ),
    Line(
        "alternatives",
        "outage_vs_best_flink",
        "the same: speed, against the fastest way to set Flink 2.3, from a savepoint",
    ),
    Line(
        "alternatives",
        "large_backlog_vs_default",
        "a backlog larger than one batch may be, killed at half: time, against the default with memory enough",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "large_backlog_largest_batch",
        "its longest batch, which is the repeated one, over `intervalDuringBacklog`",
        "{:.2f}x",
    ),
    Line("alternatives", "large_backlog_largest_batch_unrepeated", "the longest of the others", "{:.2f}x"),
    Line(
        "alternatives",
        "fixed_batch_cost_vs_plain",
        "a batch of one row, without state, checkpoint on the local disk: time, against plain Spark",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "fixed_batch_cost_vs_plain_at_50ms_store",
        "the same, checkpoint in a store in which each request takes 50 ms",
        "{:.2f}x",
    ),
    Line(
        "alternatives",
        "planning_p99_seconds_10000",
        "planning a batch of 10,000 partitions in one alignment group (99th percentile; Spark is simulated)",
        "{:.3f} s",
    ),
    Line(
        "alternatives",
        "aggregation_vs_best_flink",
        "aggregation, against the fastest way to set Flink 2.3",
    ),
    Line(
        "alternatives",
        "aggregation_by_rows_vs_best_flink",
        "the same by Spark's reader of Kafka (`spark.headgate.columnarKafka=false`), against the same",
    ),
    Line(
        "alternatives",
        "aggregation_zipf_vs_best_flink",
        "aggregation of keys by Zipf's law, of which a few have most of the records, against the same",
    ),
    Line(
        "alternatives",
        "aggregation_hot_vs_best_flink",
        "aggregation of random keys, of which one has a tenth of the records, against the same",
    ),
    Line(
        "alternatives",
        "windows_vs_best_flink",
        "count and sum per key and ten minutes, against the fastest way to set Flink 2.3",
    ),
    Line("alternatives", "deduplication_vs_best_flink", "deduplication, against the same"),
    Line(
        "alternatives",
        "deduplication_uncounted_vs_best_flink",
        "the same without counting its rows of state, as Flink (`…rocksdb.trackTotalNumberOfRows=false`)",
    ),
    Line("alternatives", "cogroup_vs_best_flink", "coGroup, against the same"),
    Line("alternatives", "join_vs_best_flink", "interval join with backfill, against the same"),
    Line(
        "alternatives",
        "aggregation_vs_flink_rocksdb",
        "aggregation, against the fastest with state in RocksDB",
    ),
    Line(
        "alternatives", "windows_vs_flink_rocksdb", "count and sum per key and ten minutes, against the same"
    ),
    Line("alternatives", "deduplication_vs_flink_rocksdb", "deduplication, against the same"),
    Line("alternatives", "cogroup_vs_flink_rocksdb", "coGroup, against the same"),
    Line(
        "alternatives", "cogroup_100_vs_flink_rocksdb", "coGroup of a hundred values a side, against the same"
    ),
    Line("alternatives", "join_vs_flink_rocksdb", "interval join with backfill, against the same"),
    Line(
        "alternatives",
        "alignment_speed_vs_flink",
        "two topics aligned to 1 s, no record past the limit: speed, against Flink 2.3",
        "{:.2f}x",
    ),
    Line(
        "backlog",
        "live_latency_vs_low_latency",
        "latency once live (95th percentile, 20,000 records/s, from 60 s on), against low latency",
        "{:.2f}x",
    ),
    Line(
        "live",
        "live_p95_vs_plain",
        "the same from the first second after a backlog on, Kafka to Kafka in micro-batches",
        "{:.2f}x",
    ),
    Line(
        "live",
        "quiet_live_p95_vs_plain",
        "age of a result (95th percentile), a record a second in each of eight partitions, against plain Spark",
        "{:.2f}x",
    ),
    Line(
        "live",
        "realtime_live_p99_seconds",
        "age of a result once live in real-time mode (99th percentile, the worst of six loads)",
        "{:.3f} s",
    ),
    Line(
        "live",
        "realtime_live_p99_vs_plain_realtime",
        "the same, against Spark's real-time mode alone",
        "{:.2f}x",
    ),
    Line(
        "live",
        "realtime_backlog_vs_plain_realtime",
        "a backlog of ten million records, live in real-time mode after it: speed, against that mode alone",
    ),
    Line(
        "live",
        "realtime_backlog_by_rows_vs_plain_realtime",
        "the same by Spark's reader of Kafka (`spark.headgate.columnarKafka=false`), against the same",
    ),
    Line(
        "live",
        "realtime_switch_gap_seconds",
        "longest silence of the output where a query enters or leaves real-time mode",
        "{:.2f} s",
    ),
    Line(
        "backlog",
        "alignment_records_beyond_headgate",
        "two topics aligned to 1 s: records read past the limit, from a cold start",
        "{:,.0f}",
    ),
    Line("backlog", "alignment_records_beyond_flink", "the same in Flink 2.3", "{:,.0f}"),
    Line(
        "kafka",
        "late_records_dropped",
        "late records that the join of two aligned topics dropped",
        "{:,.0f}",
    ),
    Line(
        "kafka",
        "kafka_read_vs_plain",
        "Kafka read in columns, against Spark's reader: one column of five million records, polls of 10,000",
    ),
    Line("kafka", "kafka_read_vs_plain_small_polls", "the same, polls of 500, Kafka's default"),
    Line(
        "kafka",
        "records_lost",
        "records lost when a broker that has no replica is killed three times",
        "{:,.0f}",
    ),
    Line("kafka", "records_doubled", "records doubled in that", "{:,.0f}"),
    Line(
        "door", "cells", "kinds of job with features, governed by one jar and one property, of 49", "{:.0f}"
    ),
    Line(
        "door",
        "throughput_vs_plain_kafka",
        "speed of reading Kafka with that jar and property, against the same job without",
        "{:.2f}x",
    ),
    Line(
        "door",
        "question_p50_seconds",
        "a question to the planner and its answer, as the query waits for it: median",
        "{:.5f} s",
    ),
    Line("door", "question_p99_seconds", "the same, 99th percentile", "{:.4f} s"),
    Line(
        "door",
        "foreach_batch_busy",
        "planning a batch while the job's own Python holds its lock for seconds (99th percentile)",
        "{:.4f} s",
    ),
    Line(
        "door",
        "streams_leaked",
        "streams that have left anything behind in their driver (a kilobyte of its heap counts as one)",
        "{:,.0f}",
    ),
    Line(
        "door", "idle_cpu_cores_100", "cost of a driver with a hundred idle governed queries", "{:.2f} cores"
    ),
    Line(
        "local",
        "rate_error_100k",
        "mean error of a limit of 100,000 records/s over half a minute (within a batch it reads as fast as it can)",
        "{:.2%}",
    ),
    Line(
        "local",
        "reaction_p95_seconds",
        "new settings written to the control document of a driver until they are in force in the running query",
        "{:.2f} s",
    ),
    Line("local", "idle_cpu_cores", "cost of governing an idle query", "{:.3f} cores"),
)
FIRST: Final = frozenset(
    {
        "catchup_vs_low_latency",
        "catchup_0s_vs_low_latency",
        "aggregation_vs_default",
        "windows_vs_default",
        "catchup_vs_default",
        "outage_vs_default",
        "outage_vs_50k",
        "aggregation_vs_best_flink",
        "windows_vs_best_flink",
        "deduplication_vs_best_flink",
        "cogroup_vs_best_flink",
        "alignment_speed_vs_flink",
        "live_latency_vs_low_latency",
        "quiet_live_p95_vs_plain",
        "alignment_records_beyond_headgate",
        "realtime_live_p99_seconds",
        "realtime_backlog_vs_plain_realtime",
        "throughput_vs_plain_kafka",
        "question_p50_seconds",
        "reaction_p95_seconds",
        "idle_cpu_cores",
    }
)
"""Those that the README has."""
