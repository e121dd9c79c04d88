"""An ordinary job that reads what there is and ends."""

import sys

from pyspark.sql import SparkSession

source, target, checkpoint = sys.argv[1:4]

spark = SparkSession.builder.appName("now").getOrCreate()
rows = spark.readStream.format("replay").load(source)
writer = rows.writeStream.queryName("now").format("parquet").option("path", target)
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
print("the job's own end")
