"""An ordinary job: copies recordings to Parquet, a query for each; what lies after the cut arrives later."""

import sys

from pyspark.sql import SparkSession

root, cut, *names = sys.argv[1:]

spark = SparkSession.builder.appName("copies").getOrCreate()
for name in names:
    reader = spark.readStream.format("replay").option("eventTime", "ts")
    rows = reader.option("cut", cut).option("startedBy", f"{root}/live").load(f"{root}/{name}")
    writer = rows.writeStream.queryName(f"copy-{name}").format("parquet")
    writer.option("checkpointLocation", f"{root}/checkpoint-{name}").start(f"{root}/copied-{name}")
spark.streams.awaitAnyTermination()
