"""A job for `headgate doctor --local`: one small query, and what the planner told of it while it ran.

    headgate-run --announce ANNOUNCEMENT trial.py ANNOUNCEMENT FOLDER RESULT

It is run by a launcher, whose Python need not be the doctor's own: it imports Spark and nothing of Headgate.
"""

import json
import platform
import sys
import urllib.request
from pathlib import Path

RECORDS = 100


def main(announcement: str, folder: str, result: str) -> None:
    """Run the query; write what was found to `result`, as JSON."""
    from pyspark.sql import SparkSession

    conf = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master("local[1]").appName("headgate-doctor")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", RECORDS).load()
    writer = source.writeStream.queryName("doctor").format("noop").option("checkpointLocation", folder)
    query = writer.option("headgate.interval", "10ms").start()
    # One batch is enough, and the query may not end before its metrics were asked for.
    while query.lastProgress is None and query.isActive:
        query.awaitTermination(1)
    port = json.loads(Path(announcement).read_text(encoding="utf-8"))["metricsPort"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        metrics = page.read().decode("utf-8", "replace")
    found = {
        "python": platform.python_version(),
        "spark": spark.version,
        "java": str(spark._jvm.java.lang.System.getProperty("java.version")),
        "governed": "headgate_query_active{" in metrics and 'query="doctor"' in metrics,
    }
    Path(result).write_text(json.dumps(found), encoding="utf-8")
    query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
