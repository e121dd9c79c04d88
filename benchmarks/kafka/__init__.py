"""`make bench-kafka`: what Headgate costs and keeps on Kafka, measured on a real broker of this machine.

Governed and plain queries read the same topics with the same Spark properties and take turns; both are measured by
Spark's own event log. The broker keeps its topics between calls, since filling one with ten million records takes
half a minute. The broker is that of the tests, which is looked for in `tests`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
