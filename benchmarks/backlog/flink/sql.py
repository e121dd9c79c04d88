"""The workloads in Flink's SQL, over the same topics: what `jobs/workloads.py` says to Spark.

A result is written as a changelog (Debezium's JSON), which has rows and those that were taken back. Rows that change
later are kept from it by the same condition that keeps Spark's from its files. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ONCE, AGAIN, NEAR_SECONDS, DELAY_SECONDS, END = 10, 5, 10, 120, "2026-01-01 00:00:00"
"""As in `jobs/workloads.py`, which is Spark's and imported by its job alone."""
POLLS = {"max.poll.records": "10000", "fetch.max.wait.ms": "10"}
"""The consumer's settings that Spark's jobs have (`jobs/topics.py`)."""
OTHER_KEY = "{key} + 1 - 2 * MOD({key}, 2)"
"""The neighbour: even keys and the odd ones after them change places, as XOR with 1 does."""


@dataclass(frozen=True)
class Query:
    """A query over tables `side_0`, `side_1`, and the columns of its result."""

    columns: str
    select: str
    delay_seconds: int | None = None
    """How late rows may come; None where the query has no use for event time."""


def in_windows(minutes: int) -> str:
    """Return the rows of the only side with the tumbling window that each is in."""
    return f"TABLE(TUMBLE(TABLE side_0, DESCRIPTOR(`event_time`), INTERVAL '{minutes}' MINUTE))"


def aggregation(times: int) -> Query:
    """Return the query of a count and a sum for each key that comes so many `times`."""
    return Query(
        "`key` BIGINT, `records` BIGINT, `total` BIGINT",
        f"SELECT `key`, COUNT(*), SUM(`value`) FROM side_0 GROUP BY `key` HAVING COUNT(*) = {times}",
    )


AGGREGATION = aggregation(ONCE)
MARKED = Query(
    AGGREGATION.columns,
    "SELECT `key`, COUNT(*), SUM(`value`) FROM side_0 GROUP BY `key` HAVING MOD(SUM(`value`), 2) = 1",
)


SORTED, UNSORTED = "ARRAY_SORT(`left`), ARRAY_SORT(`right`)", "`left`, `right`"
"""Flink 2.3 cannot sort a list of 32 values or more of which two are equal: to `ARRAY_SORT` each of these is greater
than the other, and Java's sort fails (`Comparison method violates its general contract!`). So long lists are written
as they are, and sorted by whoever compares them."""


def cogroup(times: int, lists: str) -> Query:
    """Return the query of two lists, written as `lists`, for each key that comes so many `times` on each side."""
    return Query(
        "`key` BIGINT, `left` ARRAY<BIGINT>, `right` ARRAY<BIGINT>",
        f"""SELECT `key`, {lists} FROM (
  SELECT `key`,
    ARRAY_AGG(`value`) FILTER (WHERE `side` = 0) AS `left`,
    ARRAY_AGG(`value`) FILTER (WHERE `side` = 1) AS `right`
  FROM (
    SELECT `key`, `value`, 0 AS `side` FROM side_0
    UNION ALL
    SELECT {OTHER_KEY.format(key="`key`")} AS `key`, `value` + 1 AS `value`, 1 AS `side` FROM side_1
  ) GROUP BY `key`
) WHERE CARDINALITY(`left`) = {times} AND CARDINALITY(`right`) = {times}""",
    )


JOIN = Query(
    "`key` BIGINT, `left` BIGINT, `left_at` TIMESTAMP(3), `right` BIGINT, `right_at` TIMESTAMP(3)",
    f"""SELECT
  l.`key`, l.`value`, CAST(l.`event_time` AS TIMESTAMP(3)), r.`value`, CAST(r.`event_time` AS TIMESTAMP(3))
FROM side_0 AS l JOIN side_1 AS r
  ON l.`key` = {OTHER_KEY.format(key="r.`key`")}
  AND r.`event_time` BETWEEN l.`event_time` - INTERVAL '{NEAR_SECONDS}' SECOND
  AND l.`event_time` + INTERVAL '{NEAR_SECONDS}' SECOND""",
    delay_seconds=NEAR_SECONDS,
)
WINDOWS = Query(
    "`start` TIMESTAMP(3), `key` BIGINT, `records` BIGINT, `total` BIGINT",
    f"""SELECT CAST(window_start AS TIMESTAMP(3)), `key`, COUNT(*), SUM(`value`)
FROM {in_windows(minutes=10)}
GROUP BY window_start, window_end, `key`
HAVING window_end <= TIMESTAMP '{END}' - INTERVAL '{DELAY_SECONDS}' SECOND(3)""",
    delay_seconds=DELAY_SECONDS,
)
DEDUPLICATION = Query(
    "`key` BIGINT, `slot` BIGINT",
    f"""SELECT `key`, CAST(EXTRACT(EPOCH FROM `event_time`) AS BIGINT) / 120 FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, `key` ORDER BY `event_time`) AS `number`
  FROM {in_windows(minutes=2)}
) WHERE `number` = 1""",
    delay_seconds=DELAY_SECONDS,
)
QUERIES: Mapping[str, Query] = {
    "aggregation": AGGREGATION,
    "outage": aggregation(1 + AGAIN),
    "marked": MARKED,
    "cogroup": cogroup(ONCE, SORTED),
    "cogroup_100": cogroup(10 * ONCE, UNSORTED),
    "join": JOIN,
    "windows": WINDOWS,
    "deduplication": DEDUPLICATION,
}


