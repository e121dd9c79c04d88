"""Failures of Kafka sources, told with source and remedy."""

import json

import pytest

from headgate_spark.engine.failures import explained, out_of_reach, told
from headgate_spark.engine.sources import Descriptor

QUERY = {"id": "11-22", "runId": "33-44", "name": "delays"}
MISSING = "UnknownTopicOrPartitionException: This server does not host this topic-partition."
LOST = "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Topic-partition returns-3: offset 10 was reset to 40."
REFUSED = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed"
SILENT = "org.apache.kafka.common.errors.TimeoutException: Call(callName=describeTopics) timed out"


def source(**options):
    members = {"handle": 1, "query": QUERY, "checkpoint": "file:/ck", "api": "v2", "format": "kafka"}
    kafka = {"kafka.bootstrap.servers": "broker:9092", **options}
    return Descriptor.parse(json.dumps({**members, "options": kafka}))


ROWS = (
    ("a missing topic", MISSING, {"orders": source(subscribe="orders")},
     "query delays: source orders: topic orders does not exist at broker:9092; create it, or correct `subscribe`"),
    ("one of two sources", MISSING, {"a": source(subscribe="x"), "b": source(subscribe="y")},
     "query delays: source a: topic x does not exist at broker:9092; create it, or correct `subscribe` in the job; "
     "or source b: topic y does not exist"),
    ("one of several topics", MISSING, {"a,b": source(subscribe="a, b")},
     "query delays: source a,b: one of the topics a, b does not exist at broker:9092; create it, or correct "
     "`subscribe` in the job"),
    ("a topic of partitions that are listed", MISSING, {"kafka": source(assign='{"orders":[0,1]}')},
     "query delays: source kafka: topic orders does not exist at broker:9092; create it, or correct `assign`"),
    ("a topic of a pattern", MISSING, {"o.*": source(subscribePattern="o.*")},
     "query delays: source o.*: a topic that matches o.* does not exist at broker:9092; create it, or correct "
     "`subscribePattern` in the job"),
    ("lost records of a partition that is listed", LOST,
     {"o": source(subscribe="o"), "k": source(assign='{"returns":[3]}')},
     "query delays: source k: records of topic returns (in returns-3) were removed"),
    ("lost records of a partition that a pattern matches", LOST,
     {"o": source(subscribe="o"), "r": source(subscribePattern="ret.*")},
     "query delays: source r: records of topics that match ret.* (in returns-3) were removed"),
    ("lost records of a partition in whose name a pattern is found", LOST.replace("returns", "eu-returns"),
     {"o": source(subscribe="o"), "r": source(subscribePattern="ret.*")},
     "query delays: source r: records of topics that match ret.* (in eu-returns-3) were removed"),
    ("lost records of a named partition", LOST, {"o": source(subscribe="orders"), "r": source(subscribe="returns")},
     "query delays: source r: records of topic returns (in returns-3) were removed before they were read"),
    ("a topic whose name ends as another's", LOST.replace("returns", "eu-returns"),
     {"a": source(subscribe="returns"), "b": source(subscribe="eu-returns")},
     "query delays: source b: records of topic eu-returns (in eu-returns-3) were removed"),
    ("a topic whose name is another's partition", LOST.replace("returns-3", "returns-3-0"),
     {"a": source(assign='{"returns":[3]}'), "b": source(subscribe="returns-3")},
     "query delays: source b: records of topic returns-3 (in returns-3-0) were removed"),
    ("a topic whose name begins as another's partition", LOST.replace("returns-3", "returns-3.eu-0"),
     {"a": source(subscribe="returns"), "b": source(subscribePattern=r"returns-3\.eu")},
     r"query delays: source b: records of topics that match returns-3\.eu (in returns-3.eu-0) were removed"),
    ("partitions of another topic that the job has read before",
     "Some data may have been lost\nReason: Partitions Set(x-0, x-1, x-2, x-3, x-4, x-5) have been deleted.",
     {"orders": source(subscribe="orders")},
     "query delays: source orders: its checkpoint goes on in x-0, x-1, x-2, x-3, x-4 and 1 more, which topic orders "
     "no longer has; if the job reads another topic than before, start from a new checkpoint, else let it"),
    ("credentials", REFUSED, {"orders": source(subscribe="orders")},
     "query delays: source orders: broker:9092 refuses the credentials for topic orders"),
    ("a topic that may not be read", "TopicAuthorizationException: Not authorized to access topics: [x, orders]",
     {"a": source(subscribe="eu-orders"), "b": source(subscribePattern="ord.*"), "c": source(subscribe="c")},
     "query delays: source b: broker:9092 refuses the credentials for topics that match ord.*; correct"),
    ("a broker that is away", SILENT, {"all": source(subscribePattern="o.*")},
     "query delays: source all: broker:9092 does not answer"),
    ("a topic that a sink of Kafka does not find",
     "kafka.common.errors.TimeoutException: Topic out not present in metadata after 60000 ms",
     {"orders": source(subscribe="orders")}, None),
    ("a sink of Kafka that is slow", "kafka.common.errors.TimeoutException: Expiring 3 record(s) for out-0:120000 ms",
     {"orders": source(subscribe="orders")}, None),
    ("a sink of Kafka that is slow, and whose topic the pattern of the source matches",
     "kafka.common.errors.TimeoutException: Expiring 3 record(s) for orders-copy-0:120000 ms",
     {"o.*": source(subscribePattern="o.*")}, None),
    ("a sink of Kafka that refuses",
     REFUSED + "\n\tat org.apache.kafka.clients.producer.KafkaProducer.send(K.java:1)",
     {"orders": source(subscribe="orders")}, None),
    ("a client of Kafka in a foreachBatch", "Traceback (most recent call last):\n  File x\nkafka.errors." + MISSING,
     {"orders": source(subscribe="orders")}, None),
    ("a topic that may not be written", "TopicAuthorizationException: Not authorized to access topics: [out]",
     {"orders": source(subscribe="orders")}, None),
    ("a store of files that refuses", "AuthorizationException: User: app is not allowed to impersonate hive",
     {"orders": source(subscribe="orders")}, None),
    ("another failure", "java.lang.OutOfMemoryError", {"orders": source(subscribe="orders")}, None),
    ("no Kafka source", MISSING, {}, None),
)  # fmt: skip


