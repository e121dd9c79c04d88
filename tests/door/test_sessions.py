"""Sessions that live long: queries in the batches of another one, one context after the other, clients that leave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from headgate_contract import BatchControl, ControlDocument, QueryControl
from headgate_contract.receiving import write
from headgate_spark.engine.shim import jar_path
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Record, send
from support.kinds import SPARK, Connect, Java, Kind, Notebook, Pipeline, Query, batches, committed, rows
from support.waiting import wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
WAIT_SECONDS = 240.0
RECORDS = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with a control document: of each query that a test starts, batches of 5 records."""
    small = QueryControl(interval_seconds=0.2, batch=BatchControl(initial_records=5, max_records=5))
    queries = dict.fromkeys(("outer", "inner", "first", "second"), small)
    (tmp_path / "control.json").write_text(write(ControlDocument(generation=1, queries=queries)))
    return tmp_path


@pytest.fixture
def notebook(kafka: Broker, folder: Path) -> Iterator[Notebook]:
    with Notebook(folder, kafka.bootstrap) as kind:
        kind.start([], properties(folder))
        yield kind


@pytest.fixture
def connect(kafka: Broker, folder: Path) -> Iterator[Connect]:
    with Connect(folder, kafka.bootstrap) as kind:
        yield kind


def properties(folder: Path) -> dict[str, str]:
    return {"spark.headgate.control": str(folder / "control.json"), "spark.headgate.metrics.port": "0"}


def query(kafka: Broker, folder: Path, name: str) -> Query:
    """Return a query of a topic of its own that has some records."""
    made = Query(name, (kafka.topic(),), 0, folder)
    more(kafka, made, 0)
    return made


def more(kafka: Broker, of: Query, so_far: int) -> None:
    numbers = range(so_far, so_far + RECORDS)
    send(kafka.bootstrap, of.topics[0], [Record(0, START_MS + n, str(n).encode()) for n in numbers])


def await_rows(kind: Kind, of: Query, count: int) -> None:
    """Wait until a query has written so many rows, and has read them in batches of 5 records."""
    wait_until(
        lambda: len(rows(kind, of)) >= count, f"{count} rows", WAIT_SECONDS, seen=lambda: kind.log[-4000:]
    )
    assert sorted(int(value) for _, value in rows(kind, of)) == list(range(count))
    assert len(committed(kind, of)) >= count / 5 - 1


def test_a_query_that_is_started_in_a_batch_of_another_one_is_governed(
    notebook: Notebook, kafka: Broker, folder: Path
):
    """Its session is a copy that Spark makes for the outer query, and its thread a child of that one's."""
    outer, inner = (query(kafka, folder, name) for name in ("outer", "inner"))
    notebook.run(f"""
OUTER, INNER = {outer.line.split(chr(9))!r}, {inner.line.split(chr(9))!r}
seen, inside = [], []

def each(batch, number):
    seen.append(batch.count())
    if not inside:
        inside.append(start(batch.sparkSession, *INNER))

(topic(spark, OUTER[1]).writeStream.queryName("outer").foreachBatch(each)
    .option("checkpointLocation", OUTER[3]).trigger(processingTime="1 hour").start())
""")
    await_rows(notebook, inner, RECORDS)
    wait_until(lambda: len(committed(notebook, outer)) >= 4, "the outer query's batches", WAIT_SECONDS)
    assert int(notebook.run("print(max(seen))")) <= 5


def test_a_context_after_another_one_in_the_same_process_is_governed_unless_it_says_no(
    notebook: Notebook, kafka: Broker, folder: Path
):
    first, alone, second = (query(kafka, folder, name) for name in ("first", "outer", "second"))
    notebook.run(f"start(spark, *{first.line.split(chr(9))!r})")
    await_rows(notebook, first, RECORDS)
    notebook.run("""
spark.stop()
spark = SparkSession.builder.config("spark.headgate.enabled", "false").getOrCreate()
""")
    notebook.run(f"start(spark, *{alone.line.split(chr(9))!r})")
    wait_until(lambda: rows(notebook, alone), "rows", WAIT_SECONDS, seen=lambda: notebook.log[-4000:])
    assert [len(batch) for _, batch in batches(notebook, alone)] == [RECORDS]
    notebook.run("spark.stop(); spark = SparkSession.builder.getOrCreate()")
    notebook.run(f"start(spark, *{second.line.split(chr(9))!r})")
    await_rows(notebook, second, RECORDS)
    assert {s.labels["query"] for s in notebook.metrics() if s.name == "headgate_query_active"} == {
        "first",
        "second",
    }


