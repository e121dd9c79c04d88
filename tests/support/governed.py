"""Real queries under the real governor, in the session that all tests share.

The governor answers the shim in this process, and a control document says the rest. Starting a driver costs ten
seconds, starting a query a tenth of one; tests of whole drivers are in `tests/runtime`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from headgate_contract import ControlDocument, QueryControl
from headgate_spark.engine.checkpoint import Checkpoint
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.fencing import Fencing
from headgate_spark.engine.forbearance import Forbearance
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.services import Positions, Services
from headgate_spark.engine.shim import DriverJvm
from headgate_spark.engine.sources import Descriptor
from headgate_spark.kafka.event_times import by_clients_of
from headgate_spark.kafka.lookups import JvmTopicIds, beginnings
from headgate_spark.kafka.snapshots import snapshots_by_consumers_of
from headgate_spark.kafka.unread import by_consumers_of
from headgate_spark.planner.model import SourceFigures
from headgate_spark.runtime.fences import open_fence
from support.spark import batch_sizes, be_patient, governed, wait_until

NAME = "governed"
"""Of the query, unless a test has several."""
USUAL = Forbearance()
DEADLINE_SECONDS = 240.0
"""For what is read: a batch of one second takes a minute on a machine that is busy with something else."""


class Unmeasured:
    """Takes measurements and keeps none."""

    def forget(self, query: str) -> None:
        """Nothing was kept."""

    def batch_took(self, query: str, seconds: float) -> None:
        pass

    def planner_call(self) -> AbstractContextManager[None]:
        return nullcontext()


class Driver:
    """A governor in charge of the session, and the documents that it is given."""

    def __init__(
        self,
        spark: SparkSession,
        positions: Positions | None = None,
        clock: Callable[[], float] = time.monotonic,
        forbearance: Forbearance = USUAL,
        wall_clock: Callable[[], float] | None = None,
        *,
        is_fenced: bool = False,
    ) -> None:
        """`is_fenced`: the checkpoints of its queries are, as with a real driver."""
        self.spark = spark
        self._generation = 0
        self.jvm = jvm = DriverJvm.of(spark.sparkContext)
        self.governor = Governor(
            Services(
                acquire_lock=lambda _: None,
                open_checkpoint=self._checkpoint,
                open_fence=self._fence if is_fenced else lambda *_: None,
                observer=Unmeasured(),
                positions=positions,
                find_beginnings=lambda options, partitions: beginnings(
                    spark.sparkContext._jvm, options, partitions
                ),
                open_topic_ids=lambda options: JvmTopicIds(spark.sparkContext._jvm, options),
                file_bytes=jvm.file_bytes,
                event_times=lambda: by_clients_of(spark.sparkContext._jvm),
                unread=lambda: by_consumers_of(spark.sparkContext._jvm),
                snapshots=lambda: snapshots_by_consumers_of(spark.sparkContext._jvm),
                recall=jvm.recall,
                clock=clock,
                forbearance=forbearance,
                wall_clock=wall_clock,
            )
        )

    def control(self, control: QueryControl | None = None, **queries: QueryControl) -> None:
        """Give the next document: for the one query, or for several by name."""
        self._generation += 1
        listed = queries if control is None else {NAME: control}
        self.governor.take_document(ControlDocument(generation=self._generation, queries=listed))

    @contextmanager
    def running(
        self, frame: DataFrame, checkpoint: Path, *, to: Path | None = None, name: str = NAME
    ) -> Iterator[StreamingQuery]:
        """Run a query that writes `frame` nowhere, or to Parquet files; stop it when the block ends."""
        query = self.start(self.writer(frame, checkpoint, to=to, name=name))
        try:
            yield query
        finally:
            query.stop()

    @staticmethod
    def writer(frame: DataFrame, checkpoint: Path, *, to: Path | None, name: str = NAME) -> DataStreamWriter:
        """Return a writer of `frame` with a name and a checkpoint."""
        writer = frame.writeStream.queryName(name).option("checkpointLocation", str(checkpoint))
        return writer.format("noop") if to is None else writer.format("parquet").option("path", str(to))

    def start(self, writer: DataStreamWriter, *, available_now: bool = False) -> StreamingQuery:
        """Start what `writer` has."""
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def source(self, name: str, query: str = NAME) -> SourceFigures:
        """Return what the planner knows of a source, once it has been asked for one."""
        return wait_until(lambda: self._source(name, query), f"source {name} of query {query}")

    def _source(self, name: str, query: str) -> SourceFigures | None:
        for run in self.governor.runs:
            with run.lock:
                figures = run.figures() if run.name == query else None
            found = [source for source in (figures.sources if figures else ()) if source.name == name]
            if found:
                return found[0]
        return None

    def _fence(self, described: Descriptor, checkpoint: Checkpoint, is_locked: bool) -> Fencing | None:
        return open_fence(described, checkpoint, self.jvm, application="tests", is_locked=is_locked)

    def _checkpoint(self, described: Descriptor) -> Checkpoint:
        files = self.jvm.files_of(described.run_id)
        return Checkpoint(described.checkpoint, lambda uri: HadoopDirectory(self.jvm.view, files, uri))


@contextmanager
def driver_in(
    spark: SparkSession,
    positions: Positions | None = None,
    clock: Callable[[], float] = time.monotonic,
    forbearance: Forbearance = USUAL,
    wall_clock: Callable[[], float] | None = None,
    *,
    is_fenced: bool = False,
) -> Iterator[Driver]:
    """Put a governor in charge of all queries of the session while the block runs; `clock` is the planner's.

    Without a `wall_clock` no lag of a watermark is known, and triggers keep no grid.
    """
    driver = Driver(spark, positions, clock, forbearance, wall_clock, is_fenced=is_fenced)
    be_patient(spark)
    with governed(spark, driver.governor):
        yield driver


def await_rows(query: StreamingQuery, rows: int) -> list[int]:
    """Wait until the query has read at least so many rows; return the sizes of its batches."""

    def enough() -> list[int] | None:
        assert query.exception() is None, query.exception()
        sizes = batch_sizes(query)
        return sizes if sum(sizes) >= rows else None

    found: list[int] = wait_until(enough, f"{rows} rows", DEADLINE_SECONDS)
    return found
