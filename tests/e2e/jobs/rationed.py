"""An ordinary job: writes each batch of a recording to files of its own; a batch ends once it is let go.

    python rationed.py ROOT CUT

What lies after the cut arrives once `ROOT/live` is there. A batch ends when there is a file `ROOT/signs/go-BATCH`,
or one called `ROOT/signs/go`.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

root, cut = sys.argv[1:]
signs = Path(root, "signs")


def write(rows: DataFrame, batch: int) -> None:
    """Write one batch, then wait to be let go."""
    rows.write.mode("overwrite").parquet(f"{root}/out/batch={batch}")
    (signs / f"begun-{batch}").touch()
    while not any((signs / name).exists() for name in ("go", f"go-{batch}")):
        time.sleep(0.02)


spark = SparkSession.builder.appName("rationed").getOrCreate()
reader = spark.readStream.format("replay").option("eventTime", "ts")
recorded = reader.option("cut", cut).option("startedBy", f"{root}/live").load(f"{root}/source")
writer = recorded.writeStream.queryName("rationed").foreachBatch(write)
writer.option("checkpointLocation", f"{root}/checkpoint").start().awaitTermination()
