"""An ordinary job whose batches need memory: each holds all of its rows in one task, many times over."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

source, checkpoint, copies = sys.argv[1:4]

spark = SparkSession.builder.appName("collecting").getOrCreate()
rows = spark.readStream.format("replay").load(source)
fat = f.array_repeat(f.col("id").cast("string"), int(copies))
query = (
    rows.groupBy(f.lit(1).alias("all"))
    .agg(f.collect_list(fat).alias("rows"))
    .select(f.size("rows"))
    .writeStream.queryName("collecting")
    .outputMode("complete")
    .format("noop")
    .option("checkpointLocation", checkpoint)
    .trigger(processingTime="200 milliseconds")
    .start()
)
query.awaitTermination()
