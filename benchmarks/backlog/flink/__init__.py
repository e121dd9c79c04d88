"""Flink beside Spark: the same queries over the same Kafka topics, as an engine of the rounds.

A cluster of one task manager with the cores and the memory of a Spark driver (`cluster`), told what to run in SQL
alone (`sql`), through Flink's own gateway (`gateway`). The jars are fetched when a scenario asks for them and never
before. What is set, and what is left as Flink has it, is in `settings`.
"""
