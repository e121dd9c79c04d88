"""The metric names keep Prometheus' conventions."""

import pytest

from headgate_contract.metrics import ALL, MetricType


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
def test_names_carry_prefix_and_unit(metric):
    assert metric.name.startswith("headgate_")
    assert (metric.kind is MetricType.COUNTER) == metric.name.endswith("_total")
    assert metric.help.endswith(".")


def test_names_are_unique():
    assert len({metric.name for metric in ALL}) == len(ALL)