HELD = """
def held(name, read, trigger={"processingTime": "1 second"}, **said):
    writer = read.load().writeStream.format("noop").queryName(name).trigger(**trigger).options(**said)
    return writer.option("checkpointLocation", f"{FOLDER}/{name}").start()

def ticks(**said):
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).options(**said)

def begin():
    limit = {"headgate.rateLimit.recordsPerSecond": "0.001"}
    files = spark.readStream.schema("id LONG").format("parquet").option("path", FOLDER + "/empty")
    return [
        held("paused", ticks(**{"headgate.paused": "true"})),
        held("limited", ticks(**limit)),
        held("ending", ticks(**limit), {"availableNow": True}),
        held("idle", files, **{"headgate.interval": "1h"}),
    ]
"""


def test_a_held_query_ends_with_its_context_and_goes_on_in_the_next_one(folder: Path):
    """A thread that is held asks nothing of its context: it would keep the checkpoint for as long as it is held."""
    (folder / "empty").mkdir()
    with Notebook(folder, "") as kind:

        def epochs(without: frozenset[Path] = frozenset()) -> frozenset[Path]:
            """Wait until each query holds its checkpoint, by other files than those."""

            def found() -> frozenset[Path]:
                return frozenset(folder.glob("*.headgate/epoch.*")) - without

            wait_until(lambda: len(found()) == 4, "four epochs", WAIT_SECONDS, seen=lambda: kind.log[-4000:])
            return found()

        def are_held() -> bool:
            held = "headgate_source_held_seconds_total"
            return len({s.labels["query"] for s in kind.metrics() if s.name == held and s.value}) == 4

        kind.start([], {"spark.headgate.metrics.port": "0"})
        kind.run(f"FOLDER = {str(folder)!r}\n{HELD}\nold = begin()")
        first = epochs()
        wait_until(are_held, "that all are held", WAIT_SECONDS, seen=lambda: kind.log[-4000:])
        kind.run("spark.stop(); spark = SparkSession.builder.getOrCreate(); new = begin()")
        epochs(first)
        assert not any(file.exists() for file in first)
        assert kind.run("print(*(query.exception() for query in new))").split() == ["None"] * 4
        said = kind.run("print(*(str(query.exception()) for query in old))")
        assert said.count("Cannot call methods on a stopped SparkContext") == 4, said


IN_MID_BATCH = """
import threading

inside, free = threading.Event(), threading.Event()

def each(batch, number):
    inside.set()
    free.wait()

def begin():
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    return rows.writeStream.foreachBatch(each).option("checkpointLocation", CHECKPOINT).start()

def waits():
    threads = spark._jvm.org.apache.spark.util.Utils.getThreadDump()
    return any("awaitPredecessor" in each.toString() for each in threads)
"""


def test_a_query_waits_for_the_batch_that_it_has_left_in_the_session_before(folder: Path):
    with Notebook(folder, "") as kind:
        kind.start([], {"spark.headgate.metrics.port": "0"})
        kind.run(f"CHECKPOINT = {str(folder / 'checkpoint')!r}\n{IN_MID_BATCH}\nold = begin()")
        kind.run("assert inside.wait(60)")
        kind.run("spark.stop(); spark = SparkSession.builder.getOrCreate(); inside.clear(); new = begin()")
        wait_until(
            lambda: kind.run("print(waits(), new.exception())").split() != ["False", "None"], "the wait", 60
        )
        kind.run("free.set()")
        assert kind.run("print(inside.wait(60), new.exception())").split() == ["True", "None"]


