"""What is remembered of a resource: judged once for each spec, its annotations as they are now."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.adapters.kubernetes import record
from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.record import Record, RefusedSpec
from headgate.api.application import SparkApplication
from support.operating import OPTIONS, manifest


def stored(generation: int = 1, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    shown = manifest(**spec)
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
    kept = Record("u")
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
    kept = Record("u")
    bad = {"main": {"file": "s3a://nowhere"}}
    assert isinstance(kept.declared(stored(**bad), OPTIONS.drivers), RefusedSpec)
    assert isinstance(kept.declared(stored(annotations={"a": "b"}, **bad), OPTIONS.drivers), RefusedSpec)
    assert len(judged) == 1
    declared = kept.declared(stored(2, {"a": "b"}), OPTIONS.drivers)
    assert isinstance(declared, SparkApplication)
    assert declared.metadata.annotations == {"a": "b"}
    assert len(judged) == 2
