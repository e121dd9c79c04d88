"""A real Kafka broker on the loopback address: one node, KRaft, in a folder of its own.

    with kafka_in(tmp_path) as broker:
        topic = broker.topic(partitions=4)
        fill(broker.bootstrap, topic, [Ramp(partition=0, records=1_000, start_ms=0, step_ms=10)])   # kafka_records
        spark.readStream.format("kafka").options(**broker.options(topic)).load()

A session shares one broker (the fixture `kafka`), and each test has topics of its own. Tests that kill a broker start
one for themselves. Records keep whatever timestamps they are given, and nothing is ever deleted by age.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from support.maven import JarsMissingError, jars
from support.requirements import missing
from support.servers import Server, free_port
from support.waiting import wait_until

BROKER = "kafka-broker"
REQUEST_SECONDS = 120.0
_CHUNK_BYTES = 1024 * 1024
USER, PASSWORD = "reader", "reader-secret"
"""Who may use the listener that asks for a name."""

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},FAR://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},FAR://127.0.0.1:{far}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.hours=-1
log.cleaner.backoff.ms=200
log.message.timestamp.before.max.ms=9223372036854775807
log.message.timestamp.after.max.ms=9223372036854775807
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=1500
"""
"""The last line: after `kill -9` the broker is let in again only when its old session is over."""

LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n
"""


class Broker:
    """A broker that may be stopped or killed, and started again with the same address and data."""

    def __init__(self, folder: Path, *, heap: str = "512m", full_compiler: bool = False) -> None:
        """Prepare a broker in `folder`. `full_compiler`: for what is measured; else it starts faster."""
        self.folder = folder
        self._ports = {name: free_port() for name in ("plain", "sasl", "controller", "behind", "far")}
        self._java = ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-Xshare:auto"]
        self._java += [] if full_compiler else ["-XX:TieredStopAtLevel=1"]
        self._java += [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
        self._java += ["-cp", str(_class_path())]
        self._server = Server([*self._java, "kafka.Kafka", self._properties], folder / "broker.log")
        self._names = itertools.count(1)
        self._admin: AdminClient | None = None

    # The process -----------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """Where it is, for clients."""
        return f"127.0.0.1:{self._ports['plain']}"

    @property
    def sasl_bootstrap(self) -> str:
        """Where it asks for a name and a password (SASL PLAIN)."""
        return f"127.0.0.1:{self._ports['sasl']}"

    @property
    def far(self) -> tuple[int, int]:
        """Ports of a listener that clients reach by the first, once somebody passes that on to the second."""
        return self._ports["far"], self._ports["behind"]

    @property
    def pid(self) -> int:
        """Process id."""
        return self._server.pid

    def start(self) -> None:
        """Start it, formatting its disk first where that is new, and wait until it serves all its partitions."""
        self._configure()
        if not self._data.exists():
            self._format()
        self._server.start()
        self._server.wait_until(self._serves)

    def stop(self) -> None:
        """Stop it in order."""
        self._server.stop()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._server.kill()

    # Topics ----------------------------------------------------------------------------------

    @property
    def admin(self) -> AdminClient:
        """A client for everything that has no method here."""
        if self._admin is None:
            self._admin = AdminClient(client_settings(self.bootstrap))
        return self._admin

    def topic(self, name: str | None = None, *, partitions: int = 1, **config: str) -> str:
        """Make a topic and return its name; without one it has a new name, so that no test meets another's records.

        `config` has the topic's properties, with `_` for `.`: `cleanup_policy="compact"`.
        """
        name = name or f"topic-{next(self._names)}"
        properties = {key.replace("_", "."): value for key, value in config.items()}
        self._done(self.admin.create_topics([NewTopic(name, partitions, 1, config=properties)]))
        self._await_leaders(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions, up to `total`."""
        self._done(self.admin.create_partitions([NewPartitions(topic, total)]))
        self._await_leaders(topic, total)

    def delete_topic(self, topic: str) -> None:
        """Remove a topic with its records."""
        self._done(self.admin.delete_topics([topic]))
        wait_until(lambda: topic not in self.admin.list_topics(timeout=60).topics, f"{topic} is gone")

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Lose the records before an offset of each partition, as retention does."""
        ends = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        self._done(self.admin.delete_records(ends))

    def compact(self, topic: str) -> None:
        """Have a topic compacted from now on."""
        policy = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        changes = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[policy])]
        self._done(self.admin.incremental_alter_configs(changes))

    def earliest(self, topic: str) -> dict[int, int]:
        """Return the first offset of each partition that has a leader."""
        return self._offsets(topic, OffsetSpec.earliest())

    def latest(self, topic: str) -> dict[int, int]:
        """Return the offset after the last record of each partition that has a leader."""
        return self._offsets(topic, OffsetSpec.latest())

    def read_ahead(self, *topics: str) -> None:
        """Have the records of topics in the page cache, whatever the machine has done since they were written."""
        for folder in (folder for topic in topics for folder in self._data.glob(f"{topic}-[0-9]*")):
            for segment in folder.glob("*.log"):
                with segment.open("rb", buffering=0) as file:
                    while file.read(_CHUNK_BYTES):
                        pass

    def options(self, topic: str, **more: str) -> dict[str, str]:
        """Return the options of a Spark source that reads a topic from its beginning."""
        subscribed = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": topic}
        return subscribed | {"startingOffsets": "earliest"} | more

    # -----------------------------------------------------------------------------------------

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _configure(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        filled = PROPERTIES.format(**self._ports, data=self._data, user=USER, password=PASSWORD)
        self._properties.write_text(filled, encoding="utf-8")
        (self.folder / "log4j2.properties").write_text(LOGGING, encoding="utf-8")

    def _format(self) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [
            *self._java,
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={cluster}",  # one word: an id may begin with a dash
            "-c",
            str(self._properties),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"the broker's disk cannot be formatted:\n{done.stdout}{done.stderr}"

    def _serves(self) -> bool:
        """Tell whether it answers for every partition: one may have a leader that does not lead yet."""
        try:
            known = self.admin.list_topics(timeout=10).topics
            return all(len(self.latest(name)) == len(topic.partitions) for name, topic in known.items())
        except KafkaException:
            return False

    def _await_leaders(self, topic: str, partitions: int) -> None:
        def lead() -> bool:
            try:
                return len(self.latest(topic)) == partitions
            except KafkaException:
                return False

        wait_until(lead, f"all {partitions} partitions of {topic} are led")

    def _offsets(self, topic: str, which: OffsetSpec) -> dict[int, int]:
        parts = self.admin.list_topics(topic, timeout=REQUEST_SECONDS).topics[topic].partitions.values()
        asked = {TopicPartition(topic, part.id): which for part in parts if part.leader >= 0}
        if not asked:
            return {}
        answers = self.admin.list_offsets(asked, request_timeout=REQUEST_SECONDS)
        return {partition.partition: answer.result().offset for partition, answer in answers.items()}

    @staticmethod
    def _done(answers: Mapping[object, object]) -> None:
        for answer in answers.values():
            answer.result(REQUEST_SECONDS)  # type: ignore[attr-defined]


def client_settings(bootstrap: str, **more: str | int) -> dict[str, str | int]:
    """Return what every client of a test is set to: one that is silent while a broker is away."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200, **more}


@contextmanager
def kafka_in(folder: Path, *, heap: str = "512m", full_compiler: bool = False) -> Iterator[Broker]:
    """Run a broker whose files are in `folder`; both are gone afterwards, and what a killed run left there before."""
    shutil.rmtree(folder, ignore_errors=True)
    broker = Broker(folder, heap=heap, full_compiler=full_compiler)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _class_path() -> Path:
    """Return the broker's jars; without them the test is skipped, and in CI fails."""
    try:
        return jars(BROKER)[0].parent / "*"
    except JarsMissingError as error:
        missing(str(error))
