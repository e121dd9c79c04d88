"""An ordinary job: files, then the topic that follows them, by a plain union.

`--die before` or `--die after` kills the driver at the switch from one to the other: just before it is remembered, or
just after, when nothing of the topic has been planned yet.
"""

import os
import signal
import sys

from pyspark.sql import SparkSession

from headgate_spark.engine.store import NumberedStore

history, bootstrap, topic, starting, target, checkpoint = sys.argv[1:7]
moment = sys.argv[8] if "--die" in sys.argv else None
save = NumberedStore.save


def save_or_die(self, value):
    switches = moment is not None and self._name == "hybrid" and value["finished"]
    if switches and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    save(self, value)
    if switches:
        os.kill(os.getpid(), signal.SIGKILL)


NumberedStore.save = save_or_die

spark = SparkSession.builder.appName("hybrid").getOrCreate()
past = spark.readStream.schema("id long").parquet(history)
reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
live = reader.option("subscribe", topic).option("startingOffsets", starting).load()
rows = past.union(live.selectExpr("cast(cast(value as string) as bigint) as id"))
writer = rows.writeStream.queryName("hybrid").format("parquet").option("path", target)
writer.option("checkpointLocation", checkpoint).start().awaitTermination()
