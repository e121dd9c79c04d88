"""Run one workload after the other, once for each file that appears. An ordinary script.

    python turns.py --turns DIR

`DIR/ready` appears when the session is there. `DIR/<n>.ask` is a JSON object that says what to run:

    {"workload": "join", "mode": "stream", "inputs": ["left", "right"], "records_per_batch": 20000}

`DIR/<n>.done` appears at the end of the run and says what it came to. The session stays, so that all runs but the
first meet a JVM that is warm; its heap is collected before and after each of them. One with `from_checkpoint` goes
on from a copy of that; of links, since no file of a checkpoint is written twice: Spark renames each into its place.
A stream whose request has `live`, a file, goes on until `DIR/<n>.stop` appears: what lies after the recording's cut
arrives from the moment on at which that file was made, `speed` times as fast as its event times say. The job makes
it, unless it is there, once `DIR/<n>.caught_up` has appeared and the query has nothing left to do. With `bootstrap`
the inputs are topics; with `output`, a directory, the result is written there instead of dropped. The mode `read`
says what a result comes to that another engine has written; `small` says how long triggers take that have one row,
for so many `batches`, with its checkpoint in the `store` of a scheme; `topic` writes rows to one, in real-time
mode or not, until `DIR/<n>.stop` appears. `conf` has properties of the session that hold for one run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nexmark
import results
import topics
import workloads
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming import DataStreamWriter
from workloads import Result

WORKLOADS = {**workloads.WORKLOADS, **nexmark.QUERIES}
OBSERVED = "output"
WHOLE = {"batches": 1, "largest_part": 1.0}
Request = Mapping[str, Any]


def run(spark: SparkSession, turn: Path) -> dict[str, Any]:
    """Do what a file asks for; returns what it came to."""
    request = json.loads(turn.read_text())
    if request["mode"] == "read":
        return {"output": results.of_changelog(spark, request["workload"], *request["inputs"])}
    if request["mode"] == "small":
        return small(spark, request, turn)
    checkpoint = turn.with_suffix(".checkpoint")
    if request.get("from_checkpoint"):
        copied(request["from_checkpoint"], str(checkpoint))
    spark._jvm.System.gc()
    began = time.time()
    with settings(spark, request.get("conf") or {}):
        if request["mode"] == "batch":
            found = batch(spark, request)
        else:
            by = to_topic if request["mode"] == "topic" else live if "live" in request else stream
            found = by(spark, request, turn)
    ended = time.time()
    spark._jvm.System.gc()
    if request.get("to_checkpoint"):
        for beside in ("", ".headgate"):
            if Path(f"{checkpoint}{beside}").exists():
                shutil.move(f"{checkpoint}{beside}", request["to_checkpoint"] + beside)
    if request.get("output"):
        found["output"] = results.of_files(spark, request["workload"], request["output"])
    return {"began": began, "ended": ended, **found}


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set properties of the session for one run."""
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in conf:
            spark.conf.unset(name)


def copied(checkpoint: str, target: str) -> None:
    """Copy a checkpoint by links, and what lies beside it, in which there are files that are written again."""
    shutil.copytree(checkpoint, target, copy_function=os.link)
    if Path(f"{checkpoint}.headgate").exists():
        shutil.copytree(f"{checkpoint}.headgate", f"{target}.headgate")


def batch(spark: SparkSession, request: Request) -> dict[str, Any]:
    """Run a workload as a batch job."""
    result = WORKLOADS[request["workload"]]([recorded(spark, one, request) for one in request["inputs"]])
    if request.get("output"):
        results.whole_rows(result).write.json(request["output"])
        return WHOLE
    seen = Observation(OBSERVED)
    observed(result, seen).write.format("noop").mode("overwrite").save()
    return WHOLE | {"output": whole_numbers(seen.get)}


def stream(spark: SparkSession, request: Request, turn: Path) -> dict[str, Any]:
    """Run a workload as a query that ends when it has read what is there."""
    checkpoint = str(turn.with_suffix(".checkpoint"))
    if request["mode"] == "backfill":
        result = workloads.backfilled_join(spark, request["inputs"], checkpoint, request.get("bootstrap"))
    else:
        result = WORKLOADS[request["workload"]]([streamed(spark, one, request) for one in request["inputs"]])
    rows = results.whole_rows(result) if request.get("output") else observed(result, OBSERVED)
    writer = written(rows, result.output_mode, request["query"] or request["workload"], checkpoint)
    if request.get("output"):
        writer = writer.foreachBatch(results.to_files(request["output"]))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return outcome([json.loads(progress.json) for progress in query.recentProgress])


def live(spark: SparkSession, request: Request, turn: Path) -> dict[str, Any]:
    """Run a workload as a query that goes on until it is told to stop, which is when all records are committed.

    A batch without records may be to come, which closes windows: Spark runs it before it has nothing more to do.
    """
    checkpoint = str(turn.with_suffix(".checkpoint"))
    result = WORKLOADS[request["workload"]]([replayed(spark, one, request) for one in request["inputs"]])
    writer = written(observed(result, OBSERVED), result.output_mode, request["query"], checkpoint)
    query = writer.trigger(processingTime=request["trigger"]).start()
    caught_up, begins = turn.with_suffix(".caught_up"), Path(request["live"])
    while not turn.with_suffix(".stop").exists():
        query.awaitTermination(0.2)
        if caught_up.exists() and not begins.exists():
            query.processAllAvailable()
            begins.touch()
    query.processAllAvailable()
    query.stop()
    return outcome([json.loads(progress.json) for progress in query.recentProgress])


