"""What a client that asks for event times is given of the options of its source."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from headgate_spark.kafka.lookups import JvmLookups, JvmReads, PartitionError, settings_of


class HashMap(dict[str, str]):
    """The one of Java."""

    def put(self, key: str, value: str) -> None:
        self[key] = value


class Strategy:
    """Of Spark's source, which has fetched no token."""

    def __init__(self, _: str) -> None: ...

    def setAuthenticationConfigIfNeeded(self, settings: HashMap) -> HashMap:  # noqa: N802 -- as in Scala
        return settings


def settings(options: Mapping[str, str], more: Mapping[str, str] | None = None) -> Mapping[str, str]:
    made: Mapping[str, str] = settings_of(jvm(), options, "headgate-tests", more or {})
    return made


class Admins:
    """Of one broker that refuses the first, and whatever they were asked by."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.closed: list[str] = []

    def create(self, settings: Mapping[str, str]) -> SimpleNamespace:
        time.sleep(0.05)  # as long as others may ask
        name = settings["client.id"]
        self.made.append(name)
        return SimpleNamespace(name=name, close=lambda: self.closed.append(name))

    def logs(self, admin: SimpleNamespace, _: bool) -> SimpleNamespace:
        answer = "SaslAuthenticationException: no" if admin.name == self.made[0] else [7, -1]
        return SimpleNamespace(offsets=lambda asked, _: json.dumps(dict.fromkeys(json.loads(asked), answer)))


def jvm(consumer: Callable[..., object] | None = None, admins: Admins | None = None) -> SimpleNamespace:
    """Return as much as there is asked of the JVM's classes; `consumer` and `admins` stand for Kafka's."""
    kafka010 = SimpleNamespace(SubscribePatternStrategy=Strategy)
    serialization = SimpleNamespace(ByteArrayDeserializer=object)
    kafka = SimpleNamespace(
        clients=SimpleNamespace(
            consumer=SimpleNamespace(KafkaConsumer=consumer), admin=SimpleNamespace(Admin=admins)
        ),
        common=SimpleNamespace(serialization=serialization),
    )
    spark = SimpleNamespace(sql=SimpleNamespace(kafka010=kafka010))
    shim = SimpleNamespace(Kafka=SimpleNamespace(records=lambda _: None, logs=admins and admins.logs))
    return SimpleNamespace(
        java=SimpleNamespace(util=SimpleNamespace(HashMap=HashMap)),
        org=SimpleNamespace(apache=SimpleNamespace(spark=spark, kafka=kafka)),
        dev=SimpleNamespace(headgate=SimpleNamespace(spark=shim)),
    )


def test_the_consumer_group_of_a_source_is_not_joined() -> None:
    assert "group.id" not in settings({"kafka.group.id": "g", "kafka.bootstrap.servers": "127.0.0.1:9092"})


def test_the_options_of_its_client_are_given_once_and_those_of_spark_are_not_handed_on() -> None:
    given = settings({"kafka.security.protocol": "SSL", "subscribe": "orders", "startingOffsets": "earliest"})
    assert given["security.protocol"] == "SSL"
    assert not given.keys() & {"subscribe", "startingOffsets", "kafka.security.protocol"}


@pytest.mark.parametrize(
    ("option", "own"),
    [
        ("request.timeout.ms", "30000"),
        ("default.api.timeout.ms", "30000"),
    ],
)
def test_a_client_has_timeouts_of_its_own(option: str, own: str) -> None:
    assert settings({f"kafka.{option}": "7"})[option] == own


def test_a_client_that_is_kept_open_finds_brokers_that_have_all_moved_unless_the_job_says_otherwise() -> None:
    option = "metadata.recovery.strategy"
    assert settings({})[option] == "rebootstrap"
    assert settings({f"kafka.{option}": "none"})[option] == "none"


def test_each_client_has_a_name_that_no_other_has() -> None:
    names = [settings({"kafka.client.id": "orders"})["client.id"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("headgate-tests-") for name in names)


def test_to_look_at_the_records_of_a_topic_does_not_create_it() -> None:
    """Brokers make a topic that a consumer names and that was deleted, where nobody says that they are not to."""
    made: list[Mapping[str, str]] = []
    JvmReads(jvm(lambda settings, *_: made.append(settings)), {"kafka.bootstrap.servers": "127.0.0.1:9092"})
    assert [settings["allow.auto.create.topics"] for settings in made] == ["false"]


def test_what_looking_at_records_takes_is_above_the_options_of_the_source() -> None:
    own = {"isolation.level": "read_uncommitted"}
    assert settings({"kafka.isolation.level": "read_committed"}, own).items() >= own.items()


def test_of_two_threads_that_ask_after_a_refusal_one_makes_another_client() -> None:
    admins = Admins()
    lookups = JvmLookups(jvm(admins=admins), {"kafka.bootstrap.servers": "127.0.0.1:9092"})
    with pytest.raises(PartitionError, match="SaslAuthenticationException"):
        lookups.ends(["t/0"])
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lookups.ends, [["t/0"]] * 2)) == [{"t/0": 7}] * 2
    lookups.close()
    assert len(admins.made) == 2
    assert admins.closed == admins.made
