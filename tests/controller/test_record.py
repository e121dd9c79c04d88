"""What is remembered of a resource: judged once for each spec, its annotations as they are now."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import FINALIZER
from headgate.adapters.kubernetes.times import unix_time
from headgate.api.application import SparkApplication
from headgate.controller import record
from headgate.controller.record import ApplicationRecord, RefusedSpec, is_overdue, minimal_application
from headgate.decision.lifecycle import RELEASE_SECONDS
from headgate.key import Key
from support.operating import OPTIONS, Operation, manifest


def stored(
    generation: int = 1, annotations: dict[str, str] | None = None, name: str = "flights", **spec: Any
) -> Manifest:
    shown = manifest(name, **spec)
    shown["metadata"] |= {"uid": "u", "generation": generation, "annotations": annotations or {}}
    return shown


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Manifest]:
    """The manifests that were judged."""
    found: list[Manifest] = []
    real = record.validate_given

    def noting(given: Manifest) -> Any:
        found.append(given)
        return real(given)

    monkeypatch.setattr(record, "validate_given", noting)
    return found


def test_five_hundred_annotations_are_read_and_the_spec_is_judged_once(judged: list[Manifest]) -> None:
    kept = ApplicationRecord("u")
    for number in range(500):
        annotations = {"headgate.dev/checkpoint": f"{number}"}
        declared = kept.declared(stored(annotations=annotations), OPTIONS.drivers)
        assert isinstance(declared, SparkApplication)
        assert declared.metadata.annotations == annotations
    declared = kept.declared(stored(), OPTIONS.drivers)
    assert isinstance(declared, SparkApplication)
    assert declared.metadata.annotations == {}
    assert len(judged) == 1


def test_another_generation_is_judged_anew_and_what_was_refused_stays_so_until_then(
    judged: list[Manifest],
) -> None:
    kept = ApplicationRecord("u")
    bad = {"main": {"file": "s3a://nowhere"}}
    assert isinstance(kept.declared(stored(**bad), OPTIONS.drivers), RefusedSpec)
    assert isinstance(kept.declared(stored(annotations={"a": "b"}, **bad), OPTIONS.drivers), RefusedSpec)
    assert len(judged) == 1
    declared = kept.declared(stored(2, {"a": "b"}), OPTIONS.drivers)
    assert isinstance(declared, SparkApplication)
    assert declared.metadata.annotations == {"a": "b"}
    assert len(judged) == 2


def test_a_template_of_thousands_of_levels_is_refused_and_not_judged(judged: list[Manifest]) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    driver = {"podTemplate": {"spec": {"affinity": deep}}}

    declared = ApplicationRecord("u").declared(stored(driver=driver), OPTIONS.drivers)

    assert isinstance(declared, RefusedSpec)
    assert declared.message.startswith("spec.driver.podTemplate: has more than 64 levels in one another")
    assert not judged


def test_nobody_looks_for_advice_that_the_operator_does_not_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 256 properties with slips, and 32 queries, that takes four seconds."""
    monkeypatch.setattr("headgate.api.validation.advice", lambda _: pytest.fail("it was asked for"))

    declared = ApplicationRecord("u").declared(stored(sparkConf={"spark.headgate.x": "1"}), OPTIONS.drivers)

    assert isinstance(declared, SparkApplication)


@pytest.mark.parametrize(
    "bad",
    [{"sparkVersion": "password=x7Kq"}, {"main": {"file": "s3a://AKID:x7Kq@bucket/job.py"}}],
    ids=["refused anywhere", "impossible here"],
)
def test_what_is_wrong_with_a_spec_is_told_without_what_is_secret_in_it(bad: dict[str, Any]) -> None:
    declared = ApplicationRecord("u").declared(stored(**bad), OPTIONS.drivers)

    assert isinstance(declared, RefusedSpec)
    assert "(hidden)" in declared.message
    assert "x7Kq" not in declared.message


@pytest.mark.parametrize("name", ["orders.v2", "2024-orders", "a" * 41])
def test_an_application_of_any_name_can_be_stopped_and_let_go(name: str) -> None:
    leaving = stored(name=name, stop={"gracePeriod": "90s"})
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}
    asked_at = unix_time("2026-01-01T00:00:00Z")

    standing = minimal_application(leaving)
    assert (standing.name, standing.metadata.generation, standing.spec.suspend) == (name, 1, True)
    assert standing.spec.stop.grace_period.total_seconds() == 90
    overdue = [is_overdue(leaving, asked_at, asked_at + seconds) for seconds in (89, 90 + RELEASE_SECONDS)]
    assert overdue == [False, True]


@pytest.mark.parametrize("spec", [None, [], {}, {"stop": 7}, {"stop": {"gracePeriod": "soon"}}])
def test_how_long_it_waits_is_known_whatever_the_spec_is(spec: Any) -> None:
    leaving = {**stored(), "spec": spec}
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}
    asked_at = unix_time("2026-01-01T00:00:00Z")
    assert is_overdue(leaving, asked_at, unix_time("2027-01-01T00:00:00Z"))
    assert not is_overdue(leaving, None, unix_time("2027-01-01T00:00:00Z")), "nobody has tried yet"


@pytest.mark.parametrize("name", ["orders.v2", "2024-orders", "a" * 41])
def test_one_whose_name_is_refused_goes_when_it_is_deleted(name: str) -> None:
    o, key = Operation(), Key("team", name)
    shown = manifest(name)
    shown["metadata"]["finalizers"] = [FINALIZER]
    o.cluster.declare(shown)
    o.reconcile(key)
    assert o.condition("Ready", key)["reason"] == "InvalidSpec"
    o.cluster.remove(key)
    for _ in range(3):
        o.reconcile(key)
    assert ("sparkapplications", *key) not in o.cluster.objects
