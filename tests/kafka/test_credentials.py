"""What clients of ours log in with: the credentials that are valid now, and the tokens that Spark has fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate_spark.kafka.lookups import JvmLookups, JvmReads, JvmTopicIds, PartitionError, settings_of
from support.kafka import PASSWORD, USER, Broker
from support.kafka_records import Ramp, fill

pytestmark = pytest.mark.spark

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
FILES = "org.apache.kafka.common.config.provider.FileConfigProvider"
CLIENTS: dict[str, tuple[Callable[..., Any], Callable[[Any, str], object]]] = {
    "offsets": (JvmLookups, lambda client, topic: client.ends([f"{topic}/0"])),
    "partitions": (JvmLookups, lambda client, topic: client.ends()),
    "ids of topics": (JvmTopicIds, lambda client, topic: client.ids([topic])),
    "records": (JvmReads, lambda client, topic: client.read({f"{topic}/0": 0}, 1)),
}


@pytest.mark.parametrize("asked_for", CLIENTS)
def test_a_client_that_is_refused_logs_in_with_what_was_given_out_since(
    spark: SparkSession, kafka: Broker, tmp_path: Path, asked_for: str
) -> None:
    topic, secret = kafka.topic(), tmp_path / "secret.properties"
    fill(kafka.bootstrap, topic, [Ramp(0, 1)])
    secret.write_text("password=of yesterday\n")
    login = {
        "kafka.bootstrap.servers": kafka.sasl_bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{PLAIN} username="{USER}" password="${{file:{secret}:password}}";',
        "kafka.config.providers": "file",
        "kafka.config.providers.file.class": FILES,
    }
    connect, ask = CLIENTS[asked_for]
    client = connect(spark.sparkContext._jvm, kafka.options(topic, **login))
    try:
        with pytest.raises((PartitionError, Py4JJavaError), match="SaslAuthenticationException"):
            ask(client, topic)
        secret.write_text(f"password={PASSWORD}\n")
        assert ask(client, topic)
    finally:
        client.close()


def test_clients_log_in_with_the_token_that_spark_has_fetched_for_their_servers(spark: SparkSession) -> None:
    """The token stays with this process, and is for servers that no test has."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    conf, text = spark.sparkContext._jsc.sc().conf(), jvm.org.apache.hadoop.io.Text
    conf.set("spark.kafka.clusters.far.auth.bootstrap.servers", "far.invalid:9092")
    conf.set("spark.kafka.clusters.far.target.bootstrap.servers.regex", r"far\.invalid:9092")
    service = text("kafka.server.delegation.token.far")
    token = jvm.org.apache.hadoop.security.token.Token
    fetched = token(bytearray(b"name"), bytearray(b"secret"), text("KAFKA_DELEGATION_TOKEN"), service)
    jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addToken(service, fetched)

    far, near = (
        settings_of(jvm, {"kafka.bootstrap.servers": f"{host}.invalid:9092"}, "headgate-tests")
        for host in ("far", "near")
    )
    assert far["sasl.mechanism"] == "SCRAM-SHA-512"
    assert "tokenauth=true" in far["sasl.jaas.config"]
    assert far["client.id"].startswith("headgate-tests-")
    assert "sasl.jaas.config" not in near
