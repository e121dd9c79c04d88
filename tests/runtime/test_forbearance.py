"""What the shim is told of sources that do not answer, when their query begins."""

from __future__ import annotations

import json

import pytest

from headgate_spark.engine.forbearance import Forbearance
from headgate_spark.engine.governor import Governor
from support.engine import begins, described, services_with

PROPERTY = "spark.headgate.sourceOutage"


def told(governor: Governor, **properties: str) -> dict[str, object]:
    members = {"runId": "r1", "id": "id-r1", "name": "copy", "trigger": "processingTime", "plan": ""}
    return json.loads(governor.begins(json.dumps(members | {"properties": properties})))


@pytest.mark.parametrize(
    ("properties", "millis"),
    [({}, 300_000), ({PROPERTY: "250ms"}, 250), ({PROPERTY: "1h"}, 3_600_000), ({PROPERTY: "0s"}, 0)],
)
def test_what_kafka_calls_retriable_is_borne_with_for_five_minutes_or_as_long_as_is_said(
    properties: dict[str, str], millis: int
) -> None:
    assert told(Governor(services_with()), **properties) == {
        "bears": ["org.apache.kafka.common.errors.RetriableException"],
        "bearsOnceAnswered": ["org.apache.kafka.common.config.ConfigException"],
        "outageMillis": millis,
        "silenceMillis": 5_000,
    }


def test_the_property_holds_against_what_the_driver_was_given() -> None:
    governor = Governor(services_with(forbearance=Forbearance(outage_seconds=7.0)))
    assert told(governor)["outageMillis"] == 7_000
    assert told(governor, **{PROPERTY: "2s"})["outageMillis"] == 2_000


def test_a_time_that_is_none_refuses_the_query_and_is_named() -> None:
    governor = Governor(services_with())
    begins(governor, properties={PROPERTY: "300"})
    answer = governor.opened(1, described(1))
    assert answer.startswith(f"refuse:query copy: property {PROPERTY}: 300 has no unit; write for example")