def workload(
    name: str, topics: Sequence[str], bootstrap: str, output: Path, more: Mapping[str, str] | None = None
) -> list[str]:
    """Return the statements that run a workload to its end; the last one starts the job.

    `more` has options of the tables that are read.
    """
    query = QUERIES[name]
    sides = [
        records(f"side_{number}", topic, bootstrap, delay_seconds=query.delay_seconds, more=more)
        for number, topic in enumerate(topics)
    ]
    sink = table("result", query.columns, files(output, "debezium-json") | ISO)
    return [*sides, sink, f"INSERT INTO `result`\n{query.select}"]


def ending_at(offsets: Mapping[int, int]) -> dict[str, str]:
    """Return the options of a table that ends at an offset of each partition, whether it is there yet or not."""
    listed = ";".join(f"partition:{partition},offset:{offset}" for partition, offset in offsets.items())
    return {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": listed}


def alignment(
    topics: Mapping[str, str],
    bootstrap: str,
    drift_seconds: int,
    outputs: Mapping[str, Path] | None = None,
    update_millis: int = 1_000,
) -> list[str]:
    """Return the statements that read topics side by side, aligned, and write when each record came.

    Each topic is a pipeline of its own, source, clock and file in one chain, and all of them are one job. `topics`
    and `outputs` are by the name of the pipeline; without `outputs` records are dropped.
    """
    aligned = {
        "scan.watermark.alignment.group": "all",
        "scan.watermark.alignment.max-drift": f"{drift_seconds} s",
        "scan.watermark.alignment.update-interval": f"{update_millis} ms",
    }
    tables, inserts = [], []
    for name, topic in topics.items():
        sink = f"{name}_came"
        tables.append(records(name, topic, bootstrap, delay_seconds=0, more=aligned))
        to = {"connector": "blackhole"} if outputs is None else files(outputs[name], "csv")
        tables.append(table(sink, "`split` INT, `at` BIGINT, `came` BIGINT", to))
        times = f"{milliseconds('`event_time`')}, {milliseconds(NOW)}"
        inserts.append(f"INSERT INTO `{sink}` SELECT `split`, {times} FROM `{name}`;\n")
    return [*tables, f"EXECUTE STATEMENT SET BEGIN\n{''.join(inserts)}END"]


def counts(topic: str, out: str, bootstrap: str, keys: int) -> list[str]:
    """Return the statements that count a topic by so many keys for ever: what `benchmarks/live/jobs/echo.py` does.

    A line comes and goes as there: `<number> <milliseconds>`, and `<key> <count> <milliseconds>`.
    """
    of_both = {"properties.bootstrap.servers": bootstrap, "value.format": "raw"}
    source = {"connector": "kafka", "topic": topic, "scan.startup.mode": "earliest-offset", **of_both}
    sink = {"connector": "upsert-kafka", "topic": out, "key.format": "raw", **of_both}
    columns = "`key` BIGINT, `line` STRING, PRIMARY KEY (`key`) NOT ENFORCED"
    parts = f"""SELECT MOD(CAST(SPLIT_INDEX(`line`, ' ', 0) AS BIGINT), {keys}) AS `key`,
    CAST(SPLIT_INDEX(`line`, ' ', 1) AS BIGINT) AS `ms` FROM `lines`"""
    line = ", ".join(f"CAST({each} AS STRING)" for each in ("`key`", "COUNT(*)", "MAX(`ms`)"))
    return [
        table("lines", "`line` STRING", source),
        table("counts", columns, sink | {"value.fields-include": "EXCEPT_KEY"}),
        f"INSERT INTO `counts`\nSELECT `key`, CONCAT_WS(' ', {line}) FROM (\n  {parts}\n) GROUP BY `key`",
    ]


def records(
    name: str, topic: str, bootstrap: str, *, delay_seconds: int | None, more: Mapping[str, str] | None = None
) -> str:
    """Return the table of a topic from its beginning to what is its end when the job starts."""
    columns = [
        "`key_text` STRING",
        "`value_text` STRING",
        "`event_time` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL",
        "`split` INT METADATA FROM 'partition' VIRTUAL",
        "`key` AS CAST(`key_text` AS BIGINT)",
        "`value` AS CAST(`value_text` AS BIGINT)",
    ]
    if delay_seconds is not None:
        columns.append(f"WATERMARK FOR `event_time` AS `event_time` - INTERVAL '{delay_seconds}' SECOND(3)")
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "properties.group.id": "benchmark",
        **{f"properties.{name}": value for name, value in POLLS.items()},
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "key.format": "raw",
        "key.fields": "key_text",
        "value.format": "raw",
        "value.fields-include": "EXCEPT_KEY",
    }
    return table(name, ", ".join(columns), options | dict(more or {}))


def files(directory: Path, written_as: str) -> dict[str, str]:
    """Return the options of a table that is a directory, in files that are not divided."""
    sink = {"connector": "filesystem", "path": directory.as_uri(), "format": written_as}
    return sink | {"sink.rolling-policy.file-size": "4GB"}


NOW = "CAST(PROCTIME() AS TIMESTAMP_LTZ(3))"
ISO = {"debezium-json.timestamp-format.standard": "ISO-8601"}


def table(name: str, columns: str, options: Mapping[str, str]) -> str:
    """Return the statement that makes a table."""
    listed = ", ".join(f"'{option}' = '{value}'" for option, value in options.items())
    return f"CREATE TEMPORARY TABLE `{name}` ({columns}) WITH ({listed})"


def milliseconds(time: str) -> str:
    """Return a time in milliseconds since 1970."""
    return f"CAST(EXTRACT(EPOCH FROM {time}) AS BIGINT) * 1000 + EXTRACT(MILLISECOND FROM {time})"
