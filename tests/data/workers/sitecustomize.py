"""On the module path of all that tests start: Spark's Python workers import the PySpark that is installed.

Spark puts an archive of it in front, from which each process compiles anew whatever it imports.
"""

import sys

sys.path.sort(key=lambda entry: entry.endswith(".zip"))
