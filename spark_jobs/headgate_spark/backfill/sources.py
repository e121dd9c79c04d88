"""Sources whose rows can be told apart: those before a cut, as a batch, and those from the cut on, as a stream.

A cut is fixed once, at the first start, and kept beside the checkpoint; from then on the same rows are history at
every start, whatever has arrived meanwhile. No row is in both parts, and none in neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.utils import to_str

from headgate_spark.backfill import kafka_history
from headgate_spark.backfill.horizon import Micros
from headgate_spark.backfill.kafka_history import EARLIEST
from headgate_spark.backfill.refusals import BackfillError, refuse
from headgate_spark.engine.shim import DriverJvm, ShimMissingError
from headgate_spark.kafka.lookups import JvmLookups, PartitionError, settings_of

Millis = int
"""Milliseconds since 1970, as records of Kafka have them."""
Cut = Any
"""Where a history ends, as a JSON value; what it means is known to its source alone."""


class Source(Protocol):
    """Rows that can be cut into a history and what comes after it. `str()` of it must not change between starts."""

    def cut(self, spark: SparkSession) -> Cut:
        """Return where what is there now ends."""

    def history(self, spark: SparkSession, cut: Cut) -> DataFrame:
        """Return the rows before the cut, as a batch."""

    def live(self, spark: SparkSession, cut: Cut, name: str) -> DataFrame:
        """Return the rows from the cut on, as a stream of that name where Spark wants names."""


def reader_of(spark: SparkSession, name: str) -> DataStreamReader:
    """Return a reader whose stream has a name where each stream of a query must have one; of its characters Spark
    takes letters, digits and underscores."""
    reader = spark.readStream
    is_wanted = str(spark.conf.get(_EVOLUTION, "false")).lower() == "true"
    return reader.name(re.sub(r"\W", "_", name, flags=re.ASCII)) if is_wanted else reader


@dataclass(frozen=True)
class Kafka:
    """Topics, from their first records to the offsets that were the latest at the first start."""

    subscribe: str
    """A topic, or several with commas between."""
    options: Mapping[str, str] = field(repr=False)
    """Those of Spark's source that do not change which records are read: `kafka.*`, with `kafka.bootstrap.servers`
    among them, and `kafka_history.OPTIONS`. `startingOffsets` is where the history begins: `earliest`, the default,
    or JSON."""

    def __post_init__(self) -> None:
        """Raises `BackfillError` with the option that cannot be backfilled."""
        refuse(kafka_history.options(self.options), f"topic {self.subscribe}")

    def cut(self, spark: SparkSession) -> Cut:
        """Return the first and the latest offset of each partition.

        Raises `BackfillError` where Kafka does not tell them, or does not keep what `startingOffsets` asks for.
        """
        return kafka_history.history(self._kept(spark), kafka_history.starting_offsets(self.options))

    def history(self, spark: SparkSession, cut: Cut, since: Millis | None = None) -> DataFrame:
        """Return the records before the cut, as a batch; of the partitions that there were then.

        `since` leaves out, in each partition, what comes before the first record with that timestamp or a later one.
        Raises `BackfillError` where Kafka does not keep them any more. Where records go while they are read, Spark
        fails, since it is told where they begin.
        """
        if not kafka_history.may_lose(self.options):
            refuse(kafka_history.lost(cut, self._kept(spark)))
        begins, ends = kafka_history.begins_of(cut), kafka_history.ends_of(cut)
        partitions = {topic: sorted(map(int, offsets)) for topic, offsets in ends.items()}
        of_cut = {"assign": json.dumps(partitions), "endingOffsets": json.dumps(ends)}
        if since is not None:
            begins = kafka_history.later(begins, self._first(spark, begins, since), ends)
        given = {name: value for name, value in self.options.items() if name.lower() != "startingoffsets"}
        return _in_columns(spark, {**given, **of_cut, "startingOffsets": json.dumps(begins)})

    def live(self, spark: SparkSession, cut: Cut, name: str) -> DataFrame:
        """Return the records from the cut on, as a stream; partitions that have come since from their beginning."""
        now, ends = self._kept(spark), kafka_history.ends_of(cut)
        begin = {topic: {p: ends.get(topic, {}).get(p, EARLIEST) for p in now[topic]} for topic in now}
        reader = reader_of(spark, name).format("kafka").options(**self.options)
        reader = reader.option("subscribe", self.subscribe)
        return reader.option("startingOffsets", json.dumps(begin)).load()

    def goes_by_timestamp(self, history: DataFrame, event_time: Column, since: Micros) -> bool:
        """Tell whether rows of the history at or after an event time are records with such a timestamp."""
        try:
            shim = DriverJvm.of(history.sparkSession.sparkContext).shim("KafkaHistory")
        except ShimMissingError:
            return False
        wanted = history.filter(event_time >= F.timestamp_micros(F.lit(since)))
        return bool(shim.goesByTimestamp(wanted._jdf, since))

    def _first(
        self, spark: SparkSession, begins: kafka_history.Offsets, since: Millis
    ) -> kafka_history.Offsets:
        """Return the first offset in each partition that has this timestamp or a later one; none where none has.

        Raises `BackfillError` where Kafka does not tell.
        """
        asked = {f"{topic}/{p}": since for topic, partitions in begins.items() for p in partitions}
        with _answers(", ".join(begins)), closing(JvmLookups(spark._jvm, self.options)) as lookups:
            found = lookups.find(asked)
        return {
            topic: {p: first.offset for p in partitions if (first := found[f"{topic}/{p}"]) is not None}
            for topic, partitions in begins.items()
        }

    def _kept(self, spark: SparkSession) -> kafka_history.Spans:
        topics = [topic.strip() for topic in self.subscribe.split(",")]
        return kafka_keeps(spark, topics, self.options)


_COLUMNAR = "spark.headgate.columnarKafka"
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_ALONE = {"enable.auto.commit": "false", "allow.auto.create.topics": "false"}


def kafka_keeps(
    spark: SparkSession, topics: Sequence[str], options: Mapping[str, str]
) -> kafka_history.Spans:
    """Return which offsets Kafka keeps of each partition of `topics`; `options` are those of Spark's source.

    It is asked by the client that Spark's connector has brought into the JVM; the shim need not be there. Raises
    `BackfillError` where there is no such topic, no broker that answers, or no connector.
    """
    with _answers(", ".join(topics)), closing(_consumer(spark, options)) as consumer:
        return {topic: _kept_of(spark, consumer, topic) for topic in topics}


@contextmanager
def _answers(topics: str) -> Iterator[None]:
    try:
        yield
    except (Py4JJavaError, PartitionError) as error:
        cause = error if isinstance(error, PartitionError) else error.java_exception.getMessage()
        raise BackfillError(
            f"topics {topics}: Kafka does not tell their offsets ({cause}); check the `kafka.` options"
        ) from None


def _by_spark(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    return spark.read.format("kafka").options(**options).load()


def _in_columns(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return what Kafka has between offsets; in columns where the shim is there and a stream would be read so."""
    if str(spark.conf.get(_COLUMNAR, "")).lower() == "false":
        return _by_spark(spark, options)
    try:
        history = DriverJvm.of(spark.sparkContext).shim("KafkaHistory")
    except ShimMissingError:
        return _by_spark(spark, options)
    return DataFrame(
        history.read(spark._jsparkSession, {name: to_str(value) for name, value in options.items()}), spark
    )


