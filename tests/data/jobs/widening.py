"""An ordinary job whose rows need memory: each is made so many times ten bytes long."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

source, checkpoint, copies = sys.argv[1:4]

spark = SparkSession.builder.appName("widening").getOrCreate()
rows = spark.readStream.format("replay").load(source)
query = (
    rows.select(f.length(f.repeat(f.lpad(f.col("id").cast("string"), 10, "0"), int(copies))))
    .writeStream.queryName("widening")
    .format("noop")
    .option("checkpointLocation", checkpoint)
    .trigger(processingTime="200 milliseconds")
    .start()
)
query.awaitTermination()
