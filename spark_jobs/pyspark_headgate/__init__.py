"""Makes `format("replay")` known to Spark without an import in the job.

Spark looks through the top-level modules named `pyspark_*` for a class called `DefaultSource` when a session
first asks for a data source by name, so an installed Headgate is enough.
"""

from headgate_spark.sources.replay import ReplayDataSource as DefaultSource

__all__ = ["DefaultSource"]