def test_clients_of_spark_connect_come_and_go(connect: Connect, kafka: Broker, folder: Path):
    first, second = (query(kafka, folder, name) for name in ("first", "second"))
    connect.start([first], properties(folder))
    await_rows(connect, first, RECORDS)
    connect.end_clients()
    later = [s for s in connect.metrics() if s.name == "headgate_query_active"]
    assert {s.labels["application"] for s in later} == {"Spark Connect server"}
    connect.client("ada", [second])
    await_rows(connect, second, RECORDS)
    more(kafka, second, RECORDS)
    await_rows(connect, second, 2 * RECORDS)


def test_a_flow_of_a_pipeline_has_settings_of_its_own(
    kafka: Broker, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    first, second = (query(kafka, folder, name) for name in ("first", "second"))
    monkeypatch.setenv("FLOW_CONF", json.dumps({"first": {"spark.headgate.batch.maxRecords": "5"}}))
    with Pipeline(folder, kafka.bootstrap) as kind:
        kind.start([first, second], properties(folder))
        assert kind.await_end() == 0, kind.log[-4000:]
    sizes = {each.name: [len(batch) for _, batch in batches(kind, each) if batch] for each in (first, second)}
    assert sum(sizes["first"]) == sum(sizes["second"]) == RECORDS
    assert max(sizes["first"]) <= 5
    assert sizes["second"] == [RECORDS]


def test_a_connector_that_comes_after_the_session_is_asked_for_event_times(kafka: Broker, folder: Path):
    """Through a class loader that there was not when this jar was loaded: one below that of the session."""
    first = Query("first", (kafka.topic(), kafka.topic()), 0, folder)
    for topic, ahead in zip(first.topics, (0, 60), strict=True):
        records = [Record(0, START_MS + (ahead + n) * 1000, str(n).encode()) for n in range(RECORDS)]
        send(kafka.bootstrap, topic, records)
    said = {"spark.headgate.alignment.group": "all", "spark.headgate.alignment.maxDrift": "3s"}
    with Notebook(folder, kafka.bootstrap) as kind:
        kind.more = {"spark.jars": str(jar_path())}
        kind.start([], properties(folder) | said)
        for jar in connector_jars():
            kind.run(f'spark.sql("ADD JAR {jar}")')
        _, topics, *rest = first.line.split("\t")
        kind.run(f"start(spark, 'first', {topics!r}, *{rest!r})")
        wait_until(
            lambda: len(rows(kind, first)) == 2 * RECORDS, "all", WAIT_SECONDS, seen=lambda: kind.log[-4000:]
        )
        read = [[topic for topic, _ in batch] for _, batch in batches(kind, first) if batch]
        assert read[0] == [first.topics[0]] * len(read[0]), "the other one is a minute ahead"
        floors = [
            s.value for s in kind.metrics() if s.name == "headgate_source_alignment_floor_timestamp_seconds"
        ]
        assert floors, kind.log[-4000:]


def test_a_jar_of_ours_that_comes_after_the_session_says_so_once_and_ends_streams_with_a_limit(folder: Path):
    with Notebook(folder, "") as kind:
        kind.start([], {})
        kind.run(f'spark.sql("ADD JAR {jar_path()}")')
        for name in ("first", "second"):
            kind.run(f'spark.range(3).write.parquet("{folder}/{name}")')
            kind.run(f'rows = spark.readStream.schema("id LONG").parquet("{folder}/{name}")')
            kind.run('writer = rows.writeStream.format("noop").trigger(availableNow=True)')
            kind.run(f'query = writer.option("checkpointLocation", "{folder}/checkpoint-{name}").start()')
            assert kind.run(f"print(query.awaitTermination({WAIT_SECONDS}))").strip() == "True"
            assert kind.run("print(query.lastProgress['numInputRows'])").strip() == "3"
        assert kind.log.count("its jar came after the session had begun") == 1, kind.log[-4000:]

        kind.run('spark.conf.set("spark.headgate.rateLimit.recordsPerSecond", "1")')
        kind.run(f'assert spark.read.parquet("{folder}/first").count() == 3')
        kind.run('writer = rows.writeStream.format("noop")')
        for stream in (f'spark.readStream.schema("id LONG").parquet("{folder}/first")', "writer.start()"):
            said = kind.run(f"try:\n    {stream}\nexcept Exception as error:\n    print(error)")
            assert "Headgate cannot govern this query: its jar came after the session had begun" in said
            assert "nobody would keep its rate limit" in said


class Sql(Kind):
    """A session of SQL, by `spark-sql`."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Enter a line."""
        self.popen(SPARK / "bin" / "spark-sql", "-e", "SELECT 'forty', 40 + 2", conf=conf)


def test_a_session_of_sql_answers_and_ends_as_without_us(folder: Path):
    """It starts no streams: what is there beside it must neither disturb nor keep it."""
    with Sql(folder, "") as kind:
        kind.start([], properties(folder) | {"spark.sql.catalogImplementation": "in-memory"})
        assert kind.await_end() == 0, kind.log[-4000:]
    assert "forty\t42" in kind.log
    assert "metrics are served" in kind.log
    assert "Exception" not in kind.log


@pytest.fixture
def java(kafka: Broker, folder: Path) -> Iterator[Java]:
    with Java(folder, kafka.bootstrap) as kind:
        yield kind


def test_a_job_in_java_with_only_the_jar_is_aligned_by_a_decoder_that_it_names(
    java: Java, kafka: Broker, folder: Path
):
    """Its values are numbers: those of event times."""
    first = Query("first", (kafka.topic(), kafka.topic()), 0, folder)
    for topic in first.topics:
        values = [str(START_MS + n * 1000).encode() for n in range(RECORDS)]
        send(kafka.bootstrap, topic, [Record(0, n, value) for n, value in enumerate(values)])
    (folder / "mine.py").write_text("def decode(value): return {'at': int(value)}\n")
    said = {
        "alignment.group": "all",
        "alignment.maxDrift": "3s",
        "eventTime.column": "$.at",
        "eventTime.format": "Avro",
    }
    conf = {f"spark.headgate.{name}": value for name, value in said.items()}
    for topic in first.topics:
        conf[f"spark.headgate.queries.first.sources.{topic}.eventTime.decoder"] = "mine:decode"
    java.start([first], properties(folder) | conf | {"spark.headgate.pythonPath": str(folder)})
    wait_until(
        lambda: len(rows(java, first)) == 2 * RECORDS, "all", WAIT_SECONDS, seen=lambda: java.log[-4000:]
    )
    floors = [
        s.value for s in java.metrics() if s.name == "headgate_source_alignment_floor_timestamp_seconds"
    ]
    assert floors, java.log[-4000:]
    assert min(floors) >= START_MS / 1000


def test_a_decoder_that_is_not_there_ends_the_query_and_is_named(java: Java, kafka: Broker, folder: Path):
    first = query(kafka, folder, "first")
    name = f"spark.headgate.queries.first.sources.{first.topics[0]}.eventTime.decoder"
    java.start([first], properties(folder) | {name: "mine:decode"})
    assert java.await_end() != 0
    assert f"property {name}: module mine cannot be imported in the planner's process" in java.log


def test_both_clients_of_a_server_with_executors_have_kafka_read_in_columns(
    connect: Connect, kafka: Broker, folder: Path
):
    """Each has a session with artifacts of its own, which sees the jars that the server was started with."""
    events = folder / "events"
    events.mkdir()
    cluster = {
        "spark.master": "local-cluster[1,2,512]",
        "spark.executor.memory": "512m",
        "spark.executorEnv.SPARK_DIST_CLASSPATH": "/nowhere",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(events),
    }
    queries = [query(kafka, folder, name) for name in ("first", "second")]
    connect.start(queries, properties(folder) | cluster)
    for one in queries:
        await_rows(connect, one, RECORDS)
    lines = [line for file in events.rglob("events_*") for line in file.read_text().splitlines()]
    plans = [line for line in lines if "SparkListenerSQLExecutionStart" in line and "MicroBatchScan" in line]
    assert len(plans) > 1
    assert all("ColumnarToRow" in plan for plan in plans)
