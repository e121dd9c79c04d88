"""`make demo-kafka`: one join of two topics, plain beside aligned."""
