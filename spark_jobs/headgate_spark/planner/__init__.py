"""The planner: up to where each batch goes, computed from values alone.

Nothing in here knows Spark, files or clocks: `now` (seconds on a monotonic clock), positions and measurements
come in as arguments, answers go out as values. `headgate_spark.engine` asks it at every trigger of every
query.
"""
