"""The series that Prometheus has of us: what drivers and an operator expose, with the labels of their targets.

Drivers are taken from the contract, to which a test holds the exporter; the operator from its own registry.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from headgate.controller.decision_log import DecisionLog
from headgate.metrics import OperatorMetrics
from headgate_contract import metrics
from headgate_contract.metrics import MetricType

_LABELS = {
    "query": ["delays", "totals"],
    "cause": ["query delays: source flights: topic flights does not exist at broker:9092; create it"],
    "source": ["flights"],
    "reason": ["RateLimit", "Interval"],
    "kind": ["data", "no_data"],
    "lineage": ["0b5c7d3e-53f2-4c41-8a3e-2f6f9f3f7a10/1"],
    "read_limit": ["offsets"],
    "member": ["delays/weather/0"],
    "origin": ["option"],
    "session": ["5f0c2f4e-0c4e-4c43-9a0c-1f0f6a3b8a11"],
    "setting": ["interval"],
    "partition": ["flights/0"],
    "user": ["ada"],
    "version": ["4.3.0"],
    "voter": ["PendingRecords"],
}
_DRIVER = {"namespace": "etl", "pod": "flights-driver-1", "application": "flights"}
_OPERATOR = {"namespace": "headgate-system", "pod": "headgate-0", "service": "headgate-metrics"}
WATCHED = (
    *("queue_depth", "queue_longest_wait_seconds", "reconcile_longest_running_seconds"),
    *("control_longest_pending_seconds", "namespaces_unserved", "stalled_applications"),
)
"""What an operator reads at each scrape."""


def of_drivers() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every series that a driver may expose, by the contract."""
    for metric in metrics.ALL:
        for values in product(*(_LABELS[label] for label in metric.labels)):
            labels = _DRIVER | dict(zip(metric.labels, values, strict=True))
            if metric.kind is MetricType.HISTOGRAM:
                yield from ((f"{metric.name}_bucket", labels | {"le": le}) for le in ("0.1", "1.0", "+Inf"))
                yield from ((f"{metric.name}_{part}", labels) for part in ("count", "sum"))
            else:
                yield metric.name, labels


def of_an_operator() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every series that an operator exposes: from its start on they are all there."""
    measured = OperatorMetrics()
    measured.leader.set(1)
    DecisionLog(measured)
    measured.watch(**dict.fromkeys(WATCHED, lambda: 1))
    measured.watch_by_label(
        look_age_seconds=lambda: {"Prometheus": 1, "Driver": 1}, applications=lambda: {"Running": 1}
    )
    for family in measured.registry.collect():
        for sample in family.samples:
            yield sample.name, _OPERATOR | sample.labels
