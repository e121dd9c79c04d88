"""`make bench-backlog`: what it is worth to process a backlog as a batch, for five kinds of query.

Each is run by plain Spark at low latency and uncapped, governed by Headgate with `intervalDuringBacklog: 0s`, and
as a batch job, which is the limit. The results of all of them are compared, and one that differs is a failure.
When one gets how much, and why: docs/backlog-speed.md.

Three of them are also run on topics, beside Flink. The broker is that of the tests, which is looked for in `tests`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
