"""A history that is computed as a batch, and a stream that goes on from it.

A time-bounded join of two streams keeps every row in state until no partner can come any more, however large its
batches are, so that large micro-batches help it less than an aggregation. A batch join of the same rows needs no
state at all. So `join` cuts both inputs once, joins what lies before the cut as a batch, rebuilds the state from the
rows that can still find a partner, and hands out one stream: the batch's result, then whatever the streaming join
finds from the cut on. `initial_state` does the same for operators of one's own (`transformWithState`).

For ordinary PySpark scripts, with `headgate-run` or without. How it is used, what is kept where, and what the result
equals: docs/backfill.md.
"""

from headgate_spark.backfill.join import join
from headgate_spark.backfill.matching import Side
from headgate_spark.backfill.refusals import BackfillError
from headgate_spark.backfill.sources import Files, Kafka, Parts, Source
from headgate_spark.backfill.state import Seeded, initial_state

__all__ = ["BackfillError", "Files", "Kafka", "Parts", "Seeded", "Side", "Source", "initial_state", "join"]
