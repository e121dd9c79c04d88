"""What a client that asks for event times is given of the options of its source."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from headgate_spark.kafka.lookups import settings_of


class HashMap(dict[str, str]):
    """The one of Java."""

    def put(self, key: str, value: str) -> None:
        self[key] = value


def settings(options: Mapping[str, str], more: Mapping[str, str] | None = None) -> Mapping[str, str]:
    jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(HashMap=HashMap)))
    made: Mapping[str, str] = settings_of(jvm, options, "headgate-tests", more or {})
    return made


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


def test_each_client_has_a_name_that_no_other_has() -> None:
    names = [settings({"kafka.client.id": "orders"})["client.id"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("headgate-tests-") for name in names)


def test_what_looking_at_records_takes_is_above_the_options_of_the_source() -> None:
    own = {"isolation.level": "read_uncommitted"}
    assert settings({"kafka.isolation.level": "read_committed"}, own).items() >= own.items()