def _consumer(spark: SparkSession, options: Mapping[str, str]) -> Any:
    kafka = spark._jvm.org.apache.kafka
    if isinstance(kafka.clients.consumer.KafkaConsumer, JavaPackage):
        raise BackfillError(
            "Spark's Kafka source is not on the class path: add it by spark.jars.packages, "
            "org.apache.spark:spark-sql-kafka-0-10_2.13 in the version of Spark"
        )
    bytes_of = kafka.common.serialization.ByteArrayDeserializer
    settings = settings_of(spark._jvm, options, "headgate-backfill", _ALONE)
    return kafka.clients.consumer.KafkaConsumer(settings, bytes_of(), bytes_of())


def _kept_of(spark: SparkSession, consumer: Any, topic: str) -> dict[str, tuple[int, int]]:
    asked = spark._jvm.java.util.ArrayList()
    for partition in consumer.partitionsFor(topic) or ():
        asked.add(spark._jvm.org.apache.kafka.common.TopicPartition(topic, partition.partition()))
    if not len(asked):
        raise BackfillError(f"topic {topic} does not exist: create it, or subscribe to another")
    # In this order: what retention takes away between the two answers is missed later, not passed over.
    firsts, ends = consumer.beginningOffsets(asked), consumer.endOffsets(asked)
    return {str(partition.partition()): (int(firsts[partition]), int(ends[partition])) for partition in asked}


