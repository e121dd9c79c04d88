"""Every text fits the field of the status that it goes into: a status that is refused would stop everything."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from headgate.api.status import SparkApplicationStatus, Text, Word
from headgate_contract import metrics as names
from support.looping import Loop, application, query, source

QUERY, CARS, TAXIS, TOPIC = ("q" * 249, "c" * 249, "t" * 249, "p" * 249)
"""The longest names that a resource can give, and the longest of a topic."""
ENDLESS = "x" * 5000


def member(name: str) -> dict[str, Any]:
    return source(name=name, alignment={"group": "g" * 63, "maxDrift": "5s"})


def reporting(*series: tuple[str, dict[str, str]]) -> SparkApplicationStatus:
    """What becomes of series whose labels are of any length."""
    declared = application(queries=[query(name=QUERY, sources=[member(CARS), member(TAXIS)])])
    loop = Loop(declared=declared)
    loop.run_until_running()
    loop.world.metrics.reports(query=QUERY, sources={CARS: {"pending_records": 1.0}, TAXIS: {}})
    loop.world.metrics.reports_held(1.0, "Alignment", query=QUERY, source=CARS)
    loop.acknowledged_reconcile()
    loop.world.metrics.reports_held(9.0, "Alignment", query=QUERY, source=CARS)
    loop.world.metrics.values += [
        (name, {"application": "flights", "query": QUERY, **labels}, 1.0) for name, labels in series
    ]
    loop.acknowledged_reconcile()
    assert loop.memory.status is not None
    return loop.memory.status


def test_the_longest_names_of_a_resource_are_told_in_full() -> None:
    slowest, split = f"{QUERY}/{TAXIS}", f"{TOPIC}/1234"
    status = reporting(
        (names.SOURCE_ALIGNMENT_HELD_BY.name, {"source": CARS, "member": slowest}),
        (names.SOURCE_ALIGNMENT_HELD_BY_PARTITION.name, {"source": CARS, "partition": split}),
        (names.QUERY_WATERMARK_HELD_BY.name, {"source": TAXIS}),
    )
    cars = status.queries[0].sources[0]
    assert cars.alignment is not None
    assert (cars.alignment.held_by, cars.alignment.held_by_partition) == (slowest, split)
    assert status.queries[0].watermark_held_by == TAXIS
    assert status.summary.query == QUERY


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        (names.SOURCE_ALIGNMENT_HELD_BY.name, {"source": CARS, "member": ENDLESS}),
        (names.SOURCE_ALIGNMENT_HELD_BY_PARTITION.name, {"source": CARS, "partition": ENDLESS}),
        (names.QUERY_WATERMARK_HELD_BY.name, {"source": ENDLESS}),
        (names.QUERY_OWNER.name, {"user": ENDLESS, "session": "5f"}),
        (names.SOURCE_INFO.name, {"source": CARS, "read_limit": ENDLESS}),
        (names.SOURCE_HELD.name, {"source": TAXIS, "reason": ENDLESS}),
        (names.SOURCE_OUT_OF_REACH.name, {"source": TAXIS, "cause": ENDLESS}),
        (names.SOURCE_FAR_AHEAD.name, {"source": TAXIS, "partition": ENDLESS}),
    ],
)
def test_whatever_a_job_says_there_is_a_status(name: str, labels: dict[str, str]) -> None:
    assert reporting((name, labels)).state is not None


@pytest.mark.parametrize(("form", "most"), [(Text, 1024), (Word, 128)])
def test_a_text_that_is_too_long_is_cut_and_shows_it(form: Any, most: int) -> None:
    fits, cut = (TypeAdapter(form).validate_python("x" * length) for length in (most, most + 1))
    assert fits == "x" * most
    assert cut == "x" * (most - 1) + "…"


def test_no_text_of_the_status_is_without_a_limit() -> None:
    schema = SparkApplicationStatus.model_json_schema()
    found = {
        f"{model}.{name}": member
        for model, shape in {"": schema, **schema["$defs"]}.items()
        for name, described in shape.get("properties", {}).items()
        for member in described.get("anyOf", [described])
        if member.get("type") == "string" and not member.keys() & {"format", "const"}
    }
    unlimited = {name for name, member in found.items() if "maxLength" not in member}
    assert unlimited == set()
    assert len(found) > 10
