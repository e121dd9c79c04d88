"""On the module path of a driver: its planner's process has a wall clock that is ahead by what `CLOCK_AHEAD` says.

That is a file, which holds seconds; while it is not there the clock is right. It may be written at any time.
"""

import os
import sys
import time
from pathlib import Path

AHEAD = os.environ.get("CLOCK_AHEAD")

if AHEAD and "headgate_spark.runtime" in " ".join(sys.orig_argv):
    right = time.time

    def ahead():
        try:
            return right() + float(Path(AHEAD).read_text() or 0)
        except (OSError, ValueError):
            return right()

    time.time = ahead
