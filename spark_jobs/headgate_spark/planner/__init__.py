"""The planner: up to where each batch goes, computed from values.

Nothing in here knows Spark, files or clocks: `now` (seconds on a monotonic clock), positions and measurements come in
as arguments, answers and what is to be kept go out as values. Only event times are asked for in the middle of a
planning (`event_times`). `headgate_spark.engine` asks at every trigger of every query.
"""
