"""An ordinary job whose batches wait for a file: each says that it has begun, and ends when it may.

Arguments: source, target, checkpoint, a folder for signs, and options of the source as `name=value`.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

source, target, checkpoint, signs, *options = sys.argv[1:]

spark = SparkSession.builder.appName("waiting").getOrCreate()


def write(rows, batch):
    Path(signs, f"begun-{batch}").touch()
    while not Path(signs, "go").exists():
        time.sleep(0.02)
    rows.write.mode("overwrite").parquet(f"{target}/batch={batch}")


rows = spark.readStream.format("replay").options(**dict(o.split("=") for o in options)).load(source)
writer = rows.writeStream.queryName("copy").foreachBatch(write).option("checkpointLocation", checkpoint)
writer.trigger(processingTime="100 milliseconds").start().awaitTermination()
