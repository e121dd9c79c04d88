"""An ordinary job that reads what there is, and marks that as done in the way that it is told."""

import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

source, target, checkpoint, waits = sys.argv[1:5]

spark = SparkSession.builder.appName("now").getOrCreate()
rows = spark.readStream.format("replay").load(source)
writer = rows.writeStream.queryName("now").format("parquet").option("path", target)
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def mark():
    query.awaitTermination()
    Path(target, "_SUCCESS").touch()


if waits in ("thread", "left"):
    waiting = threading.Thread(target=mark)
    waiting.start()
    if waits == "thread":
        waiting.join()
elif waits == "poll":
    while query.isActive:
        time.sleep(0.1)
    Path(target, "_SUCCESS").touch()
else:
    mark()
