"""What a driver in a pod is handed in its environment, beside the command line of its launcher.

In the pod itself, and not in an object beside it: nobody can change a pod's environment, so an attempt runs with what
it was started with. In no annotation either: log collectors and Prometheus copy those, and properties may hold
passwords.
"""

from __future__ import annotations

from typing import Final

SPARK_PROPERTIES: Final = "HEADGATE_SPARK_PROPERTIES"
"""Text of a properties file."""

EXECUTOR_TEMPLATE: Final = "HEADGATE_EXECUTOR_TEMPLATE"
"""The pod that Spark makes executors after, as JSON."""

LINEAGE: Final = "HEADGATE_LINEAGE"
"""What starts a driver again, and which start it is: `<uid of the resource>/<attempt>`. In no property: an older
runtime refuses each query where there is a `spark.headgate.…` that it does not know."""