@pytest.mark.parametrize(("failure", "sources", "message"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_a_failure_is_told_with_source_and_remedy(failure, sources, message):
    answer = explained("delays", failure, sources)
    assert answer is None if message is None else answer.startswith(message)


PLAN = "\n=== Streaming Query ===\nIdentifier: delays [id = 1]\nLogical Plan:\nProject [MyError AS x]\n"
TRACEBACK = (
    'Message: Traceback (most recent call last):\n  File "sink.py", line 3, in write\nValueError: no room\n'
)
OF_JAVA = (
    'Message: Traceback (most recent call last):\n  File "sink.py", line 3, in write\n    rows.write.jdbc(url, "t")\n'
    "py4j.protocol.Py4JJavaError: An error occurred while calling o90.jdbc.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times\n"
    "\tat org.apache.spark.Writer.write(W.scala:1)\n"
)
OWN_WORDS = (
    ("of Spark", "[CAST_INVALID_INPUT] The value 'x' is no INT. SQLSTATE: 22018\n== SQL ==\ncast(x)\n",
     "query delays: [CAST_INVALID_INPUT] The value 'x' is no INT."),
    ("of Python", TRACEBACK, "query delays: ValueError: no room"),
    ("of Python, of a class that is called neither error nor exception",
     TRACEBACK.replace("ValueError: no room", "psycopg.errors.UniqueViolation: duplicate key\nDETAIL: (id)=(1)"),
     "query delays: psycopg.errors.UniqueViolation: duplicate key"),
    ("of a task, with what has caused it",
     "Job aborted due to stage failure: [TASK_WRITE_FAILED] Task failed while writing rows to /out. SQLSTATE: 58030\n"
     "\tat org.apache.spark.Writer.write(W.scala:1)\nCaused by: java.io.IOException: No space left on device\n",
     "query delays: Job aborted due to stage failure: [TASK_WRITE_FAILED] Task failed while writing rows to /out, by "
     "java.io.IOException: No space left on device"),
    ("of Java that Python has called",
     OF_JAVA + "Caused by: java.sql.SQLException: no room\n\tat org.h2.Driver.go(D.java:1)\n\nSQLSTATE: 39000",
     "query delays: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 "
     "times, by java.sql.SQLException: no room"),
    ("of Java that Python has called, without a cause", OF_JAVA,
     "query delays: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 "
     "times"),
    ("of ours", "query delays: live waits behind a history", "query delays: live waits behind a history"),
    ("of a driver of databases",
     "java.sql.SQLException: cannot connect to jdbc:postgresql://db/x?user=app&password=canary\n",
     "query delays: java.sql.SQLException: cannot connect to jdbc:postgresql://db/x?user=app&password=(hidden)"),
    ("none", "", "query delays: it failed without a word"),
)  # fmt: skip


@pytest.mark.parametrize(("failure", "message"), [r[1:] for r in OWN_WORDS], ids=[r[0] for r in OWN_WORDS])
def test_another_failure_is_told_in_its_own_words_with_the_query(failure, message):
    assert told("delays", failure + PLAN, {"orders": source(subscribe="orders")}) == message


def test_a_failure_is_known_by_its_causes_where_its_own_words_do_not_tell():
    failure = "[STREAM_FAILED] Query delays terminated with exception: Failed to create new KafkaAdminClient"
    causes = (
        "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient\n"
        "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in bootstrap.servers"
    )
    sources = {"orders": source(subscribe="orders")}
    assert told("delays", failure + PLAN, sources, causes) == (
        "query delays: source orders: no host in broker:9092 is known by its name; correct "
        "`kafka.bootstrap.servers` in the job, or see that the driver's name service knows it"
    )
    assert told("delays", failure + PLAN, sources, "") == f"query delays: {failure}"


def test_what_stands_in_the_plan_of_a_query_is_no_sign_of_what_it_failed_of():
    failure = f"[DIVIDE_BY_ZERO] Division by zero.{PLAN}Filter (code = TopicAuthorizationFailed)\n"
    told_of = told("delays", failure, {"orders": source(subscribe="orders")})
    assert told_of == "query delays: [DIVIDE_BY_ZERO] Division by zero."


def test_a_source_out_of_reach_is_at_fault_whatever_topics_are_listed():
    failure = "TopicAuthorizationException: Not authorized to access topics: [x]"
    told_of = out_of_reach(
        "delays", "o", source(subscribePattern=r"\p{Alpha}"), failure
    )  # Java's, not Python's
    assert told_of.startswith("query delays: source o: broker:9092 refuses the credentials")


def test_no_secret_is_told_of_a_source_out_of_reach():
    failure = "com.example.AuthError: no https://user:canary@example.com/stream"
    assert "canary" not in out_of_reach("delays", "orders", source(subscribe="orders"), failure)
