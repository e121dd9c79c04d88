"""A plain job in Python that counts a topic by key into another one, and prints what its handle and its listener say.

It is a classic one, or a client of Spark Connect, as its environment says.
"""

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming import StreamingQueryListener

broker, topic, out, folder = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()


def say(*words):
    print(f"@{' '.join(map(str, words))}".replace("\n", " "), flush=True)


class Heard(StreamingQueryListener):
    def onQueryStarted(self, event):  # noqa: N802 -- Spark's name, as those below
        say("started", event.runId)

    def onQueryProgress(self, event):  # noqa: N802
        say("progress", event.progress.runId, event.progress.batchId)

    def onQueryIdle(self, event):  # noqa: N802
        pass

    def onQueryTerminated(self, event):  # noqa: N802
        say("terminated", event.runId, str(event.exception is not None).lower())


def start():
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    rows = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    counts = rows.groupBy(expr("CAST(CAST(value AS STRING) AS BIGINT) % 5").alias("key")).count()
    sink = counts.selectExpr("concat_ws('=', key, count) AS value").writeStream.format("kafka")
    sink = sink.queryName("counts").outputMode("update").option("checkpointLocation", f"{folder}/checkpoint")
    return sink.option("kafka.bootstrap.servers", broker).option("topic", out).start()


def tell(query, is_over):
    last = query.lastProgress
    said = {"over": is_over, "active": query.isActive, "failed": query.exception() is not None}
    words = [f"{name}={str(value).lower()}" for name, value in said.items()]
    say("handle", query.runId, *words, f"batch={last['batchId'] if last else 'none'}")


spark.streams.addListener(Heard())
query = start()
while not Path(folder, "stop").exists():
    tell(query, query.awaitTermination(0.2))
query.stop()
tell(query, query.awaitTermination(0.2))
again = start()
try:
    while True:
        tell(again, again.awaitTermination(0.2))
except StreamingQueryException as failure:
    say("threw", again.runId, failure)
    say("has", again.runId, again.exception())
spark.stop()
