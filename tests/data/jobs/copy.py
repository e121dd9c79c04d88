"""An ordinary job: copies a recording to Parquet, row by row, exactly once."""

import sys

from pyspark.sql import SparkSession

source, target, checkpoint = sys.argv[1:4]
trigger = sys.argv[4] if len(sys.argv) > 4 else "200 milliseconds"

spark = SparkSession.builder.appName("copy").getOrCreate()
rows = spark.readStream.format("replay").load(source)
query = (
    rows.writeStream.queryName("copy")
    .format("parquet")
    .option("path", target)
    .option("checkpointLocation", checkpoint)
    .trigger(processingTime=trigger)
    .start()
)
query.awaitTermination()
print("the job's own end")
