"""An ordinary job: copies rows to Parquet as they arrive, exactly once. The clock says what has arrived when."""

import sys

from pyspark.sql import SparkSession

source, target, checkpoint, cut, started_at = sys.argv[1:]

spark = SparkSession.builder.appName("arrivals").getOrCreate()
reader = spark.readStream.format("replay").option("eventTime", "ts")
rows = reader.option("cut", cut).option("startedAt", started_at).load(source)
writer = rows.writeStream.queryName("copy").format("parquet").option("path", target)
writer.option("checkpointLocation", checkpoint).start().awaitTermination()
print("the job's own end")
