"""Avro behind the id of a schema and Protobuf, read by decoders that a Java job names, with the jar of a release.

The planner's process is of a Python that has nothing installed: the jar brings what Headgate imports, and
`spark.headgate.pythonPath` what the decoders do.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import packaged
from support.encoded import AVRO_BEHIND_AN_ID, PROTOBUF, Encoded
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Record, send
from support.kinds import Java, Query, committed
from support.waiting import wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
AHEAD_SECONDS = 60
"""How much later than the topic in Avro the one in Protobuf begins."""
RECORDS = 20
WAIT_SECONDS = 240.0
FORMATS = {"AVRO_BEHIND_AN_ID": AVRO_BEHIND_AN_ID, "PROTOBUF": PROTOBUF}
"""By their names in `support.encoded`."""
MODULES, LIBRARIES = Path(__file__).parents[1], sysconfig.get_path("purelib")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of a build."""
    return next(packaged.build(tmp_path_factory.mktemp("release")).glob("headgate-spark_2.13-*.jar"))


@pytest.fixture
def java(release: Path, kafka: Broker, tmp_path: Path) -> Iterator[Java]:
    with Java(tmp_path, kafka.bootstrap) as kind:
        kind.more = {"spark.jars": ",".join(map(str, [*connector_jars(), release]))}
        yield kind


def bare_python(folder: Path) -> Path:
    """Return one that sees its standard library alone."""
    made = folder / "bare-python"
    made.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    made.chmod(0o755)
    return made


def topic_in(kafka: Broker, encoded: Encoded, start_ms: int) -> str:
    """Return a topic with a record a second in event time; the timestamps of the records say something else."""
    topic = kafka.topic()
    values = [encoded.encode(start_ms + n * 1000) for n in range(RECORDS)]
    send(kafka.bootstrap, topic, [Record(0, START_MS + n, value) for n, value in enumerate(values)])
    return topic


def properties(folder: Path, topics: dict[str, str], *places: object) -> dict[str, str]:
    """Return those of a job with a topic in each format; decoders are looked for in `places`."""
    said = {
        "metrics.port": "0",
        "interval": "200ms",
        "alignment.group": "all",
        "alignment.maxDrift": "3s",
        "python": str(bare_python(folder)),
        "pythonPath": ":".join(map(str, places)),
    }
    for name, topic in topics.items():
        of_source = f"queries.first.sources.{topic}.eventTime"
        said |= {
            f"{of_source}.column": FORMATS[name].column,
            f"{of_source}.format": FORMATS[name].form,
            f"{of_source}.decoder": f"support.encoded:{name}.decode",
        }
    return {f"spark.headgate.{name}": value for name, value in said.items()}


def read_up_to(kind: Java, of: Query) -> list[dict[str, int]]:
    """Return how far each topic was read by the end of each batch that was committed: its values are no text."""
    found = []
    for batch in committed(kind, of):
        _, _, *sources = (kind.checkpoint(of) / "offsets" / str(batch)).read_text().splitlines()
        ends = [json.loads(line) for line in sources if line.startswith("{")]
        found.append(
            dict.fromkeys(of.topics, 0) | {topic: end["0"] for each in ends for topic, end in each.items()}
        )
    return found


def test_two_formats_are_aligned_by_what_their_decoders_find(
    java: Java, kafka: Broker, tmp_path: Path
) -> None:
    starts = {"AVRO_BEHIND_AN_ID": START_MS, "PROTOBUF": START_MS + AHEAD_SECONDS * 1000}
    topics = {name: topic_in(kafka, FORMATS[name], start) for name, start in starts.items()}
    avro, protobuf = topics.values()
    first = Query("first", (avro, protobuf), 0, tmp_path)
    java.start([first], properties(tmp_path, topics, MODULES, LIBRARIES))
    wait_until(
        lambda: {avro: RECORDS, protobuf: RECORDS} in read_up_to(java, first),
        "all",
        WAIT_SECONDS,
        seen=lambda: java.log[-4000:],
    )
    reached = read_up_to(java, first)
    assert all(each[avro] == RECORDS for each in reached if each[protobuf]), "the earlier one comes first"
    assert any(each[avro] for each in reached if not each[protobuf])
    assert not [s for s in java.metrics() if s.name == "headgate_source_event_time_unreadable_offset"]


def test_a_library_of_a_decoder_that_is_not_there_ends_the_query_and_is_named(
    java: Java, kafka: Broker, tmp_path: Path
) -> None:
    topics = {"AVRO_BEHIND_AN_ID": topic_in(kafka, AVRO_BEHIND_AN_ID, START_MS)}
    java.start([Query("first", tuple(topics.values()), 0, tmp_path)], properties(tmp_path, topics, MODULES))
    assert java.await_end() != 0
    assert (
        "module support.encoded cannot be imported in the planner's process (ModuleNotFoundError: "
        "No module named 'fastavro'). Its Python is "
    ) in java.log
    assert (
        "in spark.headgate.python, or the folder or zip that has the module in spark.headgate.pythonPath"
        in java.log
    )
