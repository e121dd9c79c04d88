from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.adapters.metrics.prometheus import fetch
from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.columns import begin
from headgate.adapters.metrics.prometheus.details import Details, details
from headgate.adapters.metrics.prometheus.targets import Pod, Run, Target
from headgate.key import Key
from headgate.reconcile.readings import DriverMetrics, SourceMetrics
from headgate_contract import metrics as names
from headgate_contract.metrics import Metric

POD = Pod("team", "flights-driver-1")
INSTANCE = "10.0.0.1:8090"


def said(metric: Metric, value: str, **labels: str) -> Sample[Labels]:
    target = {"namespace": POD.namespace, "pod": POD.name, "job": "drivers", "instance": INSTANCE}
    return Sample(Labels(name=metric.name, **{**target, **labels}), (5000.0, value))


def test_what_a_series_names_by_a_label_of_its_own_reaches_the_loop() -> None:
    target = Target(Run(Key("team", "flights"), 1), 100.0, "drivers", INSTANCE, "")
    found = details(
        [
            said(names.SOURCE_INFO, "1", query="delays", source="cars", read_limit="offsets"),
            said(names.SOURCE_ALIGNMENT_HELD_BY, "1", query="delays", source="cars", member="fares/taxis"),
            said(
                names.SOURCE_ALIGNMENT_HELD_BY_PARTITION,
                "1",
                query="delays",
                source="cars",
                partition="rides/8",
            ),
            said(names.SOURCE_ALIGNMENT_DRIFT, "4.5", query="delays", source="cars"),
            said(names.SOURCE_FAR_AHEAD, "17", query="delays", source="cars", partition="rides/3"),
            said(names.QUERY_WATERMARK_HELD_BY, "1", query="delays", source="trams"),
            said(names.QUERY_OWNER, "1", query="delays", user="ada"),
            said(names.QUERY_MEMORY_BOUND, "1200000", query="delays"),
            said(names.QUERY_COST_BOUND, "900000", query="delays"),
            said(names.QUERY_UNPLANNED, "1", query="clicks"),
            said(names.EXECUTORS, "3"),
            said(names.SETTING_UNMATCHED, "1", cause="no query delay"),
            said(names.QUERY_FUTURE_BATCHES, "2", query="delays"),
            said(names.QUERY_BATCHES, "7", query="delays", kind="data"),
            said(names.QUERY_BATCHES, "5", query="delays", kind="no_data"),
        ],
        [],
        begin({POD: target}),
    )
    metrics = found[POD].added_to(DriverMetrics(at=100.0))
    delays = metrics.queries["delays"]
    assert (metrics.executors, delays.memory_bound_records, delays.future_batches) == (3, 1_200_000, 2)
    assert (delays.data_batches, delays.no_data_batches) == (7, 5)
    assert (delays.unplanned, metrics.queries["clicks"].unplanned) == (None, True)
    assert delays.cost_bound_records == 900_000
    assert metrics.unmatched == ("no query delay",)
    assert (delays.watermark_held_by, delays.owner) == ("trams", "ada")
    cars = delays.sources["cars"]
    assert (cars.read_limit, cars.alignment_drift_seconds) == ("offsets", 4.5)
    assert (cars.alignment_held_by, cars.alignment_held_by_partition) == ("fares/taxis", "rides/8")
    assert cars.far_ahead == {"rides/3": 17.0}


def test_a_driver_from_before_names_were_changed_is_asked_and_read_by_those() -> None:
    target = Target(Run(Key("team", "flights"), 1), 100.0, "drivers", INSTANCE, "")
    old = replace(
        names.SOURCE_ALIGNMENT_HELD_BY_PARTITION,
        name=names.RENAMED[names.SOURCE_ALIGNMENT_HELD_BY_PARTITION.name],
    )
    found = details(
        [
            said(names.SOURCE_INFO, "1", query="delays", source="cars", lane="offsets"),
            said(old, "1", query="delays", source="cars", split="rides/8"),
        ],
        [],
        begin({POD: target}),
    )
    cars = found[POD].driver.queries["delays"].sources["cars"]
    assert (cars.read_limit, cars.alignment_held_by_partition) == ("offsets", "rides/8")
    assert old.name in fetch.details([POD.name], "")


@pytest.mark.parametrize(("later", "is_told"), [(0.0, True), (299.0, True), (301.0, False)])
def test_details_stand_for_a_while_as_long_as_their_driver_is_heard(later: float, is_told: bool) -> None:
    found = Details(100.0, DriverMetrics(executors=3))
    assert (found.added_to(DriverMetrics(at=100.0 + later)).executors == 3) == is_told


def test_what_an_incomplete_answer_lacks_stands_and_not_for_ever() -> None:
    whole = Details(100.0, DriverMetrics(executors=3, spark_version="4.3.0"))
    whole.driver.query("delays").failure = "query delays: its topic is gone"
    part = Details(115.0, DriverMetrics(executors=4)).filled_up(whole)
    assert (part.at, part.driver.executors, part.driver.spark_version) == (115.0, 4, "4.3.0")
    assert part.driver.queries["delays"].failure == "query delays: its topic is gone"
    later = Details(399.0, DriverMetrics(executors=5)).filled_up(part)
    assert later.driver.spark_version == "4.3.0"
    assert Details(401.0, DriverMetrics(executors=5)).filled_up(later).driver.spark_version is None


def test_details_are_added_to_what_the_columns_have() -> None:
    driver = DriverMetrics(at=100.0, attempt=1, control_generation=7)
    driver.source("delays", "cars").pending_records = 5.0
    known = DriverMetrics(executors=3)
    known.query("delays").throughput = 9.0
    known.source("delays", "cars").read_limit = "offsets"
    known.source("delays", "trams").read_limit = "files"
    found = Details(100.0, known).added_to(driver)
    assert (found.control_generation, found.executors, found.queries["delays"].throughput) == (7, 3, 9.0)
    assert found.queries["delays"].sources == {
        "cars": SourceMetrics(pending_records=5.0, read_limit="offsets"),
        "trams": SourceMetrics(read_limit="files"),
    }
    assert driver.queries["delays"].sources == {"cars": SourceMetrics(pending_records=5.0)}, "it is published"