@dataclass(frozen=True)
class Files:
    """A directory that files are added to, cut by which files were there at the first start."""

    path: str
    format: str
    schema: str
    """Of the files, as DDL: a stream of files has to be told."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of Spark's source, for the batch and for the stream."""

    def cut(self, spark: SparkSession) -> Cut:
        """Return the files that are there and have rows, written as the rows themselves tell it.

        Raises `BackfillError` where the directory is not there, or is not to be read in this way.

        `inputFiles` writes the same path in another way, and a filter on it would find nothing.
        """
        return sorted(row[0] for row in self._read(spark.read).select(_FILE).distinct().collect())

    def history(self, spark: SparkSession, cut: Cut) -> DataFrame:
        """Return the rows of the files that were there, as a batch.

        Raises `BackfillError` where one of them is gone: a filter by their names would miss its rows without a word.
        """
        rows = self._read(spark.read)
        options = {name.lower(): value for name, value in self.options.items()}
        may_be_gone = str(options.get("ignoremissingfiles", "false")).strip().lower() == "true"
        if not may_be_gone and (gone := _gone(cut, rows.inputFiles())):
            raise BackfillError(
                f"file {gone[0]} was cut as history and is gone: put it back, cut what is there with a new "
                "checkpoint, or pass over what is gone with ignoreMissingFiles=true"
            )
        return rows.filter(_is_one_of(cut))

    def live(self, spark: SparkSession, cut: Cut, name: str) -> DataFrame:
        """Return the rows of all other files, as a stream. The files of the history are listed, but not read."""
        return self._read(reader_of(spark, name)).filter(~_is_one_of(cut))

    def _read(self, reader: Any) -> DataFrame:
        try:
            configured = reader.format(self.format).schema(self.schema).options(**self.options)
            rows: DataFrame = configured.load(self.path)
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                raise BackfillError(f"path {self.path} does not exist: create it") from None
            raise self._unreadable(str(error)) from None
        except Py4JJavaError as error:  # of a format that Spark does not find
            raise self._unreadable(str(error.java_exception.getMessage())) from None
        return rows

    def _unreadable(self, cause: str) -> BackfillError:
        first_line = cause.strip().partition("\n")[0]
        return BackfillError(
            f"path {self.path} cannot be read as {self.format} with columns {self.schema} ({first_line}): check "
            "format, schema and options"
        )


_FILE = "_metadata.file_path"


def _gone(cut: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return the files of a cut that are not there; both may write schemes and special characters in other ways."""
    found = {path for file in there for path in _spellings(file)}
    return [file for file in cut if not _spellings(file) & found]


def _spellings(file: str) -> set[str]:
    path = urlsplit(file).path
    return {path, unquote(path)}


def _is_one_of(files: list[str]) -> Column:
    """Tell rows of these files; Spark leaves out the other files without opening them."""
    return F.col(_FILE).isin(files)


@dataclass(frozen=True)
class Parts:
    """A history and a stream that goes on from it, which are two already: an archive and a topic, for one.

    That no row is in both, and none in neither, is seen to by whoever makes them.
    """

    history_rows: DataFrame = field(repr=False)
    """A batch; the same rows at every start until the history has been read."""
    live_rows: DataFrame = field(repr=False)
    """A stream."""

    def cut(self, spark: SparkSession) -> Cut:  # noqa: ARG002 (of the protocol)
        """Return nothing: they are cut."""
        return None

    def history(self, spark: SparkSession, cut: Cut) -> DataFrame:  # noqa: ARG002
        return self.history_rows

    def live(self, spark: SparkSession, cut: Cut, name: str) -> DataFrame:  # noqa: ARG002
        return self.live_rows
