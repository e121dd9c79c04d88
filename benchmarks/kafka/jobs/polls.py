"""Read a topic by Spark and by nothing but the client of its source, in turns: what the bound on readers is told by.

    python polls.py --bootstrap HOST:PORT --topic NAME --partitions 4 --rounds 5 --results FILE

Both have the same JVM and as many threads. Spark's query keeps the values alone, and drops them.
"""

import argparse
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

LARGE = {"max.poll.records": "10000", "fetch.max.wait.ms": "10"}
"""As in the other runs on Kafka (`turns.py`)."""
THREADS = 2
WARM_UPS = 3


def by_spark(spark: SparkSession, args: argparse.Namespace, client: dict[str, str]) -> None:
    """Read all values by the source of the connector."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    reader = reader.option("subscribe", args.topic).options(**{f"kafka.{k}": v for k, v in client.items()})
    reader.load().select("value").write.format("noop").mode("overwrite").save()


class Poller:
    """A client in the JVM that reads some partitions."""

    def __init__(self, jvm: Any, args: argparse.Namespace, partitions: range) -> None:
        self._jvm = jvm
        clients = jvm.org.apache.kafka.clients.consumer
        settings, self._all = jvm.java.util.HashMap(), jvm.java.util.ArrayList()
        bytes_as_they_are = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        for name in ("key.deserializer", "value.deserializer"):
            settings.put(name, bytes_as_they_are)
        for name, value in {
            "bootstrap.servers": args.bootstrap,
            "enable.auto.commit": "false",
            **LARGE,
        }.items():
            settings.put(name, value)
        self._client = clients.KafkaConsumer(settings)
        for number in partitions:
            self._all.add(jvm.org.apache.kafka.common.TopicPartition(args.topic, number))
        self._client.assign(self._all)

    def read(self) -> int:
        """Poll from the beginning to the end; returns how many records came."""
        ends = sum(self._client.endOffsets(self._all).values())
        self._client.seekToBeginning(self._all)
        patience, count = self._jvm.java.time.Duration.ofSeconds(10), 0
        while count < ends:
            count += self._client.poll(patience).count()
        return count


def main() -> None:
    """Read in turns, write how long each run took, by who read, and stay until the process is stopped."""
    parser = argparse.ArgumentParser(description="Read a topic by Spark and by its client alone.")
    parser.add_argument("--bootstrap", required=True, help="where the broker is")
    parser.add_argument("--topic", required=True, help="what is read")
    parser.add_argument("--partitions", required=True, type=int, help="of the topic")
    parser.add_argument("--rounds", required=True, type=int, help="runs of each that count")
    parser.add_argument("--results", required=True, type=Path, help="what is written at the end")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("polls").getOrCreate()
    parts = [range(n, args.partitions, THREADS) for n in range(THREADS)]
    pollers = [Poller(spark.sparkContext._jvm, args, part) for part in parts]
    threads = ThreadPoolExecutor(THREADS)
    ways: dict[str, Callable[[], object]] = {
        "spark": lambda: by_spark(spark, args, LARGE),
        "spark_small_polls": lambda: by_spark(spark, args, {}),
        "poll": lambda: list(threads.map(Poller.read, pollers)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(WARM_UPS + args.rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.perf_counter()
            ways[name]()
            if turn >= WARM_UPS:
                seconds[name].append(time.perf_counter() - began)
    unfinished = args.results.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(seconds))
    unfinished.rename(args.results)
    threading.Event().wait()


if __name__ == "__main__":
    main()
