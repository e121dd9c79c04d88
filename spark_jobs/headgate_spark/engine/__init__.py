"""The engine: carries Spark's questions to the planner and its answers back."""
