"""Orders of a Kafka topic as Parquet files: `orders.py BROKERS OUT`. An ordinary job; it knows nothing of Headgate.

examples/kafka.yaml runs it on a cluster. By `spark-submit` it needs Spark's source of Kafka, in the VERSION of your
Spark, and a place for its checkpoint:

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION \
      --conf spark.sql.streaming.checkpointLocation=checkpoints orders.py localhost:9092 out
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

brokers, out = sys.argv[1:]
spark = SparkSession.builder.appName("orders").getOrCreate()
reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
records = reader.option("subscribe", "orders").option("startingOffsets", "earliest").load()
order = f.from_json(f.col("value").cast("string"), "shop string, euros long").alias("order")
orders = records.select("timestamp", order).select("timestamp", "order.*")
orders.writeStream.queryName("orders").format("parquet").start(out).awaitTermination()