def to_topic(spark: SparkSession, request: Request, turn: Path) -> dict[str, Any]:
    """Run a workload as a query that writes its rows, as words, to the topic `out` until it is told to stop.

    `real_time` is how long a batch of real-time mode lasts; None: it runs in micro-batches.
    """
    result = WORKLOADS[request["workload"]]([streamed(spark, one, request) for one in request["inputs"]])
    rows = results.whole_rows(result).select(F.concat_ws(" ", *result.identity).alias("value"))
    writer = written(rows, result.output_mode, request["workload"], str(turn.with_suffix(".checkpoint")))
    to = {"kafka.bootstrap.servers": request["bootstrap"], "topic": request["out"]}
    writer = writer.format("kafka").options(**to)
    if request["real_time"]:
        writer = writer.trigger(realTime=request["real_time"])
    query = writer.start()
    while not turn.with_suffix(".stop").exists():
        query.awaitTermination(0.2)
    query.stop()
    return {}


def small(spark: SparkSession, request: Request, turn: Path) -> dict[str, Any]:
    """Run a query without state whose batches have one row; the first tenth of them does not count."""
    wanted = request["batches"]
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    checkpoint = f"{request.get('store', '')}{turn.with_suffix('.checkpoint')}"
    query = written(source.load(), "append", "small", checkpoint).start()
    while query.lastProgress is None or query.lastProgress["batchId"] < wanted:
        query.awaitTermination(0.2)
    query.stop()
    triggers = [json.loads(progress.json)["durationMs"] for progress in query.recentProgress]
    took = [one["triggerExecution"] / 1000 for one in triggers if "addBatch" in one]
    return {"seconds": took[wanted // 10 : wanted]}


def recorded(spark: SparkSession, name: str, request: Request) -> DataFrame:
    """Return an input as a batch: a recording or a topic."""
    if request.get("bootstrap"):
        return topics.as_batch(spark, name, request["bootstrap"])
    schema = nexmark.SCHEMA if request["workload"] in nexmark.QUERIES else workloads.SCHEMA
    return spark.read.schema(schema).options(**workloads.FILES).parquet(name)


def streamed(spark: SparkSession, name: str, request: Request) -> DataFrame:
    """Return an input as a stream: a recording or a topic."""
    if not request.get("bootstrap"):
        return replayed(spark, name, request)
    at_once = request["records_per_batch"]
    of_one = at_once and at_once // len(request["inputs"])
    return topics.as_stream(spark, name, request["bootstrap"], of_one)


def replayed(spark: SparkSession, directory: str, request: Request) -> DataFrame:
    """Return a recording as a stream."""
    reader = spark.readStream.format("replay")
    if request["records_per_batch"]:
        reader = reader.option("rowsPerBatch", request["records_per_batch"] // len(request["inputs"]))
    if "live" in request:
        reader = reader.option("eventTime", "event_time").option("cut", workloads.END)
        reader = reader.option("startedBy", request["live"]).option("speed", request["speed"])
    return reader.load(directory)


def observed(result: Result, by: Observation | str) -> DataFrame:
    """Return the rows of a result, which are counted and hashed on their way to the sink."""
    is_whole = F.lit(True) if result.is_whole is None else result.is_whole
    short = results.short_hash(result.identity)
    return result.rows.observe(
        by, F.count_if(is_whole).alias("rows"), F.sum(F.when(is_whole, short)).alias("hash")
    )


def written(rows: DataFrame, output_mode: str, name: str, checkpoint: str) -> DataStreamWriter:
    """Return the query, which drops its result: reading, shuffling and state are what is measured."""
    writer = rows.writeStream.queryName(name).outputMode(output_mode).format("noop")
    return writer.option("checkpointLocation", checkpoint)


def outcome(triggers: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the batches of a query come to; a trigger that found nothing to do has no batch."""
    progress = [one for one in triggers if "addBatch" in one["durationMs"]]
    found = [whole_numbers(one.get("observedMetrics", {}).get(OBSERVED, {})) for one in progress]
    records = [one["numInputRows"] for one in progress if one["numInputRows"] > 0]
    return {
        "batches": len(records),
        "largest_part": max(records) / sum(records) if records else None,
        "output": {name: sum(each[name] for each in found) for name in ("rows", "hash")},
    }


def whole_numbers(seen: Mapping[str, int | None]) -> dict[str, int]:
    """Return what was observed; the sum over no rows is 0."""
    return {name: seen.get(name) or 0 for name in ("rows", "hash")}


def next_turn(turns: Path) -> Path:
    """Wait for the next file that asks for a run."""
    while True:
        waiting = [file for file in turns.glob("*.ask") if not file.with_suffix(".done").exists()]
        if waiting:
            return min(waiting, key=lambda file: int(file.stem))
        time.sleep(0.05)


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Run workloads, one after the other.")
    parser.add_argument("--turns", required=True, type=Path, help="where files ask for runs")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("turns").getOrCreate()
    (args.turns / "ready").touch()
    while True:
        turn = next_turn(args.turns)
        found = run(spark, turn)
        unfinished = turn.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(found))
        unfinished.rename(turn.with_suffix(".done"))


if __name__ == "__main__":
    main()
