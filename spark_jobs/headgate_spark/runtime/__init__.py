"""The planner's process: the governor, the exporter and what they need, beside the driver's JVM."""
