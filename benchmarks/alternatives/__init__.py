"""`make bench-alternatives`: Headgate beside what one would otherwise choose.

The opponents have what a careful user would give them: Spark its default, which takes a backlog in one batch, and
caps of several sizes; Flink each of its state backends. Broker, topics and sessions are those of the benchmark of
backlogs.
"""
