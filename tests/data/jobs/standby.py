"""Any other job, once it may: until then it waits for the file `go` in its folder, with Spark started.

standby.py SCRIPT ARGUMENT…
"""

import runpy
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

SparkSession.builder.getOrCreate()
while not Path("go").exists():
    time.sleep(0.02)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
